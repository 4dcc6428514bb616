"""The one comparison of MCDP with a bound."""

from __future__ import annotations

import sys
from typing import Literal, Protocol

Verdict = Literal["within", "above", "undecided"]
"""What an interval of MCDP says of a bound."""

_ROUNDING = 4.0 * sys.float_info.epsilon


def allowed(max_mcdp: float) -> float:
    """Return what a computed MCDP may be for the true one to be at most `max_mcdp`.

    MCDP is a difference of two shares. Each of them is rounded to the spacing of floats below 1, and so is a
    bound in decimals; a few of these spacings are absorbed and no more, so that 0.3 + 1e-12 is above 0.3.
    """
    return max_mcdp + _ROUNDING


def within_bound(mcdp: float, max_mcdp: float) -> bool:
    """Return whether MCDP, or an end of its interval, is at most a bound.

    Examples
    --------
    >>> 8 / 10 - 5 / 10 <= 0.3, within_bound(8 / 10 - 5 / 10, 0.3), within_bound(0.3 + 1e-12, 0.3)
    (False, True, False)
    """
    return bool(mcdp <= allowed(max_mcdp))


def verdict_text(verdict: Verdict, bound: str, *, passes: bool | None = None) -> str:
    """Return a verdict in a sentence; where it is undecided, also whether the estimate `passes`.

    Examples
    --------
    >>> verdict_text("above", "the bound"), verdict_text("undecided", "the bound")
    ('above the bound', 'undecided at the bound')
    >>> verdict_text("undecided", "the bound", passes=False)
    'undecided at the bound (the estimate fails)'
    """
    if verdict != "undecided":
        return f"{verdict} {bound}"
    estimate = "" if passes is None else f" (the estimate {'passes' if passes else 'fails'})"
    return f"undecided at {bound}{estimate}"


class _Ends(Protocol):
    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


def verdict_on(interval: _Ends, max_mcdp: float) -> Verdict:
    """Return whether all of an interval of MCDP is within a bound, all of it above, or neither.

    Examples
    --------
    >>> from localparity.results import Interval
    >>> [verdict_on(Interval(0.1, 0.2, 0.3, 0.95), bound) for bound in (0.3, 0.2, 0.05)]
    ['within', 'undecided', 'above']
    """
    if within_bound(interval.high, max_mcdp):
        return "within"
    return "undecided" if within_bound(interval.low, max_mcdp) else "above"
