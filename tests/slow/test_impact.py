"""Bands of impact ratios hold, in the tails too, and safe cutoffs are safe; the table is results/impact.md."""

from __future__ import annotations

import pytest
from benchmarks.impact import CONFIDENCE, SETTINGS, simulate
from benchmarks.promises import most_failures

pytestmark = pytest.mark.slow
DRAWS = 400


@pytest.mark.parametrize("place", range(len(SETTINGS)), ids=lambda place: SETTINGS[place].what)
def test_it_fails_no_more_often_than_stated(place: int) -> None:
    rates, ratios, tail, safe, *_ = simulate(place, DRAWS)
    assert 1.0 - min(rates, ratios, tail, safe) <= most_failures(1.0 - CONFIDENCE, DRAWS)
