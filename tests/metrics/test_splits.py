"""People in the order of a feature, and the kernel that searches its splits, against every split."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from localparity.metrics._splits import OrderedPeople

Rows = tuple[NDArray[np.int64], NDArray[np.int64], int]


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Scores and values of a feature, as whole numbers with many ties, and how many a side must have."""
    size = draw(st.integers(2, 40))
    n_scores, n_values = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scores = rng.integers(0, n_scores + 1, size)
    if draw(st.booleans()):
        scores = np.sort(scores)  # the feature is then often the score's own order
    return scores, rng.integers(0, n_values + 1, size), draw(st.integers(1, 6))


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
    people = OrderedPeople.of_rows(scores / 64, values.astype(float), least)
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
    people = OrderedPeople.of_rows(scores / 64, values.astype(float), least)
    size, gap = people.worst_split()
    assert gap == pytest.approx(float(max(expected.values())), abs=1e-12)
    at = people.values[people.ends.tolist().index(size)]
    assert float(expected[int(at)]) == pytest.approx(gap, abs=1e-12)
    order = list(range(values.size))
    random.shuffle(order)  # type: ignore[attr-defined]
    ordered = scores[np.argsort(values, kind="stable")][order]
    anew = gaps(ordered, np.sort(values), least)
    assert people.worst_split(np.array(order))[1] == pytest.approx(float(max(anew.values())), abs=1e-12)
