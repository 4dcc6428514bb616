"""What a monitor's page says, as plain data: answers, tables, notes, and the columns of its chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from localparity.audit._wording import COMPARE_WORDS, CRITERION_WORDS, interval_text
from localparity.metrics import Interval
from localparity.metrics._window import percent
from localparity.monitoring import Monitor, PeriodResult, WindowResult
from localparity.monitoring._wording import APPROXIMATE, about, alarm_sentence, how_many, quiet_sentence
from localparity.report._tables import ReportTable, Shown
from localparity.report.page._charts import time_specs
from localparity.report.page._data import pack

_MOST_LISTED = 200
_MOST_DETAILS = 1000
"""What keeps a page of 10,000 periods under three megabytes."""
_ENDS = ("low", "estimate", "high")


class Answer(NamedTuple):
    """A question that a reader has, with a short answer and a longer one."""

    question: str
    short: str
    text: str


@dataclass(frozen=True)
class MonitorDocument:
    """What was asked of a monitor and found, from the oldest period to the newest."""

    monitor: Monitor
    title: str
    series: list[PeriodResult]
    whole: WindowResult
    asked: dict[str, Any]

    @property
    def max_mcdp(self) -> float | None:
        """The bound."""
        bound: float | None = self.asked["max_mcdp"]
        return bound

    def periods(self, number: int) -> str:
        """A number of days or hours in words."""
        return how_many(number, self.monitor.every)

    @property
    def alarmed(self) -> list[PeriodResult]:
        """The periods with an alarm."""
        return [point for point in self.series if point.alarm is not None]

    def answers(self) -> list[Answer]:
        """What a reader wants to know first."""
        newest, every = self.series[-1], self.monitor.every
        return [
            self._alarm_now(newest),
            Answer(f"How large is it in the newest {every}?", *_value(newest)),
            Answer("And since the start?", *self._since_start()),
            self._alarms_so_far(),
        ]

    def _alarm_now(self, newest: PeriodResult) -> Answer:
        question = "Is there an alarm now?"
        if self.max_mcdp is None:
            return Answer(
                question, "No bound", "MCDP is compared with no bound, so that nothing is looked for."
            )
        if newest.alarm is None:
            return Answer(question, "No", f"{_sentence(quiet_sentence(newest, self.max_mcdp))}")
        return Answer(
            question, "Yes", _sentence(alarm_sentence(newest.alarm, self.monitor.every, self.max_mcdp))
        )

    def _since_start(self) -> tuple[str, str]:
        whole = self.whole
        among = f"among {whole.rows:,} people from {whole.start} to {whole.end}"
        if whole.interval is None:
            return "Nothing to compare", f"A group has too few people {among}."
        interval = interval_text(whole.interval)
        value = about(whole.interval.estimate, whole)
        return value, f"{among}; interval {interval}, which holds at all looks together."

    def _alarms_so_far(self) -> Answer:
        question, alarmed = "When were there alarms?", self.alarmed
        if not alarmed:
            return Answer(question, "Never", f"in {self.periods(len(self.series))} on this page.")
        text = f"of {len(self.series):,}, first {alarmed[0].period}, last {alarmed[-1].period}."
        return Answer(question, self.periods(len(alarmed)), text)

    def header(self) -> list[tuple[str, str]]:
        """What is watched, and how it is measured."""
        rows = [
            (
                "Periods",
                f"{self.series[0].period} to {self.series[-1].period}, {self.periods(len(self.series))}",
            ),
            ("Rows since the start", f"{self.whole.rows:,}"),
            ("epsilon", f"{self.asked['epsilon']:g}"),
            ("People compared", CRITERION_WORDS[self.asked["criterion"]]),
            ("Pairs compared", COMPARE_WORDS[self.asked["compare"]]),
        ]
        if self.max_mcdp is not None:
            rows.append(("bound", percent(self.max_mcdp)))
        return rows

    def tables(self) -> list[ReportTable]:
        """The newest periods, and the newest alarms."""
        newest = self.series[-_MOST_LISTED:][::-1]
        numbers = (
            "rows",
            "MCDP",
            f"{100 * self.asked['confidence']:g}% interval",
            "expected under parity",
            "alarm",
        )
        rows = tuple(self._row(point) for point in newest)
        tables = [ReportTable("periods", _newest(len(newest), len(self.series)), ("period",), numbers, rows)]
        alarmed = self.alarmed[-_MOST_LISTED:][::-1]
        if alarmed:
            caption = f"Alarms: {_newest(len(alarmed), len(self.alarmed))}"
            found = tuple(_alarm_row(point) for point in alarmed)
            columns = ("periods", "rows", "MCDP", "at least")
            tables.append(ReportTable("alarms", caption, ("from", "to"), columns, found))
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
        asked, limit = self.asked, self.asked["min_group_size"]
        notes = {
            "Intervals": f"of a period, {100 * asked['confidence']:g}%, for the population that its people "
            "were drawn from; they allow for the error of the sketch, and hold for each period by itself",
            "Since the start": "everyone counted so far, those of periods that were removed too; the "
            "intervals of all looks hold together",
            "Expected under parity": "the average MCDP between groups of these sizes that do not differ",
        }
        if self.whole.approximate:
            notes["Approximate"] = APPROXIMATE
        if self.max_mcdp is not None:
            notes["Alarms"] = (
                f"MCDP significantly above the bound in a {self.monitor.every}, or over the last 2, 4, 8, "
                f"..., 256; with a probability of at most {asked['alarm_rate']:g} there is ever a false one, "
                "however long the monitor runs"
            )
        if limit > 1:
            notes["Privacy"] = f"nothing is said of a period in which a group has fewer than {limit} people"
        notes["Assumed"] = (
            "rows are independent, one for each person, and a group's rows of one period are alike"
        )
        return notes

    def data(self) -> dict[str, Any]:
        """What the chart and the choice of a period need, in columns."""
        series = self.series
        alarms = [point.alarm for point in series]
        intervals = [point.interval for point in series]
        of_alarms = [None if alarm is None else alarm.interval for alarm in alarms]
        return {
            "charts": time_specs(),
            "every": self.monitor.every,
            "confidence": self.asked["confidence"],
            "max_mcdp": self.max_mcdp,
            "periods": [point.period for point in series],
            "rows": [point.rows for point in series],
            "approximate": [int(point.approximate) for point in series],
            "alarm_approximate": [int(alarm is not None and alarm.approximate) for alarm in alarms],
            "missing": {place: point.missing for place, point in enumerate(series) if point.interval is None},
            "expected": _column([point.expected for point in series]),
            **{end: _column([_end(each, end) for each in intervals]) for end in _ENDS},
            "alarm_periods": [0 if alarm is None else alarm.periods for alarm in alarms],
            "alarm_mcdp": _column([_end(each, "estimate") for each in of_alarms]),
            "alarm_low": _column([_end(each, "low") for each in of_alarms]),
            "details": self._details(),
        }

    def _details(self) -> dict[int, Any]:
        """The groups and the worst window of the newest periods, and of the newest with an alarm."""
        places = range(len(self.series))
        alarmed = [place for place in places if self.series[place].alarm is not None]
        kept = {*places[-_MOST_DETAILS // 2 :], *alarmed[-_MOST_DETAILS // 2 :]}
        found = ((place, self.series[place]) for place in sorted(kept))
        return {
            place: {"groups": point.groups, "window": point.window} for place, point in found if point.window
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
