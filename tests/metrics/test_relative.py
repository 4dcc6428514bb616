"""The local disparity of selection ratios."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
import oracles
from strategies import People, epsilons, people


def log_of(quotient: Fraction | None) -> float:
    return math.inf if quotient is None else math.log(quotient)


@given(st.data(), st.sampled_from(["above", "below"]), st.sampled_from(["0", "1/20", "1/2"]))
def test_it_is_the_definition(data: st.DataObject, tail: str, least: str) -> None:
    drawn: People = data.draw(people(n_groups=3, max_size=5))
    epsilon = data.draw(epsilons(drawn.grid))
    samples = drawn.samples(weighted=True)
    pairs = [(0, 1), (0, 2), (1, 2)]
    expected = max(
        log_of(oracles.relative_mcdp(samples[a], samples[b], epsilon, Fraction(least), tail == "below"))
        for a, b in pairs
    )
    options = {"sensitive_features": drawn.groups, "sample_weight": drawn.weights, "tail": tail}
    found = lp.relative_mcdp(
        None, drawn.scores, **options, epsilon=float(epsilon), min_rate=float(Fraction(least))
    )
    assert found == pytest.approx(expected, abs=1e-9)


@given(people())
def test_both_tails_are_the_worse_of_the_two(drawn: People) -> None:
    options = {"sensitive_features": drawn.groups, "epsilon": [0.0, 0.03]}
    above, below, both = (
        lp.relative_mcdp(None, drawn.scores, **options, tail=tail) for tail in ("above", "below", "both")
    )
    np.testing.assert_array_equal(both, np.maximum(above, below))


@given(people(n_groups=2))
def test_each_group_against_everyone(drawn: People) -> None:
    samples = drawn.samples()
    everyone = [*samples[0], *samples[1]]
    expected = max(
        log_of(oracles.relative_mcdp(sample, everyone, Fraction(0), Fraction(0), below))
        for sample in samples
        for below in (False, True)
    )
    found = lp.relative_mcdp(
        None, drawn.scores, sensitive_features=drawn.groups, compare="to_overall", min_rate=0
    )
    assert found == pytest.approx(expected, abs=1e-9)


def test_few_people_far_apart_in_the_tail_are_seen() -> None:
    scores = np.concatenate([np.arange(1000) / 1000, np.arange(1000) / 1000 * 0.97])
    groups = np.repeat(["a", "b"], 1000)
    assert lp.mcdp(None, scores, sensitive_features=groups) < 0.04
    assert lp.relative_mcdp(None, scores, sensitive_features=groups, tail="above") > math.log(2)
    assert lp.relative_mcdp(None, scores, sensitive_features=groups, epsilon=0.01) > math.log(1.5)
    labels = np.tile([0, 1], 1000)
    options = {"sensitive_features": groups, "criterion": "equalized_odds", "tail": "above"}
    assert lp.relative_mcdp(labels, scores, **options) > math.log(2)


def test_wrong_arguments() -> None:
    rows = {"y_true": None, "y_score": [0.1, 0.4], "sensitive_features": ["a", "b"]}
    with pytest.raises(ValueError, match=r"tail .*got 'top'"):
        lp.relative_mcdp(**rows, tail="top")
    with pytest.raises(ValueError, match=r"min_rate .*got 2"):
        lp.relative_mcdp(**rows, min_rate=2)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 60_000)
    counts = lp.engines.from_arrays(rng.random(60_000) ** (1.0 + 0.3 * groups), groups)
    with pytest.raises(ValueError, match=r"needs every score, got ScoreCounts.*rank_error"):
        lp.relative_mcdp(counts)
