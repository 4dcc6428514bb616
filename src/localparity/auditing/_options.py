"""The question of an audit: who is compared, at which widths of windows, and how sure the answer must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict, get_args

import numpy as np

from localparity._types import (
    ArrayLike,
    Compare,
    Criterion,
    FloatArray,
    Groups,
    HigherIs,
    IntervalMethod,
    MeasuredScale,
    Missing,
    MissingGroups,
    RangeOption,
    Seed,
)
from localparity._validation import InputError, as_choice, as_count, as_epsilons, as_higher_is, as_probability
from localparity.auditing._missing import MissingPolicy
from localparity.counts import Comparison
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.uncertainty._resampling import Draws


class AuditKeywords(TypedDict, total=False):
    """The fields of `AuditOptions`, for functions that take them as keyword arguments."""

    epsilons: Sequence[float]
    criterion: Criterion
    compare: Compare
    score_range: RangeOption
    threshold: float | None
    pos_label: Any
    min_group_size: int
    missing_groups: MissingGroups
    missing_values: str | Sequence[Any]
    missing: Missing
    confidence: float
    method: IntervalMethod | None
    n_resamples: int
    random_state: Seed
    n_jobs: int | None
    higher_is: HigherIs | None


class AuditArguments(AuditKeywords, total=False):
    """The same with the arrays that `localparity.audit` takes in addition to scores, labels and groups."""

    control_features: Groups | None
    sample_weight: ArrayLike | None
    cluster: ArrayLike | None


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The checked question of an audit; its fields are arguments of `localparity.audit`."""

    epsilons: Sequence[float] = PAPER_EPSILONS
    criterion: Criterion = "demographic_parity"
    compare: Compare = "between_groups"
    score_range: RangeOption = (0.0, 1.0)
    threshold: float | None = None
    pos_label: Any = None
    min_group_size: int = 1
    missing_groups: MissingGroups = "raise"
    missing_values: str | Sequence[Any] = ()
    missing: Missing = "raise"
    confidence: float = 0.95
    method: IntervalMethod | None = None
    n_resamples: int = 1000
    random_state: Seed = None
    n_jobs: int | None = None
    higher_is: HigherIs | None = None

    def __post_init__(self) -> None:
        epsilons = np.unique(as_epsilons(self.epsilons, "epsilons"))
        if not epsilons.size:
            raise InputError("must have at least one number, got none", "epsilons")
        object.__setattr__(self, "epsilons", tuple(epsilons.tolist()))
        if isinstance(self.score_range, str) and self.score_range not in ("data", "rank"):
            raise InputError(
                f"must be two numbers (low, high), 'data' or 'rank', got {self.score_range!r}",
                "score_range",
            )
        if self.method is not None:
            as_choice(self.method, "method", get_args(IntervalMethod))
        as_count(self.n_resamples, "n_resamples", at_least=0)
        as_higher_is(self.higher_is)
        object.__setattr__(self, "confidence", as_probability(self.confidence))
        _ = self.comparison, self.policy  # which check what they are made of

    @cached_property
    def comparison(self) -> Comparison:
        """Which people, and which groups, are compared."""
        return Comparison(self.criterion, self.compare, self.min_group_size)

    @cached_property
    def policy(self) -> MissingPolicy:
        """What is done with rows that lack a value."""
        return MissingPolicy.of(self.missing_groups, self.missing, self.missing_values)

    @cached_property
    def draws(self) -> Draws:
        """The resamples."""
        return Draws(self.n_resamples, self.random_state, self.n_jobs)

    @property
    def epsilon_array(self) -> FloatArray:
        """The epsilons, ascending."""
        return np.array(self.epsilons, dtype=np.float64)

    @property
    def scale(self) -> MeasuredScale:
        """What an epsilon is a share of."""
        return "score" if not isinstance(self.score_range, str) else self.score_range
