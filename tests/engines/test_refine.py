"""Counts of bounded size: certified bounds, exact where they are asked to be, the same in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
from localparity.counts._coarsen import cell_edges, cell_numbers
from localparity.engines import protocol
from localparity.engines.protocol import CountOptions, count_source
from localparity.metrics._gap_curve import gap_curves
from rows_in_memory import RowsInMemory
from scale_rows import EPSILONS, Rows, assert_exact, assert_same_counts, make_rows

RANGES = [(0.0, 1.0), (300.0, 850.0), (-1.0, 1.0), (0.1, 0.7), (-1e300, 1e300)]


@pytest.mark.parametrize("score_range", RANGES)
@pytest.mark.parametrize("level", [1, 6, 20, 40])
def test_edges_and_numbers_agree(score_range: tuple[float, float], level: int) -> None:
    rng = np.random.default_rng(level)
    low, high = score_range
    numbers = np.unique(rng.integers(0, 2**level, 200, endpoint=True))
    edges = cell_edges(numbers, level, score_range)
    np.testing.assert_array_equal(cell_numbers(edges, level, score_range), numbers)
    inside = edges[edges < high]
    above = np.nextafter(inside, np.inf)
    assert (cell_numbers(above, level, score_range) == numbers[edges < high] + 1).all()
    finer = cell_edges(2 * numbers, level + 1, score_range)
    np.testing.assert_array_equal(finer, edges)
    assert low <= edges.min()
    assert edges.max() <= high


def source_of(rows: Rows) -> RowsInMemory:
    return RowsInMemory({"p": rows.scores, "g": rows.groups})


def count(
    source: RowsInMemory, *, max_scores: int = 300, level: int = 6, compare: Any = "between_groups"
) -> lp.ScoreCounts:
    comparison = lp.Comparison(compare=compare)
    return count_source(source, CountOptions(EPSILONS, comparison, max_scores, level))


@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(20, 2000))
def test_refined_counts_are_exact_where_it_was_asked(seed: int, level: int, max_scores: int) -> None:
    rows = make_rows(1500, seed)
    exact = rows.counts(labelled=False, weighted=False)
    for compare in ("between_groups", "to_overall"):
        refined = count(source_of(rows), level=level, max_scores=max_scores, compare=compare)
        for epsilon in EPSILONS:
            assert_exact(refined, exact, epsilon=epsilon, compare=compare)
            ours, theirs = (
                lp.mcdp_profile(counts, compare=compare).worst_window(epsilon) for counts in (refined, exact)
            )
            assert ours == theirs
        asked: dict[str, Any] = {"epsilon": 0.033, "compare": compare}
        bounds = lp.mcdp_bounds(refined, **asked)
        assert bounds.low <= lp.mcdp(exact, **asked) <= bounds.high


def test_few_scores_are_counted_as_they_are() -> None:
    rows = make_rows(2000)
    source = source_of(Rows(rows.scores.round(1), rows.groups, rows.labels, rows.weights))
    assert count(source).cells is None
    assert source.calls == ["grid 6"]  # one score a cell: one pass is enough
    source = source_of(rows)
    assert count(source, max_scores=5000).cells is None
    assert source.calls == ["grid 6", "exactly"]


def test_clustered_scores_are_estimated_before_they_are_counted() -> None:
    rows = make_rows(3000)
    clustered = Rows((rows.scores.round(2) / 1000).round(6), rows.groups, rows.labels, rows.weights)
    source = source_of(clustered)
    found = count(source, max_scores=400)
    assert source.calls == ["grid 6", "distinct", "exactly"]
    assert_same_counts(found, clustered.counts(labelled=False, weighted=False))
    source = source_of(clustered)
    found = count(source, max_scores=50)
    assert source.calls[:3] == ["grid 6", "distinct", "grid 14"]
    assert lp.mcdp(found) == lp.mcdp(clustered.counts(labelled=False, weighted=False))


def test_where_too_many_cells_decide_the_worst_pair_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    # Twelve groups near parity: every cell decides for one of 66 pairs, few for the worst of them.
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 12, 24_000).astype(str)
    rows = Rows(rng.random(24_000), groups, np.zeros(24_000, int), np.ones(24_000))
    source, exact = source_of(rows), rows.counts(labelled=False, weighted=False)
    monkeypatch.setattr(protocol, "_MOST_READ", 1500)
    found = count(source, max_scores=200)
    assert source.calls[-1] == "exactly inside"
    assert sum(atoms.scores.size for atoms in found.atoms.values()) < 12_000
    for epsilon in (each for each in EPSILONS if each < 0.5):  # where all of MCDP is 0, every cell decides
        assert_exact(found, exact, epsilon=epsilon)
    assert found.cells is not None
    for ours, theirs in zip(
        gap_curves(found, lp.Comparison()), gap_curves(exact, lp.Comparison()), strict=True
    ):
        bounds = ours.mcdp_bounds(0.01)
        assert bounds.low <= theirs.mcdp(0.01) <= bounds.high
    monkeypatch.setattr(protocol, "_MAX_CELLS_READ", 2)
    source = source_of(rows)
    bounds = lp.mcdp_bounds(count(source, max_scores=200), epsilon=0.01)
    assert source.calls == ["grid 6"]
    assert bounds.low < lp.mcdp(exact, epsilon=0.01) < bounds.high


def test_two_equal_groups_end_with_bounds_or_with_zero() -> None:
    rng = np.random.default_rng(0)
    half = rng.random(2000)
    rows = Rows(np.tile(half, 2), np.repeat(["a", "b"], 2000), np.zeros(4000, int), np.ones(4000))
    found = count(source_of(rows), max_scores=200)
    assert lp.mcdp_bounds(found) == lp.results.Interval(0.0, 0.0, 0.0)
