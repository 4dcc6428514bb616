"""What a monitor found, in words that the command, the page and messages share."""

from __future__ import annotations

from localparity.metrics._window import percent
from localparity.metrics._within import within_bound
from localparity.monitoring._results import PeriodResult, WindowResult

APPROXIMATE = (
    "numbers called about come from sketches that keep a part of the scores; the last digits differ from run "
    "to run, and the intervals allow for that"
)


def how_many(periods: int, every: str) -> str:
    """A number of days or hours in words.

    Examples
    --------
    >>> how_many(1, "day"), how_many(16, "hour")
    ('1 day', '16 hours')
    """
    return f"{periods:,} {every}" if periods == 1 else f"{periods:,} {every}s"


def about(share: float, result: PeriodResult | WindowResult) -> str:
    """A share of a result as a percentage, called approximate where it is."""
    return f"about {percent(share)}" if result.approximate else percent(share)


def alarm_sentence(alarm: WindowResult, every: str, max_mcdp: float) -> str:
    """What raised an alarm, by how much."""
    assert alarm.interval is not None
    where = f"in {alarm.end}"
    if alarm.periods > 1:
        where = f"over the last {how_many(alarm.periods, every)}, {alarm.start} to {alarm.end},"
    value, least = about(alarm.interval.estimate, alarm), percent(alarm.interval.low)
    return f"MCDP {where} is {value}, at least {least}, above the bound of {percent(max_mcdp)}"


def quiet_sentence(newest: PeriodResult, max_mcdp: float) -> str:
    """Why the newest period raises no alarm."""
    if newest.interval is None:
        return f"period {newest.period} has nothing to compare: {newest.missing}"
    above = not within_bound(newest.interval.estimate, max_mcdp)
    relation, ending = ("above", ", which chance could explain") if above else ("within", "")
    what = f"MCDP in {newest.period} is {about(newest.interval.estimate, newest)}"
    return f"{what}, {relation} the bound of {percent(max_mcdp)}{ending}"
