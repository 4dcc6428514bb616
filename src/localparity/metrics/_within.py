"""The one comparison of MCDP with a bound."""

from __future__ import annotations

import sys

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
