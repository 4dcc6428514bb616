"""What an audit says of each group, of each pair and at each epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from localparity._validation import FloatArray, Group, as_count
from localparity.metrics import GapCurve, ScoreCounts, Window
from localparity.uncertainty import Interval, TestResult


@dataclass(frozen=True)
class GroupSummary:
    """A group among the people compared: how many they are and how they score on average."""

    group: Group
    label: int | None
    rows: int
    effective_rows: float
    mean_score: float


@dataclass(frozen=True)
class LeftOut:
    """A group that was left out, and how many of the people compared it has, at the least under any label."""

    group: Group
    rows: int


@dataclass(frozen=True)
class PairSummary:
    """One pair: MCDP at each epsilon, ABCC, delta-DP, and the worst window at the smallest epsilon."""

    groups: tuple[Group, Group]
    label: int | None
    mcdp: tuple[float, ...]
    abcc: float
    delta_dp: float
    window: Window


@dataclass(frozen=True)
class Finding:
    """MCDP at one epsilon, of the worst pair: its interval, its test against parity and its place."""

    epsilon: float
    mcdp: float
    interval: Interval
    test: TestResult | None
    window: Window


def summarise_groups(counts: ScoreCounts, criterion: str) -> tuple[GroupSummary, ...]:
    """Every group under every label that a criterion compares."""
    return tuple(
        GroupSummary(
            group,
            label,
            atoms.size,
            atoms.effective_size,
            float(np.average(atoms.scores, weights=atoms.weights)),
        )
        for label, stratum in counts.strata(criterion).items()
        for group, atoms in stratum.items()
    )


def summarise_pairs(
    curves: Sequence[GapCurve], epsilons: FloatArray, threshold: float | None
) -> tuple[PairSummary, ...]:
    """Every pair, the worst first."""
    pairs = [
        PairSummary(
            curve.groups,
            curve.label,
            tuple(curve.mcdp_at(epsilons).tolist()),
            curve.abcc(),
            abs(curve.mean_difference() if threshold is None else curve(threshold)),
            curve.worst_window(float(epsilons[0])),
        )
        for curve in curves
    ]
    return tuple(sorted(pairs, key=lambda pair: pair.mcdp, reverse=True))


def without_small_groups(
    counts: ScoreCounts, criterion: str, min_group_size: int
) -> tuple[ScoreCounts, tuple[LeftOut, ...]]:
    """Leave out every group that has too few of the people compared under any label."""
    small = counts.small_groups(criterion, as_count(min_group_size, "min_group_size"))
    groups = len(counts.groups)
    if groups - len(small) < 2:
        raise ValueError(
            f"min_group_size is {min_group_size} and leaves {groups - len(small)} of {groups} groups "
            "where two or more are expected"
        )
    return counts.without(small), tuple(LeftOut(group, rows) for group, rows in small.items())
