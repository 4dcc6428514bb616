"""A bound that is promised after a search, simulated; `make promises` makes the table under results/ of the same."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.promises import most_failures
from benchmarks.selection import CONFIDENCE, DESIGNS, simulate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("place", range(len(DESIGNS)), ids=lambda place: DESIGNS[place].what)
def test_a_bound_is_met_wrongly_no_more_often_than_stated(place: int) -> None:
    found = simulate(place, jobs=1)
    assert np.mean([drawn.above for drawn in found]) <= most_failures(1.0 - CONFIDENCE, len(found))


def test_a_bound_is_met_where_the_first_model_is_safe() -> None:
    found = [drawn.met for drawn in simulate(0, jobs=1) if drawn.is_safe]
    assert len(found) >= 100
    assert np.mean(found) >= 0.5
