"""Thinned curves keep what a reader looks for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from localparity.report.displays._base import MOST_POINTS, thin_steps


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=300), st.integers(4, 60), st.integers(0, 2**32 - 1))
def test_extremes_and_ends_stay(values: list[float], most: int, seed: int) -> None:
    gap = np.array(values)
    knots = np.sort(np.random.default_rng(seed).random(gap.size) ** 3)
    kept = thin_steps(knots, gap, most)
    assert kept.size <= most or gap.size <= most
    assert np.all(np.diff(kept) > 0)
    assert (kept[0], kept[-1]) == (0, gap.size - 1)
    assert gap[kept].max() == gap.max()
    assert gap[kept].min() == gap.min()


def test_ten_million_knots_become_two_thousand_points() -> None:
    rng = np.random.default_rng(0)
    knots = np.sort(rng.random(10**7))
    gap = np.sin(6 * knots) + rng.normal(scale=0.01, size=knots.size)
    gap[4_321_987] = 7.0
    kept = thin_steps(knots, gap)
    assert kept.size <= MOST_POINTS
    assert 4_321_987 in kept
    shown = np.interp(knots[::997], knots[kept], gap[kept])
    assert np.quantile(np.abs(shown - gap[::997]), 0.99) < 0.1
