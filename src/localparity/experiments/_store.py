"""The store: one run a file, complete or not there, and queried with SQL."""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localparity._files import write_whole
from localparity._tables import quote_text
from localparity.experiments._result import Result, Scored
from localparity.experiments._run import Run

FORMAT = 1


class DamagedRunWarning(UserWarning):
    """A stored run cannot be used; it was set aside and counts as missing."""


@dataclass(frozen=True)
class Record:
    """A stored run without its scores.

    Parameters
    ----------
    run : Run
        What was trained.
    metrics : dict
        Its metrics, as fractions.
    seconds : float
        How long training took.
    device : str
        Where.
    versions : dict
        The versions of localparity and torch.
    """

    run: Run
    metrics: dict[str, float]
    seconds: float
    device: str
    versions: dict[str, str]


class Store:
    """A folder of runs.

    A run is a Parquet file of test scores and a JSON file of metrics, both named after its configuration. The
    JSON file is written last and has the checksum of the other, so a run whose JSON is there is complete.

    Parameters
    ----------
    folder : path
        Where; it is made when the first run is added.

    Examples
    --------
    >>> store = Store(tempfile.mkdtemp())
    >>> run = Run("adult", "erm", 0.0, seed=0)
    >>> run in store, list(store.records())
    (False, [])
    """

    def __init__(self, folder: Any) -> None:
        self.folder = Path(folder)
        self.runs = self.folder / "runs"
        self._marker = self.folder / "store.json"
        self._check_format()

    def __contains__(self, run: Run) -> bool:
        """Whether a run is there, whole; a damaged one is set aside."""
        return self._read(self._path(run)) is not None

    def add(self, run: Run, result: Result) -> None:
        """Write what a run gave, in place of what is there of it."""
        content = _parquet(result.test)
        facts = {
            "key": run.key,
            "run": run.to_dict(),
            "settings": run.settings,
            "metrics": result.metrics,
            "seconds": result.seconds,
            "device": result.device,
            "versions": result.versions,
            "scores_sha256": hashlib.sha256(content).hexdigest(),
        }
        path = self._path(run)
        write_whole(self._marker, json.dumps({"format": FORMAT}).encode())
        write_whole(path.with_suffix(".parquet"), content)
        write_whole(path, json.dumps(facts, indent=1).encode())

    def records(self) -> Iterator[Record]:
        """The runs that are there, whole, and trained as the library would train them today."""
        for path in sorted(self.runs.glob("*.json")):
            facts = self._read(path)
            if facts is None:
                continue
            record = Record(
                Run(**facts["run"]), facts["metrics"], facts["seconds"], facts["device"], facts["versions"]
            )
            if record.run.key == facts["key"]:
                yield record

    def scores(self, run: Run) -> Scored:
        """The test scores of a run."""
        import duckdb

        path = self._path(run).with_suffix(".parquet")
        with duckdb.connect() as connection:
            found = connection.read_parquet(str(path)).fetchnumpy()
        return Scored(found["score"], found["group"], found["label"])

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Those of the runs that are not there, or not whole."""
        return [run for run in runs if run not in self]

    def query(self, sql: str) -> Any:
        """Ask the store with SQL, through DuckDB.

        There are two tables: `runs` has a row a run (key, dataset, method, strength, seed, preset, search,
        temperature, the metrics, seconds, device) and `scores` has a row a person (key, score, group, label).

        Parameters
        ----------
        sql : str
            A query.

        Returns
        -------
        duckdb.DuckDBPyRelation
            With `fetchall()`, `df()` and so on.
        """
        import duckdb

        if not any(self.runs.glob("*.json")):
            raise ValueError(f"the store {self.folder} has no runs to query")
        connection = duckdb.connect()
        json_files, score_files = (quote_text(f"{self.runs}/*.{kind}") for kind in ("json", "parquet"))
        connection.execute(
            "CREATE VIEW runs AS SELECT key, run.*, metrics.*, seconds, device, "
            "parse_filename(filename, true) AS file "
            f"FROM read_json({json_files}, filename = true, sample_size = -1)"
        )
        connection.execute(
            "CREATE VIEW scores AS SELECT runs.key, s.score, s.group, s.label "
            f"FROM read_parquet({score_files}, filename = true) s "
            "JOIN runs ON runs.file = parse_filename(s.filename, true)"
        )
        return connection.sql(sql)

    def _path(self, run: Run) -> Path:
        name = f"{run.dataset}-{run.preset}-{run.method}-{run.strength:g}-{run.seed}-{run.key}"
        return self.runs / f"{name}.json"

    def _read(self, path: Path) -> dict[str, Any] | None:
        """A run's facts; None where it is not there or was set aside."""
        if not path.exists():
            return None
        try:
            facts: dict[str, Any] = json.loads(path.read_bytes())
            Run(**facts["run"])
            scores = path.with_suffix(".parquet").read_bytes()
            fine = hashlib.sha256(scores).hexdigest() == facts["scores_sha256"]
            problem = "its scores are not those that were written"
            fine = fine and {"key", "metrics", "seconds", "device", "versions"} <= facts.keys()
        except (OSError, ValueError, KeyError, TypeError) as error:
            fine, problem = False, f"{type(error).__name__}: {error}"
        if fine:
            return facts
        _set_aside(path, problem)
        return None

    def _check_format(self) -> None:
        if self._marker.exists():
            try:
                found = json.loads(self._marker.read_bytes())["format"]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{self._marker} cannot be read as the mark of a store: {error}") from error
            if found != FORMAT:
                raise ValueError(
                    f"the store {self.folder} is of format {found} where this version of localparity reads "
                    f"format {FORMAT}; use the version that wrote it, or name another folder"
                )
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise ValueError(f"{self.folder} is not a store: it has files and no store.json")


def _set_aside(path: Path, problem: str) -> None:
    for part in (path, path.with_suffix(".parquet")):
        if part.exists():
            part.replace(part.with_name(part.name + ".damaged"))
    warnings.warn(
        f"the run {path} is damaged ({problem}); it was renamed to {path.name}.damaged and counts as missing",
        DamagedRunWarning,
        stacklevel=4,
    )


def _parquet(people: Scored) -> bytes:
    """The scores as a Parquet file; the same scores give the same bytes."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder, duckdb.connect(config={"threads": 1}) as connection:
        path = Path(folder) / "scores.parquet"
        connection.register("people", {"score": people.score, "group": people.group, "label": people.label})
        connection.execute(f"COPY people TO {quote_text(str(path))} (FORMAT parquet)")
        return path.read_bytes()
