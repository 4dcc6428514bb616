"""Rows that have no group, score, label or weight: what an audit does with them, and says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from localparity._text import normal_text
from localparity._types import FloatArray, Group, Missing, MissingGroups
from localparity._validation import (
    NO_GROUP,
    Blanks,
    InputError,
    MissingValueError,
    as_choice,
    as_texts,
    is_missing_group,
    setting,
)
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._disclosure import few_people
from localparity.metrics import Breakdown, UnknownGroups
from localparity.metrics._unknown_groups import bounds_of

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit


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
    >>> print(found.missing_rows.groups, found.missing_rows.sentences[0])
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
    """So many rows without a value."""
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

    @property
    def blanks(self) -> Blanks:
        """What stands for no group; an audit looks at such rows itself."""
        return Blanks(self.texts, kept=True)

    def bounds(
        self, everyone: ScoreCounts, groups: Sequence[Group], comparison: Comparison, epsilons: FloatArray
    ) -> UnknownGroups | None:
        """What the rows without a group could change, where that is asked for and enough people have none."""
        if self.groups != "bound" or NO_GROUP not in everyone.groups:
            return None
        if comparison.compare != "between_groups":
            needed = setting(compare="between_groups")
            raise InputError(f"{setting(missing_groups='bound')} needs {needed}, got {comparison.compare!r}")
        people = everyone.without(set(everyone.groups) - {NO_GROUP, *groups})
        if NO_GROUP in few_people(people, comparison, comparison.min_group_size):
            return None
        return bounds_of(people, comparison, epsilons)

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


_LIKE_MISSING = {
    *("", "?", "-", "n/a", "na", "nan", "none", "null", "missing", "unknown", "not known", "not stated"),
    *("not available", "not provided", "undisclosed", "unspecified", "prefer not to say", "refused"),
}


def looks_missing(group: Group) -> list[str]:
    """The parts of a group's name that read as if they stood for no group.

    Examples
    --------
    >>> looks_missing(("Female", "Unknown")), looks_missing("N/A"), looks_missing("Nan Province")
    (['Unknown'], ['N/A'], [])
    """
    parts = group if isinstance(group, tuple) else (group,)
    known = [part for part in parts if not is_missing_group(part)]
    return [part for part in known if isinstance(part, str) and normal_text(part) in _LIKE_MISSING]


def breakdown_of(audit: Audit, max_mcdp: float | None) -> Breakdown | None:
    """How few groups could change a verdict on MCDP(0); None where that was not asked, or has no answer."""
    at_zero = audit.findings[0].epsilon == 0.0 and audit.counts.exchangeable
    if audit.unknown_groups is None or max_mcdp is None or not at_zero:
        return None
    return audit.unknown_groups.breakdown(max_mcdp)


def mostly_missing(audit: Audit) -> bool:
    """Whether more people have no group, and are not compared, than are compared."""
    missing = audit.missing_rows
    return missing.missing_groups in ("drop", "bound") and missing.groups > audit.counts.size


def bounds_sentences(audit: Audit) -> tuple[str, ...]:
    """What the rows without a group could change, in words, or that they are too few to say."""
    if audit.unknown_groups is not None:
        return tuple(bounds.sentence for bounds in audit.unknown_groups.bounds)
    if audit.missing_rows.groups and audit.missing_rows.missing_groups == "bound":
        return ("What they could change is not shown, since they are fewer people than a group may have.",)
    return ()


ROW_OPTION = f"{setting(missing='drop')} leaves them out"
