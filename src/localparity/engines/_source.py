"""From cells to exact counts: read again the rows in the cells that decide MCDP.

A first pass counts rows by the cells of a grid. The gap is exact at the cells' edges and bounded inside them.
Reading only the cells that decide MCDP again makes it exact.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from localparity._types import (
    ArrayLike,
    BoolArray,
    Compare,
    Criterion,
    FloatArray,
    Group,
    Groups,
    IntArray,
    ScoreRange,
)
from localparity._validation import InputError, as_count, as_epsilons, as_jobs
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.counts._cells import CellCounts
from localparity.counts._coarsen import MAX_SCORES, cell_edges
from localparity.counts._rows import Key
from localparity.counts._weights import Units
from localparity.metrics._exact import Question, count_for
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.predictions import check_predictions

LEVEL = 12
"""So many that few rows lie in the cells that decide, and so few that a core keeps their counts close by."""

_MAX_CELLS_READ = 2**16
_MOST_READ = 2**18
"""The most counts, of cells and groups, that are read again; cut into four parts they are `MAX_SCORES`."""

_MAX_LEVEL = 46
_MOST_PAIRS = 32


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """The rows of one group and label, counted by cell or by score.

    Attributes
    ----------
    key : tuple
        The group and the label; the label is None where labels are not counted.
    at : ndarray
        The cells' numbers, or the scores, ascending.
    rows : ndarray
        The number of rows at each.
    lowest, highest : ndarray
        Bounds of the scores at each, the same number where all of them are equal.
    units : ndarray or None
        The weight and the squared weight at each, in the whole units of `localparity.counts._weights`; None
        where every row weighs 1.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, rows = np.array([0.25, 0.75]), np.array([3, 1])
    >>> lp.engines.GroupCounts(("a", None), scores, rows, scores, scores).rows.sum()
    np.int64(4)
    """

    key: tuple[Group, int | None]
    at: NDArray[Any]
    rows: IntArray
    lowest: FloatArray
    highest: FloatArray
    units: Units | None = None


class CellSelection(NamedTuple):
    """The cells that a pass is restricted to: their numbers on the grid of ``2**level`` cells.

    Examples
    --------
    >>> import localparity as lp
    >>> lp.engines.CellSelection(level=2, numbers=np.array([1, 3])).level
    2
    """

    level: int
    numbers: IntArray


class ScoreSource(Protocol):
    """Rows that can be counted several times, wherever they are: what an engine implements.

    Attributes
    ----------
    score_range : tuple of float
        The lowest and the highest score there can be.
    resolution : float
        `localparity._scale.score_resolution` of the scores' dtype.
    max_refined : int
        The most cells or scores that one further pass may return.

    Examples
    --------
    The page "Add an engine" of the documentation has an engine of arrays.

    >>> import localparity as lp
    >>> sorted(name for name in dir(lp.engines.ScoreSource) if name.startswith(("count", "estimate")))
    ['count_cells', 'count_scores', 'estimate_distinct']
    """

    score_range: ScoreRange
    resolution: float
    max_refined: int

    def count_cells(self, level: int, within: CellSelection | None = None) -> list[GroupCounts]:
        """Count the rows by the cells of the grid of ``2**level`` cells.

        Cell i holds the scores above edge i - 1 and not above edge i, as in `cell_numbers`; cell 0 holds the
        lowest score there can be.

        Parameters
        ----------
        level : int
            The grid has ``2**level`` cells.
        within : CellSelection, optional
            Count only the rows in these cells.

        Returns
        -------
        list of GroupCounts
            One for each group and label.
        """
        ...

    def count_scores(self, within: CellSelection | None = None) -> list[GroupCounts]:
        """Count the rows by their scores.

        Parameters
        ----------
        within : CellSelection, optional
            Count only the rows in these cells.

        Returns
        -------
        list of GroupCounts
            One for each group and label.
        """
        ...

    def estimate_distinct(self) -> int:
        """Estimate the number of distinct scores, summed over groups and labels."""
        ...


@dataclass(frozen=True)
class CountOptions:
    """How the rows of a source are counted.

    Parameters
    ----------
    epsilons : sequence of float
        The half-widths of windows at which MCDP is exact, also on a grid.
    comparison : Comparison
        Who is compared there.
    max_scores : int
        The most distinct scores, summed over groups and labels, that are counted one by one.
    level : int
        Beyond it, scores are counted on a grid of ``2**level`` cells.

    Examples
    --------
    >>> import localparity as lp
    >>> lp.engines.CountOptions(epsilons=[0.05], level=16).comparison
    Comparison(criterion='demographic_parity', compare='between_groups', min_group_size=1)
    """

    epsilons: Sequence[float] = PAPER_EPSILONS
    comparison: Comparison = field(default_factory=Comparison)
    max_scores: int = MAX_SCORES
    level: int = LEVEL

    def __post_init__(self) -> None:
        as_epsilons(list(self.epsilons), "epsilons")
        as_count(self.max_scores, "max_scores")
        as_count(self.level, "level")


def count_source(source: ScoreSource, options: CountOptions) -> ScoreCounts:
    """Count the rows of a source: by score up to `max_scores`, else on a grid that is exact where it matters.

    The first pass is on the grid. Where every cell holds one score, no other is needed; where the scores fit
    `max_scores`, a second pass counts them one by one.

    Parameters
    ----------
    source : ScoreSource
        The rows.
    options : CountOptions
        How they are counted.

    Returns
    -------
    ScoreCounts
        The counts by group, and by label where the source has labels.

    Examples
    --------
    >>> import torch
    >>> import localparity as lp
    >>> from localparity.engines._torch import TorchScores
    >>> scores, groups = torch.tensor([0.2, 0.6, 0.4, 0.8]), torch.tensor([0, 0, 1, 1])
    >>> source = TorchScores(scores, groups)
    >>> lp.mcdp(lp.engines.count_source(source, lp.engines.CountOptions()))
    0.5
    """
    found = source.count_cells(options.level)
    single = [counted.lowest == counted.highest for counted in found]
    if all(each.all() for each in single):
        return _exact_counts(source, [replace(counted, at=counted.lowest) for counted in found])
    fewest = sum(int((2 - one).sum()) for one in single)
    most = sum(int(np.where(one, 1, counted.rows).sum()) for one, counted in zip(single, found, strict=True))
    limit = options.max_scores
    if most <= limit or (fewest <= limit and source.estimate_distinct() <= limit):
        counted = source.count_scores()
        if _sizes(counted) != _sizes(found):
            raise rows_changed()
        exact = _exact_counts(source, counted)
        if sum(atoms.scores.size for atoms in exact.atoms.values()) <= limit:
            return exact
    return refine(found, source, options)


def check_group_weights(
    groups: Sequence[Group], weighted: Collection[Group], of_groups: str, of_weights: str
) -> None:
    """Raise a ValueError where there is one group only, or one without weight."""
    if len(groups) == 1:
        raise InputError(f"must have at least two groups, got {groups[0]!r} only", of_groups)
    for group in groups:
        if group not in weighted:
            raise InputError(f"must be > 0 in some row of group {group!r}, got 0 in all of them", of_weights)


def rows_changed(name: str = "the table") -> ValueError:
    """The error for rows that are others the second time."""
    return InputError("must have the same rows whenever it is read", name)


def _sizes(counted: Sequence[GroupCounts]) -> dict[Key, int]:
    """How many rows there are of each group and label that has any."""
    return {each.key: int(each.rows.sum()) for each in counted if each.rows.size}


def _exact_counts(source: ScoreSource, counted: Sequence[GroupCounts]) -> ScoreCounts:
    """The counts of scores."""
    atoms = {each.key: Atoms.of_counts(each.at, each.rows, each.units) for each in counted}
    return ScoreCounts(atoms, source.score_range, source.resolution)


def refine(counted: Sequence[GroupCounts], source: ScoreSource, options: CountOptions) -> ScoreCounts:
    """Read the cells that decide MCDP again, on ever finer grids, until it is exact for every pair.

    Where these are too many, as when several large groups are all but equal, it is exact for the worst pair
    alone. The bounds remain only where tens of thousands of cells decide that too.
    """
    score_range, resolution, level = source.score_range, source.resolution, options.level
    keys, question = _asked(counted, source, options)
    cells = _cells_of(keys, counted, level, score_range)
    worst = False
    while True:
        bounds = question.bounds(cells)
        opened = question.opened(cells, bounds, worst=worst)
        if not worst and _too_many(cells, opened):
            worst, opened = True, question.opened(cells, bounds, worst=True)
        numbers = cells.numbers[opened]
        if not numbers.size or _too_many(cells, opened):
            return cells.to_counts(score_range, resolution)
        within = CellSelection(level, numbers)
        if cells.rows[opened].sum() <= source.max_refined or level >= _MAX_LEVEL:
            finer = _cells_of(keys, source.count_scores(within), None, score_range)
        else:
            finer_by = int(np.clip(np.log2(source.max_refined / numbers.size), 2, 10))
            level = min(level + finer_by, _MAX_LEVEL)
            finer = _cells_of(keys, source.count_cells(level, within), level, score_range)
        if not np.array_equal(finer.rows.sum(axis=0), cells.rows[opened].sum(axis=0)):
            raise rows_changed()
        cells = cells.with_finer(opened, finer)


def _too_many(cells: CellCounts, opened: BoolArray) -> bool:
    """Whether more counts would be read than a source returns in a reasonable time."""
    numbers, rows = int(np.count_nonzero(opened)), int(cells.rows[opened].sum())
    return numbers > _MAX_CELLS_READ or min(numbers * len(cells.keys), rows) > _MOST_READ


def likely_cells(counted: Sequence[GroupCounts], source: ScoreSource, options: CountOptions) -> BoolArray:
    """Whether each cell is likely to decide MCDP of all rows, given the counts of some of them.

    These are the cells in which the gap is as close to MCDP, at one of the epsilons, as chance may bring it.
    """
    keys, question = _asked(counted, source, options)
    cells = _cells_of(keys, counted, options.level, source.score_range)
    likely = np.zeros(cells.numbers.size + 1, dtype=bool)
    for found in question.bounds(cells):
        if len(found.pairs) > _MOST_PAIRS:
            continue
        sizes = np.array([cells.rows[:, columns].sum() for columns in found.columns])
        for pair, values in zip(found.pairs, found.most, strict=True):
            gap = np.abs(found.shares[pair[0]] - found.shares[pair[1]])
            noise = np.sqrt((1.0 / sizes[pair]).sum())
            near = (np.abs(gap - values[:, None]) <= noise).any(axis=0)
            likely[:-1] |= near[1:] | near[:-1]
    # A cell without any of these rows is as likely as the next one.
    return likely[np.searchsorted(cells.numbers, np.arange(2**options.level + 1))]


def _asked(
    counted: Sequence[GroupCounts], source: ScoreSource, options: CountOptions
) -> tuple[list[Key], Question]:
    """The groups and labels, also those that do not occur together, and what is asked of them."""
    groups = tuple(dict.fromkeys(each.key[0] for each in counted))
    keys = [(group, label) for group in groups for label in dict.fromkeys(each.key[1] for each in counted)]
    epsilons = np.asarray(options.epsilons, dtype=np.float64)
    return keys, Question(groups, source.score_range, source.resolution, options.comparison, epsilons)


def _cells_of(
    keys: list[Key],
    counted: Sequence[GroupCounts],
    level: int | None,
    score_range: ScoreRange,
) -> CellCounts:
    """The counts of all keys in the cells of a grid, or by score where there is no level."""
    at = _union([each.at for each in counted if each.at.size])  # nobody's are numbers of no dtype
    cells = CellCounts.empty(keys, at.size, weighted=any(each.units is not None for each in counted))
    for each in counted:
        places, column = np.searchsorted(at, each.at), keys.index(each.key)
        cells.rows[places, column] = each.rows
        cells.lowest[places] = np.minimum(cells.lowest[places], each.lowest)
        cells.highest[places] = np.maximum(cells.highest[places], each.highest)
        if cells.limbs is not None and each.units is not None:
            cells.limbs[places, column] = each.units.transpose(2, 0, 1)
    if level is None:
        return replace(cells, numbers=np.full(at.size, -1))
    several = np.flatnonzero(cells.lowest < cells.highest)
    # A cell in which all people have one score is that score, and any other goes from edge to edge.
    cells.lowest[several] = np.nextafter(cell_edges(at[several] - 1, level, score_range), np.inf)
    cells.highest[several] = cell_edges(at[several], level, score_range)
    return replace(cells, numbers=at)


def _union(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The distinct numbers of several ascending arrays, ascending."""
    if not parts:
        return np.empty(0)
    joined = np.concatenate(parts)
    joined.sort(kind="stable")  # which merges ascending parts
    kept = np.ones(joined.size, dtype=bool)
    np.not_equal(joined[1:], joined[:-1], out=kept[1:])
    return joined[kept]


