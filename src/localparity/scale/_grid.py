"""Counts of bounded size: exact while the distinct scores fit a limit, on a grid of cells beyond it.

A grid of level k cuts the score range into 2**k cells. The gap is exact at the cells' edges, and inside a
cell it is bounded by what lies in it, so every metric has certified bounds. A pass that reads again only the
cells that decide MCDP makes it exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from localparity._validation import FloatArray, Group, as_count, as_epsilons, fractions_of
from localparity.metrics import GapCurve, ScoreCounts
from localparity.metrics._atoms import Atoms
from localparity.metrics._cells import Cells, is_among
from localparity.metrics._gap_curve import units_of
from localparity.metrics._units import Units

IntArray = NDArray[np.int64]

LEVEL = 20
MAX_SCORES = 2**20

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


def cell_numbers(scores: FloatArray, level: int, score_range: tuple[float, float]) -> IntArray:
    """The cell of each score: number i holds what lies above edge i - 1 and not above edge i.

    Examples
    --------
    >>> cell_numbers(np.array([0.0, 0.1, 0.5, 1.0]), 1, (0.0, 1.0))
    array([0, 1, 1, 2])
    """
    return np.ceil(fractions_of(scores, score_range) * 2.0**level).astype(np.int64)


def cell_edges(numbers: IntArray, level: int, score_range: tuple[float, float]) -> FloatArray:
    """The highest score of each cell: the largest float whose fraction of the range is not above i / 2**k.

    Examples
    --------
    >>> cell_edges(np.arange(3), 1, (300.0, 850.0))
    array([300., 575., 850.])
    """
    low, high = score_range
    fractions = numbers.astype(np.float64) * 2.0**-level
    if score_range == (0.0, 1.0):
        return fractions
    # Bisection over the floats themselves, in the order of their bits.
    under, over = _ordinals(np.full(numbers.size, low)), _ordinals(np.full(numbers.size, high))
    for _ in range(64):
        middle = (under >> 1) + (over >> 1) + (((under & 1) + (over & 1) + 1) >> 1)
        fits = fractions_of(_floats(middle), score_range) <= fractions
        under, over = np.where(fits, middle, under), np.where(fits, over, middle - 1)
    return _floats(under)


def _ordinals(numbers: FloatArray) -> IntArray:
    """Whole numbers in the order of the floats."""
    bits = (numbers + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _floats(ordinals: IntArray) -> FloatArray:
    return np.where(ordinals < 0, np.int64(-(2**63)) - ordinals, ordinals).view(np.float64)


def grid_cells(numbers: IntArray, level: int, score_range: tuple[float, float]) -> Cells:
    """Cells by their numbers; number 0 is the bottom of the range alone and no cell."""
    numbers = numbers[numbers > 0]
    lows, highs = (cell_edges(ends, level, score_range) for ends in (numbers - 1, numbers))
    return Cells(lows, highs)


def bounded(counts: ScoreCounts, *, max_scores: int = MAX_SCORES, level: int = LEVEL) -> ScoreCounts:
    """The same counts while their scores fit a limit, and counts on a grid beyond it.

    Parameters
    ----------
    counts : ScoreCounts
        Counts of any size.
    max_scores : int
        The most distinct scores, those of each group and label apart, that are kept as they are.
    level : int
        The grid has ``2**level`` cells.

    Returns
    -------
    ScoreCounts
        Its `mcdp_bounds` hold the exact value; its `rank_error` is the largest share inside one cell. Counts
        that are on a grid already stay on one, so that merging in any order ends in the same counts.

    Examples
    --------
    >>> import localparity as lp
    >>> rng = np.random.default_rng(0)
    >>> predictions = lp.Predictions.from_arrays(
    ...     None, rng.random(5000), sensitive_features=rng.integers(0, 2, 5000)
    ... )
    >>> counts = lp.ScoreCounts.from_predictions(predictions)
    >>> coarse = lp.scale.bounded(counts, max_scores=1000, level=8)
    >>> low, high = coarse.mcdp_bounds(0.01)
    >>> low <= counts.mcdp(0.01) <= high
    True
    """
    max_scores, level = as_count(max_scores, "max_scores"), as_count(level, "level")
    if counts.cells is None and sum(atoms.scores.size for atoms in counts.atoms.values()) <= max_scores:
        return counts
    scores = np.concatenate([atoms.scores for atoms in counts.atoms.values()])
    numbers = np.unique(cell_numbers(scores, level, counts.score_range))
    return counts.snap(grid_cells(numbers, level, counts.score_range))


def merge_bounded(
    parts: Iterable[ScoreCounts], *, max_scores: int = MAX_SCORES, level: int = LEVEL
) -> ScoreCounts:
    """The counts of all parts together, of bounded size; the order of the parts does not matter.

    Parameters
    ----------
    parts : iterable of ScoreCounts
        One or more.
    max_scores, level : int
        The limit and the grid, as in `bounded`.

    Returns
    -------
    ScoreCounts
        The same bytes in whatever order and partition the rows came.

    Examples
    --------
    >>> import localparity as lp
    >>> predictions = lp.Predictions.from_arrays(None, [0.2, 0.6], sensitive_features=["a", "b"])
    >>> counts = lp.ScoreCounts.from_predictions(predictions)
    >>> lp.scale.merge_bounded([counts, counts, counts]).size
    6
    """
    found = [bounded(part, max_scores=max_scores, level=level) for part in parts]
    if not found:
        raise ValueError("parts is empty")
    return reduce(lambda one, two: bounded(one.merge(two), max_scores=max_scores, level=level), found)


def count_scores(
    source: ScoreSource,
    max_scores: int,
    level: int,
    epsilons: Sequence[float],
    criterion: str,
    compare: str,
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
    return refine(counts, source, level, at, criterion, compare)


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
    return ScoreCounts(atoms, score_range, source.resolution).on_cells(cells)


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
    steps = curve.envelope
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
    criterion: str,
    compare: str,
) -> ScoreCounts:
    """Read again the cells that decide MCDP at some epsilons, ever finer, until it is exact for every pair.

    Only where tens of thousands of cells decide, as when two groups are all but equal, the bounds stay.
    """
    while counts.cells is not None:
        compared = counts.without(counts.small_groups(criterion, 1))
        curves = compared.gap_curves(criterion, compare) if len(compared.groups) > 1 else []
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
    return replace(counts, atoms=atoms).on_cells(counts.cells.replaced(opened, finer.cells))
