"""The upper end of MCDP: that it holds, by brute force over the chances, and how long it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import localparity as lp
from localparity.metrics._gap_curve import GapCurve
from localparity.uncertainty import _bands as _upper
from localparity.uncertainty._bands import (
    Steps,
    band_radius,
    hoeffding_margin,
    shared_end,
    signed_root,
    threshold_end,
    upper_ends,
)
from localparity.uncertainty._intervals import measured_pair

ERRORS = (0.5, 0.2, 0.05, 0.01)


def upper_end(curves: list[GapCurve], epsilon: float, confidence: float) -> float:
    pairs = [measured_pair(curve, np.array([epsilon])) for curve in curves]
    return float(upper_ends(pairs, 1.0 - confidence).max())


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


@pytest.mark.slow
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


def passing_windows(curve: GapCurve, epsilon: float) -> list[slice]:
    """The steps that windows of a half-width, or wider ones, touch: all of them, one after the other."""
    begins, ends = np.append(0.0, curve.knots), np.append(curve.knots, 1.0)
    return [
        slice(first, last + 1)
        for first in range(begins.size)
        for last in range(first, begins.size)
        if ends[last] - begins[first] >= 2.0 * epsilon or (begins[first] == 0.0 and ends[last] >= epsilon)
    ]


def random_curve(seed: int, sizes: tuple[int, int]) -> GapCurve:
    rng = np.random.default_rng(seed)
    scores = [np.round(rng.beta(*rng.uniform(0.5, 4.0, 2), size), seed % 4 + 1) for size in sizes]
    groups = np.repeat([0, 1], sizes)
    return lp.gap_curve(lp.Predictions.from_arrays(None, np.concatenate(scores), sensitive_features=groups))


def passes(gap: Any, left: float, right: float, inside: float) -> bool:
    """Whether the gaps of a window are of these sizes: of one sign, or turning where they jump."""
    for size in (gap, -gap):
        if size[0] >= left and size[-1] >= right and size.min() >= inside:
            return True
        before = np.append(-np.inf, size[:-1])
        turns = (np.maximum(before, size) >= right) & (-size >= right)
        if size[0] >= left and abs(size[-1]) >= right and turns.any():
            return True
    return False


@pytest.mark.parametrize("seed", range(8))
def test_windows_are_sought_as_the_definition_says(seed: int) -> None:
    curve = random_curve(seed, (12, 15))
    steps, rng = Steps.of(curve), np.random.default_rng(seed)
    gap, found = np.append(0.0, curve.gap), []
    for _ in range(60):
        epsilon, sizes = rng.uniform(0.0, 0.4), np.sort(rng.uniform(-0.3, 0.5, 3))[::-1].tolist()
        found.append(steps.carries(epsilon, *sizes))
        assert found[-1] == any(passes(gap[window], *sizes) for window in passing_windows(curve, epsilon))
    assert 0 < sum(found) < 60


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [(40, 60), (300, 200)])
def test_the_end_of_windows_is_the_largest_that_some_window_passes(seed: int, sizes: tuple[int, int]) -> None:
    curve, error = random_curve(seed, sizes), 0.1
    gap = np.append(0.0, curve.gap)
    radius = float(band_radius(sizes, 0.4 / 3.0 * error))
    values = np.append(0.0, np.unique(np.abs(gap)))

    def least(end: float, share: float) -> float:
        """The least gap at one threshold by which an end is not rejected; any where 0 does not."""
        kept = [x for x in values if threshold_end(float(x), sizes, share * error) >= end]
        return -1.0 if kept and kept[0] == 0.0 else min(kept, default=2.0)

    for epsilon in (0.02, 0.1, 0.3):
        found = upper_end([curve], epsilon, 0.9)
        assert curve.mcdp(epsilon) <= found <= upper_end([curve], 0.0, 0.9)
        windows = passing_windows(curve, epsilon)
        # Just above the end no window is left; well below it, one is. The grid has 128 steps.
        for end, expected in ((found + 1e-3, False), (found - 0.015, True)):
            given = least(end, 0.9), least(end, 0.1 / 3.0), end - radius
            if end > threshold_end(0.0, sizes, 0.09):
                assert any(passes(gap[window], *given) for window in windows) == expected


def test_on_a_plateau_the_end_is_as_close_as_at_epsilon_0() -> None:
    knots, gap = np.array([0.0, 0.3, 0.7, 1.0]), np.array([0.05, 0.3, 0.05, 0.0])
    curve = GapCurve(knots, gap, (0, 1), (1000, 1000))
    ends = [upper_end([curve], epsilon, 0.9) for epsilon in (0.0, 0.1, 0.19, 0.21)]
    assert ends[0] == ends[1] == ends[2] == pytest.approx(threshold_end(0.3, (1000, 1000), 0.09))
    assert ends[3] < 0.16


def test_of_very_many_steps_blocks_are_no_lower() -> None:
    rng = np.random.default_rng(0)
    knots = np.sort(rng.random(10_000))
    gap = np.append(rng.uniform(-1.0, 1.0, 9_999), 0.0)
    steps = Steps.of(GapCurve(knots, gap, (0, 1), (10, 10)))
    assert steps.begins.size <= 4097
    places = np.searchsorted(steps.begins, knots, side="right") - 1
    assert (steps.sizes[:, places] >= [gap, -gap]).all()


@pytest.mark.parametrize("second", [[0.1, 0.8], [0.5, 0.9]])
def test_it_covers_the_gap_of_a_window(second: list[float]) -> None:
    """30% and 0%, or 30% and 60% from the middle on, are below any cutoff of a window around it."""
    draws, rng, groups = 300, np.random.default_rng(3), np.repeat([0, 1], 80)
    chance = 0.6 if second[0] == 0.5 else 0.0
    options = {"sensitive_features": groups, "epsilon": 0.3, "confidence": 0.6, "side": "upper"}
    held = 0
    for _ in range(draws):
        scores = np.append(
            np.where(rng.random(80) < 0.3, 0.1, 0.8), np.where(rng.random(80) < chance, *second)
        )
        held += lp.mcdp_interval(None, scores, **options).high >= 0.3 - 1e-9
    assert held / draws >= 0.6 - 3.0 * math.sqrt(0.24 / draws)


def test_of_several_pairs_the_highest_end_counts() -> None:
    knots, gap = np.array([0.2, 0.8]), np.array([0.3, 0.0])
    large, small = GapCurve(knots, gap, (0, 1), (500, 500)), GapCurve(knots, gap / 1.5, (0, 2), (500, 20))
    assert upper_end([large, small], 0.0, 0.9) == upper_end([small], 0.0, 0.9) > upper_end([large], 0.0, 0.9)
    assert upper_end([GapCurve(knots, gap, (0, 1), (1, 1))], 0.1, 0.99) == 1.0
    assert upper_end([GapCurve(knots, np.array([1.0, 0.0]), (0, 1), (5, 5))], 0.0, 0.9) == 1.0


def test_a_group_and_everyone_differ_as_it_and_the_rest_do_but_less() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.random(300), np.repeat(["a", "b"], [100, 200])
    options = {"sensitive_features": groups, "side": "upper", "confidence": 0.9}
    pair = lp.mcdp_interval(None, scores, **options)
    overall = lp.mcdp_interval(None, scores, compare="to_overall", **options)
    # The share of the rest, 2 of 3 here, is not known either.
    assert 2 / 3 * pair.high < overall.high < 1.15 * 2 / 3 * pair.high
    named = lp.mcdp_interval(
        None, scores, **{**options, "sensitive_features": np.where(groups == "a", "x", "everyone")}
    )
    assert named == lp.mcdp_interval(
        None, scores, **{**options, "sensitive_features": np.where(groups == "a", "y", "z")}
    )


@pytest.mark.parametrize("sizes", [(20, 180), (1, 9), (9, 1), (80, 320), (400, 100)])
@pytest.mark.parametrize("gap", [0.0, 0.3, 0.9, 1.0])
def test_no_share_and_gap_with_a_larger_product_are_left_out(sizes: tuple[int, int], gap: float) -> None:
    """The definition, over a fine grid of shares of the rest and of gaps to it."""
    first, rest = sizes
    share, error = rest / (first + rest), 0.05
    shares, gaps = np.linspace(0.0005, 0.9995, 500), np.linspace(0.0, 0.999, 200)
    alone = 0.02 * error
    below = stats.binom.cdf(rest, first + rest, shares)
    above = stats.binom.sf(rest - 1, first + rest, shares)
    tail = np.array([_upper._GapTail(gap, sizes)(each) for each in gaps])[:, None]
    weights = 2.0 * (1.0 - shares) * gaps[:, None], np.sqrt(1.0 - gaps**2)[:, None]
    summed = weights[0] * stats.norm.ppf(np.clip(below, 1e-9, 1.0 - 1e-9)) + weights[1] * stats.norm.ppf(
        np.minimum(tail, 0.95)
    )
    kept = summed > stats.norm.ppf(0.94 * 0.95 * error) * np.hypot(*weights)
    kept &= (below > alone) & (above > alone) & (tail > alone)
    largest = (shares * gaps[:, None])[kept].max()
    found = shared_end(gap * share, sizes, error)
    # Of ten people, what is possible changes fast with the gap to the rest.
    wide = 0.05 if first + rest < 20 else 0.012
    assert largest <= found <= max(largest + wide, gap * share)


@pytest.mark.parametrize(
    ("share", "chances", "size"),
    [(0.1, (1.0, 0.0), 200), (0.3, (0.99, 0.01), 1000), (0.5, (0.7, 0.3), 40), (0.9, (1.0, 0.0), 60)],
)
def test_it_covers_a_gap_to_everyone_whose_share_is_drawn_too(
    share: float, chances: tuple[float, float], size: int
) -> None:
    """Two scores: taking the share as known missed in 46% of the samples of the first design."""
    draws, rng = 150, np.random.default_rng(1)
    truth = (1.0 - share) * (chances[0] - chances[1])
    held = 0
    for _ in range(draws):
        first = int(np.clip(rng.binomial(size, share), 1, size - 1))
        sizes = (first, size - first)
        below = [rng.binomial(n, p) / n for n, p in zip(sizes, chances, strict=True)]
        held += shared_end(sizes[1] / size * abs(below[0] - below[1]), sizes, 0.1) >= truth - 1e-12
    assert held / draws >= 0.9 - 3.0 * math.sqrt(0.9 * 0.1 / draws)


def test_of_everyone_the_quick_end_is_never_the_shorter_one() -> None:
    for sizes in ((1, 9), (50, 200), (3000, 40)):
        samples = _upper.IndependentSamples(sizes[1] / sum(sizes), sizes)
        for gap in (0.0, 0.4, 1.0):
            measured = gap * samples.scale
            assert shared_end(measured, sizes, 0.1) <= _upper._quick_end(samples, measured, 0.1) + 1e-9
    # What a sketch allows may be more than the rest could make.
    assert shared_end(0.95, (500, 500), 0.1) == 0.95


@pytest.mark.parametrize("epsilon", [0.0, 0.02])
def test_of_very_many_pairs_only_those_that_may_be_the_worst_take_the_shortest_end(
    monkeypatch: pytest.MonkeyPatch, epsilon: float
) -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(900), np.repeat(np.arange(6), [400, 300, 100, 50, 30, 20])
    options = {"sensitive_features": groups, "side": "upper", "epsilon": epsilon}
    exact = lp.mcdp_interval(None, scores, **options)
    monkeypatch.setattr(_upper, "_MOST_CLOSE", 0)
    ends, windows, search = [], [], _upper._WindowEnds
    monkeypatch.setattr(_upper, "threshold_end", lambda *of: ends.append(of) or threshold_end(*of))
    monkeypatch.setattr(_upper, "_WindowEnds", lambda *of: windows.append(of) or search(*of))
    assert lp.mcdp_interval(None, scores, **options) == exact
    assert 0 < len(windows) < 15
    assert ends
    assert epsilon > 0.0 or len(ends) < 15
