"""People in the order of a feature, and the kernel that searches its splits, against every split."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from localparity.uncertainty import _kernels as _split_kernels
from localparity.uncertainty._splits import OrderedPeople

Rows = tuple[NDArray[np.int64], NDArray[np.int64], int]


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Scores and values of a feature, as whole numbers with many ties, and how many a side must have."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size, n_scores, n_values = (draw(st.integers(low, 40)) for low in (2, 1, 1))
    scores, values = (rng.integers(0, most + 1, size) for most in (n_scores, n_values))
    return scores, values, draw(st.integers(1, 6))


def gaps(scores: NDArray[np.int64], values: NDArray[np.int64], least: int) -> dict[int, Fraction]:
    """MCDP(0) of each split with enough people on either side."""
    found = {}
    for value in np.unique(values).tolist():
        low, high = scores[values <= value], scores[values > value]
        if min(low.size, high.size) >= least:
            found[value] = max(
                abs(Fraction(int((low <= y).sum()), low.size) - Fraction(int((high <= y).sum()), high.size))
                for y in np.unique(scores)
            )
    return found


@given(rows())
def test_splits_leave_enough_people_on_either_side(drawn: Rows) -> None:
    scores, values, least = drawn
    people = OrderedPeople(scores / 64, values.astype(float), least)
    assert people.splits.tolist() == list(gaps(*drawn))
    assert people.values.tolist() == np.unique(values).tolist()
    assert people.ends.tolist() == [int((values <= value).sum()) for value in np.unique(values)]
    assert people.totals.tolist() == [int((scores <= score).sum()) for score in np.unique(scores)]
    in_order = np.argsort(values, kind="stable")
    assert np.unique(scores)[people.places].tolist() == scores[in_order].tolist()


@given(rows(), st.randoms(use_true_random=False))
def test_the_worst_split_is_the_worst_of_all(drawn: Rows, random: object) -> None:
    scores, values, least = drawn
    expected = gaps(*drawn)
    assume(expected)
    people = OrderedPeople(scores / 64, values.astype(float), least)
    size, gap = people.worst_split()
    assert gap == pytest.approx(float(max(expected.values())), abs=1e-12)
    at = people.values[people.ends.tolist().index(size)]
    assert float(expected[int(at)]) == pytest.approx(gap, abs=1e-12)
    order = list(range(values.size))
    random.shuffle(order)  # type: ignore[attr-defined]
    ordered = scores[np.argsort(values, kind="stable")][order]
    anew = gaps(ordered, np.sort(values), least)
    assert people.worst_split(np.array(order))[1] == pytest.approx(float(max(anew.values())), abs=1e-12)


def in_blocks(rng: np.random.Generator) -> NDArray[np.int64]:
    """The scores of people in the order of a feature, who come in blocks from one part of the range each.

    For as long as a block lasts, what is the worst in another part changes without anybody there.
    """
    most = rng.integers(1, 24)
    parts = np.sort(rng.integers(0, most, (rng.integers(1, 9), 2)), axis=1)
    return np.concatenate([rng.integers(low, high + 1, rng.integers(1, 14)) for low, high in parts])


@pytest.mark.parametrize("ordered", [in_blocks, lambda rng: rng.integers(0, 40, rng.integers(2, 30))])
def test_the_kernel_finds_the_worst_of_all_splits(
    ordered: Callable[[np.random.Generator], NDArray[np.int64]],
) -> None:
    rng = np.random.default_rng(0)
    for _ in range(400):
        _, places, rows = np.unique(ordered(rng), return_inverse=True, return_counts=True)
        people, totals = places.size, np.cumsum(rows)
        every = np.arange(1, people)
        # At each split and score n A - t T, of which the greatest over t (n - t) is the worst gap.
        came_over = np.cumsum(places[:, None] <= np.arange(totals.size), axis=0)[:-1]
        worst = np.abs(people * came_over - every[:, None] * totals).max(axis=1) / (every * (people - every))
        # Where there are few splits, the search is not cut short by a worse one before.
        for ends in (every, every[rng.random(every.size) < 0.3], rng.permutation(every)[:2]):
            if ends.size:
                size, gap = _split_kernels.widest_split(places, totals, np.sort(ends), 1, 1.0)
                assert gap == worst[ends - 1].max() == worst[size - 1]
