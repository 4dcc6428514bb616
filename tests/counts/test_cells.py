"""Counts by cells and by sketches: bounds that hold the exact value, sums that do not depend on the order."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import localparity as lp
import oracles
from localparity.counts._atoms import Cells
from localparity.counts._score_counts import on_cells, snap
from scale_rows import CRITERIA, assert_same_counts, count_rows
from strategies import People, epsilons, people


def counts_of(
    drawn: People, rows: NDArray[np.bool_] | slice = slice(None), *, weighted: bool
) -> lp.ScoreCounts:
    atoms = {}
    for group in np.unique(drawn.groups[rows]):
        for label in (0, 1):
            chosen = (drawn.groups[rows] == group) & (drawn.labels[rows] == label)
            weights = drawn.weights[rows][chosen] if weighted else None
            atoms[int(group), label] = count_rows(drawn.scores[rows][chosen], weights)
    return lp.ScoreCounts(atoms)


def bounds_of(counts: lp.ScoreCounts, epsilon: float, **options: Any) -> tuple[float, float]:
    found = lp.mcdp_bounds(counts, epsilon=epsilon, **options)
    return found.low, found.high


@given(st.data())
def test_bounds_hold_the_definition_in_rational_arithmetic(data: st.DataObject) -> None:
    drawn = data.draw(people(max_size=12))
    epsilon, level = data.draw(epsilons(drawn.grid)), data.draw(st.integers(1, 8))
    exact = counts_of(drawn, weighted=False)
    coarse = lp.counts.bounded(exact, max_scores=1, level=level)
    expected = float(oracles.mcdp(*drawn.samples(), epsilon))
    low, high = bounds_of(coarse, float(epsilon))
    assert low <= expected <= high
    assert low <= lp.mcdp(coarse, epsilon=float(epsilon)) <= high
    a, b = drawn.samples()
    curve = lp.gap_curve(coarse)
    threshold = data.draw(st.sampled_from(drawn.exact_scores))
    lower, upper = curve.bounds()
    for low, high, value in (
        (lower.abcc(), upper.abcc(), oracles.abcc(a, b)),
        (lower(float(threshold)), upper(float(threshold)), abs(oracles.gap(a, b, threshold))),
    ):
        assert low - 1e-12 <= float(value) <= high + 1e-12


@given(people(max_size=12), st.integers(1, 5))
def test_inside_a_cell_either_group_may_come_first(drawn: People, level: int) -> None:
    curve = lp.gap_curve(lp.counts.bounded(counts_of(drawn, weighted=False), max_scores=1, level=level))
    a, b = drawn.samples()
    assert curve.cells is not None
    lows, knots = (
        [Fraction(end).limit_denominator(10**6) for end in ends] for ends in (curve.cells.lows, curve.knots)
    )
    bounds = zip(lows, knots, curve.gap, curve.cells.least, curve.cells.most, strict=True)
    for low, knot, gap, least, most in bounds:
        assert gap == float(oracles.gap(a, b, knot))
        if low < knot:
            assert least == float(oracles.cdf(a, low) - oracles.cdf(b, knot))
            assert most == float(oracles.cdf(a, knot) - oracles.cdf(b, low))


@given(people(max_size=12))
def test_exact_counts_merge_into_cells(drawn: People) -> None:
    exact = counts_of(drawn, weighted=False)
    gridded = lp.counts.bounded(exact, max_scores=1, level=1)
    assert gridded.cells is not None
    for merged in (gridded.merge(exact), exact.merge(gridded)):
        assert merged.cells is not None
        assert (merged.size, merged.rank_error) == (2 * exact.size, gridded.rank_error)
        low, high = bounds_of(merged, 0.05)
        assert low <= lp.mcdp(exact, epsilon=0.05) <= high
    with pytest.raises(ValueError, match="sketch"):
        lp.ScoreCounts(exact.atoms, rank_error=0.01).merge(gridded)


@given(st.data(), st.booleans(), st.sampled_from(["between_groups", "to_overall"]))
def test_bounds_hold_the_exact_value(data: st.DataObject, weighted: bool, compare: str) -> None:
    drawn = data.draw(people(n_groups=3, max_size=8))
    epsilon, level = float(data.draw(epsilons(drawn.grid))), data.draw(st.integers(1, 12))
    exact = counts_of(drawn, weighted=weighted)
    coarse = lp.counts.bounded(exact, max_scores=1, level=level)
    for criterion in CRITERIA:
        try:
            value = lp.mcdp(exact, epsilon=epsilon, criterion=criterion, compare=compare)
        except ValueError:
            continue
        low, high = bounds_of(coarse, epsilon, criterion=criterion, compare=compare)
        assert low <= value <= high
        worst = coarse.rank_error
        assert high - low <= 4.0 * worst + 1e-12 or epsilon > 0.0


@given(st.data(), st.booleans())
def test_merging_in_any_order_and_partition_gives_the_same_bytes(data: st.DataObject, weighted: bool) -> None:
    drawn = data.draw(people(n_groups=2, max_size=14))
    size = drawn.scores.size
    part = np.array(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    limit = data.draw(st.integers(1, 30))
    pieces = [counts_of(drawn, part == i, weighted=weighted) for i in range(4) if (part == i).any()]
    options = {"max_scores": limit, "level": 4}
    whole = lp.counts.bounded(counts_of(drawn, weighted=weighted), **options)
    for order in (pieces, pieces[::-1]):
        assert_same_counts(lp.counts.merge_bounded(order, **options), whole)
    if len(pieces) == 4:
        halves = [lp.counts.merge_bounded(half, **options) for half in (pieces[::2], pieces[1::2])]
        merged = lp.counts.merge_bounded(halves, **options)
        assert_same_counts(merged, whole)
        assert merged.rank_error == whole.rank_error


def test_counts_on_coarser_cells_stay_on_them() -> None:
    exact = lp.ScoreCounts(
        {("a", None): count_rows(np.array([0.1, 0.6])), ("b", None): count_rows(np.array([0.2, 0.7]))}
    )
    coarse = lp.counts.bounded(exact, max_scores=1, level=1)
    for finer in (lp.counts.bounded(coarse, max_scores=1, level=4), lp.counts.merge_bounded([coarse])):
        assert bounds_of(finer, 0.04) == bounds_of(coarse, 0.04) == (0.0, 0.5)


@given(st.data(), st.booleans(), st.sampled_from([(0.0, 1.0), (-3.0, 4.0)]))
def test_bounds_hold_whatever_cells_parts_were_on(
    data: st.DataObject, weighted: bool, score_range: tuple[float, float]
) -> None:
    drawn = data.draw(people(n_groups=2, max_size=14))
    low, high = score_range
    scores = low + (high - low) * drawn.scores
    weights = drawn.weights if weighted else None
    given_people: dict[str, Any] = {"sensitive_features": drawn.groups, "score_range": score_range}
    parts = []
    for _ in range(data.draw(st.integers(1, 3))):
        counts = lp.ScoreCounts.from_predictions(
            lp.Predictions.from_arrays(None, scores, sample_weight=weights, **given_people)
        )
        for level in data.draw(st.lists(st.integers(1, 8), max_size=2)):
            counts = lp.counts.bounded(counts, max_scores=1, level=level)
        parts.append(counts)
    merged = lp.counts.merge_bounded(parts, max_scores=1, level=data.draw(st.integers(1, 8)))
    for epsilon in (0.0, 0.04, 0.1):
        # Each part has the same people, so that all of them together have their MCDP.
        value = lp.mcdp(None, scores, sample_weight=weights, epsilon=epsilon, **given_people)
        least, most = bounds_of(merged, epsilon)
        assert least - 1e-12 <= value <= most + 1e-12


@pytest.mark.parametrize(
    "call", [lp.counts.bounded, lambda counts, **options: lp.counts.merge_bounded([counts], **options)]
)
def test_a_level_beyond_the_cells_that_can_be_numbered(call: Any) -> None:
    counts = lp.ScoreCounts({("a", None): count_rows(np.array([0.1]))})
    with pytest.raises(ValueError, match="level must be <= 30, got 31"):
        call(counts, level=31)


def test_what_cannot_merge_says_so() -> None:
    atoms = {("a", None): count_rows(np.array([0.1])), ("b", None): count_rows(np.array([0.9]))}
    sketched = lp.ScoreCounts(atoms, rank_error=0.01)
    gridded = lp.counts.bounded(lp.ScoreCounts(atoms), max_scores=1, level=2)
    with pytest.raises(ValueError, match="counts of a sketch cannot be merged with counts on a grid"):
        sketched.merge(gridded)
    with pytest.raises(ValueError, match="parts is empty"):
        lp.counts.merge_bounded([])
    with pytest.raises(ValueError, match=r"max_scores .*got 0"):
        lp.counts.bounded(gridded, max_scores=0)


def test_cells_join_the_larger_of_two() -> None:
    quarters = Cells(np.array([0.0, 0.25, 0.75]), np.array([0.25, 0.5, 1.0]))
    joined = quarters.union(Cells(np.array([0.0]), np.array([0.5])))
    assert (joined.lows.tolist(), joined.highs.tolist()) == ([0.0, 0.75], [0.5, 1.0])


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), max_size=8))
def test_cells_that_overlap_are_one(drawn: list[tuple[int, int]]) -> None:
    joined = Cells(np.empty(0), np.empty(0))
    covered: set[int] = set()
    for low, width in drawn:
        joined = joined.union(Cells(np.array([low / 1.0]), np.array([(low + width) / 1.0])))
        covered |= set(range(low, low + width))
    assert (joined.lows < joined.highs).all()
    assert (joined.highs[:-1] <= joined.lows[1:]).all()
    assert covered == {
        unit
        for low, high in zip(joined.lows, joined.highs, strict=True)
        for unit in range(int(low), int(high))
    }


@st.composite
def dyadic_cells(draw: st.DrawFn) -> Cells:
    """Disjoint cells, each a half of a half of ... the range; of two of them one holds the other, or they are apart."""
    cells, open_cells = [], [(0, 16)]
    while open_cells:
        low, high = open_cells.pop()
        choice = draw(st.sampled_from(["cell", "none", "split", "split"]))
        if choice == "cell":
            cells.append((low / 16, high / 16))
        elif choice == "split" and high - low > 1:
            middle = (low + high) // 2
            open_cells += [(low, middle), (middle, high)]
    lows, highs = np.array(sorted(cells)).reshape(-1, 2).T
    return Cells(lows, highs)


@given(dyadic_cells(), dyadic_cells())
def test_a_union_has_the_cells_that_lie_in_no_other(one: Cells, two: Cells) -> None:
    pairs = {(low, high) for each in (one, two) for low, high in zip(each.lows, each.highs, strict=True)}
    expected = sorted(
        (low, high)
        for low, high in pairs
        if not any(other != (low, high) and other[0] <= low and high <= other[1] for other in pairs)
    )
    joined = one.union(two)
    assert list(zip(joined.lows, joined.highs, strict=True)) == expected
    assert one.union(None) is one


@given(dyadic_cells(), st.lists(st.integers(0, 32).map(lambda number: number / 32), unique=True).map(sorted))
def test_scores_inside_a_cell_move_to_its_high_end_and_back_to_its_low_end(
    cells: Cells, scores: list[float]
) -> None:
    highs, lows = scores.copy(), scores.copy()
    for place, score in enumerate(scores):
        for low, high in zip(cells.lows, cells.highs, strict=True):
            if low < score <= high:
                lows[place], highs[place] = low, high
    assert cells.snap(np.array(scores)).tolist() == highs
    assert cells.lows_of(np.array(scores)).tolist() == lows


def test_an_exact_curve_is_its_own_bounds() -> None:
    curve = lp.gap_curve(lp.Predictions.from_arrays(None, [0.1, 0.2], sensitive_features=["a", "b"]))
    assert curve.bounds() == (curve, curve)


@given(st.data(), st.floats(0.001, 0.2))
def test_a_sketch_is_bounded_by_its_rank_error(data: st.DataObject, rank_error: float) -> None:
    drawn = data.draw(people(max_size=12))
    epsilon = float(data.draw(epsilons(drawn.grid)))
    exact = counts_of(drawn, weighted=False)
    sketched = lp.ScoreCounts(exact.atoms, rank_error=rank_error)
    value = lp.mcdp(exact, epsilon=epsilon)
    low, high = bounds_of(sketched, epsilon)
    assert low <= value <= high
    assert low == pytest.approx(max(value - 2 * rank_error, 0.0), abs=1e-12)
    assert high <= min(value + 2 * rank_error, 1.0) + 1e-12


@given(st.data())
def test_rows_without_weights_weigh_one(data: st.DataObject) -> None:
    drawn = data.draw(people(max_size=8))
    plain, weighted = (counts_of(drawn, weighted=weighted) for weighted in (False, True))
    ones = lp.ScoreCounts({key: atoms.with_units() for key, atoms in plain.atoms.items()})
    for one, two in ((plain, weighted), (weighted, plain), (weighted, ones)):
        assert_same_counts(one.merge(two), ones.merge(weighted))


def test_people_inside_a_cell_are_counted_at_its_high_end() -> None:
    scores, weights = np.array([0.1, 0.2, 0.6, 0.9]), np.array([1.0, 2.0, 3.0, 4.0])
    cells = Cells(np.array([0.0]), np.array([0.25]))
    for given_weights in (None, weights):
        exact = count_rows(scores, given_weights)
        inside = count_rows(scores[:2], None if given_weights is None else weights[:2])
        snapped = exact.snap(cells)
        assert snapped.scores.tolist() == [0.25, 0.6, 0.9]
        assert snapped.weights.sum() == exact.weights.sum()
    counts = lp.ScoreCounts({("a", None): exact, ("b", None): inside})
    assert snap(counts, cells).rank_error == 1.0
    assert on_cells(snap(counts, cells), None).rank_error == 0.0


def test_counts_of_one_group_have_nothing_to_compare() -> None:
    alone = lp.ScoreCounts({("a", None): count_rows(np.array([0.1]))})
    with pytest.raises(ValueError, match=r"two groups.*'a'"):
        lp.mcdp(alone)
    with pytest.raises(ValueError, match=r"two groups.*none"):
        lp.mcdp(lp.ScoreCounts({}))
