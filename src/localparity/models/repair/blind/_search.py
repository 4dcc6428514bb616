"""The weakest group-blind repair that is within a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from localparity.models.repair.blind._nested_score import Dual, NestedScore

_TRIALS = 6
_CLOSE = 0.02


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
    below it, and once within it where a line through the nearest tries on both sides meets it. The last try
    without success is the strongest repair. `plain` is the aim from which on nothing is repaired, and MCDP
    there.
    """
    low: Trial | None = None
    high = plain
    best, least = None, plain.mcdp
    aim, start = min(max_mcdp, plain.aim), None
    for trial in range(_TRIALS):
        if trial == _TRIALS - 1 and low is None:
            aim = 0.0
        score = dual.solve(aim, start)
        start, found = score.multipliers[1:-1], measure(score)
        least = min(least, found)
        if found <= max_mcdp:
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
    return best, least


def _next_aim(low: Trial | None, high: Trial, max_mcdp: float, trial: int) -> float:
    """Return where a line between two tries meets the bound, or an aim below the lowest try."""
    if low is None:
        return max(high.aim - 1.25 * 2.0**trial * (high.mcdp - max_mcdp), 0.0)
    rise = high.mcdp - low.mcdp
    part = (max_mcdp - low.mcdp) / rise if rise > 0.0 else 0.5
    return low.aim + min(max(part, 0.1), 0.9) * (high.aim - low.aim)
