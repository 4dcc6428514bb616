"""How far a pair's true gap may be from the measured one, everywhere at once: the one confidence band.

MCDP(epsilon) of a pair is off by no more than its gap is off at the worst threshold, whatever epsilon. A band
around every gap that holds with some probability therefore gives intervals for all pairs, labels and epsilons
that hold together with that probability, at parity and on plateaus too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, get_args

import numpy as np

from localparity._types import FloatArray, Group, IntervalMethod
from localparity._validation import as_choice, as_count, as_probability
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import ScoreCounts
from localparity.uncertainty._resampling import (
    Draws,
    Resampled,
    critical_value,
    deviation_resamples,
    least_resamples,
)

INTERVAL_METHODS: tuple[str, ...] = get_args(IntervalMethod)


class Compared(Protocol):
    """Two groups among the people of a label: a `GapCurve`, or what was measured of one."""

    @property
    def groups(self) -> tuple[Group, Group]: ...
    @property
    def label(self) -> int | None: ...
    @property
    def sizes(self) -> tuple[float, float]: ...


def dkw_radius(size: float, confidence: float, family: int = 1) -> float:
    r"""How far an empirical distribution may be from the true one, anywhere.

    .. math:: \sqrt{\ln(2 k / (1 - \text{confidence})) / (2 n)}

    the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant, for k distributions that are to
    hold together with probability `confidence`. It needs n independent rows of one weight, nothing else.

    Examples
    --------
    >>> round(dkw_radius(1000, 0.95), 4)
    0.0429
    """
    return math.sqrt(math.log(2.0 * family / (1.0 - confidence)) / (2.0 * size))


def distributions_of(pairs: Sequence[Compared]) -> int:
    """How many distributions some pairs compare: those of each group, and of everyone, under each label."""
    return len({(pair.label, group) for pair in pairs for group in pair.groups})


def dkw_radii(pairs: Sequence[Compared], confidence: float) -> FloatArray:
    """The radius of each pair's band; all hold together, the error shared by all distributions involved."""
    family = distributions_of(pairs)
    return np.array([sum(dkw_radius(size, confidence, family) for size in pair.sizes) for pair in pairs])


def bootstrap_radii(deviated: Resampled, confidence: float) -> FloatArray:
    """The radius of each pair's band, from resamples of the deviations; all hold together."""
    check_resamples(deviated.supremum.size, confidence)
    return np.asarray(critical_value(deviated.supremum, confidence) / deviated.scale)


def check_resamples(n_resamples: int, confidence: float) -> None:
    """Raise a ValueError where there are too few resamples for a band of a confidence."""
    least = least_resamples(confidence)
    if n_resamples < least:
        raise ValueError(f"n_resamples must be >= {least} with confidence={confidence:g}, got {n_resamples}")


def as_interval_method(method: str | None, counts: ScoreCounts) -> str:
    """How intervals are made: "dkw" where rows are independent and weigh 1, else "bootstrap"."""
    if method is None:
        return "dkw" if counts.exchangeable else "bootstrap"
    as_choice(method, "method", INTERVAL_METHODS)
    if method == "dkw" and not counts.exchangeable:
        why = "clusters" if counts.clusters is not None else "weights"
        raise ValueError(f"method='dkw' does not hold with {why}; use method='bootstrap'")
    return method


def band_radii(
    counts: ScoreCounts,
    comparison: Comparison,
    pairs: Sequence[Compared],
    *,
    confidence: float,
    method: str,
    draws: Draws,
) -> FloatArray:
    """The radius of the band of each of the counts' pairs, all of which hold together."""
    confidence = as_probability(confidence)
    if method == "dkw":
        return dkw_radii(pairs, confidence)
    check_resamples(as_count(draws.n_resamples, "n_resamples", at_least=0), confidence)
    found = deviation_resamples(counts, comparison, np.zeros(1), draws)
    return bootstrap_radii(found, confidence)
