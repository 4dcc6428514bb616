"""Selection rates at one threshold, over thresholds, and as ratios."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
import oracles
from strategies import People, people


@given(st.data())
def test_delta_dp_counts_scores_above_the_threshold(data: st.DataObject) -> None:
    drawn = data.draw(people(n_groups=3, max_size=5))
    threshold = Fraction(data.draw(st.integers(0, drawn.grid)), drawn.grid)
    samples = drawn.samples(weighted=True)
    expected = oracles.worst_pair(
        samples, lambda a, b: abs(oracles.rate(a, threshold) - oracles.rate(b, threshold))
    )
    options = {"sensitive_features": drawn.groups, "sample_weight": drawn.weights}
    measured = lp.delta_dp(None, drawn.scores, threshold=float(threshold), **options)
    assert measured == pytest.approx(float(expected), abs=1e-12)


@given(people())
def test_delta_dp_without_a_threshold_compares_means(drawn: People) -> None:
    a, b = drawn.samples()
    expected = float(abs(oracles.mean(a) - oracles.mean(b)))
    assert lp.delta_dp(None, drawn.scores, sensitive_features=drawn.groups) == pytest.approx(
        expected, abs=1e-12
    )
    scores = 300 + 550 * drawn.scores
    measured = lp.delta_dp(None, scores, sensitive_features=drawn.groups, score_range=(300, 850))
    assert measured == pytest.approx(expected, abs=1e-12)


@given(people(), st.sampled_from([2, 5, 11]))
def test_spdd_is_the_mean_over_thresholds(drawn: People, n_thresholds: int) -> None:
    # Thresholds of 0, 1/4, 1/2, ... and tenths: scores and thresholds are the same floats where they are equal.
    expected = float(oracles.spdd(*drawn.samples(), n_thresholds))
    measured = lp.spdd(None, drawn.scores, sensitive_features=drawn.groups, n_thresholds=n_thresholds)
    assert measured == pytest.approx(expected, abs=1e-12)


@given(people())
def test_spdd_goes_to_abcc(drawn: People) -> None:
    fine = lp.spdd(None, drawn.scores, sensitive_features=drawn.groups, n_thresholds=100_001)
    # Each jump of the gap moves the mean by at most one threshold's share.
    slack = 2.0 * (drawn.scores.size + 1) / 100_000
    assert fine == pytest.approx(lp.abcc(None, drawn.scores, sensitive_features=drawn.groups), abs=slack)


@given(st.data())
def test_p_rule_is_the_lowest_rate_over_the_highest(data: st.DataObject) -> None:
    drawn = data.draw(people(n_groups=3, max_size=5))
    threshold = Fraction(data.draw(st.integers(0, drawn.grid)), drawn.grid)
    rates = [oracles.rate(sample, threshold) for sample in drawn.samples(weighted=True)]
    options = {
        "sensitive_features": drawn.groups,
        "sample_weight": drawn.weights,
        "threshold": float(threshold),
    }
    if max(rates) == 0:
        with pytest.raises(ValueError, match="no score is above threshold"):
            lp.p_rule(None, drawn.scores, **options)
    else:
        expected = float(min(rates) / max(rates))
        assert lp.p_rule(None, drawn.scores, **options) == pytest.approx(expected, abs=1e-12)


def test_p_rule_of_equalized_odds_is_the_worse_label() -> None:
    labels, scores = [0, 0, 1, 1, 1], [0.9, 0.8, 0.9, 0.1, 0.7]
    groups = ["a", "b", "a", "a", "b"]
    options = {"sensitive_features": groups, "criterion": "equalized_odds"}
    assert lp.p_rule(labels, scores, **options) == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda **o: lp.delta_dp(threshold=1.5, **o), r"threshold .*\(0.0, 1.0\), got 1.5"),
        (lambda **o: lp.p_rule(threshold=-1, **o), r"threshold .*\(0.0, 1.0\), got -1"),
        (lambda **o: lp.delta_dp(threshold="x", **o), "threshold .*got 'x'"),
        (lambda **o: lp.p_rule(threshold=float("nan"), **o), "threshold .*got nan"),
        (lambda **o: lp.spdd(n_thresholds=1, **o), "n_thresholds .*got 1"),
    ],
)
def test_wrong_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(y_true=None, y_score=[0.1, 0.2], sensitive_features=[0, 1])  # type: ignore[operator]


def test_single_precision_scores_meet_the_threshold_that_they_stand_for() -> None:
    scores, groups = np.array([0.1, 0.1, 0.1, 0.9], dtype=np.float32), [0, 0, 1, 1]
    assert lp.delta_dp(None, scores, sensitive_features=groups, threshold=0.1) == 0.5
    assert lp.p_rule(None, scores, sensitive_features=groups, threshold=0.1) == 0.0


def test_p_rule_of_another_range_has_its_threshold_in_the_middle() -> None:
    options = {"sensitive_features": [0, 0, 1, 1], "score_range": (300, 850)}
    assert lp.p_rule(None, [400, 600, 700, 800], **options) == 0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-7, 1e-30])
def test_thresholds_near_0_part_the_scores_on_either_side(dtype: type, scale: float) -> None:
    options = {"sensitive_features": ["a", "a", "b", "b"], "score_range": (0.0, 100.0)}
    scores = np.array([0.1, 0.3, 0.1, 0.1], dtype) * dtype(scale)
    assert lp.delta_dp(None, scores, threshold=0.2 * scale, **options) == 0.5
    assert lp.delta_dp(None, scores, threshold=0.0999 * scale, **options) == 0.0
    # A threshold that scores stand at selects none of them, whatever their bits.
    assert lp.delta_dp(None, scores, threshold=0.1 * scale, **options) == 0.5
    assert lp.delta_dp(None, scores, threshold=0.3 * scale, **options) == 0.0
    above = np.array([0.1, 0.3, 0.3, 0.3], dtype) * dtype(scale)
    assert lp.p_rule(None, above, threshold=0.1 * scale, **options) == 0.5
    assert lp.p_rule(None, above, threshold=0.0, **options) == 1.0


def test_any_score_above_0_is_above_a_threshold_of_0() -> None:
    scores = np.array([0.0, 5e-324, 0.0, 0.0])
    assert lp.delta_dp(None, scores, sensitive_features=["a", "a", "b", "b"], threshold=0.0) == 0.5


def test_thresholds_of_spdd_fall_on_the_decimals_of_a_range_around_0() -> None:
    scores = np.arange(-10, 11) / 10
    for at in scores:
        found = lp.spdd(None, [at, 1.0], sensitive_features=["a", "b"], score_range=(-1, 1), n_thresholds=21)
        assert found == pytest.approx(np.count_nonzero((scores >= at) & (scores < 1.0)) / 21)
