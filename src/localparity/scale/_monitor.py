"""MCDP over time: a folder with a sketch for each day or hour, which survives being killed at any moment.

A period is one file that holds its sketch and the ids of the batches in it. It is written beside and renamed
into place, so a batch and its id are in the file together or not at all; and a batch whose id is known is not
counted again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from localparity._files import damage_of, parse_json, write_whole
from localparity._validation import as_choice, as_score_range
from localparity.metrics._criteria import Criterion
from localparity.metrics._groups import Compare
from localparity.predictions import Predictions
from localparity.scale._container import pack, unpack
from localparity.scale._sketch import ScoreSketch

Every = Literal["day", "hour"]

_MARK, _VERSION = b"LPPERIOD", 1
_FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}
_SETTINGS = "monitor.json"
_ENDING = ".period"


@dataclass(frozen=True)
class PeriodResult:
    """MCDP in one period.

    Attributes
    ----------
    period : str
        The day or the hour, in UTC.
    rows : int
        How many rows were counted.
    mcdp : float or None
        The estimate; None where there is nothing to compare.
    low, high : float or None
        What MCDP of the rows lies between, with the confidence that was asked for.
    missing : str
        Why there is nothing to compare, else empty.

    Examples
    --------
    >>> import datetime, tempfile
    >>> import localparity as lp
    >>> monitor = lp.scale.Monitor(tempfile.mkdtemp(), every="hour")
    >>> batch = lp.Predictions.from_arrays(None, [0.2, 0.9], sensitive_features=["f", "m"])
    >>> _ = monitor.append(batch, at=datetime.datetime(2026, 5, 17, 12, tzinfo=datetime.UTC), batch_id="1")
    >>> point = monitor.series()[0]
    >>> point.rows, point.low, point.mcdp, point.high
    (2, 1.0, 1.0, 1.0)
    """

    period: str
    rows: int
    mcdp: float | None
    low: float | None
    high: float | None
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
    >>> monitor = lp.scale.Monitor(tempfile.mkdtemp(), every="day")
    >>> batch = lp.Predictions.from_arrays(None, [0.2, 0.9], sensitive_features=["f", "m"])
    >>> at = datetime.datetime(2026, 5, 17, 12, tzinfo=datetime.UTC)
    >>> monitor.append(batch, at=at, batch_id="1"), monitor.append(batch, at=at, batch_id="1")
    (True, False)
    >>> [(point.period, point.rows, point.mcdp) for point in monitor.series()]
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

    def append(self, batch: Predictions, *, at: datetime, batch_id: str) -> bool:
        """Count a batch in its period, once.

        Parameters
        ----------
        batch : Predictions
            The rows of the batch, which may have one group only.
        at : datetime
            When it was; a time without a zone is in UTC.
        batch_id : str
            The batch's own name. A batch that is applied again under the same id is not counted again.

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
            if any(batch_id in _read_batches(path)[0] for path in self._paths()):
                return False
            path = self.folder / f"{period}{_ENDING}"
            sketch, batches = ScoreSketch(score_range=self.score_range), list[str]()
            if path.exists():
                sketch, batches = _read_period(path)
            sketch.add(batch)
            header = {"batches": [*batches, batch_id]}
            write_whole(path, pack(_MARK, _VERSION, header, [sketch.to_bytes()]), lasting=True)
        return True

    def series(
        self,
        epsilon: float = 0.0,
        *,
        criterion: Criterion = "demographic_parity",
        compare: Compare = "between_groups",
        confidence: float = 0.99,
    ) -> list[PeriodResult]:
        """MCDP(epsilon) in each period, from the oldest to the newest.

        Parameters
        ----------
        epsilon : float
            The half-width of the windows.
        criterion, compare : str
            Which people, and which groups, are compared, as in `mcdp`.
        confidence : float
            The probability with which the bounds of a period hold.

        Returns
        -------
        list of PeriodResult
            A period in which a group is missing says so.
        """
        found = []
        for period, sketch, _ in self._periods():
            counts = sketch.counts(confidence)
            try:
                value = counts.mcdp(epsilon, criterion, compare)
                low, high = counts.mcdp_bounds(epsilon, criterion, compare)
            except ValueError as error:
                if len(counts.groups) > 1 and not counts.small_groups(criterion, 1):
                    raise
                found.append(PeriodResult(period, sketch.size, None, None, None, str(error)))
            else:
                found.append(PeriodResult(period, sketch.size, value, low, high))
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

    def _periods(self) -> Iterator[tuple[str, ScoreSketch, list[str]]]:
        for path in self._paths():
            yield (path.name.removesuffix(_ENDING), *_read_period(path))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time; the lock ends with the process that holds it."""
        import fcntl

        with (self.folder / "lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _read_batches(path: Path) -> tuple[list[str], bytes]:
    """The ids that a period has counted, and its sketch as bytes."""
    header, parts = unpack(path.read_bytes(), _MARK, _VERSION, str(path))
    with damage_of(str(path)):
        (sketch,) = parts
        return [str(batch) for batch in header["batches"]], sketch


def _read_period(path: Path) -> tuple[ScoreSketch, list[str]]:
    batches, sketch = _read_batches(path)
    return ScoreSketch.from_bytes(sketch, f"the sketch in {path}"), batches
