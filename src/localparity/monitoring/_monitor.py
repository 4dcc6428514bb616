"""MCDP over time: a sketch for each day or hour, and what is known of the disparity in each."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from localparity._io._files import reading, sha256_of
from localparity._io._table import Table
from localparity._types import Compare, Criterion, ScoreRange
from localparity._validation import InputError, as_choice, as_count, as_score_range, setting
from localparity.counts import Comparison
from localparity.counts._copies import copies_in, warn_of_copies
from localparity.monitoring._results import PeriodResult, WindowResult
from localparity.monitoring._sketch import ScoreSketch
from localparity.monitoring._store import (
    Batch,
    FolderStore,
    RemovedMeanwhileError,
    RemovedPeriods,
    SqlStore,
    Store,
    StoredPeriod,
    is_database,
    open_database,
    sorted_scores,
)
from localparity.monitoring._watch import DEFAULTS, Question, Series, as_period, periods_of, whole_of
from localparity.predictions import Predictions

# Where a monitor is: a folder, or a database that a URL names.


def open_store(location: str | os.PathLike[str]) -> Store:
    """The store at a location."""
    if is_database(str(location)):
        return SqlStore(*open_database(str(location)))
    return FolderStore(Path(location))


T = TypeVar("T")
Every = Literal["day", "hour"]

_FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}
_COLUMNS = ("score", "group", "label")


class Monitor:
    """Sketches of a stream's scores by day or hour, in a folder or a database.

    Whenever a process is killed, a batch is counted once or not at all, and several may append at a time.

    Parameters
    ----------
    location : path or str
        Where the sketches are: a folder, or the URL of a database and the name of the monitor in it, as
        "postgresql://user@host/scores#credit", which needs the extra `warehouse`, or
        "duckdb:///scores.duckdb#credit". The first batch creates it.
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
    >>> [(point.period, point.rows, point.interval.estimate) for point in monitor.series()]
    [('2026-05-17', 2, 1.0)]
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        every: Every | None = None,
        score_range: ScoreRange | None = None,
    ) -> None:
        self.store = open_store(location)
        self.location = self.store.name
        self.name = re.split(r"[#/\\]", self.location.rstrip("/\\"))[-1]
        if every is not None:
            as_choice(every, "every", get_args(Every))
        if score_range is not None:
            score_range = as_score_range(score_range)
        given = {"every": every, "score_range": score_range}
        known = self._settings() or {"every": every or "day", "score_range": score_range or (0.0, 1.0)}
        self._check_same({name: value for name, value in given.items() if value is not None}, known)
        self.every: str = known["every"]
        self.score_range: ScoreRange = known["score_range"]

    def append(
        self, batch: Predictions, *, at: datetime, batch_id: str, allow_duplicate: bool = False
    ) -> bool:
        """Count a batch in its period, once.

        Parameters
        ----------
        batch : Predictions
            The rows of the batch; they may be of one group only.
        at : datetime
            The time of the batch; without a time zone, in UTC.
        batch_id : str
            The name of the batch. A batch with a known id is not counted again.
        allow_duplicate : bool
            Whether a batch with the same rows as another, under another id, is counted; else an error.

        Returns
        -------
        bool
            False where the id is known.
        """
        return self._append(batch, at, batch_id, allow_duplicate=allow_duplicate)

    def append_file(
        self,
        source: str | os.PathLike[str] | Table,
        *,
        score: str,
        group: str | Sequence[str],
        label: str | None = None,
        at: datetime | None = None,
        batch_id: str | None = None,
        allow_duplicate: bool = False,
        allow_remote: bool = False,
    ) -> bool:
        """Count the rows of a file in their period, once; every file has the same columns.

        Parameters
        ----------
        source : path or table
            CSV, TSV, Parquet or JSON lines, or what `open_table` returns; a glob needs a `batch_id`.
        score : str
            The column of the scores.
        group : str or sequence of str
            The column of the groups; of several, the groups are the combinations that occur.
        label : str, optional
            The column of the labels, 0 and 1.
        at : datetime, optional
            The time of the batch, in UTC without a time zone; now by default.
        batch_id : str, optional
            The name of the batch; the sha256 of the file by default.
        allow_duplicate : bool
            Whether a batch with the same rows as another, under another id, is counted; else an error.
        allow_remote : bool
            Whether files may be on other machines, as in `Predictions.read`.

        Returns
        -------
        bool
            False where the id is known.
        """
        groups = [group] if isinstance(group, str) else list(group)
        given: dict[str, Any] = {"min_groups": 1, "allow_remote": allow_remote}
        batch = Predictions.read(
            source, score=score, group=groups, label=label, score_range=self.score_range, **given
        )
        if batch_id is None:
            paths = source.paths if isinstance(source, Table) else [source]
            if len(paths) != 1 or not Path(paths[0]).is_file():
                raise InputError(f"must be given unless the source is a single file, got {paths}", "batch_id")
            batch_id = sha256_of(Path(paths[0]))
        columns = {"score": score, "group": groups, "label": label}
        when = datetime.now(UTC) if at is None else at
        return self._append(batch, when, batch_id, allow_duplicate=allow_duplicate, columns=columns)

    def series(
        self,
        epsilon: float | None = None,
        *,
        criterion: Criterion | None = None,
        compare: Compare | None = None,
        min_group_size: int | None = None,
        confidence: float | None = None,
        max_mcdp: float | None = None,
        alarm_rate: float | None = None,
        last: int | None = None,
    ) -> list[PeriodResult]:
        """Compute MCDP(epsilon) in each period, from the oldest to the newest, and find alarms.

        Rows are assumed to be independent, and a group's rows of one period to be of one distribution, which
        may be another in other periods. An alarm says that MCDP is above `max_mcdp` in a period, or over the
        last 2, 4, 8, ..., 256 periods up to it: MCDP of the average of the periods' gaps, in which people are
        compared with those of the same period. Each look, which is each batch appended, spends a share of
        `alarm_rate`, divided among the windows that the batch changed; the shares of all looks sum to 1. So
        the probability that a monitor ever raises a false alarm, however long it runs, is at most
        `alarm_rate`, for all epsilons and bounds together.

        What was found is remembered: when the same is asked again, only periods that changed are measured.
        What is not given is what `watch` has kept with the monitor, else the default.

        Parameters
        ----------
        epsilon : float, default=0.0
            The half-width of the windows of scores.
        criterion, compare : str
            Who is compared, as in `mcdp`.
        min_group_size : int, default=1
            The fewest people that each group must have; of other periods nothing is said.
        confidence : float, default=0.95
            The probability that the interval of a period contains the true MCDP.
        max_mcdp : float, optional
            The most that MCDP may be; where none is given or kept, no period raises an alarm.
        alarm_rate : float, default=0.05
            The most that the probability of any false alarm, ever, may be.
        last : int, optional
            Say something of so many of the newest periods only; by default of all.

        Returns
        -------
        list of PeriodResult
            A period that lacks a group, or has too few people of one, says so.
        """
        people: dict[str, Any] = {"criterion": criterion, "compare": compare, "confidence": confidence}
        bound = {"max_mcdp": max_mcdp, "alarm_rate": alarm_rate}
        options = {"epsilon": epsilon, "min_group_size": min_group_size, **people, **bound}
        asked = Question.of(asked_of(self, options))
        last = None if last is None else as_count(last, "last")
        return _settled(lambda: Series(self.store, asked).results(last))

    def since_start(
        self,
        epsilon: float | None = None,
        *,
        criterion: Criterion | None = None,
        compare: Compare | None = None,
        min_group_size: int | None = None,
        confidence: float | None = None,
    ) -> WindowResult:
        """Compute MCDP(epsilon) among all people counted so far, with an interval that holds at every look.

        Rows are assumed to be independent; the distribution of the scores may change over time. Each look,
        which is each batch appended, spends a share of the error, and the shares of all looks sum to 1. So
        the intervals of all looks, however many there are, hold together with probability `confidence`, each
        for the population that the people counted until then were drawn from.

        Parameters
        ----------
        epsilon : float, default=0.0
            The half-width of the windows of scores; what is not given is what `watch` has kept.
        criterion, compare : str
            Who is compared, as in `mcdp`.
        min_group_size : int, default=1
            The fewest people that each group must have; else nothing is said.
        confidence : float, default=0.95
            The probability that the intervals of all looks contain the true MCDP.

        Returns
        -------
        WindowResult
            From the first period to the last; periods that were removed by `prune` are counted.
        """
        people: dict[str, Any] = {"criterion": criterion, "compare": compare, "confidence": confidence}
        options = {"epsilon": epsilon, "min_group_size": min_group_size, **people}
        asked = Question.of(asked_of(self, options))
        whole = _settled(lambda: whole_of(self.store))
        if whole is None:
            raise ValueError(f"{self.location} has no periods")
        everyone = as_period(whole, asked.comparison)
        interval = None
        if not everyone.missing:
            interval = everyone.interval_at_every_look(asked.epsilon, asked.confidence)
        found = whole.start, whole.end, whole.periods, whole.sketch.size, interval
        return WindowResult(*found, approximate=everyone.approximate)

    def watch(
        self,
        epsilon: float | None = None,
        *,
        criterion: Criterion | None = None,
        compare: Compare | None = None,
        min_group_size: int | None = None,
        confidence: float | None = None,
        max_mcdp: float | None = None,
        alarm_rate: float | None = None,
    ) -> dict[str, Any]:
        """Keep with the monitor what `series` and `since_start` look for, for whoever opens it.

        Parameters
        ----------
        epsilon, criterion, compare, min_group_size, confidence, max_mcdp, alarm_rate
            As in `series`; what is not given stays as it is.

        Returns
        -------
        dict
            What was kept before under the names that now have another value.

        Examples
        --------
        >>> import tempfile
        >>> import localparity as lp
        >>> monitor = lp.monitoring.Monitor(tempfile.mkdtemp())
        >>> monitor.watch(max_mcdp=0.1, epsilon=0.05)
        {}
        >>> monitor.watch(max_mcdp=0.2)
        {'max_mcdp': 0.1}
        >>> monitor.watched
        {'epsilon': 0.05, 'max_mcdp': 0.2}
        """
        people: dict[str, Any] = {"criterion": criterion, "compare": compare, "confidence": confidence}
        bound = {"min_group_size": min_group_size, "max_mcdp": max_mcdp, "alarm_rate": alarm_rate}
        options = _given({"epsilon": epsilon, **people, **bound})
        Question.of(DEFAULTS | options)
        with self.store.writing():
            settings = self._settings() or self._first_settings()
            before = settings.get("watch", {})
            if before | options != before:
                self.store.keep_settings(settings | {"watch": before | options})
        return {name: value for name, value in before.items() if options.get(name, value) != value}

    @property
    def watched(self) -> dict[str, Any]:
        """What `watch` has kept."""
        kept: dict[str, Any] = self._settings().get("watch", {})
        return kept

    def version(self) -> str:
        """Return a text that is another one after every batch; it is empty before the first.

        Returns
        -------
        str
        """
        return self.store.version()

    def prune(self, keep: int) -> int:
        """Remove all but the newest periods.

        The ids of removed batches stay known, so that none is counted again, and batches for a removed period
        are refused. The sketches are merged into one: `since_start` goes on to count everyone. Alarms rest on
        up to 256 periods; with fewer, long windows are not looked at.

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
        if not self.store.settings():
            raise ValueError(f"{self.location} has no periods")
        with self.store.writing():
            old = list(self.store.stamps())[:-keep]
            if old:
                self.store.remove(self._removed_with(old))
        return len(old)

    def _removed_with(self, old: Sequence[str]) -> RemovedPeriods:
        """The periods that were removed before, and some more."""
        before = self.store.removed()
        sketch, look = ScoreSketch(score_range=self.score_range), 0
        first, periods = old[0], len(old)
        if before is not None:
            first, look, periods = before.first, before.look, periods + before.periods
            sketch.absorb(ScoreSketch.from_bytes(before.sketch, f"the removed periods in {self.location}"))
        for period in periods_of(self.store, old, Comparison()):
            sketch.absorb(period.sketch)
            look = max(look, period.look)
        return RemovedPeriods(first, old[-1], periods, look, sketch.to_bytes())

    def _append(
        self,
        batch: Predictions,
        at: datetime,
        batch_id: str,
        *,
        allow_duplicate: bool,
        columns: dict[str, Any] | None = None,
    ) -> bool:
        try:
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except OverflowError:
            raise InputError(f"must be in the years 1 to 9999 in UTC, got {at}", "at") from None
        ordered = sorted_scores(batch)
        added = Batch.of(ordered, batch_id, at.strftime(_FORMATS[self.every]))
        with self.store.writing():
            self._keep_settings(columns)
            if self.store.find("id", added.id) is not None:
                return False
            self._check_new(added, allow_duplicate=allow_duplicate)
            self.store.add(added, self._with_batch(batch, added))
        advice = "the intervals and alarms of a monitor need one row for each person"
        times = [np.unique(scores, return_counts=True)[1] for scores in ordered.values()]
        warn_of_copies(copies_in(np.concatenate(times)), advice, stacklevel=3)
        return True

    def _check_new(self, added: Batch, *, allow_duplicate: bool) -> None:
        """Check that a batch may be counted."""
        twin = self.store.find("digest", added.digest)
        if twin is not None and not allow_duplicate:
            raise InputError(
                f"batch {added.id!r} has the same rows as batch {twin.id!r}, which was counted before; "
                f"pass {setting(allow_duplicate=True)} to count it again"
            )
        removed = self.store.removed()
        if removed is not None and added.period <= removed.last:
            raise ValueError(
                f"batch {added.id!r} is of {added.period}; the periods up to {removed.last} were removed"
            )

    def _with_batch(self, batch: Predictions, added: Batch) -> StoredPeriod:
        """The period of a batch with the batch."""
        sketch, batches = ScoreSketch(score_range=self.score_range), dict[str, str]()
        with suppress(RemovedMeanwhileError):
            (stored,) = self.store.read([added.period])
            batches = stored.batches
            sketch = ScoreSketch.from_bytes(stored.sketch, f"the sketch of {added.period} in {self.location}")
        sketch.add(batch)
        look, newer = self.store.last_look() + 1, self.store.newer(added.period)
        return StoredPeriod({**batches, added.id: added.digest}, look, newer, sketch.to_bytes())

    def _settings(self) -> dict[str, Any]:
        """What the first batch has fixed; empty before it."""
        settings = self.store.settings()
        if settings:
            with reading(self.store.settings_name):
                as_choice(settings["every"], "every", get_args(Every))
                settings["score_range"] = as_score_range(settings["score_range"])
                if "columns" in settings:
                    settings["columns"] = {name: settings["columns"][name] for name in _COLUMNS}
                Question.of(DEFAULTS | settings.get("watch", {}))
        return settings

    def _keep_settings(self, columns: dict[str, Any] | None) -> None:
        """Keep the settings with the first batch, and the columns with the first file."""
        known = self._settings()
        if columns is not None and "columns" in known:
            self._check_same(columns, known["columns"])
        if not known or (columns is not None and "columns" not in known):
            added = {} if columns is None else {"columns": columns}
            self.store.keep_settings((known or self._first_settings()) | added)

    def _first_settings(self) -> dict[str, Any]:
        """What the first batch fixes."""
        return {"every": self.every, "score_range": self.score_range}

    def _check_same(self, given: dict[str, Any], known: dict[str, Any]) -> None:
        for name, value in given.items():
            if value != known[name]:
                raise InputError(f"must be {known[name]!r}, as in {self.location}, got {value!r}", name)


def asked_of(monitor: Monitor, options: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """All that is asked of a monitor: what is given, else what it keeps, else the default."""
    return DEFAULTS | defaults | monitor.watched | _given(options)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _settled(look: Callable[[], T]) -> T:
    """What a look at the periods finds; again where another process removed some meanwhile."""
    while True:
        try:
            return look()
        except RemovedMeanwhileError:
            continue
