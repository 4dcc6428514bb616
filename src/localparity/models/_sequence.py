r"""Fixed-sequence testing: several settings tested on the same people, at one error rate for all of them.

The settings and their order are fixed before the test rows are looked at, the one that is most likely within
the bound first. A setting is accepted if an upper bound of its true MCDP, which holds with probability
:math:`1 - \alpha`, is within `max_mcdp`. The first that is not accepted ends the sequence.

Every test has the whole :math:`\alpha`; nothing is lost to the number of settings. Take the first in the
order whose true MCDP is above `max_mcdp`. No setting above it can be accepted unless that one is. Then its
upper bound is below its true MCDP, which happens with probability :math:`\alpha` at most. So with probability
:math:`1 - \alpha` all accepted settings are within `max_mcdp` together, and any of them may be taken,
whatever the test rows say of their accuracy.

`max_mcdp` is all that is promised of the setting taken. Its own upper bound was chosen together with it, out
of several, and one of several bounds fails more often than one: it is not reported. Where the first setting
is refused, its upper bound may be. If its true MCDP is above `max_mcdp`, that bound and any acceptance fail
only where its upper bound does. If not, a bound above `max_mcdp` holds, and an acceptance fails with
probability :math:`\alpha` at most, as before.

It is assumed that the test rows are an independent sample of the population, and that nothing before the test
looked at them: not the fits, nor early stopping, nor the choice of the settings and of their order.

References: Angelopoulos, Bates, Candès, Jordan and Lei (2021), "Learn then Test: Calibrating Predictive
Algorithms to Achieve Risk Control", arXiv:2110.01052, on fixed sequence testing and on learning the order
from other rows. Bauer (1991), "Multiple testing in clinical trials", Statistics in Medicine 10, on tests in
an order fixed beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from localparity._types import Criterion, FloatArray
from localparity.metrics import Interval
from localparity.predictions import Predictions
from localparity.uncertainty import mcdp_interval

AnySetting = TypeVar("AnySetting")


def accept_in_order(
    settings: Iterable[AnySetting], is_within: Callable[[AnySetting], bool]
) -> tuple[list[AnySetting], list[AnySetting]]:
    """Return the settings before the first that is not within the bound, and that one, if there is one.

    Settings after it are not asked for, so that an iterator need not make them.

    Examples
    --------
    >>> uppers = {"strength 2": 0.11, "strength 1": 0.18, "strength 0.5": 0.24, "strength 0": 0.19}
    >>> accept_in_order(uppers, lambda setting: uppers[setting] <= 0.2)
    (['strength 2', 'strength 1'], ['strength 0.5'])
    """
    accepted: list[AnySetting] = []
    for setting in settings:
        if not is_within(setting):
            return accepted, [setting]
        accepted.append(setting)
    return accepted, []


def upper_bound(people: Predictions, epsilon: float, criterion: Criterion, confidence: float) -> Interval:
    """Return MCDP(epsilon) of the people of a test, and what it is at most in their population."""
    return mcdp_interval(
        people, epsilon=epsilon, criterion=criterion, confidence=confidence, side="upper", random_state=0
    )


def promise_for_population(what: str, confidence: float, weights: FloatArray) -> str:
    """Return the promise that an accepted setting keeps, from the weights of the people of the test.

    Examples
    --------
    >>> import numpy as np
    >>> promise_for_population("MCDP(0) is at most 0.2", 0.9, np.ones(600))[:45]
    'With probability 0.9, MCDP(0) is at most 0.2 '
    """
    about = "of about " if (weights != 1.0).any() else ""
    return (
        f"With probability {about}{confidence:g}, {what} in the population that the {weights.size:,} people "
        "held out were drawn from, if they are an independent sample of it and were not used to fit the "
        "model."
    )
