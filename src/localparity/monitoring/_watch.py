"""The question to a monitor, and what it answers for a period or for several in a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from localparity._text import percent
from localparity._types import Compare, Criterion
from localparity._validation import as_bounded_epsilon, as_epsilon, as_fraction, as_probability
from localparity.counts import Comparison
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.metrics import Interval
from localparity.metrics._within import Verdict, verdict_on, verdict_text, within_bound


@dataclass(frozen=True, kw_only=True)
class Watch:
    """The question about each period of a monitor.

    Parameters
    ----------
    epsilon : float
        The half-width of the windows of scores.
    criterion, compare : str
        Who is compared, as in `mcdp`.
    min_group_size : int
        The fewest people that each group must have; of other periods nothing is said, but they add to the
        evidence for an alarm.
    confidence : float
        The probability that the interval of a period contains the true MCDP.
    max_mcdp : float, optional
        The most that MCDP may be; without it no period raises an alarm.
    alarm_rate : float
        The most that the probability of any false alarm, ever, may be, where MCDP is within the bound in
        every period.

    Examples
    --------
    >>> import localparity as lp
    >>> watch = lp.monitoring.Watch(epsilon=0.05, max_mcdp=0.1)
    >>> watch.min_group_size, watch.alarm_rate
    (10, 0.05)
    """

    epsilon: float = 0.0
    criterion: Criterion = "demographic_parity"
    compare: Compare = "between_groups"
    min_group_size: int = DISCLOSURE_LIMIT
    confidence: float = 0.95
    max_mcdp: float | None = None
    alarm_rate: float = 0.05

    def __post_init__(self) -> None:
        checked = {
            "epsilon": (as_epsilon if self.max_mcdp is None else as_bounded_epsilon)(self.epsilon),
            "min_group_size": self.comparison.min_group_size,
            "confidence": as_probability(self.confidence),
            "max_mcdp": None if self.max_mcdp is None else as_fraction(self.max_mcdp, "max_mcdp"),
            "alarm_rate": as_probability(self.alarm_rate, "alarm_rate"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @cached_property
    def comparison(self) -> Comparison:
        """Who is compared with whom."""
        return Comparison(self.criterion, self.compare, self.min_group_size)


@dataclass(frozen=True)
class WindowResult:
    """MCDP over consecutive periods.

    Attributes
    ----------
    start, end : str
        The first and the last period.
    periods : int
        The number of periods, of those that have rows.
    rows : int or None
        The number of rows; None where a group has fewer people than `min_group_size`.
    interval : Interval or None
        MCDP over the periods; the intervals of all looks, ever, hold together with its `confidence`. None
        where there is nothing to compare.
    approximate : bool
        Whether sketches keep a part of the scores only: the last digits differ from run to run, for which the
        interval allows.

    Examples
    --------
    >>> import datetime, tempfile
    >>> import localparity as lp
    >>> monitor = lp.monitoring.Monitor(tempfile.mkdtemp())
    >>> for day in (17, 18):
    ...     batch = lp.Predictions.from_arrays(None, [0.2, day / 20], sensitive_features=["f", "m"])
    ...     at = datetime.datetime(2026, 5, day, tzinfo=datetime.UTC)
    ...     _ = monitor.append(batch, at=at, batch_id=str(day))
    >>> whole = monitor.since_start(lp.monitoring.Watch(min_group_size=1))
    >>> whole.start, whole.end, whole.periods, whole.interval.estimate
    ('2026-05-17', '2026-05-18', 2, 1.0)
    """

    start: str
    end: str
    periods: int
    rows: int | None
    interval: Interval | None
    approximate: bool = False


@dataclass(frozen=True)
class PeriodResult:
    """MCDP in one period.

    Attributes
    ----------
    period : str
        The day or the hour, in UTC.
    rows : int or None
        The number of rows; None where a group has fewer people than `min_group_size`.
    interval : Interval or None
        MCDP of the population that the rows were drawn from; its ends allow for sampling and for the error of
        the sketch. None where there is nothing to compare.
    expected : float or None
        MCDP expected under parity, between groups of these sizes.
    alarm : WindowResult or None
        There is one where MCDP has been significantly above `max_mcdp`, adjusted for all looks, ever: MCDP in
        the periods, up to this one, since the evidence for it began to grow, the last 32 at most.
    missing : str
        Why there is nothing to compare, else empty.
    groups : dict
        The number of rows of each group; empty where there is nothing to compare.
    window : str
        Where the pair of the largest MCDP differs most, in words; empty where there is nothing to compare.
    approximate : bool
        Whether the numbers come from sketches that keep a part of the scores only, as in `WindowResult`.

    Examples
    --------
    >>> import datetime, tempfile
    >>> import localparity as lp
    >>> monitor = lp.monitoring.Monitor(tempfile.mkdtemp(), every="hour")
    >>> batch = lp.Predictions.from_arrays(None, [0.2, 0.9], sensitive_features=["f", "m"])
    >>> _ = monitor.append(batch, at=datetime.datetime(2026, 5, 17, 12, tzinfo=datetime.UTC), batch_id="1")
    >>> point = monitor.series(lp.monitoring.Watch(max_mcdp=0.1, min_group_size=1))[0]
    >>> point.rows, point.interval.estimate, point.interval.low, point.alarm
    (2, 1.0, 0.0, None)
    """

    period: str
    rows: int | None
    interval: Interval | None
    expected: float | None = None
    alarm: WindowResult | None = None
    missing: str = ""
    groups: dict[str, int] = field(default_factory=dict)
    window: str = ""
    approximate: bool = False


APPROXIMATE = (
    "numbers called about come from sketches that keep a part of the scores; the last digits differ from run "
    "to run, and the intervals allow for that"
)


def how_many(periods: int, every: str) -> str:
    """A number of days or hours in words."""
    return f"{periods:,} {every}" if periods == 1 else f"{periods:,} {every}s"


def rows_text(rows: int | None) -> str:
    """A number of rows, or a dash where it is withheld."""
    return "-" if rows is None else f"{rows:,}"


def about(share: float, result: PeriodResult | WindowResult) -> str:
    """A share of a result as a percentage, called approximate where it is."""
    return f"about {percent(share)}" if result.approximate else percent(share)


def alarm_sentence(alarm: WindowResult, every: str, max_mcdp: float) -> str:
    """What raised an alarm, by how much."""
    where, bound = f"in {alarm.end}", f"above the bound of {percent(max_mcdp)}"
    if alarm.periods > 1:
        where = f"over the last {how_many(alarm.periods, every)}, {alarm.start} to {alarm.end},"
    if alarm.interval is None or within_bound(alarm.interval.estimate, max_mcdp):
        return f"MCDP has been {bound} {where.rstrip(',')}, by the evidence of all batches"
    least = "" if within_bound(alarm.interval.low, max_mcdp) else f", at least {percent(alarm.interval.low)}"
    return f"MCDP {where} is {about(alarm.interval.estimate, alarm)}{least}, {bound}"


def quiet_sentence(newest: PeriodResult, max_mcdp: float) -> str:
    """Why the newest period raises no alarm."""
    if newest.interval is None:
        return f"period {newest.period} has nothing to compare: {newest.missing}"
    what = f"MCDP in {newest.period} is {about(newest.interval.estimate, newest)}"
    return f"{what}, {without_alarm(newest.interval, f'the bound of {percent(max_mcdp)}', max_mcdp)}"


def without_alarm(interval: Interval, bound: str, max_mcdp: float) -> str:
    """What a period says of a bound where nothing raised an alarm."""
    verdict: Verdict = "within" if verdict_on(interval, max_mcdp) == "within" else "undecided"
    above = "" if within_bound(interval.estimate, max_mcdp) else ": above it, which chance could explain"
    return f"{verdict_text(verdict, bound)}{above}"
