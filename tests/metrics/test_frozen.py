"""What carries arrays from one place to the next is frozen, and is equal to itself alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.counts._atoms import Cells
from localparity.metrics._gap_curve import CellGaps
from scale_rows import count_rows


def curve() -> lp.results.GapCurve:
    return lp.gap_curve(lp.Predictions.from_arrays(None, [0.25, 0.75], sensitive_features=["a", "b"]))


def cells() -> Cells:
    found = Cells(np.array([0.0]), np.array([0.5]))
    assert found.snap(np.array([0.25])).tolist() == [0.5]
    return found


def cell_gaps() -> CellGaps:
    return CellGaps(cells().lows, np.array([0.0]), np.array([0.5]))


CARRIERS = {
    "Atoms": lambda: count_rows(np.array([0.5])),
    "CellGaps": cell_gaps,
    "Cells": cells,
    "GapCurve": curve,
    "ScoreCounts": lambda: lp.ScoreCounts({("a", None): count_rows(np.array([0.5]))}),
}


@pytest.mark.parametrize("name", CARRIERS)
def test_arrays_are_carried_unchanged_and_not_compared(name: str) -> None:
    make: Callable[[], Any] = CARRIERS[name]
    made = make()
    assert type(made).__name__ == name
    assert made == made
    assert made != replace(made)
    assert {made: 1}[made] == 1
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(made)[0].name, None)


def test_a_window_is_frozen_and_equal_to_one_that_says_the_same() -> None:
    window = curve().worst_window()
    assert window == curve().worst_window()
    assert window.sentence == curve().worst_window().sentence
    with pytest.raises(FrozenInstanceError):
        window.low = 0.0  # type: ignore[misc]


def test_an_interval_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        lp.results.Interval(0.1, 0.2, 0.3).low = 0.0  # type: ignore[misc]
