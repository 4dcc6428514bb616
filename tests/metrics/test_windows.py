"""The worst windows at many epsilons at once against the definition, one epsilon at a time."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

import localparity as lp
import oracles
from strategies import People, people


def longest_level_runs(people: People, level: float) -> list[tuple[float, float]]:
    """Over the range cut at every score, the longest stretches on which the gap is nowhere below `level`."""
    a, b = people.samples()
    knots = sorted({Fraction(0), Fraction(1), *people.exact_scores})
    least = Fraction(level) - Fraction(1, 10**9)
    runs: list[list[Fraction]] = []
    for low, high in pairwise(knots):
        if abs(oracles.gap(a, b, low)) < least:
            continue
        if runs and runs[-1][1] == low:
            runs[-1][1] = high
        else:
            runs.append([low, high])
    lengths = [high - low if low > 0 else 2 * high for low, high in runs]
    longest = [run for run, length in zip(runs, lengths, strict=True) if length == max(lengths)]
    return [(float(low), float(high)) for low, high in longest]


@given(people())
def test_windows_at_many_epsilons_are_the_longest_runs(people: People) -> None:
    curve = lp.gap_curve(lp.Predictions.from_arrays(None, people.scores, sensitive_features=people.groups))
    epsilons = np.array([0.0, 0.005, 0.05, 0.1, 0.25, 0.6])
    for epsilon, value in zip(epsilons.tolist(), curve.mcdp_at(epsilons), strict=True):
        window = curve.worst_window(epsilon)
        assert window.gap == value
        if window.gap > 0.0:
            assert (window.low, window.high) in longest_level_runs(people, window.gap)


def test_a_window_in_which_the_gap_turns_names_no_group() -> None:
    scores, groups = [0.0, 0.4, 0.4, 0.8], ["a", "b", "b", "a"]
    rows = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    window = lp.gap_curve(rows).worst_window(0.1)
    assert (window.low, window.high, window.higher, window.lower) == (0.0, 0.8, None, None)


def test_shares_at_or_below_count_the_weights() -> None:
    predictions = lp.Predictions.from_arrays(
        None,
        [0.2, 0.2, 0.6, 0.5],
        sensitive_features=["a", "a", "a", "b"],
        sample_weight=[1.0, 2.0, 5.0, 1.0],
    )
    atoms = lp.ScoreCounts.from_predictions(predictions).atoms["a", None]
    shares = atoms.shares_at_or_below(np.array([0.0, 0.2, 0.5, 0.6, 1.0]))
    assert shares.tolist() == [0.0, 0.375, 0.375, 1.0, 1.0]


def test_curves_and_profiles_draw_themselves() -> None:
    pytest.importorskip("matplotlib")
    curve = lp.gap_curve(
        lp.Predictions.from_arrays(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"])
    )
    assert curve.plot().curve is curve
    assert curve.profile().plot().profile.curves == (curve,)
