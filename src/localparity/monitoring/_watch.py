"""What a monitor says of its periods, of which only those that changed are measured again.

A period's own numbers rest on its content, and its alarm on the content of the 256 periods up to it. What was
found is remembered with the stamps of these, for each question that is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from localparity._io._files import parse_sealed, seal_json, sha256_of
from localparity._progress import foretold
from localparity._validation import as_epsilon, as_fraction, as_probability
from localparity._version import __version__
from localparity.counts import Comparison
from localparity.metrics import Interval
from localparity.monitoring._alarms import LONGEST, AlarmSearch
from localparity.monitoring._periods import Period
from localparity.monitoring._results import PeriodResult, WindowResult
from localparity.monitoring._sketch import ScoreSketch, pack, unpack
from localparity.monitoring._store import Store

_FORMAT = 2


DEFAULTS: dict[str, Any] = {
    "epsilon": 0.0,
    "criterion": "demographic_parity",
    "compare": "between_groups",
    "min_group_size": 1,
    "confidence": 0.95,
    "max_mcdp": None,
    "alarm_rate": 0.05,
}
"""What is asked of a monitor where neither the caller nor the monitor says otherwise."""


@dataclass(frozen=True)
class Question:
    """What is asked of each period."""

    epsilon: float
    comparison: Comparison
    confidence: float
    max_mcdp: float | None
    alarm_rate: float

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Question:
        """The question that options ask, checked."""
        max_mcdp = options["max_mcdp"]
        return cls(
            as_epsilon(options["epsilon"]),
            Comparison(options["criterion"], options["compare"], options["min_group_size"]),
            as_probability(options["confidence"]),
            None if max_mcdp is None else as_fraction(max_mcdp, "max_mcdp"),
            as_probability(options["alarm_rate"], "alarm_rate"),
        )

    @property
    def note(self) -> str:
        """The name under which answers are remembered; those of another version are not."""
        asked = json.dumps([_FORMAT, __version__, asdict(self)])
        return f"series-{sha256_of(asked.encode())[:16]}.json"

    def search(self) -> AlarmSearch | None:
        """What looks for alarms, where there is a bound."""
        if self.max_mcdp is None:
            return None
        return AlarmSearch(self.epsilon, self.max_mcdp, self.alarm_rate)

    def answer(self, period: Period, alarm: WindowResult | None) -> PeriodResult:
        """What there is to say of a period."""
        if period.missing:
            return PeriodResult(period.name, period.sketch.size, None, alarm=alarm, missing=period.missing)
        return PeriodResult(
            period.name,
            period.sketch.size,
            period.interval(self.epsilon, self.confidence),
            period.expected(self.epsilon),
            alarm,
            groups=period.groups,
            window=period.window(self.epsilon).sentence,
            approximate=period.approximate,
        )


class Series:
    """The answers to a question about the periods of a store."""

    def __init__(self, store: Store, asked: Question) -> None:
        self._store, self._asked = store, asked
        self._stamps = store.stamps()
        self._known = _recall(store, asked.note)

    def results(self, last: int | None) -> list[PeriodResult]:
        """The results of all periods, or of the last so many."""
        names = list(self._stamps)
        start = 0 if last is None else max(0, len(names) - last)
        settled = self._settled()
        found = {name: self._known[name][1] for name in names[start:] if name in settled}
        missing = [place for place in range(start, len(names)) if names[place] not in settled]
        for begin, end in _stretches(missing):
            found |= {result.period: result for result in self._measured(names, begin, end)}
        results = [found[name] for name in names[start:]]
        if last is None and missing:
            self._remember(results)
        return results

    def _measured(self, names: Sequence[str], begin: int, end: int) -> Iterator[PeriodResult]:
        """The results of consecutive periods; their alarms need the periods before them."""
        search = self._asked.search()
        first = begin if search is None else max(0, begin - LONGEST + 1)
        read = periods_of(self._store, names[first:end], self._asked.comparison)
        for place, period in enumerate(read, start=first):
            alarm = None if search is None else search.add(period)
            if place >= begin:
                yield self._answer(period, alarm)

    def _answer(self, period: Period, alarm: WindowResult | None) -> PeriodResult:
        stamp, known = self._known.get(period.name, ("", None))
        if known is None or stamp != self._stamps[period.name]:
            return self._asked.answer(period, alarm)
        return PeriodResult(**{**vars(known), "alarm": alarm})

    def _settled(self) -> set[str]:
        """The periods of which all that is remembered still holds."""
        settled, run, from_start, before = set[str](), 0, True, None
        before_then = dict(zip(self._known, [None, *self._known], strict=False))
        for name, stamp in self._stamps.items():
            same = name in self._known and self._known[name][0] == stamp
            follows = same and before_then[name] == before
            from_start = from_start and follows
            run = (run + 1 if follows else 1) if same else 0
            if same and (self._asked.max_mcdp is None or from_start or run >= LONGEST):
                settled.add(name)
            before = name
        return settled

    def _remember(self, results: Sequence[PeriodResult]) -> None:
        stamps = [self._stamps[result.period] for result in results]
        content = {"stamps": stamps, "results": [asdict(result) for result in results]}
        self._store.remember(self._asked.note, seal_json(content))


def periods_of(store: Store, names: Sequence[str], comparison: Comparison) -> Iterator[Period]:
    """Some periods of a store as they are measured."""
    stored = zip(names, store.read(names), strict=True)
    for name, each in foretold(stored, len(names), "periods"):
        sketch = ScoreSketch.from_bytes(each.sketch, f"the sketch of {name} in {store.name}")
        yield Period(name, each.look, each.newer, sketch, comparison)


def _stretches(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The begin and the end of each run of consecutive numbers.

    Examples
    --------
    >>> list(_stretches([0, 1, 2, 7]))
    [(0, 3), (7, 8)]
    """
    begin = None
    for number, place in enumerate(places):
        begin = place if begin is None else begin
        if number + 1 == len(places) or places[number + 1] != place + 1:
            yield begin, place + 1
            begin = None


