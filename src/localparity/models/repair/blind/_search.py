"""The weakest group-blind repair that is within a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from localparity.metrics._within import within_bound
from localparity.models.repair.blind._nested_score import Dual, NestedScore

_TRIALS = 6
_CLOSE = 0.02
_SHARES = (0.0, 0.03, 0.06, 0.12, 0.25, 0.5)


class Trial(NamedTuple):
    """What a repair aimed for, and the MCDP that it left."""

    aim: float
    mcdp: float


class Found(NamedTuple):
    """A score, what it aimed for, and its MCDP."""

    score: NestedScore
    aim: float
    mcdp: float


Measure = Callable[[NestedScore], float]


def find_within(dual: Dual, measure: Measure, max_mcdp: float, plain: Trial) -> tuple[Found | None, float]:
    """Return the weakest repair tried that is within the bound, if there is one, and the least MCDP of all.

    MCDP grows almost linearly with what a repair aims for: the search aims for the bound, then ever farther
    below it, and once within it where a line through the nearest tries on both sides meets it. `plain` is the
    aim from which on nothing is repaired, and MCDP there.
    """
    low: Trial | None = None
    high, best = plain, None
    aim, start = min(max_mcdp, plain.aim), None
    for trial in range(_TRIALS):
        score = dual.solve(aim, start)
        start, found = score.multipliers[1:-1], measure(score)
        if within_bound(found, max_mcdp):
            low = Trial(aim, found)
            if best is None or aim > best.aim:
                best = Found(score, aim, found)
            if found >= (1.0 - _CLOSE) * max_mcdp:
                break
        else:
            high = Trial(aim, found)
            if aim == 0.0:
                break
        aim = _next_aim(low, high, max_mcdp, trial)
    return (best, best.mcdp) if best is not None else _try_all(dual, measure, max_mcdp, plain)


def _try_all(dual: Dual, measure: Measure, max_mcdp: float, plain: Trial) -> tuple[Found | None, float]:
    """Return the same of aims that do not depend on the bound: what one leaves, any higher one reaches."""
    best, least, start = None, plain.mcdp, None
    for share in _SHARES:
        score = dual.solve(share * plain.aim, start)
        start, found = score.multipliers[1:-1], measure(score)
        least = min(least, found)
        if within_bound(found, max_mcdp):
            best = Found(score, share * plain.aim, found)
    return best, least


def _next_aim(low: Trial | None, high: Trial, max_mcdp: float, trial: int) -> float:
    """Return where a line between two tries meets the bound, or an aim below the lowest try."""
    if low is None:
        return max(high.aim - 1.25 * 2.0**trial * (high.mcdp - max_mcdp), 0.0)
    rise = high.mcdp - low.mcdp
    part = (max_mcdp - low.mcdp) / rise if rise > 0.0 else 0.5
    return low.aim + min(max(part, 0.1), 0.9) * (high.aim - low.aim)
