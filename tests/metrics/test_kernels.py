"""How the kernels are compiled, and the loops that no result of a metric shows whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity.metrics import _kernels


def test_kernels_compile_where_nothing_can_be_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose package folder and home cannot be written to."""

    def njit(*, nogil: bool, cache: bool = False) -> Callable[[Any], Any]:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(_kernels, "njit", njit)
    assert _kernels._compiled(abs)(-1) == 1


SIXTEENTHS = st.integers(0, 16).map(lambda number: number / 16)


@given(
    st.lists(SIXTEENTHS, min_size=2, max_size=8, unique=True).map(sorted), st.lists(SIXTEENTHS).map(sorted)
)
def test_each_score_is_found_in_its_cell(ends: list[float], scores: list[float]) -> None:
    lows, highs = np.array(ends[:-1:2]), np.array(ends[1::2])
    at, inside = _kernels.find_cells(lows, highs, np.array(scores))
    for score, cell, found in zip(scores, at, inside, strict=True):
        holding = [i for i in range(highs.size) if lows[i] < score <= highs[i]]
        assert ([cell] if found else []) == holding


@given(st.data())
def test_a_step_decides_where_it_may_lower_a_window_that_may_be_the_worst(data: st.DataObject) -> None:
    begins = np.array(data.draw(st.lists(SIXTEENTHS, min_size=1, max_size=12, unique=True).map(sorted)))
    size = begins.size
    lower, upper = (np.append(data.draw(lists_of(SIXTEENTHS, size - 1)), 0.0) for _ in range(2))
    least, most, reach = (np.array(data.draw(lists_of(SIXTEENTHS, 2))) for _ in range(3))
    expected = np.zeros(size, dtype=bool)
    for first in range(size):
        for last in range(first, size - 1):
            length = 0.5 * (begins[last + 1] - begins[first]) if begins[first] > 0 else begins[last + 1]
            for i in range(2):
                high = all(upper[step] >= least[i] and upper[step] > 0 for step in range(first, last + 1))
                if high and length > reach[i]:
                    expected[first : last + 1] |= lower[first : last + 1] < most[i]
    found = _kernels.deciding_steps(begins, lower, upper, least, most, reach)
    assert found.tolist() == expected.tolist()


def lists_of(elements: st.SearchStrategy[float], size: int) -> st.SearchStrategy[list[float]]:
    return st.lists(elements, min_size=size, max_size=size)