def _recall(store: Store, note: str) -> dict[str, tuple[str, PeriodResult]]:
    """What is remembered of each period, in order, with its stamp; nothing where that is damaged."""
    content = store.recall(note)
    if content is None:
        return {}
    try:
        found = parse_sealed(content)
    except ValueError:
        return {}
    results = map(_as_result, found["results"])
    return {result.period: (stamp, result) for stamp, result in zip(found["stamps"], results, strict=True)}


def _as_result(fields: dict[str, Any]) -> PeriodResult:
    alarm = fields["alarm"]
    if alarm is not None:
        alarm = WindowResult(**{**alarm, "interval": Interval(**alarm["interval"])})
    interval = None if fields["interval"] is None else Interval(**fields["interval"])
    return PeriodResult(**{**fields, "interval": interval, "alarm": alarm})


# All people that a monitor has counted, as one period.
#
# The sketches of all periods but the newest are remembered as one, so that each is read once.


_NOTE, _MARK, _VERSION = "since-start.sketch", b"LPWHOLE\0", 1


class Whole(NamedTuple):
    """The first and the last period, the number of periods, the last look, and the sketch of all people."""

    start: str
    end: str
    periods: int
    look: int
    sketch: ScoreSketch


def whole_of(store: Store) -> Whole | None:
    """Everyone counted in a store, in the periods that were removed too; None where nobody was."""
    stamps = store.stamps()
    names, removed = list(stamps), store.removed()
    if not names and removed is None:
        return None
    base = "" if removed is None else sha256_of(removed.to_bytes())
    look, sketch = (0, None) if removed is None else (removed.look, _read(removed.sketch, store))
    chain = _chain(base, stamps)
    done = 0
    known = _recall_total(store, chain)
    if known is not None:
        done, look, sketch = known
    for place, period in enumerate(periods_of(store, names[done:], Comparison()), start=done):
        look = max(look, period.look)
        if sketch is None:
            sketch = period.sketch
        else:
            sketch.absorb(period.sketch)
        if place == len(names) - 2:
            header = {"periods": place + 1, "look": look, "chain": chain[place + 1]}
            store.remember(_NOTE, pack(_MARK, _VERSION, header, [sketch.to_bytes()]))
    assert sketch is not None
    first = names[0] if removed is None else removed.first
    last = names[-1] if names else str(removed and removed.last)
    return Whole(first, last, len(names) + (0 if removed is None else removed.periods), look, sketch)


def as_period(whole: Whole, comparison: Comparison) -> Period:
    """Everyone as one period, to compare."""
    return Period(whole.end, whole.look, 0, whole.sketch, comparison)


def _read(sketch: bytes, store: Store) -> ScoreSketch:
    return ScoreSketch.from_bytes(sketch, f"the sketch of the removed periods in {store.name}")


def _chain(base: str, stamps: dict[str, str]) -> list[str]:
    """For each number of periods, a text that is another one if one of so many is."""
    chain = [base]
    for name, stamp in stamps.items():
        chain.append(sha256_of(f"{chain[-1]} {name} {stamp}".encode()))
    return chain


def _recall_total(store: Store, chain: list[str]) -> tuple[int, int, ScoreSketch] | None:
    """The periods that are remembered as one and have not changed: how many, their last look and sketch."""
    content = store.recall(_NOTE)
    if content is None:
        return None
    try:
        header, (sketch,) = unpack(content, _MARK, _VERSION, _NOTE)
        periods, look = int(header["periods"]), int(header["look"])
        if periods >= len(chain) or header["chain"] != chain[periods]:
            return None
        return periods, look, ScoreSketch.from_bytes(sketch, _NOTE)
    except ValueError:
        return None
