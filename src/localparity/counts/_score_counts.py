"""For each group and label the distinct scores and the weight at each: all that the metrics need."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from localparity._scale import clip_to_range
from localparity._types import ArrayLike, Group, Groups, IntArray, ScoreRange
from localparity._validation import (
    NO_BLANKS,
    Blanks,
    InputError,
    InputWarning,
    as_whole_counts,
    check_indexes,
    lacks_group,
    setting,
    sort_groups,
)
from localparity.counts._atoms import Atoms, Cells
from localparity.counts._comparison import EVERYONE, Comparison, check_names, check_sizes, require_labels
from localparity.counts._rows import ClusteredRows, KeyedRows
from localparity.predictions import Names, Predictions, check_group_weights, check_predictions

Stratum = dict[Group, Atoms]
"""The people compared with each other: for each group, its scores."""


def with_everyone(stratum: Stratum) -> Stratum:
    """A stratum's groups and, beside them, all of its people together."""
    check_names(stratum)
    return {**stratum, EVERYONE: Atoms.join(stratum.values())}


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """The distinct scores of each group, and label where there are labels, with the weight at each.

    Everything is computed from such counts. They merge by addition, and every engine can make them.

    Attributes
    ----------
    atoms : mapping
        The scores by (group, label); the label is None where labels were not counted.
    score_range : tuple of float
        The range of the scores.
    resolution : float
        Fractions of the range that differ by less count as equal; those of smaller scores are the finer.
    rank_error : float
        The most that a group's cumulative distribution may be off; 0 when the counts are exact.
    cells : Cells or None
        The cells of scores that are only known together; None where every score is known.
    clusters : ClusteredRows or None
        The rows with the cluster of each, where rows are not independent.
    ends_known : bool
        Whether the lowest and the highest score of each group are exact, as they are of a sketch.

    Examples
    --------
    >>> import localparity as lp
    >>> predictions = lp.Predictions.from_arrays(
    ...     None, [0.2, 0.6, 0.4, 0.8], sensitive_features=["a", "a", "b", "b"]
    ... )
    >>> counts = lp.ScoreCounts.from_predictions(predictions)
    >>> counts.groups, lp.mcdp(counts, epsilon=0.05)
    (('a', 'b'), 0.5)
    >>> counts.merge(counts).size
    8
    """

    atoms: Mapping[tuple[Group, int | None], Atoms]
    score_range: ScoreRange = (0.0, 1.0)
    resolution: float = 4.0 * float(np.finfo(np.float64).eps)
    rank_error: float = 0.0
    cells: Cells | None = None
    clusters: ClusteredRows | None = None
    ends_known: bool = True
    _strata: dict[int | None, Stratum] = field(default_factory=dict, init=False, repr=False)
    _sizes: dict[int | None, dict[Group, int]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_predictions(cls, predictions: Predictions) -> ScoreCounts:
        """Count rows, by label where they have labels.

        Parameters
        ----------
        predictions : Predictions
            The rows.

        Returns
        -------
        ScoreCounts
        """
        atoms = KeyedRows.of(predictions).atoms()
        clusters = None
        if predictions.clusters is not None:
            clusters = ClusteredRows(
                clip_to_range(predictions.scores, predictions.score_range),
                predictions.group_codes.astype(np.int64),
                predictions.clusters,
                predictions.groups,
                predictions.labels,
                predictions.weights,
            )
        return cls(atoms, predictions.score_range, predictions.resolution, clusters=clusters)

    @classmethod
    def from_table(
        cls,
        score: ArrayLike,
        group: Groups,
        count: ArrayLike,
        *,
        label: ArrayLike | None = None,
        score_range: ScoreRange = (0.0, 1.0),
    ) -> ScoreCounts:
        """Return the counts that a GROUP BY by score and group has made already.

        A count says how many rows there are, each of weight 1, so intervals and tests are those of the rows.
        Weights that do not count rows, such as those of a survey, are the `sample_weight` of `Predictions`.

        Parameters
        ----------
        score : array-like
            The score of each row of the table, inside `score_range`; the same score may occur again.
        group : array-like, data frame or mapping of columns
            The group of each row. Of several columns, the groups are the combinations that occur.
        count : array-like
            How many people each row stands for, whole numbers.
        label : array-like, optional
            The label of each row, 0 or 1.
        score_range : tuple of float
            The lowest and the highest score there can be.

        Returns
        -------
        ScoreCounts

        Examples
        --------
        >>> counts = ScoreCounts.from_table([0.25, 0.75, 0.75], ["f", "f", "m"], [300, 100, 200])
        >>> counts
        ScoreCounts(600 rows, 2 groups)
        >>> import localparity as lp
        >>> lp.mcdp(counts)
        0.75
        """
        names = Names("label", "score", "group")
        found = check_predictions(label, score, group, score_range=score_range, names=names)
        check_indexes({"score": score, "count": count})
        rows = as_whole_counts(count, len(found), "count")
        check_group_weights(found.group_codes, found.groups, rows, "count")
        scores = clip_to_range(found.scores, found.score_range) + 0.0  # which turns -0.0 into 0.0
        labels: list[int | None] = [None] if found.labels is None else [0, 1]
        atoms = {}
        for code, name in enumerate(found.groups):
            for each in labels:
                chosen = (found.group_codes == code) & (rows > 0)
                if found.labels is not None:
                    chosen &= found.labels == each
                if chosen.any():
                    atoms[name, each] = Atoms.gather(scores[chosen], rows[chosen])
        return cls(atoms, found.score_range, found.resolution)

    @cached_property
    def exchangeable(self) -> bool:
        """Whether all rows are independent and weigh 1."""
        return self.clusters is None and all(atoms.units is None for atoms in self.atoms.values())

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups, in order."""
        return sort_groups({group for group, _ in self.atoms})

    @property
    def labelled(self) -> bool:
        """Whether labels were counted."""
        return all(label is not None for _, label in self.atoms)

    @property
    def size(self) -> int:
        """How many rows were counted."""
        return sum(atoms.size for atoms in self.atoms.values())

    def merge(self, other: ScoreCounts) -> ScoreCounts:
        """Return the counts of the rows of both together.

        Parameters
        ----------
        other : ScoreCounts
            Counts over the same score range, with labels or without as these are.

        Returns
        -------
        ScoreCounts
        """
        if self.score_range != other.score_range:
            raise ValueError(
                f"counts over {self.score_range} cannot be merged with counts over {other.score_range}"
            )
        if self.labelled != other.labelled:
            raise ValueError("counts with labels cannot be merged with counts without")
        if self.clusters is not None or other.clusters is not None:
            raise ValueError("counts with clusters cannot be merged: a cluster may have rows in both")
        if _sketched(self) != _sketched(other) and (self.cells or other.cells):
            raise ValueError("counts of a sketch cannot be merged with counts on a grid")
        keys = [*self.atoms, *(key for key in other.atoms if key not in self.atoms)]
        atoms = {
            key: Atoms.join(counts.atoms[key] for counts in (self, other) if key in counts.atoms)
            for key in keys
        }
        resolution = max(self.resolution, other.resolution)
        rank_error = max(self.rank_error, other.rank_error)
        ends_known = self.ends_known and other.ends_known
        merged = ScoreCounts(atoms, self.score_range, resolution, rank_error, ends_known=ends_known)
        if self.cells is None and other.cells is None:
            return merged
        cells = self.cells.union(other.cells) if self.cells else other.cells
        assert cells is not None
        return snap(merged, cells)

    def without(self, groups: Iterable[Group]) -> ScoreCounts:
        """Return the counts without some groups.

        Parameters
        ----------
        groups : iterable
            The groups to leave out.

        Returns
        -------
        ScoreCounts
        """
        left_out = set(groups)
        atoms = {key: found for key, found in self.atoms.items() if key[0] not in left_out}
        clusters = None if self.clusters is None else self.clusters.without(left_out)
        return replace(self, atoms=atoms, clusters=clusters)

    def small_groups(self, comparison: Comparison) -> dict[Group, int]:
        """Return the groups that have fewer people than `comparison.min_group_size`.

        Parameters
        ----------
        comparison : Comparison
            Which people are compared.

        Returns
        -------
        dict
            The people of each small group, which are clusters where there are any and else rows; where people
            are compared by label, of the label with the fewest.
        """
        people = [self._people(label, comparison.criterion) for label in comparison.labels]
        fewest = {group: min(sizes[group] for sizes in people) for group in self.groups}
        return {group: rows for group, rows in fewest.items() if rows < comparison.min_group_size}

    def _people(self, label: int | None, criterion: str) -> dict[Group, int]:
        """How many people each group has: the clusters where there are any, else the rows."""
        stratum = self._stratum(label, criterion)
        if label not in self._sizes:
            sizes = [atoms.size for atoms in stratum.values()]
            if self.clusters is not None:
                sizes = self.clusters.among(list(stratum), label).people.tolist()
            self._sizes[label] = dict(zip(stratum, sizes, strict=True))
        return self._sizes[label]

    def _stratum(self, label: int | None, criterion: str) -> Stratum:
        if label is not None and not self.labelled:
            raise InputError(f"{setting(criterion=criterion)} needs labels, the counts have none")
        if label not in self._strata:
            kept: dict[Group, list[Atoms]] = {group: [] for group in self.groups}
            for (group, own), atoms in self.atoms.items():
                if label in (None, own):
                    kept[group].append(atoms)
            self._strata[label] = {group: Atoms.join(parts) for group, parts in kept.items()}
        return self._strata[label]

    def __repr__(self) -> str:
        error = f", rank_error={self.rank_error:g}" if self.rank_error else ""
        return f"ScoreCounts({self.size} rows, {len(self.groups)} groups{error})"


def strata_of(counts: ScoreCounts, comparison: Comparison) -> dict[int | None, Stratum]:
    """The people that are compared with each other, by label; a group that is too small is an error."""
    found = {label: counts._stratum(label, comparison.criterion) for label in comparison.labels}
    for label in found:
        people = counts._people(label, comparison.criterion)
        check_sizes(comparison, list(people), list(people.values()), label)
    return found


def snap(counts: ScoreCounts, cells: Cells) -> ScoreCounts:
    """The same people, with those inside a cell counted at its high end."""
    atoms = {key: found.snap(cells) for key, found in counts.atoms.items()}
    return on_cells(replace(counts, atoms=atoms), cells)


def on_cells(counts: ScoreCounts, cells: Cells | None) -> ScoreCounts:
    """The same counts, known to stand for cells, with the error that this makes."""
    if cells is None:
        return replace(counts, rank_error=0.0, cells=None)
    worst = max(found.most_inside(cells) for found in counts.atoms.values())
    return replace(counts, rank_error=worst, cells=cells)


def _sketched(counts: ScoreCounts) -> bool:
    """Whether the distributions may be off anywhere, and not only inside cells."""
    return counts.rank_error > 0.0 and counts.cells is None


# From what a caller has, arrays or data that was checked or counted before, to what metrics work on.


Data = Predictions | ScoreCounts


def as_data(
    comparison: Comparison,
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None,
    sensitive_features: Groups | None,
    *,
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    pos_label: Any = None,
    keep_labels: bool = False,
    blanks: Blanks = NO_BLANKS,
) -> Data:
    """The arguments that all metrics share, checked; labels where the criterion needs them, or all given."""
    if not isinstance(y_true, Predictions | ScoreCounts):
        require_labels(comparison, y_true)
        if y_score is None:
            raise InputError("must be the score of each row, got None", "y_score")
        return check_predictions(
            y_true if comparison.needs_labels or keep_labels else None,
            y_score,
            sensitive_features,
            sample_weight=sample_weight,
            cluster=cluster,
            score_range=score_range,
            pos_label=pos_label,
            blanks=blanks,
        )
    arrays = {
        "y_score": y_score,
        "sensitive_features": sensitive_features,
        "sample_weight": sample_weight,
        "cluster": cluster,
        "pos_label": pos_label,
    }
    for name, given in arrays.items():
        if given is not None:
            raise InputError(f"must be None with {type(y_true).__name__}, which has it already", name)
    if score_range not in ((0.0, 1.0), y_true.score_range):
        raise InputError(
            f"is {score_range}, that of the {type(y_true).__name__} is {y_true.score_range}", "score_range"
        )
    return checked_data(y_true, comparison, unknown=blanks.kept)


class Inputs(NamedTuple):
    """The arguments that all metrics share, as they are given."""

    y_true: ArrayLike | Data | None
    y_score: ArrayLike | None
    sensitive_features: Groups | None
    sample_weight: ArrayLike | None = None
    score_range: ScoreRange = (0.0, 1.0)
    pos_label: Any = None

    def checked(self, comparison: Comparison) -> Data:
        """What a comparison works on."""
        return as_data(
            comparison,
            *self[:3],
            sample_weight=self.sample_weight,
            score_range=self.score_range,
            pos_label=self.pos_label,
        )


def checked_data(data: Data, comparison: Comparison, *, unknown: bool = False) -> Data:
    """Predictions or counts that have what a comparison needs; people of unknown group only where allowed."""
    if not isinstance(data, Data):
        kind = type(data).__name__
        raise InputError(
            f"must be Predictions or ScoreCounts, got {kind}; make them with Predictions.from_arrays",
            argument="data",
        )
    if isinstance(data, Predictions):
        require_labels(comparison, data.labels)
    if not unknown and any(map(lacks_group, data.groups)):
        raise InputError(
            "must not have rows of unknown group here; `audit` and `unknown_groups` take them",
            argument="data",
        )
    return data


def as_counts(data: Data) -> ScoreCounts:
    """Predictions counted; counts as they are."""
    return data if isinstance(data, ScoreCounts) else ScoreCounts.from_predictions(data)


def input_counts(
    comparison: Comparison,
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None,
    sensitive_features: Groups | None,
    **options: Any,
) -> ScoreCounts:
    """What a function was given, counted; options as in `as_data`."""
    return as_counts(as_data(comparison, y_true, y_score, sensitive_features, **options))


# Copies: rows that are repeated as a whole, so that there are fewer people than rows.
#
# People may well be alike, above all where scores or features take few values: then a row occurs any number
# of times. Where a table was joined or appended to itself, nearly every row occurs a multiple of the same
# number of times, which is next to impossible otherwise.


_LEAST_DISTINCT = 50
_NEARLY_ALL = 0.95
_MOST_COPIES = 1000


def copies_in(times: IntArray) -> int:
    """How many copies there are of nearly every row, given how often each distinct row occurs.

    Of 50 rows that are alike by chance, 48 occur an even number of times with a probability of 1e-12.
    """
    if times.size < _LEAST_DISTINCT:
        return 1
    distinct, number = np.unique(times, return_counts=True)
    # Nearly all rows occur at least as often as there are copies.
    most = int(np.quantile(times, 1.0 - _NEARLY_ALL, method="higher"))
    for copies in range(min(most, _MOST_COPIES), 1, -1):
        if number[distinct % copies == 0].sum() >= _NEARLY_ALL * times.size:
            return copies
    return 1


def copies_of(counts: ScoreCounts) -> int:
    """How many copies there are of nearly every row that was counted; 1 where clusters say whose each is.

    Whole cells of scores show copies as single scores do; a sketch, which gives a score to many rows, does
    not.
    """
    if _sketched(counts) or counts.clusters is not None:
        return 1
    return copies_in(np.concatenate([atoms.rows for atoms in counts.atoms.values()]))


def copies_sentence(copies: int) -> str:
    """What copies mean for what is said of people."""
    return (
        f"Nearly every row occurs {copies} times, or a multiple of it: these look like copies, which are not "
        "independent people"
    )


def warn_of_copies(copies: int, advice: str, *, stacklevel: int) -> None:
    """Warn where there are several copies of nearly every row."""
    if copies > 1:
        warnings.warn(InputWarning(f"{copies_sentence(copies)}; {advice}"), stacklevel=stacklevel + 1)


def without_copies(counts: ScoreCounts, copies: int) -> ScoreCounts:
    """Counts with one of so many copies of each row; weights are kept as they are."""
    atoms = {
        key: found if found.units is not None else Atoms.of_counts(found.scores, -(-found.rows // copies))
        for key, found in counts.atoms.items()
    }
    return counts if copies == 1 else replace(counts, atoms=atoms)
