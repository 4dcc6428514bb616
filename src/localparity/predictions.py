"""Scores, groups, labels and weights: checked once, then frozen; from arrays or from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import ArrayLike, FloatArray, Group, Groups, ScoreRange
from localparity._validation import (
    NO_BLANKS,
    Argument,
    Blanks,
    FileColumn,
    InputError,
    as_count,
    as_groups,
    as_labels,
    as_positive,
    as_score_range,
    as_scores,
    as_texts,
    as_weights,
    check_indexes,
)

if TYPE_CHECKING:
    from localparity._io._table import Source, Table


class Names(NamedTuple):
    """What messages call the arguments: their own names, or the columns of a file."""

    y_true: Argument = "y_true"
    y_score: Argument = "y_score"
    sensitive_features: Argument = "sensitive_features"
    sample_weight: Argument = "sample_weight"
    cluster: Argument = "cluster"


ARGUMENTS = Names()


@dataclass(frozen=True, eq=False)
class Predictions:
    """A model's scores with the groups of the people scored, checked once and then frozen.

    Make one with `from_arrays` or `read`.

    Attributes
    ----------
    scores : ndarray
        One score a row, in its own units, as float32 or float64.
    group_codes : ndarray
        One group a row, as its place in `groups`, in the smallest unsigned dtype that holds all places.
    groups : tuple
        The groups; the parts of an intersection of several columns come as a tuple.
    labels : ndarray or None
        One label, 0 or 1, a row.
    weights : ndarray or None
        One weight a row.
    score_range : tuple of float
        The range of the scores.
    resolution : float
        Fractions of the range that differ by less count as equal; those of smaller scores are the finer.
    clusters : ndarray or None
        The cluster of each row, as a whole number from 0 on.

    Examples
    --------
    >>> import localparity as lp
    >>> predictions = lp.Predictions.from_arrays(None, [0.2, 0.9, 0.4], sensitive_features=["f", "m", "f"])
    >>> predictions.groups, predictions.group_codes
    (('f', 'm'), array([0, 1, 0], dtype=uint8))
    """

    _: KW_ONLY
    scores: NDArray[Any]
    group_codes: NDArray[np.unsignedinteger[Any]]
    groups: tuple[Group, ...]
    labels: NDArray[np.uint8] | None
    weights: FloatArray | None
    score_range: ScoreRange
    resolution: float
    clusters: NDArray[np.unsignedinteger[Any]] | None = None

    @classmethod
    def from_arrays(
        cls,
        y_true: ArrayLike | None,
        y_score: ArrayLike,
        *,
        sensitive_features: Groups,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        score_range: ScoreRange = (0.0, 1.0),
        min_groups: int = 2,
        missing_values: str | Sequence[Any] | None = None,
        pos_label: Any = None,
    ) -> Predictions:
        """Check and freeze arrays, lists, data frames' columns, Arrow arrays or tensors on the CPU.

        Parameters
        ----------
        y_true : array-like or None
            Labels, where a criterion needs them.
        y_score : array-like
            Scores inside `score_range`.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row. Of several columns, the groups are the combinations that occur.
        sample_weight : array-like, optional
            Weights that are not negative.
        cluster : array-like, optional
            The person or household that each row belongs to; rows are assumed independent without it.
        score_range : tuple of float
            The lowest and the highest score there can be.
        min_groups : int
            The fewest groups there may be: 2, or 1 for a part of a larger whole.
        missing_values : str or sequence, optional
            Keeps rows whose group is not known, as `unknown_groups`, `scoring_rates` and `audit` take them:
            what stands for no group beside None and NaN, () for nothing else. By default such a row is an
            error.
        pos_label : object, optional
            The label that counts as 1, the other one as 0; without it, labels are 0 and 1.

        Returns
        -------
        Predictions
            Arrays that cannot be written to.
        """
        # Arrays that needed no conversion are still the caller's, who may change them.
        checked = check_predictions(
            y_true,
            y_score,
            sensitive_features,
            sample_weight=sample_weight,
            cluster=cluster,
            score_range=score_range,
            min_groups=min_groups,
            blanks=_blanks(missing_values),
            pos_label=pos_label,
        )
        names = ("scores", "group_codes", "labels", "weights", "clusters")
        arrays = {name: getattr(checked, name) for name in names}
        copies: dict[str, Any] = {
            name: _frozen(array.copy()) for name, array in arrays.items() if array is not None
        }
        return replace(checked, **copies)

    @classmethod
    def read(
        cls,
        source: Source | Table,
        *,
        score: str,
        group: str | Sequence[str],
        label: str | None = None,
        weight: str | None = None,
        cluster: str | None = None,
        score_range: ScoreRange = (0.0, 1.0),
        min_groups: int = 2,
        missing_values: str | Sequence[Any] | None = None,
        pos_label: Any = None,
        allow_remote: bool = False,
    ) -> Predictions:
        r"""Read the columns of a CSV, TSV, Parquet or JSON lines file, of a glob, or of several files.

        Parameters
        ----------
        source : path, sequence of paths or table
            Files of one kind; a glob such as ``"scores/*.parquet"`` stands for the files that match it; or
            what `open_table` returns.
        score : str
            The column of the scores.
        group : str or sequence of str
            The column of the groups; of several, the groups are the combinations that occur.
        label : str, optional
            The column of the labels.
        weight : str, optional
            The column of the weights.
        cluster : str, optional
            The column of the clusters: rows with the same value are not independent.
        score_range : tuple of float
            The lowest and the highest score there can be.
        min_groups : int
            The fewest groups there may be: 2, or 1 for a part of a larger whole.
        missing_values : str or sequence, optional
            Keeps rows whose group is not known, as in `from_arrays`.
        pos_label : object, optional
            The label that counts as 1, the other one as 0; in a column of texts, its text. Without it,
            labels are 0 and 1.
        allow_remote : bool
            Whether files may be on other machines, which DuckDB then installs extensions for.

        Returns
        -------
        Predictions
            The rows of all files.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.csv"
        >>> _ = path.write_text("p,sex\n0.2,f\n0.9,m\n")
        >>> Predictions.read(path, score="p", group="sex").groups
        ('f', 'm')
        """
        from localparity._io._table import as_group_columns, as_table  # metrics need no files

        group_columns = as_group_columns(score, group)
        table = as_table(source, allow_remote=allow_remote)
        as_read = (cluster, None if pos_label is None else label)
        columns = table.read(
            numbers=[name for name in (score, label, weight) if name not in (None, *as_read)],
            values=[name for name in as_read if name is not None],
            groups=group_columns,
        )
        if label is not None and columns[label].dtype.kind == "O" and pos_label is not None:
            pos_label = str(pos_label)  # the file has texts
        table.check_scores(score, score_range)
        groups = {name: columns[name] for name in group_columns}
        named = (FileColumn(str(name)) for name in (label, score, group_columns[0], weight, cluster))
        predictions = check_predictions(
            None if label is None else columns[label],
            columns[score],
            groups if len(groups) > 1 else groups[group_columns[0]],
            sample_weight=None if weight is None else columns[weight],
            cluster=None if cluster is None else columns[cluster],
            score_range=score_range,
            min_groups=min_groups,
            blanks=_blanks(missing_values),
            pos_label=pos_label,
            names=Names(*named),
        )
        table.warn(predictions.groups)
        return predictions

    @property
    def exchangeable(self) -> bool:
        """Whether all rows are independent and weigh 1."""
        return self.weights is None and self.clusters is None

    def __len__(self) -> int:
        return self.scores.size

    def __repr__(self) -> str:
        return f"Predictions({len(self)} rows, {len(self.groups)} groups)"


def _blanks(missing_values: str | Sequence[Any] | None) -> Blanks:
    """What stands for no group, of columns each of which may lack a value."""
    if missing_values is None:
        return NO_BLANKS
    return Blanks(as_texts(missing_values, "missing_values"), kept=True, by_column=True)


def check_predictions(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    sensitive_features: Groups,
    *,
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_groups: int = 2,
    pos_label: Any = None,
    blanks: Blanks = NO_BLANKS,
    names: Names = ARGUMENTS,
) -> Predictions:
    """Checked predictions over arrays that may still be the caller's: for use at once."""
    score_range = as_score_range(score_range)
    arguments = (y_true, y_score, sensitive_features, sample_weight, cluster)
    check_indexes(dict(zip(names, arguments, strict=True)))
    scores, resolution = as_scores(y_score, score_range, names.y_score)
    codes, groups = as_groups(
        sensitive_features,
        scores.size,
        names.sensitive_features,
        at_least=as_count(min_groups, "min_groups"),
        blanks=blanks,
    )
    labels = None
    if y_true is not None and pos_label is None:
        labels = as_labels(y_true, scores.size, names.y_true)
    elif y_true is not None:
        labels = as_positive(y_true, scores.size, names.y_true, pos_label=pos_label)
    weights = None
    if sample_weight is not None:
        weights = as_weights(sample_weight, scores.size, names.sample_weight)
        check_group_weights(codes, groups, weights, names.sample_weight)
    clusters = None
    if cluster is not None:
        clusters = as_groups(cluster, scores.size, names.cluster, at_least=1, at_most=scores.size).codes
    return Predictions(
        scores=_frozen(scores),
        group_codes=_frozen(codes),
        groups=groups,
        labels=None if labels is None else _frozen(labels),
        weights=None if weights is None else _frozen(weights),
        score_range=score_range,
        resolution=resolution,
        clusters=None if clusters is None else _frozen(clusters),
    )


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to; the caller's own array stays as it was."""
    view = array.view()
    view.flags.writeable = False
    return view


def check_group_weights(
    codes: NDArray[Any], groups: tuple[Group, ...], weights: NDArray[Any], name: Argument
) -> None:
    """Raise a ValueError where all rows of a group have weight 0."""
    if weights.min() > 0.0:
        return
    for group, total in zip(groups, np.bincount(codes, weights), strict=True):
        if total == 0.0:
            raise InputError(f"must be > 0 in some row of group {group!r}, got 0 in all of them", name)
