"""The first picture of a monitor's page, which needs no script: MCDP over time with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from localparity.metrics._window import percent
from localparity.monitoring import PeriodResult
from localparity.report.page._pictures import HEIGHT, WIDTH

_LEFT, _RIGHT, _TOP, _BOTTOM = 50.0, 14.0, 30.0, 42.0
_MOST_PLACES = 250


@dataclass(frozen=True)
class TimePicture:
    """Paths of the interval and of MCDP, the places of alarms, of the bound and of texts."""

    band: str
    line: str
    alarms: list[tuple[float, float]]
    bound: float | None
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    label: str
    gathered: int


@dataclass(frozen=True)
class _Place:
    """Some consecutive periods at one place: the largest MCDP, and the ends of all their intervals."""

    low: float
    estimate: float
    high: float
    alarm: bool

    @classmethod
    def of(cls, periods: Sequence[PeriodResult]) -> _Place | None:
        found = [point.interval for point in periods if point.interval is not None]
        if not found:
            return None
        ends = min(each.low for each in found), max(each.high for each in found)
        alarm = any(point.alarm is not None for point in periods)
        return cls(ends[0], max(each.estimate for each in found), ends[1], alarm)


def time_picture(series: Sequence[PeriodResult], max_mcdp: float | None) -> TimePicture:
    """The picture of a series; many periods share a place."""
    gathered = math.ceil(len(series) / _MOST_PLACES)
    places = [_Place.of(series[start : start + gathered]) for start in range(0, len(series), gathered)]
    largest = max([max_mcdp or 0.0, *(place.high for place in places if place is not None)])
    top = min(1.0, math.ceil(10.0 * largest) / 10.0) or 0.1
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(places))

    def x(number: int) -> float:
        return round(_LEFT + (number + 0.5) * step, 1)

    def y(share: float) -> float:
        return round(HEIGHT - _BOTTOM - share / top * (HEIGHT - _TOP - _BOTTOM), 1)

    runs = list(_runs(places))
    drawn = {number: place for number, place in enumerate(places) if place is not None}
    lines = ["M" + "L".join(f"{x(i)},{y(drawn[i].estimate)}" for i in run) for run in runs]
    bands = [
        "M"
        + "L".join(
            [f"{x(i)},{y(drawn[i].low)}" for i in run] + [f"{x(i)},{y(drawn[i].high)}" for i in reversed(run)]
        )
        + "Z"
        for run in runs
    ]
    ends = [(x(0), series[0].period), (x(len(places) - 1), series[-1].period)]
    return TimePicture(
        band="".join(bands),
        line="".join(lines),
        alarms=[(x(i), y(place.estimate)) for i, place in drawn.items() if place.alarm],
        bound=None if max_mcdp is None else y(max_mcdp),
        x_ticks=ends if len(places) > 1 else ends[:1],
        y_ticks=[(y(top * part / 4), f"{100 * top * part / 4:g}%") for part in range(5)],
        label=_label(series, max_mcdp),
        gathered=gathered,
    )


def _runs(places: Sequence[_Place | None]) -> list[list[int]]:
    """The numbers of consecutive places that have a value."""
    known = [number for number, place in enumerate(places) if place is not None]
    breaks = [0, *(i for i, (a, b) in enumerate(pairwise(known), start=1) if b != a + 1), len(known)]
    return [known[begin:end] for begin, end in pairwise(breaks) if begin < end]


def _label(series: Sequence[PeriodResult], max_mcdp: float | None) -> str:
    values = [point.interval.estimate for point in series if point.interval is not None]
    if not values:
        return "MCDP over time: no period has something to compare."
    bound = "" if max_mcdp is None else f", beside the bound of {percent(max_mcdp)}"
    return (
        f"MCDP over time, from {series[0].period} to {series[-1].period}: between {percent(min(values))} and "
        f"{percent(max(values))}{bound}."
    )
