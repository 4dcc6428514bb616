"""A monitor's page: what there is to say now, MCDP over time in one chart, and every period."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from localparity._io._files import write_new
from localparity._text import interval_text, percent, whole_percent
from localparity._types import FloatArray
from localparity._validation import OutputExistsError
from localparity.auditing._tables import ReportTable, Shown
from localparity.auditing._wording import COMPARE_WORDS, CRITERION_WORDS
from localparity.metrics import Interval
from localparity.metrics._within import within_bound
from localparity.monitoring import Monitor, PeriodResult, Watch, WindowResult
from localparity.monitoring._watch import APPROXIMATE, about, how_many, rows_text, without_alarm
from localparity.report.displays._base import thin_steps
from localparity.report.page._data import pack
from localparity.report.page._notebook import card, figure
from localparity.report.page._page import render_frame, script_json
from localparity.report.page._svg import Drawing, percent_marks, round_top

_MOST_LISTED = 200
_MOST_DETAILS = 1000
"""What keeps a page of 10,000 periods under three megabytes."""
_MOST_POINTS = 1000
_MANY_DAYS = 60
_MOST_MARKS = 7


@dataclass(frozen=True)
class MonitorDocument:
    """What was asked of a monitor and found, from the oldest period to the newest."""

    monitor: Monitor
    title: str
    series: list[PeriodResult]
    whole: WindowResult
    watch: Watch

    @property
    def alarmed(self) -> list[PeriodResult]:
        """The periods with an alarm."""
        return [point for point in self.series if point.alarm is not None]

    @property
    def headline(self) -> str:
        """What there is to say now."""
        newest, bound = self.series[-1], self.watch.max_mcdp
        alarm = newest.alarm
        if bound is not None and alarm is not None:
            last = f"the last {how_many(alarm.periods, self.monitor.every)}"
            over, above = last if alarm.periods > 1 else alarm.end, f"above the bound of {100 * bound:g}%"
            if alarm.interval is None or within_bound(alarm.interval.estimate, bound):
                return f"Alarm: MCDP over {over} has been {above}"
            least = math.floor(100 * alarm.interval.low)
            value = whole_percent(alarm.interval.estimate)
            value += "" if within_bound(alarm.interval.low, bound) else f", at least {least}%"
            return f"Alarm: MCDP over {over} is {value}, {above}"
        if newest.interval is None:
            return f"Nothing to compare in {newest.period}: {newest.missing}"
        value = f"MCDP in {newest.period} is {whole_percent(newest.interval.estimate)}"
        if bound is None:
            return value
        limit = f"the bound of {100 * bound:g}%"
        return f"No alarm: {value}, {without_alarm(newest.interval, limit, bound)}"

    @property
    def sentences(self) -> list[str]:
        """The newest period and the whole period, each with its interval."""
        newest = self.series[-1]
        named: dict[str, PeriodResult | WindowResult] = {newest.period: newest, "Whole period": self.whole}
        return [
            f"{name}: {about(result.interval.estimate, result)} ({interval_text(result.interval)}) among "
            f"{rows_text(result.rows)} people."
            for name, result in named.items()
            if result.interval is not None
        ]

    @property
    def about(self) -> list[str]:
        """What is watched, in a few words each."""
        watch, series = self.watch, self.series
        return [
            self.title,
            f"{series[0].period} to {series[-1].period}",
            *([] if self.whole.rows is None else [f"{self.whole.rows:,} people"]),
            CRITERION_WORDS[watch.criterion],
            COMPARE_WORDS[watch.compare],
            *([] if watch.max_mcdp is None else [f"bound {100 * watch.max_mcdp:g}%"]),
        ]

    @property
    def chips(self) -> list[str]:
        """The alarms so far."""
        if self.watch.max_mcdp is None:
            return ["no bound, so no alarms"]
        number = how_many(len(self.series), self.monitor.every)
        if not self.alarmed:
            return [f"no alarm in {number}"]
        first, last = self.alarmed[0].period, self.alarmed[-1].period
        return [f"alarms in {len(self.alarmed):,} of {number}", f"first {first}", f"last {last}"]

    @cached_property
    def columns(self) -> dict[str, FloatArray]:
        """The numbers of the periods, NaN where there are none."""
        nothing = Interval(np.nan, np.nan, np.nan)
        intervals = [point.interval or nothing for point in self.series]
        alarms = [(point.alarm and point.alarm.interval) or nothing for point in self.series]
        return {
            "low": np.array([one.low for one in intervals]),
            "estimate": np.array([one.estimate for one in intervals]),
            "high": np.array([one.high for one in intervals]),
            "expected": np.array([point.expected for point in self.series], dtype=float),
            "alarm_estimate": np.array([one.estimate for one in alarms]),
        }

    def tables(self) -> list[ReportTable]:
        """The newest alarms, and the newest periods."""
        tables = []
        alarmed = self.alarmed[-_MOST_LISTED:][::-1]
        if alarmed:
            rows = tuple(_alarm_row(point) for point in alarmed)
            numbers = ("periods", "rows", "MCDP", "at least")
            caption = _newest(len(alarmed), len(self.alarmed), "alarms")
            tables.append(ReportTable("alarms", caption, ("from", "to"), numbers, rows))
        newest = self.series[-_MOST_LISTED:][::-1]
        interval = f"{100 * self.watch.confidence:g}% interval"
        columns = ("rows", "MCDP", interval, "expected under parity", "alarm")
        rows = tuple(self._row(point) for point in newest)
        caption = _newest(len(newest), len(self.series), "periods")
        return [*tables, ReportTable("periods", caption, ("period",), columns, rows)]

    def _row(self, point: PeriodResult) -> tuple[str, ...]:
        alarm = "-"
        if point.alarm is not None:
            alarm = Shown(how_many(point.alarm.periods, self.monitor.every), point.alarm.periods)
        rows = "-" if point.rows is None else Shown(f"{point.rows:,}", point.rows)
        if point.interval is None or point.expected is None:
            return (point.period, rows, "-", "-", "-", alarm)
        interval = Shown(interval_text(point.interval), point.interval.low, point.interval.high)
        value = Shown(about(point.interval.estimate, point), point.interval.estimate)
        return (point.period, rows, value, interval, Shown(percent(point.expected), point.expected), alarm)

    def notes(self) -> dict[str, str]:
        """How everything is measured, and what is not said."""
        watch, every = self.watch, self.monitor.every
        notes = {
            "epsilon": f"{watch.epsilon:g}",
            "Intervals": f"of a {every}, {100 * watch.confidence:g}%, each by itself, with the error of the "
            "sketch; those of the whole period and of alarms hold at all looks together",
            "Whole period": f"everyone counted so far, also in {every}s that were removed",
            "Expected under parity": "the average MCDP between groups of these sizes that do not differ",
            "Assumed": f"one row per person, independent; a group's rows of one {every} are alike",
        }
        if self.whole.approximate:
            notes["Approximate"] = APPROXIMATE
        if watch.max_mcdp is not None:
            notes["Alarms"] = (
                f"MCDP above the bound, by one {every} alone or by the evidence of all so far; if MCDP is "
                f"within it in every {every}, the chance of ever raising one is at most {watch.alarm_rate:g}"
            )
        if watch.min_group_size > 1:
            few = f"fewer than {watch.min_group_size} people"
            notes["Privacy"] = f"nothing is said of a {every} in which a group has {few}"
        return notes

    def data(self) -> dict[str, Any]:
        """What the choice of a period needs, in columns."""
        series, columns = self.series, self.columns
        indexes = range(len(series))
        alarmed = [index for index in indexes if series[index].alarm is not None]
        chosen = sorted({*indexes[-_MOST_DETAILS // 2 :], *alarmed[-_MOST_DETAILS // 2 :]})
        return {
            "every": self.monitor.every,
            "periods": [point.period for point in series],
            "rows": [point.rows for point in series],
            "approximate": [int(point.approximate) for point in series],
            "missing": {index: point.missing for index, point in enumerate(series) if point.interval is None},
            "alarm_periods": [0 if point.alarm is None else point.alarm.periods for point in series],
            **{name: pack(np.nan_to_num(column)) for name, column in columns.items()},
            "windows": {index: series[index].window for index in chosen if series[index].window},
        }

    def drawing(self) -> Drawing:
        """MCDP of each period, thin; of the windows that raised an alarm, bold; and the bound."""
        columns, bound = self.columns, self.watch.max_mcdp
        last = len(self.series) - 1
        highest = np.nanmax(
            [bound or 0.0, *columns["estimate"], *columns["alarm_estimate"], *columns["expected"]]
        )
        top = round_top(float(highest))
        drawing = Drawing((-0.5, last + 0.5), top)
        drawing.axes(period_marks([point.period for point in self.series]), percent_marks(top))
        estimate = columns["estimate"]
        at = thin_steps(np.arange(last + 1.0), np.nan_to_num(estimate), _MOST_POINTS)
        expected = columns["expected"][at]
        drawing.band("parity", at.astype(float), 0.0 * expected, expected, steps=False)
        drawing.curve("thin", at.astype(float), estimate[at])
        drawing.curve("bold", at.astype(float), columns["alarm_estimate"][at])
        if bound is not None:
            drawing.line("limit", (-0.5, bound), (last + 0.5, bound))
            drawing.text("direct", -0.5, bound, f"bound {100 * bound:g}%", dx=4, dy=-0.4)
        newest = self.alarmed[-1] if self.alarmed else None
        if newest is not None and newest.alarm is not None and newest.alarm.interval is not None:
            place, value = self.series.index(newest), newest.alarm.interval.estimate
            over = how_many(newest.alarm.periods, self.monitor.every)
            left, highest = place > last / 2, np.nanmax([columns["estimate"], columns["alarm_estimate"]])
            text = f"alarm over {over}: {whole_percent(value)}"
            drawing.text(f"name alarm{' end' * left}", place, highest, text, dx=-6 if left else 6, dy=-0.5)
        drawing.line("bracket", (last, 0.0), (last, 0.0))
        return drawing

    @property
    def label(self) -> str:
        """The chart in words."""
        values = [point.interval.estimate for point in self.series if point.interval is not None]
        if not values:
            return "MCDP over time: no period has something to compare."
        ends = f"{self.series[0].period} to {self.series[-1].period}"
        return f"MCDP over time, {ends}: from {percent(min(values))} to {percent(max(values))}."


def _alarm_row(point: PeriodResult) -> tuple[str, ...]:
    alarm = point.alarm
    assert alarm is not None
    counts = [Shown(f"{number:,}", number) for number in (alarm.periods, alarm.rows or 0)]
    if alarm.interval is None:
        return (alarm.start, alarm.end, *counts, "-", "-")
    value = Shown(about(alarm.interval.estimate, alarm), alarm.interval.estimate)
    return (alarm.start, alarm.end, *counts, value, Shown(percent(alarm.interval.low), alarm.interval.low))


def _newest(listed: int, number: int, what: str) -> str:
    return f"All {what}" if listed == number else f"The newest {listed:,} of {number:,} {what}"


def period_marks(periods: Sequence[str]) -> list[tuple[float, str]]:
    """Marks of periods: the first days of months where there are many days, else a few at equal steps.

    Examples
    --------
    >>> period_marks(["2026-05-01", "2026-05-02", "2026-05-03"])
    [(0.0, '2026-05-01'), (1.0, '2026-05-02'), (2.0, '2026-05-03')]
    """
    places = list(range(len(periods)))
    starts = [place for place in places if periods[place].endswith("-01")]
    if len(periods) > _MANY_DAYS and len(starts) > 1:
        step = -(-len(starts) // _MOST_MARKS)
        return [(float(place), periods[place][:7]) for place in starts[::step]]
    few = np.unique(np.linspace(0, len(periods) - 1, min(len(periods), 4)).round().astype(int))
    return [(float(place), periods[place]) for place in few.tolist()]


def write_monitor_page(
    path: str | PathLike[str],
    monitor: Monitor,
    watch: Watch | None = None,
    *,
    title: str | None = None,
    force: bool = False,
) -> None:
    """Write what a monitor found over time as one page that opens anywhere, offline.

    The page says first whether there is an alarm, how large MCDP is now and over the whole period, with a
    chart of MCDP over time in which a period can be chosen. Tables and the method follow. It asks nothing of
    any network.

    Parameters
    ----------
    path : path
        Where to write it. The file is written whole or not at all.
    monitor : Monitor
        The monitor.
    watch : Watch, optional
        The question; by default the one that the monitor keeps, else ``Watch()``.
    title : str, optional
        What the page is about, by default the monitor's name; its heading is the finding.
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
    >>> (folder / "page.html").stat().st_size < 100_000
    True
    """
    path = Path(path)
    if path.exists() and not force:
        raise OutputExistsError(path)
    page = monitor_page(monitor, watch or monitor.watched or Watch(), title or monitor.name)
    write_new(path, page.encode(), force=force)


def monitor_page(monitor: Monitor, watch: Watch, title: str) -> str:
    """The page as text."""
    series = monitor.series(watch)
    if not series:
        raise ValueError(f"{monitor.location} has no periods")
    return render_monitor_page(MonitorDocument(monitor, title, series, monitor.since_start(watch), watch))


_NEWEST = 120


def monitor_html(monitor: Monitor) -> str | None:
    """The newest periods of a monitor, for a notebook."""
    watch = monitor.watched or Watch()
    series = monitor.series(watch, last=_NEWEST)
    if not series:
        return None
    document = MonitorDocument(monitor, monitor.name, series, monitor.since_start(watch), watch)
    chart = figure(document.drawing(), document.label, above=f"MCDP({watch.epsilon:g})", below=monitor.every)
    return card(document.headline, chart)


def render_monitor_page(document: MonitorDocument) -> str:
    """A document as a page."""
    watch, newest = document.watch, document.series[-1]
    numbers = {"newest": asdict(newest), "since_start": asdict(document.whole), "asked": asdict(watch)}
    return render_frame(
        "monitor",
        {"monitor": document.data()},
        title=document.headline,
        about=document.about,
        sentences=document.sentences,
        chips=document.chips,
        svg=document.drawing().svg(document.label),
        every=document.monitor.every,
        watch=watch,
        tables=document.tables(),
        notes=document.notes(),
        numbers=script_json(numbers),
    )
