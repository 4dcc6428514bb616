"""Scores far smaller or larger than 1, and ranges as long as floats go: rounding is relative to the numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import ks_2samp

import localparity as lp
import oracles
from strategies import epsilons, people

PAIRS = np.array(["a", "a", "b", "b"])


def fraud(dtype: type[np.floating[Any]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Probabilities below a millionth, of two groups that do not overlap."""
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.uniform(1e-8, 2e-7, 500), rng.uniform(2.1e-7, 4e-7, 500)])
    return scores.astype(dtype), np.repeat([0, 1], 500)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("score_range", [(0, 1), (0, 100), (0, 1e6), (-1, 1), (-1e308, 1e308), (0, 1e308)])
def test_mcdp_of_0_of_tiny_scores_is_the_ks_statistic(
    dtype: type[np.floating[Any]], score_range: tuple[float, float]
) -> None:
    scores, groups = fraud(dtype)
    options: Any = {"sensitive_features": groups, "score_range": score_range}
    assert lp.mcdp(None, scores, **options) == 1.0
    profile = lp.mcdp_profile(None, scores, **options)
    assert profile(0.0) == profile([0.0] * 9)[0] == profile.values[0] == 1.0
    window = profile.worst_window()
    assert (window.gap, window.low, window.high) == (
        1.0,
        scores[groups == 0].max(),
        scores[groups == 1].min(),
    )


@given(st.data())
def test_mcdp_of_0_is_the_ks_statistic_whatever_the_scale(data: st.DataObject) -> None:
    power = data.draw(st.integers(-1070, 1020))
    steps = data.draw(st.lists(st.integers(0, 12), min_size=4, max_size=20))
    scores = np.array(steps) * 2.0**power
    groups = np.arange(scores.size) % 2
    high = data.draw(st.sampled_from([1e-320, 1e-310, 1e-3, 1.0, 7.0, 1e12, 1.7e308]))
    low = data.draw(st.sampled_from([0.0, -high]))
    options: Any = {"sensitive_features": groups, "score_range": (low, max(high, 12 * 2.0**power))}
    expected = ks_2samp(scores[::2], scores[1::2], method="asymp").statistic
    assert lp.mcdp(None, scores, **options) == pytest.approx(expected, abs=1e-12)
    weighted = lp.mcdp(None, scores, sample_weight=np.ones(scores.size), **options)
    assert weighted == pytest.approx(expected, abs=1e-12)


@given(st.data())
def test_mcdp_of_scores_and_epsilons_of_any_size_is_exact(data: st.DataObject) -> None:
    """Decimals of six digits times a power of ten, on [0, 1] and on as long a range as there may be."""
    drawn = data.draw(people(max_size=6))
    epsilon = data.draw(epsilons(drawn.grid))
    power = Fraction(1, 10 ** data.draw(st.integers(0, 30)))
    shrunk = [[(score * power, weight) for score, weight in sample] for sample in drawn.samples()]
    expected = float(oracles.mcdp(*shrunk, epsilon * power))
    scores = np.array([float(score * power) for score in drawn.exact_scores])
    measured = lp.mcdp(None, scores, sensitive_features=drawn.groups, epsilon=float(epsilon * power))
    assert measured == pytest.approx(expected, abs=1e-12)
    at = [float(epsilon * power)] * 9
    profile = lp.mcdp_profile(None, 1e12 * scores, sensitive_features=drawn.groups, score_range=(0, 1e12))
    assert profile(at)[0] == profile(at[0]) == pytest.approx(expected, abs=1e-12)


@given(st.data())
def test_mcdp_of_single_precision_is_exact_on_six_decimals(data: st.DataObject) -> None:
    drawn = data.draw(people(max_size=6))
    epsilon = data.draw(epsilons(drawn.grid))
    expected = float(oracles.mcdp(*drawn.samples(), epsilon))
    scores = drawn.scores.astype(np.float32)
    measured = lp.mcdp(None, scores, sensitive_features=drawn.groups, epsilon=float(epsilon))
    assert measured == pytest.approx(expected, abs=1e-12)


def test_a_range_longer_than_a_float_has_its_metrics() -> None:
    options: Any = {"sensitive_features": PAIRS, "score_range": (-1e308, 1e308)}
    for dtype, scores in ((np.float64, [-1e308, -0.9e308, 0.9e308, 1e308]), (np.float32, [-1, -0.9, 0.9, 1])):
        given_scores = np.array(scores, dtype)
        assert lp.mcdp(None, given_scores, **options) == 1.0
    extremes = np.array([-1e308, -0.9e308, 0.9e308, 1e308])
    assert lp.mcdp(None, extremes, epsilon=0.1, **options) == 1.0
    assert lp.mcdp(None, extremes, epsilon=0.46, **options) == 0.5
    assert lp.mcdp_approximate(None, extremes, epsilon=0.1, **options) == 1.0
    assert lp.abcc(None, extremes, **options) == pytest.approx(0.95)
    assert lp.delta_dp(None, extremes, **options) == pytest.approx(0.95)
    assert lp.delta_dp(None, extremes, threshold=0.0, **options) == 1.0
    assert lp.p_rule(None, extremes, **options) == 0.0
    assert lp.spdd(None, extremes, n_thresholds=3, **options) == pytest.approx(0.5)


@pytest.mark.parametrize("high", [5e-324, 1e-320, 1e-310])
def test_a_range_of_denormal_numbers_has_its_metrics(high: float) -> None:
    options: Any = {"sensitive_features": PAIRS, "score_range": (0, high)}
    assert lp.mcdp(None, [0, 0, high, high], **options) == 1.0
    assert lp.mcdp(None, [0, 0, high, high], epsilon=0.499, **options) == 1.0
    assert lp.abcc(None, [0, 0, high, high], **options) == 1.0


def test_a_run_that_starts_above_the_bottom_does_not_start_there() -> None:
    """Half as wide a window fits, however far up the range goes."""
    for bottom, start in ((0.0, 0.0005), (0.0, 1e-300), (-1e-6, 0.0)):
        scores = [start, start, 2e11, 2e11]
        options: Any = {"sensitive_features": PAIRS, "score_range": (bottom, 1e12)}
        assert lp.mcdp(None, scores, epsilon=0.15, **options) == 0.0
        assert lp.mcdp(None, scores, epsilon=0.0999, **options) == 1.0
        at_bottom = [bottom, bottom, 2e11, 2e11]
        assert lp.mcdp(None, at_bottom, epsilon=0.15, **options) == 1.0
