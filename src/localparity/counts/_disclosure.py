"""What of the counts may be shown: no step of a distribution rests on fewer people than a limit."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from localparity._types import Group, IntArray
from localparity._validation import InputError, as_count, setting
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import ScoreCounts, strata_of

Cell = tuple[Hashable, ...]
"""A cell of a table: its place on each axis."""

DISCLOSURE_LIMIT = 10
"""The fewest people that a group, a step or a cell of what is written out rests on."""


def disclosed(
    counts: ScoreCounts, comparison: Comparison | None = None, *, min_group_size: int = DISCLOSURE_LIMIT
) -> ScoreCounts:
    """Return counts whose every step rests on enough people, to be drawn or handed on.

    Neighbouring scores of a group are counted together until there are `min_group_size` people in each step:
    at their mean, or at the score that so many of them share. Labels that only a few people of a group have
    are not told apart, since the others' distributions would tell theirs.

    Parameters
    ----------
    counts : ScoreCounts
        Counts of any kind.
    comparison : Comparison, optional
        Who is compared: everyone by default.
    min_group_size : int
        The fewest people of a step; a group with fewer is an error.

    Returns
    -------
    ScoreCounts
        Its `rank_error` is the largest share of a group in a step of several scores, and that of the counts.

    Examples
    --------
    >>> import localparity as lp
    >>> predictions = lp.Predictions.from_arrays(
    ...     None, [0.1, 0.2, 0.3, 0.6, 0.8], sensitive_features=["a", "a", "a", "b", "b"]
    ... )
    >>> counts = lp.ScoreCounts.from_predictions(predictions)
    >>> shown = lp.counts.disclosed(counts, min_group_size=2)
    >>> [atoms.scores.round(2).tolist() for atoms in shown.atoms.values()]
    [[0.2], [0.7]]
    """
    limit = as_count(min_group_size, "min_group_size")
    comparison = comparison or Comparison()
    check_disclosure(counts, comparison, limit)
    if limit == 1:
        return counts
    kept = counts if all_disclosed(counts, limit) else _compared(counts, comparison)
    return _stepped(kept, limit)


def shown_counts(
    counts: ScoreCounts, comparison: Comparison, limit: int, cutoffs: Sequence[float] = ()
) -> ScoreCounts:
    """The people that an audit compares, in the steps of all that is shown of it.

    Shares at the cutoffs are shown as they are, so that no step goes across one: the people between a cutoff
    and the end of a step could be fewer than the limit. Whoever shows fewer steps joins these.
    """
    check_disclosure(counts, comparison, limit)
    compared = _compared(counts, comparison)
    return compared if limit == 1 else _stepped(compared, limit, cutoffs)


def _compared(counts: ScoreCounts, comparison: Comparison) -> ScoreCounts:
    """The same people, with no label but those that are compared."""
    strata = strata_of(counts, comparison).items()
    return replace(
        counts, atoms={(group, label): own for label, each in strata for group, own in each.items()}
    )


def _stepped(counts: ScoreCounts, limit: int, cutoffs: Sequence[float] = ()) -> ScoreCounts:
    """The same people in steps; what the counts were off by before comes on top of what these are off by."""
    atoms = {key: in_steps(own, rows_of(counts, limit), cutoffs) for key, own in counts.atoms.items()}
    error = max(own.distance(atoms[key]) for key, own in counts.atoms.items())
    rank_error = min(1.0, counts.rank_error + error)
    return replace(counts, atoms=atoms, rank_error=rank_error, cells=None, ends_known=False)


def rows_of(counts: ScoreCounts, people: int) -> int:
    """So many rows that they are at least so many people, who may have several."""
    return people if counts.clusters is None else people * int(np.bincount(counts.clusters.clusters).max())


def all_disclosed(counts: ScoreCounts, limit: int) -> bool:
    """Whether every group has enough people of each label, so that all criteria may be shown."""
    comparison = Comparison("equalized_odds") if counts.labelled else Comparison()
    return limit == 1 or not few_people(counts, comparison, limit)


def few_people(counts: ScoreCounts, comparison: Comparison, limit: int) -> list[Group]:
    """The groups with fewer people than a limit among those compared."""
    return list(counts.small_groups(replace(comparison, min_group_size=limit)))


def check_disclosure(counts: ScoreCounts, comparison: Comparison, limit: int) -> None:
    """Raise a ValueError where a group has too few people to be shown."""
    few = few_people(counts, comparison, limit)
    if few:
        names = ", ".join(map(repr, few[:5])) + (f" and {len(few) - 5:,} more" if len(few) > 5 else "")
        least = setting(min_group_size=limit)
        raise InputError(
            f"{least} allows no group of fewer people to be shown: {names}; audit with {least} to leave them "
            f"out, or pass {setting(min_group_size=1)} to show them"
        )


def suppressed(people: Mapping[Cell, int], limit: int = DISCLOSURE_LIMIT) -> set[Cell]:
    """The cells of a table with totals that may not be shown.

    Beside the small cells, others are left out until no small one follows from the totals, and the cells left
    out of a line of the table are enough people together.
    """
    small = {cell for cell, size in people.items() if 0 < size < limit}
    hidden = set(small)
    lines = _lines(people)
    while True:
        exposed = _exposed(lines, people, hidden, small, limit)
        beside = {cell for line in lines if exposed & set(line) for cell in line if people[cell]} - hidden
        if not beside:
            return hidden
        hidden.add(min(beside, key=lambda cell: (people[cell], repr(cell))))


def _lines(people: Mapping[Cell, int]) -> list[list[Cell]]:
    """The cells that share all places but one: those of which a table has a total."""
    lines: dict[tuple[int, Cell], list[Cell]] = {}
    for cell in people:
        for axis in range(len(cell)):
            lines.setdefault((axis, cell[:axis] + cell[axis + 1 :]), []).append(cell)
    return list(lines.values())


def _exposed(
    lines: list[list[Cell]], people: Mapping[Cell, int], hidden: set[Cell], small: set[Cell], limit: int
) -> set[Cell]:
    """The hidden cells that would tell of few people: small ones that the totals determine, and those of a
    line that are few people together.
    """
    unknown = sorted(hidden, key=repr)
    totals = np.array([[cell in line for cell in unknown] for line in map(set, lines)], dtype=np.float64)
    if not totals.size:
        return set()
    determined = np.diag(np.linalg.pinv(totals) @ totals) > 1.0 - 1e-9
    determined_cells = {cell for cell, known in zip(unknown, determined.tolist(), strict=True) if known}
    left_out = [hidden & set(line) for line in lines]
    # Cells that follow can be taken off a total: what is left of a line must be enough people without them.
    few = [cells for cells in left_out if 0 < sum(people[cell] for cell in cells - determined_cells) < limit]
    # A small cell may follow from others that follow first: of these too, more is hidden.
    return (determined_cells if determined_cells & small else set()).union(*few)


def in_steps(atoms: Atoms, limit: int, cutoffs: Sequence[float] = ()) -> Atoms:
    """Scores counted together with the next ones until each step has enough rows.

    A step also ends at each cutoff that has enough rows on both sides, up to the cutoff before and the end;
    no other step ends within so many rows of it. Elsewhere the steps are the same whatever the cutoffs are,
    so that the differences of two outputs tell little. A step is at its mean, or at the score that enough of
    its rows share.
    """
    rows = np.cumsum(atoms.rows)
    ends, least = _step_ends(rows, limit), limit
    for place in np.unique(np.searchsorted(atoms.scores, cutoffs, side="right")).tolist():
        here = int(rows[place - 1]) if place else 0
        if least <= here <= rows[-1] - limit:
            ends, least = np.append(ends[np.abs(rows[ends] - here) >= limit], place - 1), here + limit
    ends = np.sort(ends)
    starts = np.concatenate([[0], ends[:-1] + 1])
    totals = np.add.reduceat(atoms.scores * atoms.rows, starts) / np.add.reduceat(atoms.rows, starts)
    # Rounding does not move the mean of equal scores.
    means = np.clip(totals, atoms.scores[starts], atoms.scores[ends])
    # A step ends where it has enough rows, so that at most one of its scores has enough by itself.
    shared = np.flatnonzero(atoms.rows >= limit)
    means[np.searchsorted(ends, shared)] = atoms.scores[shared]
    if np.array_equal(atoms.scores, np.rint(atoms.scores)):
        means = np.rint(means)
    return Atoms.gather(np.repeat(means, ends - starts + 1), atoms.rows, atoms.units)


def _step_ends(rows: IntArray, limit: int) -> IntArray:
    """The last score of each step, of rows up to each score; what is left over belongs to the last step."""
    following = np.searchsorted(rows, rows + limit).tolist()
    place, ends = int(np.searchsorted(rows, limit)), []
    while place < rows.size:
        ends.append(place)
        place = following[place]
    return np.array([*ends[:-1], rows.size - 1], dtype=np.int64)
