"""The store: one run a file, complete or not there, and queried with SQL."""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localparity._io._files import write_whole
from localparity._io._tables import quote_text
from localparity.paper._result import FROM_SCRATCH, Result, Scored, load_result
from localparity.paper._run import Run

FORMAT = 1
_OF_A_RECORD = ("metrics", "seconds", "device", "versions")


class DamagedRunWarning(UserWarning):
    """A stored run cannot be used; it was set aside and counts as missing.

    Examples
    --------
    A sweep that should stop in place of training such a run again:

    >>> import localparity as lp
    >>> store = lp.paper.Store(tempfile.mkdtemp())
    >>> store.runs.mkdir()
    >>> _ = (store.runs / "adult-erm.json").write_text("half of a fi")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", lp.paper.DamagedRunWarning)
    ...     store.records()
    Traceback (most recent call last):
    localparity.paper._store.DamagedRunWarning: ...adult-erm.json...
    """


class OutdatedRunWarning(UserWarning):
    """Stored runs were trained with other settings than the library has for them today.

    Examples
    --------
    Tables from a store where no run may be left out:

    >>> import localparity as lp
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", lp.paper.OutdatedRunWarning)
    ...     lp.paper.Store(tempfile.mkdtemp()).records()
    []
    """


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
    start : str
        Where the network started: "from scratch" or "from ImageNet weights".

    Examples
    --------
    >>> record = Record(Run("adult", "erm", 0.0, 0), {"test_ap": 0.77}, 4.2, "cpu", {"torch": "2.13.0"})
    >>> record.metrics["test_ap"]
    0.77
    """

    run: Run
    metrics: dict[str, float]
    seconds: float
    device: str
    versions: dict[str, str]
    start: str = FROM_SCRATCH


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
    >>> run in store, store.records()
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
            "start": result.start,
            "scores_sha256": hashlib.sha256(content).hexdigest(),
        }
        path = self._path(run)
        if not self._marker.exists():
            mark = {"format": FORMAT, "localparity": result.versions["localparity"]}
            write_whole(self._marker, json.dumps(mark).encode())
        write_whole(path.with_suffix(".parquet"), content)
        write_whole(path, json.dumps(facts, indent=1).encode())

    def add_folder(self, folder: Any) -> int:
        """Add the results that `save_result` wrote on another machine, and return how many there were."""
        paths = sorted(Path(folder).glob("*.npz"))
        for path in paths:
            self.add(*load_result(path))
        return len(paths)

    def records(self) -> list[Record]:
        """The runs that are there, whole, and trained with the settings that they would have today.

        Runs with other settings are left out, and a warning says how many.
        """
        found, outdated = [], 0
        for path in sorted(self.runs.glob("*.json")):
            facts = self._read(path)
            if facts is None:
                continue
            run = Run(**facts["run"])
            if run.key == facts["key"]:
                start = facts.get("start", FROM_SCRATCH)
                found.append(Record(run, start=start, **{name: facts[name] for name in _OF_A_RECORD}))
            else:
                outdated += 1
        if outdated:
            warnings.warn(
                f"{outdated} runs in {self.folder} were trained with settings that have changed since; they "
                "are left out",
                OutdatedRunWarning,
                stacklevel=2,
            )
        return found

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

        Examples
        --------
        >>> from localparity.paper import Store
        >>> store = Store("localparity-store")  # doctest: +SKIP
        >>> store.query("select method, avg(test_mcdp_0) from runs group by all").fetchall()  # doctest: +SKIP
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
            problem = _problem(facts, path.with_suffix(".parquet").read_bytes())
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"{type(error).__name__}: {error}"
        if not problem:
            return facts
        _set_aside(path, problem)
        return None

    def check_version(self) -> None:
        """Raise where another version of localparity wrote the store: its runs may not be those of today."""
        import localparity

        here, there = localparity.__version__, self._mark().get("localparity")
        if there is not None and there != here:
            raise ValueError(
                f"the store {self.folder} was written by localparity {there} where this is {here}, which may "
                "train otherwise; tables and figures can be made of it, further runs need another folder"
            )

    def _mark(self) -> dict[str, Any]:
        """What says that the folder is a store, and of which format."""
        if not self._marker.exists():
            return {}
        try:
            mark = json.loads(self._marker.read_bytes())
            return {"format": mark["format"], "localparity": mark.get("localparity")}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{self._marker} cannot be read as the mark of a store: {error!r}") from error

    def _check_format(self) -> None:
        mark = self._mark()
        if mark:
            found = mark["format"]
            if found != FORMAT:
                raise ValueError(
                    f"the store {self.folder} is of format {found} where this version of localparity reads "
                    f"format {FORMAT}; use the version that wrote it, or name another folder"
                )
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise ValueError(f"{self.folder} is not a store: it has files and no store.json")


def _problem(facts: dict[str, Any], scores: bytes) -> str:
    """What is wrong with a run, or nothing."""
    Run(**facts["run"])
    for name in ("key", *_OF_A_RECORD):
        if name not in facts:
            return f"{name} is missing"
    if hashlib.sha256(scores).hexdigest() != facts["scores_sha256"]:
        return "its scores are not those that were written"
    return ""


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
