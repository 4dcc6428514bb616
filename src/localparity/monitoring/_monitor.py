"""MCDP over time: a sketch for each day or hour, and what is known of the disparity in each."""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import accumulate
from typing import Any, NamedTuple, get_args

import numpy as np

from localparity._io._files import parse_json, reading, sha256_of
from localparity._progress import foretold
from localparity._types import FloatArray, ScoreRange
from localparity._validation import InputError, as_choice, as_count, as_score_range, setting
from localparity._version import __version__
from localparity.counts import Comparison
from localparity.counts._score_counts import copies_in, warn_of_copies
from localparity.metrics import Interval
from localparity.monitoring._alarms import (
    LONGEST,
    Detector,
    Look,
    alarm_in,
    cutoffs_of,
    first_cutoffs,
    measure_window,
)
from localparity.monitoring._periods import Period
from localparity.monitoring._sketch import Key, ScoreSketch
from localparity.monitoring._store import (
    EVERYONE,
    Every,
    MonitorState,
    RemovedMeanwhileError,
    RemovedPeriods,
    SqlStore,
    StoredPeriod,
    mark_of,
)
from localparity.monitoring._watch import PeriodResult, Watch, WindowResult
from localparity.predictions import Predictions

_FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}
_MOST_TRIES = 100


class Monitor:
    """Sketches of a stream's scores by day or hour, in a folder or in PostgreSQL.

    Whenever a process is killed, a batch is counted once or not at all, and several may append at a time.

    Parameters
    ----------
    location : path or str
        Where the sketches are: a folder, or the URL of a database and the name of the monitor in it, as
        "postgresql://user@host/scores#credit" (extra `warehouse`). The first batch creates it.
    every : str
        The length of a period, "day" or "hour"; an existing monitor keeps its own.
    score_range : tuple of float
        The lowest and the highest score there can be; an existing monitor keeps its own.

    Attributes
    ----------
    location : str
        Where the sketches are, without a password.
    name : str
        The last part of the location: the name of the folder, or of the monitor in the database.

    Examples
    --------
    >>> import datetime, tempfile
    >>> import localparity as lp
    >>> monitor = lp.monitoring.Monitor(tempfile.mkdtemp(), every="day")
    >>> batch = lp.Predictions.from_arrays(None, [0.2, 0.9], sensitive_features=["f", "m"])
    >>> at = datetime.datetime(2026, 5, 17, 12, tzinfo=datetime.UTC)
    >>> monitor.append(batch, at=at, batch_id="1"), monitor.append(batch, at=at, batch_id="1")
    (True, False)
    >>> watch = lp.monitoring.Watch(min_group_size=1)
    >>> [(point.period, point.rows, point.interval.estimate) for point in monitor.series(watch)]
    [('2026-05-17', 2, 1.0)]
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        every: Every | None = None,
        score_range: ScoreRange | None = None,
    ) -> None:
        self.store = SqlStore(os.fspath(location))
        self.location = self.store.name
        self.name = re.split(r"[#/\\]", self.location.rstrip("/\\"))[-1]
        if every is not None:
            as_choice(every, "every", get_args(Every))
        if score_range is not None:
            score_range = as_score_range(score_range)
        state = self.store.state() or MonitorState(every or "day", score_range or (0.0, 1.0))
        self._check_same("every", every or state.every, state.every)
        self._check_same("score_range", score_range or state.score_range, state.score_range)
        self.every: Every = state.every
        self.score_range: ScoreRange = state.score_range

    def __repr__(self) -> str:
        return f"Monitor({self.name!r}, every {self.every})"

    def _repr_html_(self) -> str | None:
        """The newest periods for a notebook; nothing where there are none."""
        from localparity.report.page._monitor import monitor_html

        return monitor_html(self)

    def append(
        self,
        batch: Predictions,
        *,
        at: datetime,
        batch_id: str,
        columns: Mapping[str, Any] | None = None,
        allow_duplicate: bool = False,
    ) -> bool:
        """Count a batch in its period, once.

        Parameters
        ----------
        batch : Predictions
            The rows of the batch, of one group or more; `Predictions.read` reads them from a file.
        at : datetime
            The time of the batch; without a time zone, in UTC.
        batch_id : str
            The name of the batch. A batch with a known id is not counted again.
        columns : mapping, optional
            What the columns of the batch are called, such as ``{"score": "p", "group": "sex"}``; an error
            unless those of all batches that say so are the same.
        allow_duplicate : bool
            Whether a batch with the same rows as another, under another id, is counted; else an error.

        Returns
        -------
        bool
            False where the id is known.
        """
        try:
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except OverflowError:
            raise InputError(f"must be in the years 1 to 9999 in UTC, got {at}", "at") from None
        period, scores = at.strftime(_FORMATS[self.every]), _sorted_scores(batch)
        digest = _digest_of(scores)
        with self.store.writing():
            self._keep_columns(columns)
            if self.store.find("id", batch_id) is not None:
                return False
            self._check_new(batch_id, digest, period, allow_duplicate=allow_duplicate)
            self._count(batch, batch_id, digest, period, scores)
        advice = "the intervals and alarms of a monitor need one row for each person"
        times = [np.unique(some, return_counts=True)[1] for some in scores.values()]
        warn_of_copies(copies_in(np.concatenate(times)), advice, stacklevel=2)
        return True

    def series(self, watch: Watch | None = None, *, last: int | None = None) -> list[PeriodResult]:
        """Compute MCDP(epsilon) in each period, from the oldest to the newest, and find alarms.

        Rows are assumed to be independent, and a group's rows of one period to be of one distribution, which
        may be another in other periods. An alarm says that MCDP has been above `max_mcdp`: in one period by
        itself, or by the evidence of all batches so far. The probability that a monitor ever raises a false
        alarm, however long it runs, is at most `alarm_rate`, if MCDP is within the bound in every period, and
        the bound was chosen before them. One period by itself spends a fifth of the rate. For epsilon > 0,
        the evidence is against this: every window of scores has a cutoff at which the gap is within the bound
        in every period. An alarm belongs to the period that was the newest when it was raised, and stays
        there. Only periods that changed since the same was asked are measured again.

        Parameters
        ----------
        watch : Watch, optional
            The question; by default what the monitor keeps, else ``Watch()``.
        last : int, optional
            Say something of so many of the newest periods only; by default of all.

        Returns
        -------
        list of PeriodResult
            A period that lacks a group, or has too few people of one, says so.
        """
        watch = watch or self.watched or Watch()
        last = None if last is None else as_count(last, "last")
        for _ in range(_MOST_TRIES):
            with suppress(RemovedMeanwhileError):  # by another process
                return _Series(self.store, watch).results(last)
        raise ValueError(f"{self.location} is damaged: a period that it lists is missing")

    def since_start(self, watch: Watch | None = None) -> WindowResult:
        """Compute MCDP(epsilon) among all people counted so far, with an interval that holds at every look.

        Rows are assumed to be independent; the distribution of the scores may change over time. The intervals
        of all looks, which are the batches appended, however many, hold together with probability
        `confidence`, each for the population that the people counted until then were drawn from.

        Parameters
        ----------
        watch : Watch, optional
            The question; by default what the monitor keeps, else ``Watch()``.

        Returns
        -------
        WindowResult
            From the first period to the last; periods that were removed by `prune` are counted.
        """
        watch = watch or self.watched or Watch()
        state, stamps = self.store.periods()
        if state is None or not stamps:
            raise ValueError(f"{self.location} has no periods")
        (everyone,) = _read_periods(self.store, [EVERYONE], watch.comparison)
        interval = None
        if not everyone.missing:
            interval = everyone.interval_at_every_look(watch.epsilon, watch.confidence)
        removed = state.removed or RemovedPeriods(min(stamps), "", 0)
        periods, rows = removed.periods + len(stamps), everyone.rows
        return WindowResult(removed.first, max(stamps), periods, rows, interval, everyone.approximate)

    def watch(self, watch: Watch) -> None:
        """Keep with the monitor the question that it answers by default, for whoever opens it.

        Parameters
        ----------
        watch : Watch
            What `series`, `since_start`, pages and metrics answer where nothing else is asked.

        Examples
        --------
        >>> import tempfile
        >>> import localparity as lp
        >>> monitor = lp.monitoring.Monitor(tempfile.mkdtemp())
        >>> monitor.watch(lp.monitoring.Watch(max_mcdp=0.1, epsilon=0.05))
        >>> monitor.watched.max_mcdp
        0.1
        """
        with self.store.writing():
            state = self._state()
            if state.watch != watch:
                self.store.keep_state(replace(state, watch=watch))

    @property
    def watched(self) -> Watch | None:
        """What `watch` has kept; None where nothing was."""
        return self._state().watch

    def version(self) -> str:
        """Return a text that is another one after every batch; it is empty before the first.

        Returns
        -------
        str
        """
        return str(self._state().look or "")

    def prune(self, keep: int) -> int:
        """Remove all but the newest periods.

        Removed batches are not counted again, and batches for a removed period are refused. `since_start`
        goes on to count everyone, and alarms go on from the evidence so far, for which the number of people
        at or below some cutoffs stays of each batch.

        Parameters
        ----------
        keep : int
            How many periods to keep.

        Returns
        -------
        int
            How many were removed.
        """
        keep = as_count(keep, "keep")
        if not self.version():
            raise ValueError(f"{self.location} has no periods")
        with self.store.writing():
            state, stamps = self.store.periods()
            assert state is not None
            old = list(stamps)[:-keep]
            if old:
                before = state.removed or RemovedPeriods(old[0], "", 0)
                self.store.remove(old, RemovedPeriods(before.first, old[-1], before.periods + len(old)))
        return len(old)

    def _check_new(self, batch_id: str, digest: str, period: str, *, allow_duplicate: bool) -> None:
        """Check that a batch may be counted."""
        twin = self.store.find("digest", digest)
        if twin is not None and not allow_duplicate:
            raise InputError(
                f"has the same rows as batch {twin!r}, which was counted before; "
                f"pass {setting(allow_duplicate=True)} to count it again",
                file=f"batch {batch_id!r}",
            )
        removed = self._state().removed
        if removed is not None and period <= removed.last:
            raise ValueError(
                f"batch {batch_id!r} is of {period}; the periods up to {removed.last} were removed"
            )

    def _count(
        self, batch: Predictions, batch_id: str, digest: str, period: str, scores: dict[Key, FloatArray]
    ) -> None:
        """Put a batch into its period, and into everyone; its rows are counted at cutoffs chosen before."""
        counted = ScoreSketch(score_range=self.score_range)
        counted.update(batch)
        state = self._state()
        look, periods = state.look + 1, {}
        for name, newer in ((EVERYONE, 0), (period, self.store.newer(period))):
            periods[name] = StoredPeriod(look, newer, counted)
            with suppress(RemovedMeanwhileError):  # it is the first batch there
                (stored,) = self.store.read([name])
                periods[name] = StoredPeriod(look, newer, stored.sketch.merge(counted))
                if name == EVERYONE:
                    state = _with_cutoffs(state, period, stored.sketch)
        if not state.cutoffs:
            state = replace(state, cutoffs=first_cutoffs(self.score_range))
        self.store.keep_state(replace(state, last_period=period))
        seen = Look.of(period, scores, np.array(state.cutoffs), self.score_range)
        self.store.add(batch_id, digest, periods, seen.to_bytes())

    def _state(self) -> MonitorState:
        """What the monitor keeps, or what the first batch will make it keep."""
        return self.store.state() or MonitorState(self.every, self.score_range)

    def _keep_columns(self, columns: Mapping[str, Any] | None) -> None:
        """Keep the state with the first batch, and the columns with the first that has them."""
        state = self._state()
        if columns is not None and state.columns is not None:
            for name, value in columns.items():
                self._check_same(name, value, state.columns.get(name))
        elif columns is not None or not state.look:
            self.store.keep_state(replace(state, columns=None if columns is None else dict(columns)))

    def _check_same(self, name: str, value: object, known: object) -> None:
        if value != known:
            raise InputError(f"must be {known!r}, as in {self.location}, got {value!r}", name)


def _with_cutoffs(state: MonitorState, period: str, everyone: ScoreSketch) -> MonitorState:
    """The state with new cutoffs, if a period begins and twice as many people have been counted as before.

    All rows that are compared with each other are counted at the same cutoffs.
    """
    if period == state.last_period or everyone.size < 2 * state.chosen_at:
        return state
    return replace(state, cutoffs=cutoffs_of(everyone), chosen_at=everyone.size)


def _sorted_scores(rows: Predictions) -> dict[Key, FloatArray]:
    """The scores of the people of each group and label, from the lowest to the highest."""
    scores: dict[Key, FloatArray] = {}
    for code, group in enumerate(rows.groups):
        among = rows.group_codes == code
        for label in (None,) if rows.labels is None else (0, 1):
            chosen = among if label is None else among & (rows.labels == label)
            scores[group, label] = np.sort(rows.scores[chosen].astype(np.float64) + 0.0)  # -0.0 is 0.0
    return scores


def _digest_of(scores: Mapping[Key, FloatArray]) -> str:
    """The sha256 of some rows, whose order does not matter: a query that is run again may have another."""
    digest = sha256()
    for (group, label), some in scores.items():
        digest.update(f"{group!r} {label} {some.size}\n".encode())
        digest.update(some.tobytes())
    return digest.hexdigest()


def _read_periods(store: SqlStore, names: Sequence[str], comparison: Comparison) -> Iterator[Period]:
    """Some periods of a store as they are measured."""
    stored = zip(names, store.read(names), strict=True)
    for name, (look, newer, sketch) in foretold(stored, len(names), "reading periods"):
        yield Period(name, look, newer, sketch, comparison)


# A period's own numbers rest on its content, and those of an alarm on the periods since the evidence grew.
# What was found is remembered for each question, with the marks of these. So is the evidence, to which the
# batches that came since are added.


class _Memo(NamedTuple):
    """What is remembered of a period: its result, which holds for the periods whose marks sum to `basis`."""

    basis: str
    result: PeriodResult

    def to_bytes(self) -> bytes:
        return json.dumps({"basis": self.basis, "result": asdict(self.result)}).encode()

    @classmethod
    def from_bytes(cls, payload: bytes, name: str) -> _Memo:
        with reading(name):
            values = parse_json(payload)
            return cls(values["basis"], _as_result(values["result"]))


def _as_result(values: dict[str, Any]) -> PeriodResult:
    alarm, interval = values["alarm"], values["interval"]
    if alarm is not None:
        measured = alarm["interval"]
        alarm = WindowResult(**{**alarm, "interval": None if measured is None else Interval(**measured)})
    interval = None if interval is None else Interval(**interval)
    return PeriodResult(**{**values, "interval": interval, "alarm": alarm})


class _Series:
    """The answers to a watch, of which only those that changed are measured again."""

    def __init__(self, store: SqlStore, watch: Watch) -> None:
        self._store, self._watch = store, watch
        self._state, self._stamps = store.periods()
        self._names = list(self._stamps)
        self._sums = list(accumulate(map(mark_of, self._names, self._stamps.values()), initial=0))
        # What another version remembers is not used.
        question = json.dumps([__version__, asdict(watch)])
        self._question = sha256_of(question.encode())[:16]

    def results(self, last: int | None) -> list[PeriodResult]:
        """The results of all periods, or of the last so many."""
        if not self._names:
            return []
        start = 0 if last is None else max(0, len(self._names) - last)
        self._began = self._detect()
        kind = f"series-{self._question}"
        recalled = self._store.recall(kind, self._names[start])
        known = {
            name: _Memo.from_bytes(payload, f"what is remembered of {name}")
            for name, payload in recalled.items()
        }
        bases = {self._names[index]: self._basis(index) for index in range(start, len(self._names))}
        changed = [name for name, basis in bases.items() if name not in known or known[name].basis != basis]
        learned = {result.period: _Memo(bases[result.period], result) for result in self._measure(changed)}
        if learned:
            self._store.remember(kind, {name: memo.to_bytes() for name, memo in learned.items()})
        return [(learned.get(name) or known[name]).result for name in bases]

    def _detect(self) -> dict[str, str]:
        """The periods that were the newest when there was enough evidence for an alarm.

        For each, the period since which the evidence had been growing.
        """
        if self._watch.max_mcdp is None:
            return {}
        assert self._state is not None
        detector, kind = Detector(self._watch), f"evidence-{self._question}"
        for payload in self._store.recall(kind).values():
            detector.restore(payload, "the evidence so far")
        new = self._state.look - detector.look
        looks = self._store.looks(detector.look + 1, self._state.look)
        for name, payload in foretold(looks, new, "reading batches"):
            if detector.add(Look.from_bytes(payload, name)) >= detector.needed:
                detector.alarms[detector.newest] = detector.started()
        if new > 0:
            self._store.remember(kind, {"": detector.to_bytes()})
        return detector.alarms

    def _first(self, index: int) -> int:
        """Where the window of a period's alarm begins; with the period where it has none."""
        began = self._began.get(self._names[index], self._names[index])
        return min(index, max(bisect_left(self._names, began), index + 1 - LONGEST))

    def _basis(self, index: int) -> str:
        """The sum of the marks of the periods that the result of one rests on."""
        first = self._first(index)
        return f"{(self._sums[index + 1] - self._sums[first]) % 2**256:x} {self._names[index] in self._began}"

    def _measure(self, changed: Sequence[str]) -> Iterator[PeriodResult]:
        """Measure some periods, and what MCDP was since their alarms began."""
        watch, recent = self._watch, dict[str, Period]()
        for period in _read_periods(self._store, changed, watch.comparison):
            recent[period.name] = period
            alarm = None
            if period.name in self._began:
                index = bisect_left(self._names, period.name)
                names = self._names[self._first(index) : index + 1]
                unread = [name for name in names if name not in recent]
                recent |= zip(unread, _read_periods(self._store, unread, watch.comparison), strict=True)
                alarm = measure_window([recent[name] for name in names], watch)
            elif watch.max_mcdp is not None:
                alarm = alarm_in(period, watch)
            yield replace(_answer(period, watch), alarm=alarm)
            for name in sorted(recent)[:-LONGEST]:
                del recent[name]


def _answer(period: Period, watch: Watch) -> PeriodResult:
    """What there is to say of a period, but for its alarm."""
    if period.missing:
        return PeriodResult(period.name, period.rows, None, missing=period.missing)
    return PeriodResult(
        period.name,
        period.rows,
        period.interval(watch.epsilon, watch.confidence),
        period.expected(watch.epsilon),
        groups=period.groups,
        window=period.window(watch.epsilon).sentence,
        approximate=period.approximate,
    )