# Counts of arrays that are exact where they are needed, without sorting all rows.


def from_arrays(
    y_score: ArrayLike,
    sensitive_features: Groups,
    *,
    y_true: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    epsilons: Sequence[float] = PAPER_EPSILONS,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    n_jobs: int | None = None,
) -> ScoreCounts:
    """Count arrays so that MCDP is exact at some epsilons, in little memory and without a sort.

    Many rows are counted in cells of scores. Bounds of the gap in the cells rule out almost every window, and
    only the rows of the cells that decide MCDP at `epsilons` are sorted. `ScoreCounts.from_predictions`
    counts every score, and is exact at every epsilon; so are these counts where rows are few.

    Parameters
    ----------
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    y_true : array-like, optional
        Labels 0 and 1, where the criterion needs them.
    sample_weight : array-like, optional
        Weights that are not negative.
    score_range : tuple of float
        The lowest and the highest score there can be.
    epsilons : sequence of float
        The half-widths of windows at which MCDP is exact.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    n_jobs : int, optional
        How many threads count the rows, -1 for as many as there are cores.

    Returns
    -------
    ScoreCounts
        The counts by group, and by label where there are labels.

    Examples
    --------
    >>> import numpy as np
    >>> import localparity as lp
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 100_000)
    >>> counts = lp.engines.from_arrays(rng.random(100_000) ** (1 + 0.2 * (sex == "f")), sex)
    >>> sum(atoms.scores.size for atoms in counts.atoms.values()) < 20_000
    True
    >>> found = lp.mcdp_bounds(counts, epsilon=0.05)
    >>> found.low == found.estimate == found.high
    True
    """
    predictions = check_predictions(
        y_true, y_score, sensitive_features, sample_weight=sample_weight, score_range=score_range
    )
    at = as_epsilons(list(epsilons), "epsilons")
    return count_for(predictions, Comparison(criterion, compare), at, as_jobs(n_jobs))
