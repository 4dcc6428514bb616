"""The scores of some people against sums of fractions."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity.counts._atoms import Atoms, Cells
from localparity.counts._weights import UNIT_BITS, to_whole
from scale_rows import count_rows
from strategies import People, people


def atoms_of(drawn: People, *, weighted: bool) -> Atoms:
    return count_rows(drawn.scores, drawn.weights if weighted else None)


def weight_at(drawn: People, *, weighted: bool) -> dict[float, Fraction]:
    """The weight at each distinct score, ascending, of the floats as they are."""
    found: dict[float, Fraction] = defaultdict(Fraction)
    for score, weight in sorted(zip(drawn.scores.tolist(), drawn.weights.tolist(), strict=True)):
        found[score] += Fraction(weight) if weighted else 1
    return found


@given(people(n_groups=1), st.booleans())
def test_atoms_are_the_distinct_scores_and_what_lies_at_each(drawn: People, weighted: bool) -> None:
    atoms, expected = atoms_of(drawn, weighted=weighted), weight_at(drawn, weighted=weighted)
    total = sum(expected.values())
    assert atoms.scores.tolist() == list(expected)
    weights = [float(weight) for weight in expected.values()]
    assert atoms.weights.tolist() == (pytest.approx(weights, rel=4e-16, abs=0) if weighted else weights)
    assert atoms.rows.tolist() == [int((drawn.scores == score).sum()) for score in expected]
    assert atoms.size == drawn.scores.size
    assert atoms.below().astype(float).tolist() == pytest.approx(
        [0.0, *map(float, accumulate(expected.values()))], abs=0, rel=4e-16
    )
    each = [Fraction(weight) ** 2 if weighted else Fraction(1) for weight in drawn.weights.tolist()]
    squares = [sum(each[row] for row in np.flatnonzero(drawn.scores == score)) for score in expected]
    assert atoms.squares.tolist() == pytest.approx([float(square) for square in squares], rel=1e-14)
    assert atoms.effective_size == pytest.approx(float(total**2 / sum(squares)), rel=1e-14)
    # Rows of one score count as equally heavy.
    fourth = sum(square**2 / int(rows) for square, rows in zip(squares, atoms.rows, strict=True))
    assert atoms.degrees == pytest.approx(float(sum(squares) ** 2 / fourth), rel=1e-12)


@given(people(n_groups=1), st.booleans(), st.data())
def test_shares_below_and_above_a_threshold(drawn: People, weighted: bool, data: st.DataObject) -> None:
    atoms, expected = atoms_of(drawn, weighted=weighted), weight_at(drawn, weighted=weighted)
    total = sum(expected.values())
    thresholds = [0.0, 1.0, *drawn.scores.tolist(), data.draw(st.floats(0, 1))]
    below = [float(sum(w for score, w in expected.items() if score <= y) / total) for y in thresholds]
    np.testing.assert_allclose(atoms.shares_at_or_below(np.array(thresholds)), below, rtol=0, atol=1e-15)
    above = [atoms.share_above(threshold) for threshold in thresholds]
    np.testing.assert_allclose(above, 1.0 - np.array(below), rtol=0, atol=1e-15)


@given(people(n_groups=3), st.sampled_from([(False, False), (True, True), (False, True)]))
def test_parts_join_into_the_whole(drawn: People, weighted: tuple[bool, bool]) -> None:
    parts = []
    for group, with_weights in zip((0, 1), weighted, strict=True):
        among = drawn.groups == group
        parts.append(count_rows(drawn.scores[among], drawn.weights[among] if with_weights else None))
    joined = Atoms.join(parts)
    assert Atoms.join(parts[:1]) is parts[0]
    assert joined.size == sum(part.size for part in parts)
    assert joined.squares.sum() == pytest.approx(sum(part.squares.sum() for part in parts), rel=1e-14)
    for score, weight, rows in zip(joined.scores, joined.weights, joined.rows, strict=True):
        at = [part.scores == score for part in parts]
        assert rows == sum(part.rows[here].sum() for part, here in zip(parts, at, strict=True))
        assert weight == pytest.approx(
            sum(part.weights[here].sum() for part, here in zip(parts, at, strict=True)), rel=1e-15
        )


@given(people(n_groups=1), st.data())
def test_a_row_of_weight_zero_is_nobody(drawn: People, data: st.DataObject) -> None:
    kept = np.array([data.draw(st.booleans()) for _ in drawn.scores])
    found = count_rows(drawn.scores, np.where(kept, drawn.weights, 0.0))
    expected = count_rows(drawn.scores[kept], drawn.weights[kept])
    for name in ("scores", "weights", "rows", "squares"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_without_weights_there_are_no_units() -> None:
    plain = count_rows(np.array([0.5, 0.25, 0.5]))
    assert (plain.units, plain.squares.tolist()) == (None, [1, 2])
    joined = Atoms.join([plain, plain])
    assert (joined.units, joined.squares.tolist()) == (None, [2, 4])
    assert joined.below().dtype == np.int64


def test_nobody() -> None:
    nobody = Atoms.join([])
    assert (nobody.size, nobody.scores.size, nobody.below().tolist()) == (0, 0, [0])
    assert nobody.most_inside(Cells(np.array([0.0]), np.array([1.0]))) == 0.0


def test_a_row_without_a_weight_weighs_one_unit_of_one() -> None:
    atoms = count_rows(np.array([0.25, 0.25, 0.75])).with_units()
    assert atoms.units is not None
    assert [to_whole(each) for each in atoms.units] == [3 << UNIT_BITS] * 2
    assert atoms.with_units() is atoms
    assert Atoms.join([atoms, atoms]).effective_size == 6.0


@given(people(n_groups=1), st.booleans(), st.integers(1, 4))
def test_the_most_that_lies_inside_a_cell(drawn: People, weighted: bool, parts: int) -> None:
    ends = np.arange(parts + 1) / parts
    cells = Cells(ends[:-1:2], ends[1::2])
    snapped = atoms_of(drawn, weighted=weighted).snap(cells)
    expected = weight_at(drawn, weighted=weighted)
    inside = [
        sum(weight for score, weight in expected.items() if low < score <= high)
        for low, high in zip(cells.lows, cells.highs, strict=True)
    ]
    share = float(Fraction(max(inside)) / sum(expected.values()))
    assert snapped.most_inside(cells) == pytest.approx(share, rel=1e-14)
