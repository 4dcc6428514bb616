"""Control features: people counted by group and stratum at once, for an audit within strata."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from localparity._types import FloatArray, Group
from localparity._validation import Blanks, InputError, as_groups, as_vector, check_indexes, setting
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._score_counts import Data, as_counts, as_data
from localparity.engines._missing_rows import known_group
from localparity.predictions import Predictions
from localparity.uncertainty import WithinStrata
from localparity.uncertainty._resampling import Draws
from localparity.uncertainty._strata import joined, strata_compared, strata_names


@dataclass(frozen=True, eq=False)
class Strata:
    """People counted by group and stratum.

    Attributes
    ----------
    counts : ScoreCounts
        Their groups are both at once.
    names : mapping
        The group and the stratum that each of these stands for.
    """

    counts: ScoreCounts
    names: Mapping[Group, tuple[Group, Group]]

    @classmethod
    def of_columns(cls, counts: ScoreCounts, width: int) -> Strata:
        """Counts by some columns, of which the first so many are of the groups."""

        def name(key: Any) -> tuple[Group, Group]:
            parts = (key[:width], key[width:])
            group, stratum = (known_group(part[0] if len(part) == 1 else part) for part in parts)
            return group, stratum

        return cls(counts, {key: name(key) for key in counts.groups})

    @property
    def together(self) -> ScoreCounts:
        """The counts of the groups, strata put together."""
        return joined(self.counts, self.names)

    def compared(
        self,
        groups: Collection[Group],
        comparison: Comparison,
        epsilons: FloatArray,
        draws: Draws,
        *,
        disclosure_limit: int,
    ) -> WithinStrata:
        """Some of the groups compared within strata, with a warning where the sign turns."""
        if comparison.compare != "between_groups":
            raise InputError(
                f"needs {setting(compare='between_groups')}, got {comparison.compare!r}", "control_features"
            )
        kept = {key: (group, stratum) for key, (group, stratum) in self.names.items() if group in groups}
        counts = self.counts.without(set(self.names) - set(kept))
        comparison = replace(comparison, min_group_size=max(comparison.min_group_size, disclosure_limit))
        found = strata_compared(counts, kept, comparison, epsilons, draws, disclosure_limit=disclosure_limit)
        if found.turned:
            warnings.warn(found.turn, stacklevel=4)
        return found


def as_people(
    comparison: Comparison, *, control_features: Any, blanks: Blanks, **arrays: Any
) -> tuple[Data, Strata | None]:
    """The people that an audit compares, and their strata where there are control features."""
    if control_features is None or isinstance(control_features, Strata):
        return as_data(comparison, blanks=blanks, **arrays), control_features
    if isinstance(arrays["y_true"], Predictions | ScoreCounts):
        raise InputError(f"must be None with {type(arrays['y_true']).__name__}", "control_features")
    if arrays["cluster"] is not None:
        raise InputError("must be None with cluster", "control_features")
    features = arrays.pop("sensitive_features")
    check_indexes(
        {"y_score": arrays["y_score"], "sensitive_features": features, "control_features": control_features}
    )
    rows = as_vector(arrays["y_score"], "y_score").size
    groups = as_groups(features, rows, blanks=blanks)
    strata = as_groups(control_features, rows, "control_features", at_least=1, blanks=Blanks(kept=True))
    both = {"group": groups.codes, "stratum": strata.codes}
    counts = as_counts(as_data(comparison, sensitive_features=both, **arrays))
    found = Strata(counts, strata_names(counts, groups, strata))
    return found.together, found
