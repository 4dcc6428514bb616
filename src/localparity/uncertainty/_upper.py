r"""An upper end for MCDP alone, which is shorter than that of an interval.

Some pair of groups, of people of some label, has the largest MCDP(epsilon) in the population, and some window
carries it. Neither depends on the sample, so only their own error counts: no other threshold, pair or label
needs to hold with them.

With epsilon = 0 the window is one threshold. There the measured gap is a difference of two means of
indicators, and by Hoeffding's inequality it is below the true one by more than

.. math:: \sqrt{\tfrac12 \ln(1/\alpha) \, (1/n_a + 1/n_b)}

with probability at most :math:`\alpha`, at any size and with ties. The measured MCDP of the pair is at least
the measured gap at that threshold, so the largest over pairs of the measured MCDP plus this margin is at
least the true MCDP with probability :math:`1 - \alpha`.

With epsilon > 0 the smallest gap of a whole window has to hold, whose sign may change inside. Each of the two
distributions is within its Dvoretzky-Kiefer-Wolfowitz margin with probability :math:`1 - \alpha/2`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from localparity.metrics._gap_curve import GapCurve


def upper_margin(sizes: tuple[float, float], epsilon: float, confidence: float) -> float:
    """Return how far MCDP(epsilon) of a pair may be above the measured one.

    Examples
    --------
    >>> round(upper_margin((1000, 1000), 0.0, 0.95), 4), round(upper_margin((1000, 1000), 0.1, 0.95), 4)
    (0.0547, 0.0936)
    """
    first, second = sizes
    if epsilon == 0.0:
        return math.sqrt(0.5 * math.log(1.0 / (1.0 - confidence)) * (1.0 / first + 1.0 / second))
    half = 0.5 * math.log(4.0 / (1.0 - confidence))
    return math.sqrt(half / first) + math.sqrt(half / second)


def upper_end(curves: Sequence[GapCurve], epsilon: float, confidence: float) -> float:
    """Return what MCDP(epsilon) in the population is at most, with probability `confidence`."""
    highest = max(curve.mcdp(epsilon) + upper_margin(curve.sizes, epsilon, confidence) for curve in curves)
    return min(highest, 1.0)
