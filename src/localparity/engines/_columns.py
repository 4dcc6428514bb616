"""The columns of a table of scores: which they are, and what is said of a row that does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from localparity._io._tables import as_group_columns
from localparity._validation import Column, as_groups, as_labels, as_score_range, as_scores, as_weights
from localparity.engines._refine import Tally


@dataclass(frozen=True)
class ScoreColumns:
    """The names of the columns of a table of scores, and the range of the scores.

    Attributes
    ----------
    score : str
        The column of the scores.
    group : tuple of str
        The columns of the groups.
    label, weight : str or None
        The columns of the labels and of the weights.
    score_range : tuple of float
        The lowest and the highest score there can be.
    """

    score: str
    group: tuple[str, ...]
    label: str | None
    weight: str | None
    score_range: tuple[float, float]

    @classmethod
    def of(
        cls,
        score: str,
        group: str | Sequence[str],
        label: str | None,
        weight: str | None,
        score_range: tuple[float, float],
    ) -> ScoreColumns:
        """Check what the caller named."""
        groups = as_group_columns(score, group)
        return cls(score, groups, label, weight, as_score_range(score_range))

    @property
    def numbers(self) -> list[str]:
        """The columns that hold numbers."""
        return [name for name in (self.score, self.label, self.weight) if name is not None]

    @property
    def names(self) -> list[str]:
        """All columns."""
        return [*self.numbers, *self.group]

    def complain(self, row: Mapping[str, Any], number: int | None) -> None:
        """Raise the error for a row that does not fit, given its values and its number from 1."""

        def named(name: str) -> Column:
            return Column(f"column {name!r}", number)

        as_scores([row[self.score]], self.score_range, named(self.score))
        for name in self.group:
            as_groups(np.array([row[name]], dtype=object), 1, named(name), at_least=1)
        if self.label is not None:
            as_labels([row[self.label]], 1, named(self.label))
        if self.weight is not None:
            as_weights([row[self.weight]], 1, named(self.weight))

    def check_groups(self, tallies: Sequence[Tally]) -> None:
        """There are two groups or more, and each has some weight."""
        groups = list(dict.fromkeys(tally.key[0] for tally in tallies))
        if len(groups) == 1:
            raise ValueError(
                f"column {self.group[0]!r} has one group only, {groups[0]!r}, where two or more are expected"
            )
        for group in groups:
            if not any(tally.rows.size for tally in tallies if tally.key[0] == group):
                raise ValueError(f"column {self.weight!r} is 0 in all rows of group {group!r}")

    def key(self, groups: Sequence[Any], label: float | None) -> tuple[Any, int | None]:
        """The group and the label as counts name them."""
        plain = tuple(value.item() if isinstance(value, np.generic) else value for value in groups)
        for name, value in zip(self.group, plain, strict=True):
            if isinstance(value, np.ndarray | dict | list):
                raise ValueError(
                    f"column {name!r} has {value!r} where a text, a number or a date is expected"
                )
        return plain[0] if len(plain) == 1 else plain, None if label is None else int(label)
