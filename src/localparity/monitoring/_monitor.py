"""MCDP over time: a folder with a sketch for each day or hour, which survives being killed at any moment.

A period is one file that holds its sketch and the ids of the batches in it. It is written beside and renamed
into place, so a batch and its id are in the file together or not at all; and a batch whose id is known is not
counted again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from localparity._io._files import damage_of, parse_json, write_whole
from localparity._types import Compare, Criterion
from localparity._validation import (
    as_choice,
    as_count,
    as_epsilon,
    as_fraction,
    as_probability,
    as_score_range,
)
from localparity.counts import Comparison
from localparity.metrics import Interval
from localparity.metrics._gap_curves import gap_curves
from localparity.monitoring._container import pack, unpack
from localparity.monitoring._sketch import ScoreSketch
from localparity.predictions import Predictions
from localparity.uncertainty._bands import dkw_radii
from localparity.uncertainty._intervals import pair_intervals, worst_intervals
from localparity.uncertainty._permutation import parity_resamples
from localparity.uncertainty._resampling import Draws

Every = Literal["day", "hour"]

_MARK, _VERSION = b"LPPERIOD", 2
_FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}
_SETTINGS = "monitor.json"
_ENDING = ".period"

_SKETCH_SHARE = 0.1
_FLOOR_RESAMPLES = 50


@dataclass(frozen=True)
class PeriodResult:
    """MCDP in one period.

    Attributes
    ----------
    period : str
        The day or the hour, in UTC.
    rows : int
        How many rows were counted.
    interval : Interval or None
        MCDP of the people that the period's rows were drawn from, counting in chance and what the sketch
        leaves open; None where there is nothing to compare.
    expected : float or None
        What groups of these sizes that do not differ are expected to measure.
    alarm : bool
        Whether MCDP is above the bound, if one was given, by more than chance explains on any look.
    missing : str
        Why there is nothing to compare, else empty.

    Examples
    --------
    >>> import datetime, tempfile
    >>> import localparity as lp
    >>> monitor = lp.monitoring.Monitor(tempfile.mkdtemp(), every="hour")
    >>> batch = lp.Predictions.from_arrays(None, [0.2, 0.9], sensitive_features=["f", "m"])
    >>> _ = monitor.append(batch, at=datetime.datetime(2026, 5, 17, 12, tzinfo=datetime.UTC), batch_id="1")
    >>> point = monitor.series(max_mcdp=0.1)[0]
    >>> point.rows, point.interval.estimate, point.interval.low, point.alarm
    (2, 1.0, 0.0, False)
    """

    period: str
    rows: int
    interval: Interval | None
    expected: float | None = None
    alarm: bool = False
    missing: str = ""


class Monitor:
    """Sketches of a stream's scores by day or hour, in a folder.

    Parameters
    ----------
    folder : path
        Where the sketches are; it is made where it does not exist.
    every : str
        How long a period is, "day" or "hour"; a folder that exists keeps its own.
    score_range : tuple of float
        The lowest and the highest score there can be; a folder that exists keeps its own.

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
        score_range: tuple[float, float] | None = None,
    ) -> None:
        self.folder = Path(folder)
        if every is not None:
            as_choice(every, "every", get_args(Every))
        given = None if score_range is None else as_score_range(score_range)
        settings = self._settings()
        if settings is None:
            settings = {"every": every or "day", "score_range": given or (0.0, 1.0)}
        self.every: str = settings["every"]
        self.score_range: tuple[float, float] = settings["score_range"]
        for name, asked, found in (
            ("every", every, self.every),
            ("score_range", given, self.score_range),
        ):
            if asked is not None and asked != found:
                raise ValueError(f"{name} is {asked!r} where the monitor in {self.folder} has {found!r}")

    def append(
        self, batch: Predictions, *, at: datetime, batch_id: str, allow_duplicate: bool = False
    ) -> bool:
        """Count a batch in its period, once.

        Parameters
        ----------
        batch : Predictions
            The rows of the batch, which may have one group only.
        at : datetime
            When it was; a time without a zone is in UTC.
        batch_id : str
            The batch's own name. A batch that is applied again under the same id is not counted again.
        allow_duplicate : bool
            Whether a batch with the very rows of another, under another id, is counted; else it is an error.

        Returns
        -------
        bool
            False where the batch was known.
        """
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        period = at.strftime(_FORMATS[self.every])
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            if self._settings() is None:
                settings = {"every": self.every, "score_range": list(self.score_range)}
                write_whole(self.folder / _SETTINGS, json.dumps(settings).encode(), lasting=True)
            digest, arrival = _digest(batch), 0
            for known in self._paths():
                counted, arrived, _ = _read_batches(known)
                arrival = max(arrival, arrived)
                if batch_id in counted:
                    return False
                twin = next((name for name, other in counted.items() if other == digest), None)
                if twin is not None and not allow_duplicate:
                    raise ValueError(
                        f"batch {batch_id!r} has the same rows as batch {twin!r}, which is counted already; "
                        "pass allow_duplicate=True to count it again"
                    )
            path = self.folder / f"{period}{_ENDING}"
            arrival += 1
            sketch, batches = ScoreSketch(score_range=self.score_range), dict[str, str]()
            if path.exists():
                sketch, batches, arrival = _read_period(path)
            sketch.add(batch)
            batches[batch_id] = digest
            header = {"batches": list(batches), "digests": list(batches.values()), "arrival": arrival}
            write_whole(path, pack(_MARK, _VERSION, header, [sketch.to_bytes()]), lasting=True)
        return True

    def series(
        self,
        epsilon: float = 0.0,
        *,
        criterion: Criterion = "demographic_parity",
        compare: Compare = "between_groups",
        confidence: float = 0.95,
        max_mcdp: float | None = None,
        alarm_rate: float = 0.05,
    ) -> list[PeriodResult]:
        """MCDP(epsilon) in each period, from the oldest to the newest.

        Rows are assumed to be independent. An alarm says that MCDP is above `max_mcdp`. Each look at a
        period, which is each batch appended to it, may be wrong with a share of `alarm_rate`: the j-th look
        at the period that came k-th with 1 / (j (j + 1) k (k + 1)) of it, and these sum to 1. So the
        probability that a monitor ever raises a false alarm, however long it runs, is at most `alarm_rate`.

        Parameters
        ----------
        epsilon : float
            The half-width of the windows.
        criterion, compare : str
            Which people, and which groups, are compared, as in `mcdp`.
        confidence : float
            The probability with which the interval of one period holds.
        max_mcdp : float, optional
            The most that MCDP may be; no period raises an alarm without it.
        alarm_rate : float
            The probability that any alarm ever is false, at the most.

        Returns
        -------
        list of PeriodResult
            A period in which a group is missing says so.
        """
        comparison = Comparison(criterion, compare)
        asked = PeriodQuestion(as_epsilon(epsilon), comparison, as_probability(confidence))
        rate = as_probability(alarm_rate, "alarm_rate")
        bound = None if max_mcdp is None else as_fraction(max_mcdp, "max_mcdp")
        found = []
        for period, sketch, batches, arrival in self._periods():
            missing = asked.missing(sketch)
            if missing:
                found.append(PeriodResult(period, sketch.size, None, missing=missing))
                continue
            alarm = False
            if bound is not None:
                error = rate * share_of_look(arrival, len(batches))
                alarm = asked.interval(sketch, 1.0 - error).low > bound
            interval = asked.interval(sketch, asked.confidence)
            found.append(PeriodResult(period, sketch.size, interval, asked.expected(sketch), alarm))
        return found

    def _settings(self) -> dict[str, Any] | None:
        path = self.folder / _SETTINGS
        if not path.exists():
            return None
        with damage_of(str(path)):
            settings = parse_json(path.read_bytes())
            return {
                "every": as_choice(settings["every"], "every", get_args(Every)),
                "score_range": as_score_range(settings["score_range"]),
            }

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{_ENDING}"))

    def _periods(self) -> Iterator[tuple[str, ScoreSketch, dict[str, str], int]]:
        for path in self._paths():
            yield (path.name.removesuffix(_ENDING), *_read_period(path))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time; the lock ends with the process that holds it."""
        import fcntl

        with (self.folder / "lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def share_of_look(period: int, look: int) -> float:
    """The share of the error that one look at one period may spend; over all looks and periods, 1.

    Examples
    --------
    >>> share_of_look(1, 1), round(sum(share_of_look(k, j) for k in range(1, 500) for j in range(1, 500)), 2)
    (0.25, 1.0)
    """
    return 1.0 / (period * (period + 1) * look * (look + 1))


class PeriodQuestion(NamedTuple):
    """What is asked of every period."""

    epsilon: float
    comparison: Comparison
    confidence: float

    def missing(self, sketch: ScoreSketch) -> str:
        """Why a period has nothing to compare; empty where it has."""
        counts = sketch.counts()
        small = counts.small_groups(self.comparison)
        if len(counts.groups) > 1 and not small:
            return ""
        named = ", ".join(map(repr, small or counts.groups))
        return f"group {named} has no rows to compare" if small else f"the period has one group only, {named}"

    def interval(self, sketch: ScoreSketch, confidence: float) -> Interval:
        """MCDP with what chance and the sketch leave open; a tenth of the error is the sketch's."""
        error = 1.0 - confidence
        counts = sketch.counts(1.0 - _SKETCH_SHARE * error)
        curves = gap_curves(counts, self.comparison)
        radii = dkw_radii(curves, 1.0 - (1.0 - _SKETCH_SHARE) * error)
        (found,) = worst_intervals(pair_intervals(curves, np.array([self.epsilon]), radii, confidence))
        return found

    def expected(self, sketch: ScoreSketch) -> float:
        """What MCDP is expected under parity, at the period's sizes and scores."""
        counts, epsilons = sketch.counts(), np.array([self.epsilon])
        draws = Draws(_FLOOR_RESAMPLES, random_state=0)
        found = parity_resamples(counts, self.comparison, epsilons, draws)
        return float(found.worst.mean())


def _digest(batch: Predictions) -> str:
    """A hash of a batch's rows, in their order."""
    found = hashlib.sha256(repr(batch.groups).encode())
    for column in (batch.scores, batch.codes, batch.labels):
        if column is not None:
            found.update(np.ascontiguousarray(column).tobytes())
    return found.hexdigest()


def _read_batches(path: Path) -> tuple[dict[str, str], int, bytes]:
    """The ids that a period has counted with the hash of each one's rows, when it came, and its sketch."""
    header, parts = unpack(path.read_bytes(), _MARK, _VERSION, str(path))
    with damage_of(str(path)):
        (sketch,) = parts
        batches, digests = (list(map(str, header[name])) for name in ("batches", "digests"))
        arrival = as_count(header["arrival"], "arrival")
        return dict(zip(batches, digests, strict=True)), arrival, sketch


def _read_period(path: Path) -> tuple[ScoreSketch, dict[str, str], int]:
    batches, arrival, sketch = _read_batches(path)
    return ScoreSketch.from_bytes(sketch, f"the sketch in {path}"), batches, arrival
