"""The one type for a number that lies between two ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """An estimate between its lower and its upper end.

    Attributes
    ----------
    low, estimate, high : float
        The ends and the estimate between them.
    confidence : float
        The probability that the interval holds the true value; 1 for bounds that always hold.

    Examples
    --------
    >>> import localparity as lp
    >>> groups = ["a", "b"] * 200
    >>> found = lp.mcdp_interval(None, [0.25, 0.75] * 200, sensitive_features=groups, confidence=0.9)
    >>> round(found.low, 3), found.estimate, found.high
    (0.841, 1.0, 1.0)
    """

    low: float
    estimate: float
    high: float
    confidence: float = 1.0


def worst_interval(intervals: Iterable[Interval]) -> Interval:
    """The interval of the largest of several numbers."""
    found = list(intervals)
    low, estimate, high = (max(getattr(each, end) for each in found) for end in ("low", "estimate", "high"))
    return Interval(low, estimate, high, found[0].confidence)
