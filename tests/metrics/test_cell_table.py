"""Rows are counted in cells the same in one part or several, by a grid or given the cell of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import localparity as lp
from localparity.counts._rows import KeyedRows
from localparity.engines.protocol import table_of_scores
from localparity.metrics import _exact
from localparity.metrics._exact import ArrayRows, CellTable, Grid, find_in
from scale_rows import assert_same_counts

KEYS: list[Any] = [("a", None), ("b", None)]


def rows(scores: NDArray[np.float64], *, weighted: bool = False) -> KeyedRows:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, scores.size).astype(np.uint8)
    weights = 2.0 ** rng.integers(-48, 33, scores.size) if weighted else None
    return KeyedRows(scores, codes, KEYS, weights)


def table_of(given: KeyedRows, grid: Grid, n_jobs: int = 1) -> CellTable:
    return ArrayRows(given, grid, (-1e300, 1e300), ends=True, squares=True, n_jobs=n_jobs).table()


SCORES = {
    "even": np.random.default_rng(1).random(300),
    "many magnitudes": 10.0 ** (-300.0 * np.random.default_rng(1).random(300)),
    "both signs": 1e-12 * np.random.default_rng(1).standard_normal(300),
    "far from zero": 1e15 + np.arange(300.0),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_cells_of_a_grid_ascend_and_hold_all_rows(name: str, weighted: bool) -> None:
    given = rows(SCORES[name], weighted=weighted)
    found = table_of(given, Grid.over(np.unique(given.scores), 16))
    assert found.rows.sum() == given.scores.size
    assert (found.lowest <= found.highest).all()
    assert (found.highest[:-1] < found.lowest[1:]).all()
    for cell in range(found.numbers.size):
        inside = (given.scores >= found.lowest[cell]) & (given.scores <= found.highest[cell])
        assert found.rows[cell].sum() == inside.sum()


@pytest.mark.parametrize("name", SCORES)
def test_edges_hold_the_scores_of_a_cell_and_its_parts(name: str) -> None:
    given = rows(SCORES[name], weighted=True)
    score_range = float(given.scores.min()) - 1.0, float(given.scores.max()) + 1.0
    grid = Grid.over(np.unique(given.scores), 16)
    exact = table_of(given, grid)
    opened = (np.arange(exact.numbers.size) == 1) | (np.arange(exact.numbers.size) == 2)
    inside = find_in(given, grid, exact.numbers[opened], int(exact.rows[opened].sum()), 1)
    cut = grid.cut(exact.numbers[opened], 8)
    for one, cells in ((exact, grid), (table_of(inside, cut), cut)):
        lowest, highest = cells.edges(one.numbers, score_range)
        assert (lowest <= one.lowest).all()
        assert (highest >= one.highest).all()
        assert (highest[:-1] <= lowest[1:]).all()
    assert inside.scores.size == exact.rows[1:3].sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_parts_and_given_cells_count_the_same(monkeypatch: pytest.MonkeyPatch, weighted: bool) -> None:
    monkeypatch.setattr(_exact, "_MANY_ROWS", 0)
    given = rows(SCORES["even"], weighted=weighted)
    grid = Grid.over(np.unique(given.scores), 16)
    one, several = (table_of(given, grid, n_jobs=jobs) for jobs in (1, 3))
    placed = CellTable.empty(KEYS, grid.cells, weighted=weighted)
    cells = (np.floor(given.scores * grid.scale) - grid.first).astype(np.int64)
    placed.add_at(np.minimum(cells, grid.last), given)
    for other in (several, placed.at(one.numbers)):
        assert other.entries.tolist() == one.entries.tolist()
        assert other.lowest.tolist() == one.lowest.tolist()
        assert other.highest.tolist() == one.highest.tolist()
    opened = np.arange(one.numbers.size) % 2 == 0
    inside = int(one.rows[opened].sum())
    found = [find_in(given, grid, one.numbers[opened], inside, jobs) for jobs in (1, 3)]
    chosen = np.zeros(grid.cells, dtype=bool)
    chosen[one.numbers[opened]] = True
    found.append(given.inside(np.minimum(cells, grid.last), chosen))
    for each in found[1:]:
        assert each.scores.tolist() == found[0].scores.tolist()
        assert each.codes.tolist() == found[0].codes.tolist()
        if each.weights is not None and found[0].weights is not None:
            assert each.weights.tolist() == found[0].weights.tolist()


def test_scores_are_cells_of_their_own() -> None:
    given = rows(SCORES["even"].round(1), weighted=True)
    counts = lp.ScoreCounts(given.atoms())
    found = table_of_scores(KEYS, counts)
    assert found.lowest.tolist() == np.unique(given.scores).tolist()
    assert found.known.all()
    assert_same_counts(found.to_counts((0.0, 1.0), counts.resolution), counts)


def test_cells_of_single_floats_are_cut_into_one_part_each() -> None:
    given = rows(0.5 + np.arange(300) * 2.0**-53)
    grid = Grid.over(np.unique(given.scores), 1024)
    assert grid.shift == 0
    cut = grid.cut(np.array([3, 299]), 8)
    assert cut.cells == 2
    inside = given.take(np.array([3, 299]))
    found = table_of(inside, cut)
    assert (found.numbers.tolist(), found.rows.sum()) == ([0, 1], 2)
    lowest, _ = cut.edges(found.numbers, (0.0, 1.0))
    assert lowest.tolist() == given.scores[[3, 299]].tolist()


def test_parts_that_are_narrower_than_floats_are_apart() -> None:
    scores = 0.75 + np.arange(2**12) * 2.0**-53
    grid = Grid.over(np.unique(scores), 512)
    assert grid.shift < 0
    cut = grid.cut(np.arange(grid.cells), 64)
    lowest, highest = cut.edges(np.arange(cut.cells), (0.0, 1.0))
    assert (lowest <= highest).all()
    assert (highest[:-1] <= lowest[1:]).all()


@pytest.mark.parametrize(("counted", "what"), [(7, "more"), (30, "fewer")])
def test_rows_that_are_not_where_they_were_counted(counted: int, what: str) -> None:
    given = rows(SCORES["even"])
    grid = Grid.over(np.unique(given.scores), 16)
    with pytest.raises(AssertionError, match=what):
        find_in(given, grid, np.array([0]), counted, 1)
