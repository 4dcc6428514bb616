"""One group at one cutoff: its selection rate, and how that compares with the reference group's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from localparity._types import Group
from localparity.metrics._interval import Interval


@dataclass(frozen=True)
class ImpactRatio:
    """A group at one cutoff: how many are selected, and how that compares with the reference group.

    Attributes
    ----------
    group, reference : hashable
        The group, and the group that it is compared with.
    selected, size : float
        How many of the group are selected, of how many; with weights, their weight.
    rate, ratio, odds_ratio : float
        The selection rate, and what it is as a ratio to the reference's: of rates, and of odds.
    rate_interval, ratio_interval, odds_ratio_interval : Interval or None
        Their intervals, which hold at all cutoffs and for all groups together; None without bands.
    shortfall : float
        How many more of the group would have to be selected to reach the reference's rate.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8], ["f", "f", "f", "m", "m", "m"]
    >>> first, _ = lp.impact_ratio_curve(None, scores, sensitive_features=sex).at(0.5)
    >>> first.group, first.reference, first.ratio, first.shortfall
    ('f', 'm', 0.5, 1.0)
    """

    group: Group
    reference: Group
    selected: float
    size: float
    rate: float
    ratio: float
    odds_ratio: float
    rate_interval: Interval | None
    ratio_interval: Interval | None
    odds_ratio_interval: Interval | None
    shortfall: float


def finite(value: Any) -> Any:
    """A number, or None in place of one that JSON does not have; inside dictionaries and lists too."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
