"""The upper end of MCDP alone: how often it covers, and how long it is."""

from __future__ import annotations

import math

import numpy as np
import pytest

import localparity as lp
from localparity.metrics._gap_curve import GapCurve
from localparity.uncertainty._upper import upper_end, upper_margin


@pytest.mark.parametrize("sizes", [(100, 100), (8, 3000), (40, 400)])
@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.99])
def test_it_covers_a_gap_at_one_threshold(sizes: tuple[int, int], confidence: float) -> None:
    """Two scores: the measured gap is a difference of two shares, whose distribution is known."""
    draws, rng = 40_000, np.random.default_rng(0)
    for chances in [(0.95, 0.05), (0.7, 0.2), (0.55, 0.0), (0.9, 0.5)]:
        shares = [rng.binomial(n, p, draws) / n for n, p in zip(sizes, chances, strict=True)]
        truth = chances[0] - chances[1]
        covered = np.abs(shares[0] - shares[1]) + upper_margin(sizes, 0.0, confidence) >= truth - 1e-12
        assert covered.mean() >= confidence


def test_it_is_shorter_than_an_interval() -> None:
    """At one threshold no longer than the normal approximation at the largest variance, by half of itself."""
    rng = np.random.default_rng(0)
    scores, groups = rng.random(2000), np.repeat([0, 1], 1000)
    curve = lp.gap_curve(None, scores, sensitive_features=groups)
    interval = lp.mcdp_interval(None, scores, sensitive_features=groups, confidence=0.9, method="dkw")
    alone, windows = (upper_end([curve], epsilon, 0.9) for epsilon in (0.0, 1e-6))
    assert curve.mcdp(0.0) < alone < windows <= interval.high + 1e-12
    normal = 1.2816 * 0.5 * math.sqrt(2.0 / 1000)
    assert alone - curve.mcdp(0.0) < 1.7 * normal


def test_of_several_pairs_the_highest_end_counts() -> None:
    knots, gap = np.array([0.2, 0.8]), np.array([0.3, 0.0])
    large, small = GapCurve(knots, gap, (0, 1), (500, 500)), GapCurve(knots, gap / 2, (0, 2), (500, 20))
    assert upper_end([large, small], 0.0, 0.9) == upper_end([small], 0.0, 0.9) > upper_end([large], 0.0, 0.9)
    assert upper_end([GapCurve(knots, gap, (0, 1), (1, 1))], 0.1, 0.99) == 1.0
