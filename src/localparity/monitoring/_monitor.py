"""MCDP over time: a folder with a sketch for each day or hour, which survives a kill at any moment.

A period is one file with its sketch and the ids of the batches in it, written under another name and renamed
into place: a batch and its id are both in the file or neither is, and a known id is not counted again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from localparity._io._files import locked, parse_sealed, reading, seal_json, sha256_of, write_whole
from localparity._io._forecast import foretold
from localparity._types import Compare, Criterion, ScoreRange
from localparity._validation import (
    as_choice,
    as_epsilon,
    as_fraction,
    as_probability,
    as_score_range,
)
from localparity.counts import Comparison
from localparity.monitoring._alarms import AlarmSearch
from localparity.monitoring._index import Batch, BatchIndex, StaleIndexError
from localparity.monitoring._periods import Period
from localparity.monitoring._results import PeriodResult, WindowResult
from localparity.monitoring._sketch import ScoreSketch
from localparity.monitoring._stored_period import StoredPeriod
from localparity.predictions import Predictions

Every = Literal["day", "hour"]

_FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}
_SETTINGS, _INDEX, _LOCK = "monitor.json", "index.sqlite", "lock"
_ENDING = ".period"
_COLUMNS = ("score", "group", "label")


class Monitor:
    """Sketches of a stream's scores by day or hour, in a folder.

    Parameters
    ----------
    folder : path
        Where the sketches are; it is created by the first batch.
    every : str
        The length of a period, "day" or "hour"; an existing folder keeps its own.
    score_range : tuple of float
        The lowest and the highest score there can be; an existing folder keeps its own.

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
        folder: str | os.PathLike[str],
        *,
        every: Every | None = None,
        score_range: ScoreRange | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._index = BatchIndex(self.folder / _INDEX)
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
        source: str | os.PathLike[str],
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
        source : path
            CSV, TSV, Parquet or JSON lines; a glob needs a `batch_id`.
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
            if not Path(source).is_file():
                raise ValueError(f"batch_id must be given unless the source is a single file, got {source}")
            batch_id = sha256_of(Path(source))
        columns = {"score": score, "group": groups, "label": label}
        when = datetime.now(UTC) if at is None else at
        return self._append(batch, when, batch_id, allow_duplicate=allow_duplicate, columns=columns)

    def series(
        self,
        epsilon: float = 0.0,
        *,
        criterion: Criterion = "demographic_parity",
        compare: Compare = "between_groups",
        min_group_size: int = 1,
        confidence: float = 0.95,
        max_mcdp: float | None = None,
        alarm_rate: float = 0.05,
    ) -> list[PeriodResult]:
        """Compute MCDP(epsilon) in each period, from the oldest to the newest, and find alarms.

        Rows are assumed to be independent, and a group's rows of one period to be of one distribution, which
        may be another in other periods. An alarm says that MCDP is above `max_mcdp` in a period, or over the
        last 2, 4, 8, ..., 256 periods up to it: MCDP of the average of the periods' gaps, in which people are
        compared with those of the same period. Each look, which is each batch appended, spends a share of
        `alarm_rate`, divided among the windows that the batch changed; the shares of all looks sum to 1. So
        the probability that a monitor ever raises a false alarm, however long it runs, is at most
        `alarm_rate`, for all epsilons and bounds together.

        Parameters
        ----------
        epsilon : float
            The half-width of the windows of scores.
        criterion, compare : str
            Who is compared, as in `mcdp`.
        min_group_size : int
            The fewest people that each group must have; of other periods nothing is said.
        confidence : float
            The probability that the interval of a period contains the true MCDP.
        max_mcdp : float, optional
            The most that MCDP may be; without it no period raises an alarm.
        alarm_rate : float
            The most that the probability of any false alarm, ever, may be.

        Returns
        -------
        list of PeriodResult
            A period that lacks a group, or has too few people of one, says so.
        """
        comparison, epsilon = Comparison(criterion, compare, min_group_size), as_epsilon(epsilon)
        confidence, alarm_rate = as_probability(confidence), as_probability(alarm_rate, "alarm_rate")
        search = None
        if max_mcdp is not None:
            search = AlarmSearch(epsilon, as_fraction(max_mcdp, "max_mcdp"), alarm_rate)
        results = []
        for period in self._periods(comparison):
            alarm = None if search is None else search.add(period)
            interval = expected = None
            if not period.missing:
                interval, expected = period.interval(epsilon, confidence), period.expected(epsilon)
            results.append(
                PeriodResult(period.name, period.sketch.size, interval, expected, alarm, period.missing)
            )
        return results

    def since_start(
        self,
        epsilon: float = 0.0,
        *,
        criterion: Criterion = "demographic_parity",
        compare: Compare = "between_groups",
        min_group_size: int = 1,
        confidence: float = 0.95,
    ) -> WindowResult:
        """Compute MCDP(epsilon) among all people counted so far, with an interval that holds at every look.

        Rows are assumed to be independent; the distribution of the scores may change over time. Each look,
        which is each batch appended, spends a share of the error, and the shares of all looks sum to 1. So
        the intervals of all looks, however many there are, hold together with probability `confidence`, each
        for the population that the people counted until then were drawn from.

        Parameters
        ----------
        epsilon : float
            The half-width of the windows of scores.
        criterion, compare : str
            Who is compared, as in `mcdp`.
        min_group_size : int
            The fewest people that each group must have; else nothing is said.
        confidence : float
            The probability that the intervals of all looks contain the true MCDP.

        Returns
        -------
        WindowResult
            From the first period to the last.
        """
        comparison, epsilon = Comparison(criterion, compare, min_group_size), as_epsilon(epsilon)
        confidence = as_probability(confidence)
        periods = self._periods(comparison)
        first = whole = next(periods, None)
        if first is None or whole is None:
            raise ValueError(f"{self.folder} has no periods")
        n_periods = 1
        for period in periods:
            whole, n_periods = whole.merge(period), n_periods + 1
        interval = None if whole.missing else whole.interval_at_every_look(epsilon, confidence)
        return WindowResult(first.name, whole.name, n_periods, whole.sketch.size, interval)

    def _periods(self, comparison: Comparison) -> Iterator[Period]:
        """The periods, in order."""
        names = self._names()
        for name in foretold(names, len(names), "periods"):
            path = self._path(name)
            stored = StoredPeriod.read(path)
            sketch = ScoreSketch.from_bytes(stored.sketch, f"the sketch in {path}")
            yield Period(name, stored.look, stored.newer, sketch, comparison)

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
            raise ValueError(f"at must be in the years 1 to 9999 in UTC, got {at}") from None
        added = Batch(batch_id, _digest(batch), at.strftime(_FORMATS[self.every]))
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / _LOCK), closing(self._index):
            self._keep_settings(columns)
            try:
                return self._count(batch, added, allow_duplicate)
            except StaleIndexError:
                with self._index.writing():
                    self._index.rebuild(map(self._indexed, self._names()))
                    return self._count(batch, added, allow_duplicate)

    def _count(self, batch: Predictions, added: Batch, allow_duplicate: bool) -> bool:
        """Add a batch to its period unless its id is known; nothing is written where the index is stale."""
        periods, look = self._index.periods()
        newest = self._index.newest()
        with os.scandir(self.folder) as files:
            stored_periods = sum(file.name.endswith(_ENDING) for file in files)
        if periods != stored_periods or (newest is not None and not self._is_counted(newest)):
            raise StaleIndexError("the index does not match the periods")
        if self._find("id", added.id) is not None:
            return False
        twin = self._find("digest", added.digest)
        if twin is not None and not allow_duplicate:
            raise ValueError(
                f"batch {added.id!r} has the same rows as batch {twin.id!r}, which was counted before; "
                "pass allow_duplicate=True to count it again"
            )
        path = self._path(added.period)
        sketch, batches = ScoreSketch(score_range=self.score_range), dict[str, str]()
        if path.exists():
            stored = StoredPeriod.read(path)
            batches, sketch = stored.batches, ScoreSketch.from_bytes(stored.sketch, f"the sketch in {path}")
        sketch.add(batch)
        batches[added.id] = added.digest
        newer = self._index.newer_periods(added.period)
        self._index.add(added, look + 1)
        StoredPeriod(batches, look + 1, newer, sketch.to_bytes()).write(path)
        return True

    def _find(self, column: str, value: str) -> Batch | None:
        """The batch of the index with an id or a digest, which must be in its period."""
        found = self._index.find(column, value)
        if found is not None and not self._is_counted(found):
            raise StaleIndexError(f"batch {found.id!r} is not in its period")
        return found

    def _is_counted(self, batch: Batch) -> bool:
        path = self._path(batch.period)
        return path.exists() and StoredPeriod.read(path).batches.get(batch.id) == batch.digest

    def _indexed(self, period: str) -> tuple[str, int, list[Batch]]:
        """A period as the index is rebuilt from it."""
        stored = StoredPeriod.read(self._path(period))
        return period, stored.look, [Batch(*each, period) for each in stored.batches.items()]

    def _settings(self) -> dict[str, Any]:
        """What the first batch has fixed; empty before it."""
        path = self.folder / _SETTINGS
        if not path.exists():
            return {}
        with reading(str(path)):
            settings = parse_sealed(path.read_bytes())
            as_choice(settings["every"], "every", get_args(Every))
            settings["score_range"] = as_score_range(settings["score_range"])
            if "columns" in settings:
                settings["columns"] = {name: settings["columns"][name] for name in _COLUMNS}
        return settings

    def _keep_settings(self, columns: dict[str, Any] | None) -> None:
        """Keep the settings with the first batch, and the columns with the first file."""
        known = self._settings()
        if columns is not None and "columns" in known:
            self._check_same(columns, known["columns"])
        if not known or (columns is not None and "columns" not in known):
            settings = {"every": self.every, "score_range": list(self.score_range)}
            added = {} if columns is None else {"columns": columns}
            write_whole(self.folder / _SETTINGS, seal_json(settings | added), durable=True)

    def _check_same(self, given: dict[str, Any], known: dict[str, Any]) -> None:
        for name, value in given.items():
            if value != known[name]:
                raise ValueError(f"{name} must be {known[name]!r}, as in {self.folder}, got {value!r}")

    def _path(self, period: str) -> Path:
        return self.folder / f"{period}{_ENDING}"

    def _names(self) -> list[str]:
        """The names of the periods, in order."""
        return sorted(path.stem for path in self.folder.glob(f"*{_ENDING}"))


def _digest(batch: Predictions) -> str:
    """The sha256 of a batch's rows, in their order."""
    columns = (batch.scores, batch.codes.astype(np.uint32), batch.labels)
    parts = [np.ascontiguousarray(column).tobytes() for column in columns if column is not None]
    return sha256_of(b"".join([repr(batch.groups).encode(), *parts]))
