"""The upper end of MCDP: that it holds, by brute force over the chances, and how long it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import localparity as lp
from localparity.metrics._gap_curve import GapCurve
from localparity.uncertainty import _upper
from localparity.uncertainty._upper import hoeffding_margin, signed_root, threshold_end, upper_end

ERRORS = (0.5, 0.2, 0.05, 0.01)


def largest_tail(measured: float, gap: float, sizes: tuple[int, int]) -> float:
    """How likely a gap is at most `measured`, over many pairs of chances that differ by `gap`: exact sums."""
    first, second = sizes
    count = np.arange(second + 1)
    fine = np.concatenate([np.linspace(0.0, 1.0, 401), np.geomspace(1e-6, 0.1, 40)])
    spread = 0.5 / math.sqrt(first)
    # Where the larger sample is known closely, just below where another value of the other is let in.
    steps = (measured + count / second - gap)[:, None] - spread * np.arange(0.0, 4.0, 0.5)
    chance = np.concatenate([fine * (1.0 - gap), (1.0 - fine) * (1.0 - gap), steps.ravel()])
    chance = np.unique(np.clip(chance, 0.0, 1.0 - gap))[:, None]
    most = np.floor(first * (measured + count / second) + 1e-7)
    weights = stats.binom.pmf(count, second, chance)
    return float((weights * stats.binom.cdf(most, first, np.minimum(chance + gap, 1.0))).sum(axis=1).max())


@pytest.mark.parametrize(
    "sizes", [(1, 1), (3, 2), (5, 40), (13, 5), (40, 40), (90, 13), (3000, 70), (10**6, 8)]
)
def test_a_larger_gap_is_as_unlikely_as_stated_whatever_the_chances(sizes: tuple[int, int]) -> None:
    for measured in (0.0, 0.013, 1.0 / 3.0, 0.5, 0.9):
        for error in ERRORS:
            end = threshold_end(measured, sizes, error)
            assert measured < end <= 1.0
            tail = largest_tail(measured, min(end + 1e-9, 1.0), sizes)
            assert tail <= error * (1.0 + 1e-9) + 1e-12


@pytest.mark.parametrize(
    ("sizes", "within"), [((100, 100), 1.06), ((1000, 50), 1.03), ((20_000, 20_000), 1.02)]
)
def test_it_is_nearly_as_short_as_it_can_be(sizes: tuple[int, int], within: float) -> None:
    """At epsilon 0 a shorter end would fail for a binomial share; the normal approximation says how short."""
    normal = 1.6449 * 0.5 * math.sqrt(sum(1.0 / size for size in sizes))
    margin = threshold_end(0.1, sizes, 0.05) - 0.1
    assert margin < within * normal + 0.5 * sum(1.0 / size for size in sizes)
    assert margin < 0.75 * hoeffding_margin(sizes, 0.05)


def test_groups_of_a_thousand_against_the_inequality_of_dvoretzky_kiefer_and_wolfowitz() -> None:
    margin = 2.0 * math.sqrt(math.log(4 / 0.05) / 2000)
    assert threshold_end(0.05, (1000, 1000), 0.05) - 0.05 < 0.42 * margin
    assert threshold_end(0.05, (1000, 1000), 0.025) - 0.05 < 0.48 * margin


@pytest.mark.parametrize("size", [1, 2, 7, 30, 1000])
def test_the_normal_bound_lies_above_every_binomial_distribution(size: int) -> None:
    chance = np.linspace(0.001, 0.999, 199)[:, None]
    count = np.arange(size)
    bound = stats.norm.cdf(signed_root((count + 1.0) / size, chance, size))
    assert (stats.binom.cdf(count, size, chance) <= bound + 1e-12).all()


@pytest.mark.parametrize("sizes", [(100, 100), (8, 3000), (5000, 4000)])
@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.99])
def test_it_covers_a_gap_at_one_threshold(sizes: tuple[int, int], confidence: float) -> None:
    """Two scores: the measured gap is a difference of two shares, whose distribution is known."""
    draws, rng = 300, np.random.default_rng(0)
    for chances in [(0.95, 0.05), (0.55, 0.45), (0.55, 0.0)]:
        counts = [rng.binomial(n, p, draws) / n for n, p in zip(sizes, chances, strict=True)]
        truth = chances[0] - chances[1]
        measured = np.abs(counts[0] - counts[1])
        ends = np.array([threshold_end(value, sizes, 1.0 - confidence) for value in measured])
        error = math.sqrt(confidence * (1.0 - confidence) / draws)
        assert (ends >= truth - 1e-12).mean() >= confidence - 3.0 * error


def test_a_window_takes_the_band_of_the_pair_and_one_threshold_does_not() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(2000), np.repeat([0, 1], 1000)
    curve = lp.gap_curve(None, scores, sensitive_features=groups)
    alone, windows = (upper_end([curve], epsilon, 0.9) for epsilon in (0.0, 1e-6))
    assert curve.mcdp(0.0) < alone < windows


def test_of_several_pairs_the_highest_end_counts() -> None:
    knots, gap = np.array([0.2, 0.8]), np.array([0.3, 0.0])
    large, small = GapCurve(knots, gap, (0, 1), (500, 500)), GapCurve(knots, gap / 2, (0, 2), (500, 20))
    assert upper_end([large, small], 0.0, 0.9) == upper_end([small], 0.0, 0.9) > upper_end([large], 0.0, 0.9)
    assert upper_end([GapCurve(knots, gap, (0, 1), (1, 1))], 0.1, 0.99) == 1.0
    assert upper_end([GapCurve(knots, np.array([1.0, 0.0]), (0, 1), (5, 5))], 0.0, 0.9) == 1.0


def test_a_group_and_everyone_differ_as_it_and_the_rest_do_but_less() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.random(300), np.repeat(["a", "b"], [100, 200])
    options = {"sensitive_features": groups, "side": "upper", "confidence": 0.9}
    pair = lp.mcdp_interval(None, scores, **options)
    overall = lp.mcdp_interval(None, scores, compare="to_overall", **options)
    assert overall.high == pytest.approx(pair.high * 2 / 3)
    named = lp.mcdp_interval(
        None, scores, **{**options, "sensitive_features": np.where(groups == "a", "x", "everyone")}
    )
    assert named == lp.mcdp_interval(
        None, scores, **{**options, "sensitive_features": np.where(groups == "a", "y", "z")}
    )


def test_of_very_many_pairs_only_those_that_may_be_the_worst_take_the_shortest_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(900), np.repeat(np.arange(6), [400, 300, 100, 50, 30, 20])
    options = {"sensitive_features": groups, "side": "upper"}
    exact = lp.mcdp_interval(None, scores, **options)
    monkeypatch.setattr(_upper, "_MOST_CLOSE", 0)
    calls = []
    monkeypatch.setattr(_upper, "threshold_end", lambda *given: calls.append(given) or threshold_end(*given))
    assert lp.mcdp_interval(None, scores, **options) == exact
    assert 0 < len(calls) < 15
