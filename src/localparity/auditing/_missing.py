"""Rows that have no group, score, label or weight: what an audit does with them, and says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

import numpy as np

from localparity._types import BoolArray, Group, Missing, MissingGroups
from localparity._validation import (
    NO_GROUP,
    Blanks,
    InputError,
    MissingValueError,
    as_choice,
    as_frame,
    as_texts,
    as_vector,
    check_rows,
    is_missing_group,
    missing_among,
    setting,
)
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._disclosure import few_people
from localparity.metrics import Breakdown, UnknownGroups
from localparity.metrics._unknown_groups import bounds_of
from localparity.metrics._window import percent
from localparity.predictions import Predictions

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit


Checked = TypeVar("Checked")

KINDS = {"scores": "score", "labels": "label", "weights": "weight", "groups": "group"}


@dataclass(frozen=True, kw_only=True)
class MissingRows:
    """How many rows lacked a value, and what was done with them.

    Attributes
    ----------
    scores, labels, weights : int
        The rows that were left out since they have no score; of the others, no label; no weight.
    groups : int
        The rows of the others that have no group.
    missing_groups : str
        What was done with those: "raise" where there are none, else "drop", "group" or "bound".

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.9], ["f", "f", None, "m", "m"]
    >>> found = lp.audit(None, scores, sensitive_features=sex, missing_groups="drop", random_state=0)
    >>> print(found.missing.groups, found.missing.sentences[0])
    1 1 row without a group was left out.
    """

    scores: int = 0
    labels: int = 0
    weights: int = 0
    groups: int = 0
    missing_groups: MissingGroups = "raise"

    def with_groups(self, other: MissingRows) -> MissingRows:
        """Return the same, with another's rows without a group where there are none here.

        Parameters
        ----------
        other : MissingRows
            What another reader left out.

        Returns
        -------
        MissingRows
        """
        if self.groups:
            return self
        return replace(self, groups=other.groups, missing_groups=other.missing_groups)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was done with the rows that lack a value, a sentence for each kind."""
        found = []
        for kind, name in KINDS.items():
            rows = getattr(self, kind)
            if rows:
                was = "was" if rows == 1 else "were"
                done = f"{was} left out"
                if kind == "groups" and self.missing_groups == "group":
                    done = f"{was} taken for a group of {'its' if rows == 1 else 'their'} own"
                found.append(f"{rows_without(rows, name)} {done}.")
        return tuple(found)


def rows_without(rows: int, what: str) -> str:
    """So many rows without a value.

    Examples
    --------
    >>> rows_without(1200, "group")
    '1,200 rows without a group'
    """
    return f"{rows:,} row{'' if rows == 1 else 's'} without a {what}"


NOTHING_MISSING = MissingRows()


class MissingPolicy(NamedTuple):
    """What is done with rows that lack a value, and what stands for none."""

    groups: MissingGroups
    rows: Missing
    texts: tuple[str, ...]

    @classmethod
    def of(
        cls, missing_groups: str = "raise", missing: str = "raise", missing_values: Any = ()
    ) -> MissingPolicy:
        """Check what a caller asks for."""
        as_choice(missing_groups, "missing_groups", get_args(MissingGroups))
        as_choice(missing, "missing", get_args(Missing))
        return cls(missing_groups, missing, as_texts(missing_values, "missing_values"))  # type: ignore[arg-type]

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> MissingPolicy:
        """Check what a caller asks for, and take it out of other options."""
        named = ("missing_groups", "missing", "missing_values")
        return cls.of(**{name: options.pop(name) for name in named if name in options})

    @property
    def blanks(self) -> Blanks:
        """What stands for no group; an audit looks at such rows itself."""
        return Blanks(self.texts, kept=True)

    def bounds(
        self, everyone: ScoreCounts, kept: Sequence[Group], comparison: Comparison, **asked: Any
    ) -> UnknownGroups | None:
        """What the rows without a group could change, where that is asked for and enough people have none."""
        if self.groups != "bound" or NO_GROUP not in everyone.groups:
            return None
        if comparison.compare != "between_groups":
            raise InputError(
                f"{setting(missing_groups='bound')} needs {setting(compare='between_groups')}, got "
                f"{comparison.compare!r}"
            )
        found = everyone.without(set(everyone.groups) - {NO_GROUP, *kept})
        if NO_GROUP in few_people(found, comparison, asked["disclosure_limit"]):
            return None
        return bounds_of(found, comparison, asked["epsilons"])

    def settle(self, counts: ScoreCounts) -> tuple[ScoreCounts, MissingRows]:
        """The counts of the groups that are compared, and how many rows have none."""
        unknown = [group for group in counts.groups if is_missing_group(group)]
        rows = sum(atoms.size for (group, _), atoms in counts.atoms.items() if group in unknown)
        if not rows:
            return counts.without(unknown), NOTHING_MISSING
        if self.groups == "raise":
            reason = f"has no value in {rows:,} of {counts.size:,} rows; {GROUP_OPTIONS}"
            raise MissingValueError(reason, "sensitive_features")
        kept = counts if self.groups == "group" else counts.without(unknown)
        return kept, MissingRows(groups=rows, missing_groups=self.groups)


