"""From cells to exact counts: a pass over the rows that lie in the cells that decide MCDP.

A first pass counts rows by the cells of a grid. The gap is exact at the cells' edges, and inside a cell it is
bounded by what lies in it. Reading again only the cells that decide MCDP makes it exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray, Group, IntArray
from localparity._validation import as_count, as_epsilons
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.counts._bounded import cell_edges, cell_numbers, grid_cells
from localparity.counts._cells import is_among
from localparity.counts._score_counts import on_cells
from localparity.counts._weights import Units
from localparity.metrics import GapCurve
from localparity.metrics._envelope import find_envelope
from localparity.metrics._gap_curve import units_of
from localparity.metrics._gap_curves import gap_curves

_MOST_CELLS_OPENED = 2**16
_DEEPEST_LEVEL = 46


@dataclass(frozen=True, eq=False)
class Tally:
    """What a source counted of one group and label.

    Attributes
    ----------
    key : tuple
        The group and the label.
    at : ndarray
        The cells' numbers, or the scores, ascending.
    rows : ndarray
        How many rows are at each.
    least, most : ndarray
        The lowest and the highest score in each cell.
    units : ndarray or None
        The weight at each, in whole units.
    """

    key: tuple[Group, int | None]
    at: NDArray[Any]
    rows: IntArray
    least: FloatArray
    most: FloatArray
    units: Units | None = None


class Parents(NamedTuple):
    """The cells, numbers of one level, that a pass is restricted to."""

    level: int
    numbers: IntArray


class ScoreSource(Protocol):
    """Rows that can be counted again and again, wherever they are."""

    score_range: tuple[float, float]
    resolution: float
    budget: int
    """How many scores, or cells, one more pass may bring."""

    def on_grid(self, level: int, parents: Parents | None = None) -> list[Tally]:
        """Count the rows by cells of a level."""
        ...

    def exactly(self, parents: Parents | None = None) -> list[Tally]:
        """Count the rows by their scores."""
        ...

    def distinct(self) -> int:
        """About how many different scores there are, those of each group and label apart."""
        ...


def count_scores(
    source: ScoreSource,
    max_scores: int,
    level: int,
    epsilons: Sequence[float],
    comparison: Comparison,
) -> ScoreCounts:
    """Count a source: exactly where its scores fit the limit, else on a grid that is exact where it is asked.

    The first pass is on the grid. Where every cell turns out to hold one score, it is all; where the scores
    fit the limit, a second pass counts them as they are.
    """
    at = as_epsilons(list(epsilons), "epsilons")
    max_scores, level = as_count(max_scores, "max_scores"), as_count(level, "level")
    tallies = source.on_grid(level)
    single = [tally.least == tally.most for tally in tallies]
    if all(each.all() for each in single):
        return _counts_of(source, [replace(tally, at=tally.least) for tally in tallies])
    fewest = sum(int((2 - one).sum()) for one in single)
    most = sum(int(np.where(one, 1, tally.rows).sum()) for one, tally in zip(single, tallies, strict=True))
    if most <= max_scores or (fewest <= max_scores and source.distinct() <= max_scores):
        exact = _counts_of(source, source.exactly())
        if sum(atoms.scores.size for atoms in exact.atoms.values()) <= max_scores:
            return exact
    counts = _counts_of(source, tallies, level)
    return refine(counts, source, level, at, comparison)


def _counts_of(source: ScoreSource, tallies: Sequence[Tally], level: int | None = None) -> ScoreCounts:
    """The counts that tallies make: of cells where they have a level, else of scores."""
    score_range = source.score_range
    if level is None:
        atoms = {tally.key: _atoms_of(tally, tally.at) for tally in tallies}
        return ScoreCounts(atoms, score_range, source.resolution)
    numbers = _union([tally.at for tally in tallies])
    places = [np.searchsorted(numbers, tally.at) for tally in tallies]
    least, most = np.full(numbers.size, np.inf), np.full(numbers.size, -np.inf)
    for place, tally in zip(places, tallies, strict=True):
        least[place] = np.minimum(least[place], tally.least)
        most[place] = np.maximum(most[place], tally.most)
    # A cell in which all people have one score is that score.
    scores = np.where(least == most, least, cell_edges(numbers, level, score_range))
    atoms = {tally.key: _atoms_of(tally, scores[place]) for place, tally in zip(places, tallies, strict=True)}
    cells = grid_cells(numbers[least < most], level, score_range)
    return on_cells(ScoreCounts(atoms, score_range, source.resolution), cells)


def _union(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The distinct numbers of parts that each ascend, ascending."""
    if not parts:
        return np.empty(0)
    joined = np.concatenate(parts)
    joined.sort(kind="stable")  # which merges ascending parts
    kept = np.ones(joined.size, dtype=bool)
    np.not_equal(joined[1:], joined[:-1], out=kept[1:])
    return joined[kept]


