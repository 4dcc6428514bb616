"""Rows are sorted by their scores, whatever these are, and carry along what they carry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from localparity.counts._kernels import sort_with

FLOATS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)


def check(scores: NDArray[Any]) -> None:
    given_rows = np.arange(scores.size)
    before = scores.copy()
    found, rows = sort_with(scores, given_rows)
    assert found.dtype == scores.dtype
    assert np.array_equal(found, np.sort(scores))
    assert np.array_equal(np.sort(rows), given_rows)
    assert np.array_equal(scores[rows], found)
    assert np.array_equal(scores, before)


@given(st.lists(FLOATS, min_size=1, max_size=200))
def test_any_scores_are_sorted(scores: list[float]) -> None:
    check(np.array(scores))


def designs(rows: int) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(0)
    some = rng.random(rows)
    return {
        "even": some,
        "single precision": some.astype(np.float32),
        "all equal": np.full(rows, 0.3),
        "two values": rng.choice([0.2, 0.8], rows),
        "ties": np.floor(some * 1000) / 1000,
        "ascending": np.sort(some),
        "descending": -np.sort(-some),
        "many magnitudes": 10.0 ** (-300 * some),
        "tiny": some * 1e-310,
        "as long as floats go": (2.0 * some - 1.0) * 1.7e308,
        "half in one place": np.where(some < 0.5, 0.5 + 1e-9 * rng.random(rows), rng.random(rows)),
        "ever closer to a half": 0.5 + 0.5 ** (1 + 50 * some),
        "zeros of both signs": rng.choice([0.0, -0.0, 0.5], rows),
        "two neighbours": rng.choice([0.5, np.nextafter(0.5, 1.0)], rows),
        "ends of all floats": rng.choice([-1.7e308, -5e-324, 5e-324, 1.7e308], rows),
    }


@pytest.mark.parametrize("rows", [1, 41, 300])
@pytest.mark.parametrize("name", designs(1))
def test_designs_that_crowd_into_few_cells_are_sorted(name: str, rows: int) -> None:
    check(designs(rows)[name])


@pytest.mark.compiled
@pytest.mark.parametrize("name", designs(1))
def test_designs_of_many_rows_are_sorted(name: str) -> None:
    check(designs(200_000)[name])
