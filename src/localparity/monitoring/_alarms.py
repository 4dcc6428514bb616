"""Alarms that are false, at any look and in any window, with no more than one stated probability.

At each look the average gap of the last 1, 2, 4, ... periods is compared with the bound. A short window finds
a large change at once, a long one a small change that lasts. All looks and windows share the alarm rate, by
the union bound: windows may overlap, and nothing is assumed of how the looks depend on each other.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from localparity.metrics._within import within_bound
from localparity.monitoring._periods import SKETCH_SHARE, Pair, Period, average_curves, interval_of
from localparity.monitoring._results import WindowResult
from localparity.uncertainty._bands import pair_radii
from localparity.uncertainty._looks import average_radius, look_share

_SCALES = 9
LONGEST = 2 ** (_SCALES - 1)
"""The number of periods of the longest window."""


def alarm_share(look: int, newer: int, length: int) -> float:
    """The share of the alarm rate that a window of a length may spend at a look; all shares sum to at most 1.

    A look is a batch that was appended. It changes the windows that hold the batch's period: one of each
    length where the period is the newest, and up to ``1 + newer`` where there are newer ones. The look's
    share is divided evenly among the lengths that there can be, and then among the windows of a length.

    Examples
    --------
    >>> round(sum(alarm_share(look, 3, 2**i) * min(2**i, 4) for look in (1, 2) for i in range(look)), 4)
    0.1386
    """
    lengths = min(look.bit_length(), _SCALES)
    return look_share(look) / (lengths * min(length, 1 + newer))


class _Stretch(NamedTuple):
    """What is known of consecutive periods before their gaps are averaged.

    No pair's average gap is above `largest` anywhere.
    """

    look: int
    newer: int
    rows: int
    information: dict[Pair, float]
    largest: float

    @classmethod
    def of(cls, period: Period) -> _Stretch:
        """The stretch of one period."""
        largest = max((float(np.abs(curve.gap).max()) for curve in period.curves), default=0.0)
        return cls(period.look, period.newer, period.sketch.size, period.information, largest)

    def after(self, earlier: _Stretch) -> _Stretch:
        """The stretch of both; the look that came last changed it."""
        look, newer = max(self[:2], earlier[:2])
        information = dict(earlier.information)
        for pair, known in self.information.items():
            information[pair] = information.get(pair, 0.0) + known
        largest = max(self.largest, earlier.largest)
        return _Stretch(look, newer, self.rows + earlier.rows, information, largest)


class AlarmSearch:
    """Looks for alarms at each period, given in their order.

    The null hypothesis of a window is that MCDP(epsilon) of its average gap is at most `max_mcdp`. At epsilon
    0 this is so whenever MCDP is at most `max_mcdp` in each of its periods. A band holds at all thresholds,
    so the alarm rate holds for all epsilons and bounds together.
    """

    def __init__(self, epsilon: float, max_mcdp: float, alarm_rate: float) -> None:
        self._epsilon, self._max_mcdp, self._alarm_rate = epsilon, max_mcdp, alarm_rate
        self._periods: deque[Period] = deque(maxlen=LONGEST)
        self._stretches: deque[list[_Stretch]] = deque(maxlen=LONGEST)

    def add(self, period: Period) -> WindowResult | None:
        """The shortest window that ends with a period and raises an alarm, if there is one."""
        self._periods.append(period)
        stretches, alarm = [_Stretch.of(period)], None
        for scale in range(_SCALES):
            length = 2**scale
            if alarm is None:
                stretches[-1], alarm = self._check(stretches[-1], length)
            if scale == _SCALES - 1 or len(self._stretches) < 2 * length - 1:
                break
            stretches.append(stretches[-1].after(self._stretches[-length][scale]))
        self._stretches.append(stretches)
        return alarm

    def _check(self, stretch: _Stretch, length: int) -> tuple[_Stretch, WindowResult | None]:
        """The stretch with the largest gap that is known of it, and the alarm that it raises."""
        if not stretch.information:
            return stretch, None
        error = self._alarm_rate * alarm_share(stretch.look, stretch.newer, length)
        radii = self._radii(stretch, length, error)
        if within_bound(stretch.largest - min(radii.values()), self._max_mcdp):
            return stretch, None
        window = list(self._periods)[-length:]
        curves = average_curves(window, error)
        ordered = np.array([radii[pair] for pair in curves])
        interval = interval_of(list(curves.values()), self._epsilon, ordered, 1.0 - self._alarm_rate)
        largest = max(float(np.abs(curve.gap).max()) for curve in curves.values())
        alarm = None
        if not within_bound(interval.low, self._max_mcdp):
            about = any(period.approximate for period in window)
            alarm = WindowResult(window[0].name, window[-1].name, length, stretch.rows, interval, about)
        return stretch._replace(largest=largest), alarm

    def _radii(self, stretch: _Stretch, length: int, error: float) -> dict[Pair, float]:
        """The radius of the band around each pair's average gap; the sketches have a share of the error.

        The rows of one period are taken to be alike, for which there is a shorter band.
        """
        each = (1.0 - SKETCH_SHARE) * error / len(stretch.information)
        if length == 1:
            radii = pair_radii(self._periods[-1].curves, each).tolist()
        else:
            radii = [average_radius(1.0 / known, each) for known in stretch.information.values()]
        return dict(zip(stretch.information, radii, strict=True))
