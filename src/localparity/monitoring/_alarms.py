"""MCDP in a period with its intervals, and the share of the alarm rate that a look at it may spend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from localparity.counts import Comparison, ScoreCounts
from localparity.metrics import GapCurve, Interval
from localparity.monitoring._sketch import ScoreSketch
from localparity.uncertainty._intervals import finite_sample_intervals, measured_pair, worst_intervals
from localparity.uncertainty._permutation import parity_resamples
from localparity.uncertainty._resampling import Draws

_SKETCH_SHARE = 0.1
_FLOOR_RESAMPLES = 50


@dataclass(frozen=True)
class PeriodResult:
    """MCDP in one period.

    Attributes
    ----------
    period : str
        The day or the hour, in UTC.
    rows : int
        The number of rows.
    interval : Interval or None
        MCDP of the population that the rows were drawn from; its ends allow for sampling and for the error of
        the sketch. None where there is nothing to compare.
    expected : float or None
        MCDP expected under parity, between groups of these sizes.
    alarm : bool
        Whether MCDP is significantly above `max_mcdp`, adjusted for all looks.
    missing : str
        Why there is nothing to compare, else empty.

    Examples
    --------
    >>> import datetime, tempfile
    >>> import localparity as lp
    >>> monitor = lp.monitoring.Monitor(tempfile.mkdtemp(), every="hour")
    >>> batch = lp.Predictions.from_arrays(None, [0.2, 0.9], sensitive_features=["f", "m"])
    >>> _ = monitor.append(batch, at=datetime.datetime(2026, 5, 17, 12, tzinfo=datetime.UTC), batch_id="1")
    >>> point = monitor.series(max_mcdp=0.1)[0]
    >>> point.rows, point.interval.estimate, point.interval.low, point.alarm
    (2, 1.0, 0.0, False)
    """

    period: str
    rows: int
    interval: Interval | None
    expected: float | None = None
    alarm: bool = False
    missing: str = ""


def alarm_share(period: int, look: int) -> float:
    """The share of the alarm rate for a look at a period, both numbered from 1; all shares sum to 1.

    Examples
    --------
    >>> alarm_share(1, 1), round(sum(alarm_share(k, j) for k in range(1, 500) for j in range(1, 500)), 2)
    (0.25, 1.0)
    """
    return 1.0 / (period * (period + 1) * look * (look + 1))


def missing_groups(counts: ScoreCounts, comparison: Comparison) -> str:
    """Why there is nothing to compare, else an empty text."""
    small = counts.small_groups(comparison)
    if len(counts.groups) > 1 and not small:
        return ""
    named = ", ".join(map(repr, small or counts.groups))
    return f"group {named} has no rows to compare" if small else f"the period has one group only, {named}"


def sketch_interval(
    sketch: ScoreSketch, curves: Sequence[GapCurve], epsilon: float, confidence: float
) -> Interval:
    """MCDP given a sketch and its curves; a tenth of the error is left to the sketch."""
    error = 1.0 - confidence
    rank_error = sketch.rank_error(1.0 - _SKETCH_SHARE * error)
    if rank_error > 0.0:
        curves = [replace(curve, rank_error=rank_error) for curve in curves]
    epsilons = np.array([epsilon])
    pairs = [measured_pair(curve, epsilons) for curve in curves]
    found = finite_sample_intervals(pairs, epsilons, 1.0 - (1.0 - _SKETCH_SHARE) * error)
    return replace(worst_intervals(found)[0], confidence=confidence)


def expected_under_parity(counts: ScoreCounts, comparison: Comparison, epsilon: float) -> float:
    """MCDP expected between groups of these sizes and scores that do not differ."""
    draws = Draws(_FLOOR_RESAMPLES, random_state=0)
    return float(parity_resamples(counts, comparison, np.array([epsilon]), draws).worst.mean())