GROUP_OPTIONS = (
    f"{setting(missing_groups='drop')} leaves them out, {setting(missing_groups='group')} takes them for a "
    f"group, and {setting(missing_groups='bound')} says what they could change"
)


def breakdown_of(audit: Audit, max_mcdp: float | None) -> Breakdown | None:
    """How few groups could change a verdict on MCDP(0); None where that was not asked, or has no answer."""
    at_zero = audit.findings[0].epsilon == 0.0 and audit.counts.exchangeable
    if audit.unknown_groups is None or max_mcdp is None or not at_zero:
        return None
    return audit.unknown_groups.breakdown(max_mcdp)


def mostly_missing(audit: Audit) -> bool:
    """Whether more people have no group, and are not compared, than are compared."""
    missing = audit.missing
    return missing.missing_groups in ("drop", "bound") and missing.groups > audit.counts.size


def what_could_be(audit: Audit) -> str | None:
    """What the people without a group leave open, in a sentence; None where nothing was asked of them."""
    found = audit.unknown_groups
    if found is None and not mostly_missing(audit):
        return None
    unknown, known = audit.missing.groups, audit.counts.size
    if found is not None:
        unknown, known = found.unknown, found.known
    share = percent(unknown / (unknown + known))
    who = f"{unknown:,} of {unknown + known:,} people ({share}) have no group"
    if found is None:
        return f"{who} and were left out: of all people little can be said."
    bounds = found.bounds[0]
    ends = f"anywhere from {percent(bounds.low)} to {percent(bounds.high)}"
    return f"{who}: MCDP({bounds.epsilon:g}) is {ends}, depending on which groups they are of."


def bounds_sentences(audit: Audit) -> tuple[str, ...]:
    """What the rows without a group could change, in words, or that they are too few to say."""
    if audit.unknown_groups is not None:
        return tuple(bounds.sentence for bounds in audit.unknown_groups.bounds)
    if audit.missing.groups and audit.missing.missing_groups == "bound":
        return (
            "What they could change is not shown, since they are fewer people than the disclosure limit.",
        )
    return ()


def further_sentences(audit: Audit, max_mcdp: float | None) -> tuple[str, ...]:
    """What an audit says of rows that lack a value, of unknown groups and of strata."""
    breakdown = breakdown_of(audit, max_mcdp)
    return (
        *audit.missing.sentences,
        *bounds_sentences(audit),
        *(() if breakdown is None else breakdown.sentences),
        *(() if audit.within_strata is None else audit.within_strata.sentences),
    )


ROW_OPTION = f"{setting(missing='drop')} leaves them out"

_ARRAYS = {"y_score": "scores", "y_true": "labels", "sample_weight": "weights"}


def checked_rows(
    check: Callable[..., Checked], arrays: Mapping[str, Any], policy: MissingPolicy
) -> tuple[Checked, MissingRows]:
    """What is made of arrays without the rows that have no score, label or weight, and how many those are."""
    if isinstance(arrays["y_true"], Predictions | ScoreCounts):
        return check(**arrays), NOTHING_MISSING
    if policy.rows == "drop":
        kept, missing = _without_missing(arrays)
        return check(**kept), missing
    try:
        return check(**arrays), NOTHING_MISSING
    except InputError as error:
        lacks = _lacking(arrays).get(error.argument)
        if lacks is None or not lacks.any():
            raise
        rows = f"{int(lacks.sum()):,} of {lacks.size:,} rows"
        raise MissingValueError(f"has no value in {rows}; {ROW_OPTION}", error.argument) from error


def _lacking(arrays: Mapping[str, Any]) -> dict[str, BoolArray]:
    """Which rows of each array of numbers have no value."""
    given = {name: as_vector(arrays[name], name) for name in _ARRAYS if arrays[name] is not None}
    return {name: missing_among(values) for name, values in given.items()}


def _without_missing(arrays: Mapping[str, Any]) -> tuple[dict[str, Any], MissingRows]:
    """Arrays without the rows that lack a value."""
    lacking = _lacking(arrays)
    keep = np.ones(next(iter(lacking.values())).size, dtype=bool)
    counted: dict[str, Any] = {}
    for name, lacks in lacking.items():
        check_rows(name, lacks.size, keep.size)
        counted[_ARRAYS[name]] = int((lacks & keep).sum())
        keep &= ~lacks
    if not keep.any():
        raise InputError("has no row left: each lacks a score, a label or a weight", "y_score")
    if keep.all():
        return dict(arrays), NOTHING_MISSING
    places = np.flatnonzero(keep)
    kept = {name: None if values is None else _rows_of(values, places) for name, values in arrays.items()}
    return kept, MissingRows(**counted)


def _rows_of(values: Any, places: Any) -> Any:
    """Some rows of an array, a list, a data frame or a mapping of columns."""
    if isinstance(values, Mapping):
        return {name: _rows_of(column, places) for name, column in values.items()}
    frame = as_frame(values)
    if frame is not None:
        return frame[places.tolist()].to_native()
    if isinstance(values, list | tuple):
        return [values[place] for place in places.tolist()]
    return values[places]
