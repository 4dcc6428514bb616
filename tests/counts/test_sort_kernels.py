"""Rows are sorted by their scores, whatever these are, and carry along what they carry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from localparity.counts._kernels import sort_into
from localparity.counts._rows import _numpy_is_faster, _sort_packed, sort_rows

FLOATS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)


def check(scores: NDArray[Any]) -> None:
    given_rows, before = np.arange(scores.size), scores.copy()
    found, rows = np.empty_like(scores), np.empty_like(given_rows)
    sort_into(scores, given_rows, found, rows)
    assert np.array_equal(found, np.sort(scores))
    assert np.array_equal(np.sort(rows), given_rows)
    assert np.array_equal(scores[rows], found)
    check_codes(scores)
    assert np.array_equal(scores, before)


def check_codes(scores: NDArray[Any]) -> None:
    """Rows that carry one of few codes, as those of groups do, are sorted by numbers that hold both."""
    for most in (1, 4, 200):
        codes = (np.arange(scores.size) % most).astype(np.uint8)
        order = np.lexsort((codes, scores))
        for found in (sort_rows(scores, codes), _sort_packed(scores, codes)):
            if found is not None:
                assert (found[0].dtype, found[1].dtype) == (scores.dtype, codes.dtype)
                assert np.array_equal(found[0], scores[order])
                again = np.lexsort((found[1], found[0]))
                assert np.array_equal(found[1][again], codes[order])


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


@pytest.mark.parametrize("rows", [1, 41, 300, 700])
@pytest.mark.parametrize("name", designs(1))
def test_designs_that_crowd_into_few_cells_are_sorted(name: str, rows: int) -> None:
    check(designs(rows)[name])


@pytest.mark.compiled
@pytest.mark.parametrize("name", designs(1))
def test_designs_of_many_rows_are_sorted(name: str) -> None:
    check(designs(200_000)[name])


def test_scores_and_codes_that_fit_are_packed() -> None:
    scores, codes = np.random.default_rng(0).random(100), np.arange(100, dtype=np.uint8)
    assert _sort_packed(scores, codes % 2) is not None
    assert _sort_packed(scores, codes) is not None  # less the bits of the lowest score
    assert _sort_packed(np.append(scores[1:], 0.0), codes) is not None
    assert _sort_packed(scores.astype(np.float32), codes) is not None
    assert _sort_packed(np.append(scores[1:], 1e-300), codes) is None
    assert _sort_packed(scores - 0.5, codes % 2) is None
    assert _sort_packed(scores, codes.astype(np.int64)) is None


@pytest.mark.parametrize("faster", [True, False])
def test_many_rows_are_sorted_by_the_faster_way(faster: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localparity.counts._rows._numpy_is_faster", lambda: faster)
    monkeypatch.setattr("localparity.counts._rows._MANY_ROWS", 2**10)
    check_codes(np.random.default_rng(0).random(2**11))


@pytest.mark.compiled
def test_which_sort_is_faster_is_measured_once() -> None:
    assert _numpy_is_faster() is _numpy_is_faster()
