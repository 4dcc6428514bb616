"""A monitor's page: what there is to say now, MCDP over time, and every period."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from localparity._io._files import write_new
from localparity._text import interval_text, percent
from localparity._validation import OutputExistsError
from localparity.auditing._tables import ReportTable, Shown
from localparity.auditing._wording import COMPARE_WORDS, CRITERION_WORDS, QuestionAnswer
from localparity.metrics import Interval
from localparity.monitoring import Monitor, PeriodResult, Watch, WindowResult
from localparity.monitoring._watch import APPROXIMATE, about, alarm_sentence, how_many, quiet_sentence
from localparity.report.page._data import pack
from localparity.report.page._page import render_frame, script_json
from localparity.report.page._pictures import HEIGHT, WIDTH

# What a monitor's page says, as plain data: answers, tables, notes, and the columns of its periods.


_MOST_LISTED = 200
_MOST_DETAILS = 1000
"""What keeps a page of 10,000 periods under three megabytes."""
_ENDS = ("low", "estimate", "high")


@dataclass(frozen=True)
class MonitorDocument:
    """What was asked of a monitor and found, from the oldest period to the newest."""

    monitor: Monitor
    title: str
    series: list[PeriodResult]
    whole: WindowResult
    watch: Watch

    def periods(self, number: int) -> str:
        """A number of days or hours in words."""
        return how_many(number, self.monitor.every)

    @property
    def alarmed(self) -> list[PeriodResult]:
        """The periods with an alarm."""
        return [point for point in self.series if point.alarm is not None]

    def answers(self) -> list[QuestionAnswer]:
        """What a reader wants to know first."""
        newest, every = self.series[-1], self.monitor.every
        return [
            self._alarm_now(newest),
            QuestionAnswer(f"How large is it in the newest {every}?", *_value(newest)),
            QuestionAnswer("And since the start?", *self._since_start()),
            self._alarms_so_far(),
        ]

    def _alarm_now(self, newest: PeriodResult) -> QuestionAnswer:
        question, max_mcdp = "Is there an alarm now?", self.watch.max_mcdp
        if max_mcdp is None:
            text = "MCDP is compared with no bound, so that nothing is looked for."
            return QuestionAnswer(question, "No bound", text)
        if newest.alarm is None:
            return QuestionAnswer(question, "No", _sentence(quiet_sentence(newest, max_mcdp)))
        return QuestionAnswer(
            question, "Yes", _sentence(alarm_sentence(newest.alarm, self.monitor.every, max_mcdp))
        )

    def _since_start(self) -> tuple[str, str]:
        whole = self.whole
        among = f"among {whole.rows:,} people from {whole.start} to {whole.end}"
        if whole.interval is None:
            return "Nothing to compare", f"A group has too few people {among}."
        interval = interval_text(whole.interval)
        value = about(whole.interval.estimate, whole)
        return value, f"{among}; interval {interval}, which holds at all looks together."

    def _alarms_so_far(self) -> QuestionAnswer:
        question, alarmed = "When were there alarms?", self.alarmed
        if not alarmed:
            return QuestionAnswer(question, "Never", f"in {self.periods(len(self.series))} on this page.")
        text = f"of {len(self.series):,}, first {alarmed[0].period}, last {alarmed[-1].period}."
        return QuestionAnswer(question, self.periods(len(alarmed)), text)

    def header(self) -> list[tuple[str, str]]:
        """What is watched, and how it is measured."""
        first, newest = self.series[0].period, self.series[-1].period
        rows = [
            ("Periods", f"{first} to {newest}, {self.periods(len(self.series))}"),
            ("Rows since the start", f"{self.whole.rows:,}"),
            ("epsilon", f"{self.watch.epsilon:g}"),
            ("People compared", CRITERION_WORDS[self.watch.criterion]),
            ("Pairs compared", COMPARE_WORDS[self.watch.compare]),
        ]
        if self.watch.max_mcdp is not None:
            rows.append(("bound", percent(self.watch.max_mcdp)))
        return rows

    def tables(self) -> list[ReportTable]:
        """The newest periods, and the newest alarms."""
        newest = self.series[-_MOST_LISTED:][::-1]
        interval = f"{100 * self.watch.confidence:g}% interval"
        columns = ("rows", "MCDP", interval, "expected under parity", "alarm")
        rows = tuple(self._row(point) for point in newest)
        tables = [ReportTable("periods", _newest(len(newest), len(self.series)), ("period",), columns, rows)]
        alarmed = self.alarmed[-_MOST_LISTED:][::-1]
        if alarmed:
            caption = f"Alarms: {_newest(len(alarmed), len(self.alarmed))}"
            rows = tuple(_alarm_row(point) for point in alarmed)
            numbers = ("periods", "rows", "MCDP", "at least")
            tables.append(ReportTable("alarms", caption, ("from", "to"), numbers, rows))
        return tables

    def _row(self, point: PeriodResult) -> tuple[str, ...]:
        alarm = "-" if point.alarm is None else Shown(self.periods(point.alarm.periods), point.alarm.periods)
        rows = Shown(f"{point.rows:,}", point.rows)
        if point.interval is None or point.expected is None:
            return (point.period, rows, "-", "-", "-", alarm)
        interval = Shown(interval_text(point.interval), point.interval.low, point.interval.high)
        value = Shown(about(point.interval.estimate, point), point.interval.estimate)
        return (point.period, rows, value, interval, Shown(percent(point.expected), point.expected), alarm)

    def notes(self) -> dict[str, str]:
        """How everything is measured, and what is not said."""
        notes = {
            "Intervals": f"of a period, {100 * self.watch.confidence:g}%, for the population that its people "
            "were drawn from; they allow for the error of the sketch, and hold for each period by itself",
            "Since the start": "everyone counted so far, those of periods that were removed too; the "
            "intervals of all looks hold together",
            "Expected under parity": "the average MCDP between groups of these sizes that do not differ",
        }
        if self.whole.approximate:
            notes["Approximate"] = APPROXIMATE
        if self.watch.max_mcdp is not None:
            notes["Alarms"] = (
                f"MCDP significantly above the bound in a {self.monitor.every}, or over the last 2, 4, 8, "
                f"..., 256; with a probability of at most {self.watch.alarm_rate:g} there is ever a false "
                "one, however long the monitor runs"
            )
        if self.watch.min_group_size > 1:
            few = f"fewer than {self.watch.min_group_size} people"
            notes["Privacy"] = f"nothing is said of a period in which a group has {few}"
        notes["Assumed"] = (
            "rows are independent, one for each person, and a group's rows of one period are alike"
        )
        return notes

    def data(self) -> dict[str, Any]:
        """What the choice of a period needs, in columns."""
        series = self.series
        alarms = [point.alarm for point in series]
        intervals = [point.interval for point in series]
        of_alarms = [None if alarm is None else alarm.interval for alarm in alarms]
        return {
            "every": self.monitor.every,
            "confidence": self.watch.confidence,
            "max_mcdp": self.watch.max_mcdp,
            "axis": {"left": _LEFT, "right": WIDTH - _RIGHT, "gathered": _gathered(series)},
            "periods": [point.period for point in series],
            "rows": [point.rows for point in series],
            "approximate": [int(point.approximate) for point in series],
            "alarm_approximate": [int(alarm is not None and alarm.approximate) for alarm in alarms],
            "missing": {index: point.missing for index, point in enumerate(series) if point.interval is None},
            "expected": _column([point.expected for point in series]),
            **{end: _column([_end(interval, end) for interval in intervals]) for end in _ENDS},
            "alarm_periods": [0 if alarm is None else alarm.periods for alarm in alarms],
            "alarm_mcdp": _column([_end(interval, "estimate") for interval in of_alarms]),
            "alarm_low": _column([_end(interval, "low") for interval in of_alarms]),
            "details": self._details(),
        }

    def _details(self) -> dict[int, Any]:
        """The groups and the worst window of the newest periods, and of the newest with an alarm."""
        indexes = range(len(self.series))
        alarmed = [index for index in indexes if self.series[index].alarm is not None]
        chosen = sorted({*indexes[-_MOST_DETAILS // 2 :], *alarmed[-_MOST_DETAILS // 2 :]})
        points = {index: self.series[index] for index in chosen}
        return {
            index: {"groups": point.groups, "window": point.window}
            for index, point in points.items()
            if point.window
        }


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _value(point: PeriodResult) -> tuple[str, str]:
    """MCDP of a period, and where it is."""
    if point.interval is None:
        return "Nothing to compare", f"{_sentence(point.missing)}"
    interval = f"in {point.period}, among {point.rows:,} people; interval {interval_text(point.interval)}."
    return about(point.interval.estimate, point), f"{interval} {point.window}"


def _alarm_row(point: PeriodResult) -> tuple[str, ...]:
    alarm = point.alarm
    assert alarm is not None
    assert alarm.interval is not None
    counts = [Shown(f"{number:,}", number) for number in (alarm.periods, alarm.rows)]
    value = Shown(about(alarm.interval.estimate, alarm), alarm.interval.estimate)
    return (alarm.start, alarm.end, *counts, value, Shown(percent(alarm.interval.low), alarm.interval.low))


def _newest(listed: int, number: int) -> str:
    return "all periods" if listed == number else f"the newest {listed:,} of {number:,} periods"


def _end(interval: Interval | None, end: str) -> float | None:
    return None if interval is None else float(getattr(interval, end))


def _column(values: Sequence[float | None]) -> str:
    """Fractions as the page unpacks them; those that are missing are 0."""
    return pack(np.array([0.0 if value is None else value for value in values]))


# The picture of a monitor's page, which needs no script: MCDP over time with its interval.


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


def _gathered(series: Sequence[PeriodResult]) -> int:
    """How many consecutive periods share a place."""
    return math.ceil(len(series) / _MOST_PLACES)


def _joined_interval(periods: Sequence[PeriodResult]) -> Interval | None:
    """The largest MCDP of some periods, and the ends of all their intervals."""
    intervals = [point.interval for point in periods if point.interval is not None]
    if not intervals:
        return None
    low, high = min(each.low for each in intervals), max(each.high for each in intervals)
    return Interval(low, max(each.estimate for each in intervals), high)


def time_picture(series: Sequence[PeriodResult], max_mcdp: float | None) -> TimePicture:
    """The picture of a series."""
    gathered = _gathered(series)
    places = [series[start : start + gathered] for start in range(0, len(series), gathered)]
    intervals = list(map(_joined_interval, places))
    largest = max([max_mcdp or 0.0, *(interval.high for interval in intervals if interval is not None)])
    top = min(1.0, math.ceil(10.0 * largest) / 10.0) or 0.1
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(places))

    def x(number: int) -> float:
        return round(_LEFT + (number + 0.5) * step, 1)

    def y(share: float) -> float:
        return round(HEIGHT - _BOTTOM - share / top * (HEIGHT - _TOP - _BOTTOM), 1)

    drawn = {number: interval for number, interval in enumerate(intervals) if interval is not None}
    lines, bands = [], []
    for run in _runs(list(drawn)):
        lines.append("M" + "L".join(f"{x(i)},{y(drawn[i].estimate)}" for i in run))
        lines += ["h3"] if len(run) == 1 else []
        there = [f"{x(i)},{y(drawn[i].low)}" for i in run]
        back = [f"{x(i)},{y(drawn[i].high)}" for i in reversed(run)]
        bands.append("M" + "L".join(there + back) + "Z")
    alarmed = [i for i, place in enumerate(places) if any(point.alarm is not None for point in place)]
    ends = [(x(0), series[0].period), (x(len(places) - 1), series[-1].period)]
    return TimePicture(
        band="".join(bands),
        line="".join(lines),
        alarms=[(x(i), y(drawn[i].estimate if i in drawn else 0.0)) for i in alarmed],
        bound=None if max_mcdp is None else y(max_mcdp),
        x_ticks=ends if len(places) > 1 else ends[:1],
        y_ticks=[(y(top * part / 4), f"{100 * top * part / 4:g}%") for part in range(5)],
        label=_label(series, max_mcdp),
        gathered=gathered,
    )


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """The runs of consecutive numbers."""
    breaks = [0, *(i for i, (a, b) in enumerate(pairwise(numbers), start=1) if b != a + 1), len(numbers)]
    return [list(numbers[begin:end]) for begin, end in pairwise(breaks) if begin < end]


def _label(series: Sequence[PeriodResult], max_mcdp: float | None) -> str:
    values = [point.interval.estimate for point in series if point.interval is not None]
    if not values:
        return "MCDP over time: no period has something to compare."
    bound = "" if max_mcdp is None else f", beside the bound of {percent(max_mcdp)}"
    return (
        f"MCDP over time, from {series[0].period} to {series[-1].period}: between {percent(min(values))} and "
        f"{percent(max(values))}{bound}."
    )


def write_monitor_page(
    path: str | PathLike[str],
    monitor: Monitor,
    watch: Watch | None = None,
    *,
    title: str | None = None,
    force: bool = False,
) -> None:
    """Write what a monitor found over time as one page that opens anywhere, offline.

    The page says first whether there is an alarm, how large MCDP is now and since the start, beside a
    picture of MCDP over time. Then each period can be chosen, and there are tables. It asks nothing of any
    network. Needs the extra `report`.

    Parameters
    ----------
    path : path
        Where to write it. The file is written whole or not at all.
    monitor : Monitor
        The monitor.
    watch : Watch, optional
        What is asked; by default what the monitor keeps, else ``Watch()``.
    title : str, optional
        The page's heading.
    force : bool
        Overwrite the file if it exists.

    Examples
    --------
    >>> import datetime, pathlib, tempfile
    >>> import localparity as lp
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> monitor = lp.monitoring.Monitor(folder / "kept")
    >>> for day in (1, 2):
    ...     census = lp.datasets.make_census(500, random_state=day)
    ...     sex = census.sensitive_features
    ...     batch = lp.Predictions.from_arrays(None, census.score, sensitive_features=sex)
    ...     _ = monitor.append(batch, at=datetime.datetime(2026, 5, day), batch_id=str(day))
    >>> lp.report.write_monitor_page(folder / "page.html", monitor, lp.monitoring.Watch(max_mcdp=0.1))
    >>> (folder / "page.html").stat().st_size < 3_000_000
    True
    """
    path = Path(path)
    if path.exists() and not force:
        raise OutputExistsError(path)
    watch = watch or monitor.watched or Watch()
    series = monitor.series(watch)
    if not series:
        raise ValueError(f"{monitor.location} has no periods")
    title = title or f"Local disparity over time: {monitor.name}"
    document = MonitorDocument(monitor, title, series, monitor.since_start(watch), watch)
    write_new(path, render_monitor_page(document).encode(), force=force)


def render_monitor_page(document: MonitorDocument) -> str:
    """The page as text."""
    watch, newest = document.watch, document.series[-1]
    numbers = {"newest": asdict(newest), "since_start": asdict(document.whole), "asked": asdict(watch)}
    return render_frame(
        "monitor",
        document.data(),
        has_charts=False,
        title=document.title,
        header_rows=document.header(),
        answers=document.answers(),
        every=document.monitor.every,
        watch=watch,
        picture=time_picture(document.series, watch.max_mcdp),
        tables=document.tables(),
        notes=document.notes(),
        numbers=script_json(numbers),
    )
