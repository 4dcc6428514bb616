"""The standardised mean difference: how far mean scores are apart, in standard deviations."""

from __future__ import annotations

import math

import numpy as np

from localparity._types import Group, HigherIs
from localparity.counts._atoms import Atoms
from localparity.counts._score_counts import Stratum


def standardised_differences(
    stratum: Stratum, reference: Group | None, higher_is: HigherIs
) -> dict[Group, float]:
    """Each group's mean score less the reference's, over their pooled standard deviation.

    It is negative where the group is worse off. Without a reference, that is the group with the best mean.
    Not a number where two groups have one row each, and infinite where the scores of either do not vary.
    """
    means = {
        group: float(np.average(atoms.scores, weights=atoms.weights)) for group, atoms in stratum.items()
    }
    sign = 1.0 if higher_is == "better" else -1.0
    if reference is None:
        reference = max(means, key=lambda group: sign * means[group])
    return {
        group: _quotient(
            sign * (means[group] - means[reference]), _pooled_deviation(atoms, stratum[reference])
        )
        for group, atoms in stratum.items()
    }


def _quotient(difference: float, deviation: float) -> float:
    if difference == 0.0:
        return 0.0
    return difference / deviation if deviation else math.copysign(math.inf, difference)


def _pooled_deviation(first: Atoms, second: Atoms) -> float:
    """The pooled standard deviation; of weighted rows, with as many rows as would be as precise."""
    squares, degrees = 0.0, 0.0
    for atoms in (first, second):
        mean = np.average(atoms.scores, weights=atoms.weights)
        variance = float(np.average((atoms.scores - mean) ** 2, weights=atoms.weights))
        squares += atoms.effective_size * variance
        degrees += atoms.effective_size - 1.0
    return math.sqrt(squares / degrees) if degrees > 0.0 else math.nan