def _atoms_of(tally: Tally, scores: FloatArray) -> Atoms:
    return Atoms.of_counts(scores, tally.rows, tally.units)


def deciding_cells(curve: GapCurve, epsilons: FloatArray) -> FloatArray:
    """The high ends of the cells that MCDP at some epsilons, and its worst window, hang on.

    A window counts only where the gap may reach the lower bound of MCDP all along it, and in such a window
    only the cells in which the gap may fall below the upper bound. When these are known exactly, so is MCDP.
    """
    # Imported here: numba is not loaded with the package.
    from localparity.metrics import _kernels

    if curve.cells is None:
        return np.empty(0)
    steps = find_envelope(curve.knots, curve.gap, curve.cells)
    begins = units_of(steps.knots, curve.score_range, curve.resolution)
    least, most = (bound.mcdp_at(epsilons) for bound in curve.bounds())
    # Any run carries a window of 0; one that ties with an epsilon may be read again in vain.
    reach = np.where(epsilons > 0.0, epsilons, -1.0)
    decides = _kernels.deciding_steps(begins, steps.lower, steps.upper, least, most, reach)
    return curve.knots[steps.cell[decides & (steps.cell >= 0)]]


def refine(
    counts: ScoreCounts,
    source: ScoreSource,
    level: int,
    epsilons: FloatArray,
    comparison: Comparison,
) -> ScoreCounts:
    """Read again the cells that decide MCDP at some epsilons, ever finer, until it is exact for every pair.

    Only where tens of thousands of cells decide, as when two groups are all but equal, the bounds stay.
    """
    while counts.cells is not None:
        compared = counts.without(counts.small_groups(comparison))
        curves = gap_curves(compared, comparison) if len(compared.groups) > 1 else []
        deciding = [deciding_cells(curve, epsilons) for curve in curves]
        opened = _union(deciding)
        if not opened.size or opened.size > _MOST_CELLS_OPENED:
            break
        parents = Parents(level, cell_numbers(opened, level, counts.score_range))
        inside = sum(int(atoms.rows[is_among(atoms.scores, opened)].sum()) for atoms in counts.atoms.values())
        if inside <= source.budget or level >= _DEEPEST_LEVEL:
            finer = _counts_of(source, source.exactly(parents))
        else:
            level += int(np.clip(np.log2(source.budget / opened.size), 2, 10))
            finer = _counts_of(source, source.on_grid(level, parents), level)
        counts = _splice(counts, opened, finer)
    return counts


def _splice(counts: ScoreCounts, opened: FloatArray, finer: ScoreCounts) -> ScoreCounts:
    """The counts with some of their cells replaced by finer counts of the same people."""
    assert counts.cells is not None
    atoms = {
        key: found.replaced(opened, finer.atoms[key]) if key in finer.atoms else found
        for key, found in counts.atoms.items()
    }
    return on_cells(replace(counts, atoms=atoms), counts.cells.replaced(opened, finer.cells))
