"""Alarms that are false, at any look and in any window, with no more than one stated probability.

At each look the average gap of the last 1, 2, 4, ... periods is compared with the bound. A short window finds
a large change at once, a long one a small change that lasts. All looks and windows share the alarm rate, by
the union bound. Windows whose average gap cannot be above the bound, by the outlines of their periods, are
not read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from localparity._types import FloatArray
from localparity.metrics import GapCurve
from localparity.metrics._within import within_bound
from localparity.monitoring._periods import SKETCH_SHARE, Pair, Period, average_curves, interval_of
from localparity.monitoring._sketch import plain_group
from localparity.monitoring._watch import Watch, WindowResult
from localparity.uncertainty._bands import pair_radii
from localparity.uncertainty._looks import average_radius, look_share

_SCALES = 9
LONGEST = 2 ** (_SCALES - 1)
"""The number of periods of the longest window."""
_CELLS = 64
_UNITS = 10_000
_SLACK = 1e-9


def alarm_share(look: int, newer: int, length: int) -> float:
    """The share of the alarm rate that a window of a length may spend at a look; all shares sum to at most 1.

    A batch changes the windows that hold its period: of each length one, or up to ``1 + newer`` where there
    are newer periods. The look's share is divided among the lengths, and then among the windows of a length.
    """
    lengths = min(look.bit_length(), _SCALES)
    return look_share(look) / (lengths * min(length, 1 + newer))


class PairOutline(NamedTuple):
    """How much is known of a pair, and the ends between which its gap is in each of 64 cells of scores."""

    information: float
    ends: FloatArray

    @classmethod
    def of(cls, curve: GapCurve, information: float) -> PairOutline:
        """The outline of a curve, rounded outward to whole units."""
        edges = np.linspace(*curve.score_range, _CELLS + 1)[1:-1]
        # The gap is 0 below the first knot, and constant from each knot to the next.
        gap = np.concatenate([[0.0], curve.gap])
        begins = np.append(0, np.searchsorted(curve.knots, edges, side="right"))
        # The step at an edge is also that of the cell below, which a window may touch.
        ends = gap[np.append(begins[1:], gap.size - 1)]
        low = np.floor(_UNITS * np.minimum(np.minimum.reduceat(gap, begins), ends))
        high = np.ceil(_UNITS * np.maximum(np.maximum.reduceat(gap, begins), ends))
        return cls(information, np.array([low, high]) / _UNITS)

    def highest(self, epsilon: float) -> float:
        """What MCDP of the gap is at most; every window reaches into so many cells."""
        reached = max(1, int(min(epsilon, 1.0) * _CELLS) - 1)
        return float(sliding_window_view(np.abs(self.ends).max(axis=0), reached).min(axis=1).max())


class Outline(NamedTuple):
    """What is known of consecutive periods without reading them; the look that came last changed them."""

    look: int
    newer: int
    rows: int
    pairs: dict[Pair, PairOutline]

    @classmethod
    def of(cls, period: Period) -> Outline:
        """The outline of one period."""
        known = zip(period.information.items(), period.curves, strict=True)
        pairs = {pair: PairOutline.of(curve, information) for (pair, information), curve in known}
        return cls(period.look, period.newer, period.rows or 0, pairs)

    def after(self, earlier: Outline) -> Outline:
        """The outline of both, in which gaps are averaged."""
        look, newer = max(self[:2], earlier[:2])
        pairs = {**earlier.pairs, **self.pairs}
        for pair in self.pairs.keys() & earlier.pairs.keys():
            (before, ends_before), (here, ends) = earlier.pairs[pair], self.pairs[pair]
            average = (before * ends_before + here * ends) / (before + here)
            pairs[pair] = PairOutline(before + here, average)
        return Outline(look, newer, self.rows + earlier.rows, pairs)

    def describe(self) -> tuple[dict[str, Any], list[bytes]]:
        """The outline of a period as a header in JSON and parts."""
        pairs = [
            [[plain_group(group) for group in groups], label, pair.information]
            for (groups, label), pair in self.pairs.items()
        ]
        parts = [np.rint(_UNITS * pair.ends).astype("<i2").tobytes() for pair in self.pairs.values()]
        return {"look": self.look, "newer": self.newer, "rows": self.rows, "pairs": pairs}, parts

    @classmethod
    def restore(cls, header: dict[str, Any], parts: Sequence[bytes]) -> Outline:
        """The outline that `describe` described."""
        pairs: dict[Pair, PairOutline] = {}
        for (groups, label, information), part in zip(header["pairs"], parts, strict=True):
            first, second = (tuple(group) if isinstance(group, list) else group for group in groups)
            ends = np.frombuffer(part, "<i2").reshape(2, _CELLS) / _UNITS
            pairs[(first, second), label] = PairOutline(float(information), ends)
        return cls(int(header["look"]), int(header["newer"]), int(header["rows"]), pairs)


class AlarmSearch:
    """Looks for alarms at each period, given in their order.

    The null hypothesis of a window is that MCDP(epsilon) of its average gap is at most `max_mcdp`. At epsilon
    0 this is so whenever MCDP is at most `max_mcdp` in each of its periods. A band holds at all thresholds,
    so the alarm rate holds for all epsilons and bounds together. `read` returns the periods of some names.
    """

    def __init__(self, watch: Watch, read: Callable[[Sequence[str]], Iterator[Period]]) -> None:
        self._watch, self._read = watch, read
        self._names: deque[str] = deque(maxlen=LONGEST)
        self._outlines: deque[list[Outline]] = deque(maxlen=LONGEST)
        self._periods: dict[str, Period] = {}

    def add(self, name: str, outline: Outline, period: Period | None = None) -> None:
        """Go on to a period, which may be given where it was read already."""
        if len(self._names) == LONGEST:
            self._periods.pop(self._names[0], None)
        self._names.append(name)
        if period is not None:
            self._periods[name] = period
        outlines = [outline]
        for scale in range(_SCALES - 1):
            if len(self._outlines) < 2 ** (scale + 1) - 1:
                break
            outlines.append(outlines[-1].after(self._outlines[-(2**scale)][scale]))
        self._outlines.append(outlines)

    def alarm(self) -> WindowResult | None:
        """The shortest window that ends with the period added last and raises an alarm, if there is one."""
        alarms = (self._check(2**scale, outline) for scale, outline in enumerate(self._outlines[-1]))
        return next((alarm for alarm in alarms if alarm is not None), None)

    def _check(self, length: int, outline: Outline) -> WindowResult | None:
        """The alarm that a window raises."""
        if not outline.pairs:
            return None
        watch = self._watch
        assert watch.max_mcdp is not None
        error = watch.alarm_rate * alarm_share(outline.look, outline.newer, length)
        radii = self._radii(length, outline, (1.0 - SKETCH_SHARE) * error / len(outline.pairs))
        highest = max(outline.pairs[pair].highest(watch.epsilon) - radii[pair] for pair in radii)
        if within_bound(highest + _SLACK, watch.max_mcdp):
            return None
        window = self._window(length)
        curves = average_curves(window, error)
        ordered = np.array([radii[pair] for pair in curves])
        interval = interval_of(list(curves.values()), watch.epsilon, ordered, 1.0 - watch.alarm_rate)
        if within_bound(interval.low, watch.max_mcdp):
            return None
        approximate = any(period.approximate for period in window)
        return WindowResult(window[0].name, window[-1].name, length, outline.rows, interval, approximate)

    def _radii(self, length: int, outline: Outline, share: float) -> dict[Pair, float]:
        """The radius of the band around each pair's average gap, for its share of the error.

        The rows of one period are taken to be alike, for which there is a shorter band.
        """
        if length == 1:
            (period,) = self._window(1)
            return dict(zip(outline.pairs, pair_radii(period.curves, share).tolist(), strict=True))
        return {pair: average_radius(1.0 / known, share) for pair, (known, _) in outline.pairs.items()}

    def _window(self, length: int) -> list[Period]:
        """The last periods; those that were not read yet are read."""
        names = list(self._names)[-length:]
        unread = [name for name in names if name not in self._periods]
        if unread:
            self._periods.update(zip(unread, self._read(unread), strict=True))
        return [self._periods[name] for name in names]
