"""The people that an audit compares: rows checked, missing values settled, scores on one scale."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._scale import range_length
from localparity._types import ArrayLike, BoolArray, FloatArray, Group, ScoreRange
from localparity._validation import (
    Argument,
    Blanks,
    InputError,
    MissingValueError,
    as_frame,
    as_groups,
    as_vector,
    check_indexes,
    check_rows,
    library_of,
    missing_among,
    setting,
)
from localparity.auditing._findings import (
    LeftOut,
    check_identifier,
    check_pair_count,
    warn_of_narrow_scores,
    without_small_groups,
)
from localparity.auditing._missing import NOTHING_MISSING, ROW_OPTION, MissingRows
from localparity.auditing._options import AuditOptions
from localparity.counts import ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.counts._score_counts import as_counts, as_data, copies_of, warn_of_copies
from localparity.engines._missing_rows import known_group
from localparity.predictions import Predictions
from localparity.uncertainty import WithinStrata
from localparity.uncertainty._strata import joined, strata_compared, strata_names

_UNIT = (0.0, 1.0)
_RANK_RESOLUTION = 4.0 * float(np.finfo(np.float64).eps)
_ARRAYS = {"y_score": "scores", "y_true": "labels", "sample_weight": "weights"}


@dataclass(frozen=True, eq=False)
class Strata:
    """People counted by group and stratum."""

    counts: ScoreCounts
    names: Mapping[Group, tuple[Group, Group]]

    @classmethod
    def of_columns(cls, counts: ScoreCounts, width: int) -> Strata:
        """Counts by several columns, of which the first `width` are those of the groups."""

        def name(key: Any) -> tuple[Group, Group]:
            parts = (key[:width], key[width:])
            group, stratum = (known_group(part[0] if len(part) == 1 else part) for part in parts)
            return group, stratum

        return cls(counts, {key: name(key) for key in counts.groups})

    @property
    def together(self) -> ScoreCounts:
        """The counts of the groups, strata put together."""
        return joined(self.counts, self.names)

    def compared(self, groups: Collection[Group], options: AuditOptions) -> WithinStrata:
        """Some of the groups compared within strata, with a warning where the sign turns."""
        if options.compare != "between_groups":
            raise InputError(
                f"needs {setting(compare='between_groups')}, got {options.compare!r}",
                "control_features",
            )
        names = {key: (group, stratum) for key, (group, stratum) in self.names.items() if group in groups}
        within = strata_compared(
            self.counts.without(set(self.names) - set(names)),
            names,
            options.comparison,
            options.epsilon_array,
            options.draws,
            fewest_left_out=options.min_group_size,
        )
        if within.turned:
            warnings.warn(within.turn, stacklevel=5)
        return within


@dataclass(frozen=True, eq=False)
class People:
    """Everyone in an audit, including people without a group, and the rows that lack a value."""

    counts: ScoreCounts
    missing_rows: MissingRows = NOTHING_MISSING
    strata: Strata | None = None
    library: str | None = None

    @classmethod
    def of_arrays(cls, options: AuditOptions, **arrays: Any) -> People:
        """The people of the arrays of `localparity.audit`, or of Predictions or ScoreCounts as `y_true`."""
        check_scale(options, control=arrays["control_features"] is not None, name="control_features")
        counted = isinstance(arrays["y_true"], Predictions | ScoreCounts)
        if not options.comparison.needs_labels and not counted:
            arrays["y_true"] = None
        library = library_of(arrays["y_score"], arrays["sensitive_features"])
        score_range = options.score_range
        if isinstance(score_range, str):
            data = arrays["y_true"]
            score_range = data.score_range if counted else range_of_scores(arrays["y_score"])
        missing_rows = NOTHING_MISSING
        if options.missing == "drop" and not counted:
            arrays, missing_rows = _without_missing(arrays)
        try:
            counts, strata = _checked(options, score_range, **arrays)
        except InputError as error:
            lacks = None if counted else _lacking(arrays).get(error.argument)
            if lacks is None or not lacks.any():
                raise
            rows = f"{int(lacks.sum()):,} of {lacks.size:,} rows"
            raise MissingValueError(f"has no value in {rows}; {ROW_OPTION}", error.argument) from error
        return cls(counts, missing_rows, strata, library)

    def compared(self, options: AuditOptions) -> tuple[ScoreCounts, tuple[LeftOut, ...], MissingRows]:
        """The counts of the groups that are compared, the groups left out, and the rows without a value."""
        counts, unknown = options.policy.settle(self.counts)
        check_identifier(counts)
        left_out: tuple[LeftOut, ...] = ()
        if options.min_group_size > 1:
            counts, left_out = without_small_groups(counts, options.comparison)
        check_pair_count(counts, options.comparison)
        ids = f"{setting('cluster')}=ids of people"
        advice = f"pass {ids}, or one row for each person: intervals and p-values are too sure"
        warn_of_copies(copies_of(counts), advice, stacklevel=4)
        counts = _on_scale(counts, options)
        warn_of_narrow_scores(counts, stacklevel=4)
        return counts, left_out, self.missing_rows.with_groups(unknown)


def check_scale(options: AuditOptions, *, control: bool, name: str) -> None:
    """Check that scores keep their own range where bounds and strata need it."""
    if options.scale != "score" and (options.missing_groups == "bound" or control):
        subject = setting(name) if control else setting(missing_groups="bound")
        limit = f"{setting('score_range')} of two numbers"
        raise InputError(f"{subject} needs a {limit}, got {options.score_range!r}")


def _checked(
    options: AuditOptions, score_range: ScoreRange, *, control_features: Any, **arrays: Any
) -> tuple[ScoreCounts, Strata | None]:
    """The counts of everyone, and their strata where there are control features."""
    comparison, blanks = options.comparison, options.policy.blanks
    if control_features is None:
        data = as_data(
            comparison, score_range=score_range, blanks=blanks, pos_label=options.pos_label, **arrays
        )
        return as_counts(data), None
    if isinstance(arrays["y_true"], Predictions | ScoreCounts):
        raise InputError(f"must be None with {type(arrays['y_true']).__name__}", "control_features")
    if arrays["cluster"] is not None:
        raise InputError(f"must be None with {setting('cluster')}", "control_features")
    features = arrays.pop("sensitive_features")
    check_indexes(
        {"y_score": arrays["y_score"], "sensitive_features": features, "control_features": control_features}
    )
    rows = as_vector(arrays["y_score"], "y_score").size
    groups = as_groups(features, rows, blanks=blanks)
    control = as_groups(control_features, rows, "control_features", at_least=1, blanks=Blanks(kept=True))
    codes = {"group": groups.codes, "stratum": control.codes}
    arrays |= {"score_range": score_range, "pos_label": options.pos_label}
    counts = as_counts(as_data(comparison, sensitive_features=codes, **arrays))
    strata = Strata(counts, strata_names(counts, groups, control))
    return strata.together, strata


def _lacking(arrays: Mapping[str, Any]) -> dict[str, BoolArray]:
    """Which rows of each array of numbers have no value."""
    vectors = {name: as_vector(arrays[name], name) for name in _ARRAYS if arrays[name] is not None}
    return {name: missing_among(values) for name, values in vectors.items()}


def _without_missing(arrays: Mapping[str, Any]) -> tuple[dict[str, Any], MissingRows]:
    """Arrays without the rows that lack a score, a label or a weight."""
    lacking = _lacking(arrays)
    keep = np.ones(next(iter(lacking.values())).size, dtype=bool)
    rows = dict.fromkeys(_ARRAYS.values(), 0)
    for name, lacks in lacking.items():
        check_rows(name, lacks.size, keep.size)
        rows[_ARRAYS[name]] = int((lacks & keep).sum())
        keep &= ~lacks
    if not keep.any():
        raise InputError("has no row left: each lacks a score, a label or a weight", "y_score")
    if keep.all():
        return dict(arrays), NOTHING_MISSING
    indices = np.flatnonzero(keep)
    left = {name: None if values is None else _rows_of(values, indices) for name, values in arrays.items()}
    return left, MissingRows(scores=rows["scores"], labels=rows["labels"], weights=rows["weights"])


def _rows_of(values: Any, indices: Any) -> Any:
    """Some rows of an array, a list, a data frame or a mapping of columns."""
    if isinstance(values, Mapping):
        return {name: _rows_of(column, indices) for name, column in values.items()}
    frame = as_frame(values)
    if frame is not None:
        return frame[indices.tolist()].to_native()
    if isinstance(values, list | tuple):
        return [values[index] for index in indices.tolist()]
    return values[indices]


# The scale that scores are compared on: a range that is given, that of the data, or their ranks.


def range_of_scores(y_score: ArrayLike | None) -> ScoreRange:
    """The range of scores; what is no scores has any, and is an error where arrays are checked."""
    if y_score is None:
        return _UNIT
    array = as_vector(y_score, "y_score")
    if array.dtype == object:
        array = np.array([np.nan if value is None else value for value in array.tolist()])
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):
        return _UNIT
    finite = numbers[np.isfinite(numbers)]
    return as_data_range(float(finite.min(initial=np.inf)), float(finite.max(initial=-np.inf)))


def as_data_range(low: float, high: float, name: Argument = "y_score") -> ScoreRange:
    """The range of scores from the lowest to the highest, rounded outward.

    So it is the same for most samples of the same scores, and tells nobody's score.

    Examples
    --------
    >>> as_data_range(-3.51, 12.07), as_data_range(0.034, 0.62)
    ((-4.0, 13.0), (0.0, 0.7))
    """
    if low > high:
        raise InputError(f"must have finite scores with {setting(score_range='data')}, got none", name)
    if low == high:
        raise InputError(
            f"must have two different scores with {setting(score_range='data')}, got {low:g} only",
            name,
        )
    lowest, highest = Decimal(repr(low)), Decimal(repr(high))
    step = Decimal(1).scaleb((highest - lowest).adjusted())
    if highest - lowest < 5 * step:
        step /= 10
    ends = ((lowest, ROUND_FLOOR), (highest, ROUND_CEILING))
    low, high = (float((end / step).to_integral_value(way) * step) for end, way in ends)
    return low, high


def _on_scale(counts: ScoreCounts, options: AuditOptions) -> ScoreCounts:
    """The counts of the people who are compared, on the scale that was asked for."""
    if options.scale == "rank":
        return ranked(counts)
    if options.scale == "score" or counts.cells is not None:
        return counts
    ends = [end for atoms in counts.atoms.values() for end in atoms.scores[[0, -1]].tolist() if atoms.size]
    score_range = as_data_range(min(ends), max(ends))
    relative = counts.resolution / _reach(counts.score_range)
    return replace(counts, score_range=score_range, resolution=relative * _reach(score_range))


def _reach(score_range: ScoreRange) -> float:
    """The larger end of a range, as a multiple of its length."""
    return max(map(abs, score_range)) / range_length(score_range)


def ranked(counts: ScoreCounts) -> ScoreCounts:
    """The same people, each with the (weighted) share of all of them at or below; gaps stay what they are."""
    if counts.cells is not None or counts.rank_error:
        raise InputError(
            f"{setting(score_range='rank')} needs every score to be counted by itself, got counts on a grid "
            "of cells or of a sketch; round the scores to fewer distinct ones"
        )
    everyone = Atoms.join(counts.atoms.values())
    shares = everyone.shares_at_or_below(everyone.scores)

    def ranks(scores: NDArray[np.floating]) -> FloatArray:
        return shares[np.searchsorted(everyone.scores, scores)]

    atoms = {key: replace(own, scores=ranks(own.scores)) for key, own in counts.atoms.items()}
    clusters = counts.clusters
    if clusters is not None:
        clusters = replace(clusters, scores=ranks(clusters.scores))
    return ScoreCounts(atoms, _UNIT, _RANK_RESOLUTION, clusters=clusters)
