"""The store: a run is complete or absent, and what the library would not train so today is left out."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._duckdb import quote_text
from localparity._io._files import (
    DESCRIPTION_SIZE,
    check_format,
    parse_sealed,
    read_regular,
    reading,
    seal_json,
    sha256_of,
    write_whole,
)
from localparity._progress import foretold
from localparity._text import brief
from localparity.metrics import abcc, delta_dp, mcdp_profile
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.paper._runs import Run

# The scores of a part of a data set, and their metrics.


def mcdp_name(epsilon: float) -> str:
    """The metric's name at an epsilon."""
    return f"mcdp_{epsilon:g}".replace(".", "_")


METRIC_NAMES = ("ap", "delta_dp", "delta_dp_mean", "abcc", *map(mcdp_name, PAPER_EPSILONS))


class PartScores:
    """The scores of a validation or test part, kept as float32, with groups as text and labels 0 and 1.

    Examples
    --------
    >>> part = PartScores(np.array([0.1, 0.9]), np.array(["f", "m"]), np.array([0, 1]))
    >>> part.measure("test")["test_mcdp_0"]
    1.0
    """

    def __init__(self, score: NDArray[Any], group: NDArray[Any], label: NDArray[Any]) -> None:
        self.score = score.astype(np.float32)
        self.group = group.astype(str)
        self.label = label.astype(np.int8)

    def measure(self, part: str) -> dict[str, float]:
        """Return average precision and the disparities as fractions; their names start with the part's."""
        from sklearn.metrics import average_precision_score

        codes = np.unique(self.group, return_inverse=True)[1]
        profile = mcdp_profile(None, self.score, sensitive_features=codes)
        metrics = {
            "ap": float(average_precision_score(self.label, self.score)),
            "delta_dp": delta_dp(None, self.score, sensitive_features=codes, threshold=0.5),
            "delta_dp_mean": delta_dp(None, self.score, sensitive_features=codes),
            "abcc": abcc(None, self.score, sensitive_features=codes),
            **{mcdp_name(epsilon): float(profile(epsilon)) for epsilon in PAPER_EPSILONS},
        }
        return {f"{part}_{name}": value for name, value in metrics.items()}

    def group_sizes(self) -> list[int]:
        """Return the number of people in each group, in the order of the groups' names."""
        return [int((self.group == group).sum()) for group in np.unique(self.group)]


FORMAT = 1
FROM_SCRATCH, FROM_IMAGENET = "from scratch", "from ImageNet weights"
_RECORD_FIELDS = ("metrics", "seconds", "device", "versions")


class DamagedRunWarning(UserWarning):
    """A stored run cannot be used; it was renamed and counts as missing."""


class OutdatedRunWarning(UserWarning):
    """Stored runs were trained with other settings than the library has for them today."""


@dataclass(frozen=True)
class Record:
    """A trained run without its scores.

    `metrics` are those of the validation and the test part, as fractions; `seconds` is the training time;
    `versions` are those of localparity and torch.
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
    JSON file is written last and has the checksum of the other, so that a run with a JSON file is complete.

    Parameters
    ----------
    folder : path
        The folder, which is created when the first run is added.

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
        """Whether a run is there and complete; a damaged one is set aside."""
        return self._read(self._path(run)) is not None

    def add(self, record: Record, scores: PartScores) -> None:
        """Write a trained run, in place of an earlier one.

        Parameters
        ----------
        record : Record
            The run and its metrics.
        scores : PartScores
            The scores of its test part.
        """
        content, run = _parquet(scores), record.run
        stated = {"key": run.key, "run": asdict(run), "settings": run.stated_settings}
        facts = {**asdict(record), **stated, "scores_sha256": sha256_of(content)}
        path = self._path(run)
        if not self._marker.exists():
            mark = {"format": FORMAT, "localparity": record.versions["localparity"]}
            write_whole(self._marker, seal_json(mark))
        write_whole(path.with_suffix(".parquet"), content)
        write_whole(path, seal_json(facts))

    def records(self) -> list[Record]:
        """Return the complete runs whose settings are still those of the library.

        Runs with other settings are left out, with an `OutdatedRunWarning`.

        Returns
        -------
        list of Record
            The runs without their scores.
        """
        records, outdated = [], 0
        paths = sorted(self.runs.glob("*.json"))
        for path in foretold(paths, len(paths), "reading runs"):
            facts = self._read(path)
            if facts is None:
                continue
            run = Run(**facts["run"])
            if run.key == facts["key"]:
                start = facts.get("start", FROM_SCRATCH)
                records.append(Record(run, start=start, **{name: facts[name] for name in _RECORD_FIELDS}))
            else:
                outdated += 1
        if outdated:
            warnings.warn(
                f"{outdated} runs in {self.folder} were trained with settings that have changed since; they "
                "are left out",
                OutdatedRunWarning,
                stacklevel=2,
            )
        return records

    def scores(self, run: Run) -> PartScores:
        """Return the test scores of a run.

        Parameters
        ----------
        run : Run
            A run that is in the store.

        Returns
        -------
        PartScores
            Arrays `score`, `group` and `label`.
        """
        import duckdb

        path = self._path(run).with_suffix(".parquet")
        with reading(str(path), duckdb.Error), duckdb.connect() as connection:
            columns = connection.read_parquet(str(path)).fetchnumpy()
            return PartScores(columns["score"], columns["group"], columns["label"])

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Return the runs that are absent or damaged.

        Parameters
        ----------
        runs : iterable of Run
            The runs wanted.

        Returns
        -------
        list of Run
            Those to train.
        """
        return [run for run in runs if run not in self]

    def check_version(self) -> None:
        """Raise a ValueError if another version of localparity wrote the store: it may train otherwise."""
        import localparity

        here, there = localparity.__version__, self._mark().get("localparity")
        if there is not None and there != here:
            raise ValueError(
                f"the store {self.folder} was written by localparity {there}, this is {here}, which may "
                "train otherwise; write its tables and figures, but train further runs into another folder"
            )

    def _path(self, run: Run) -> Path:
        name = f"{run.dataset}-{run.preset}-{run.method}-{run.strength:g}-{run.seed}-{run.key}"
        return self.runs / f"{name}.json"

    def _read(self, path: Path) -> dict[str, Any] | None:
        """A run's facts; None if it is absent or was set aside."""
        if not path.exists():
            return None
        try:
            facts = _parse(path)
            problem = _problem(facts, path.with_suffix(".parquet"))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            _set_aside(path, problem)
            return None
        return facts

    def _mark(self) -> dict[str, Any]:
        """The content of store.json: the store's format and the version that wrote it."""
        if not self._marker.exists():
            return {}
        with reading(str(self._marker)):
            mark = _parse(self._marker)
            return {"format": mark["format"], "localparity": mark.get("localparity")}

    def _check_format(self) -> None:
        mark = self._mark()
        if mark:
            check_format(mark["format"], FORMAT, str(self._marker), advice="use another folder")
        # The name of store.json starts with a point while it is written.
        elif self.folder.exists() and any(path.name[0] != "." for path in self.folder.iterdir()):
            raise ValueError(f"{self.folder} is not a store: it has files and no store.json")


def _parse(path: Path) -> dict[str, Any]:
    """What a file of the store describes."""
    return parse_sealed(read_regular(path.parent, path.name, at_most=DESCRIPTION_SIZE))


def _problem(facts: dict[str, Any], scores: Path) -> str:
    """What is wrong with a run; "" if nothing is."""
    Run(**facts["run"])
    for name in ("key", *_RECORD_FIELDS):
        if name not in facts:
            return f"{name} is missing"
    if not isinstance(facts["versions"], dict):
        return "versions must be an object"
    texts = {**facts["versions"], "device": facts["device"], "start": facts.get("start", FROM_SCRATCH)}
    for name, value in texts.items():
        if not isinstance(value, str):
            return f"{name} must be a text, got {brief(value)}"
    most = {name: 1.0 for name in facts["metrics"]} | {"seconds": sys.float_info.max}
    for name, value in {**facts["metrics"], "seconds": facts["seconds"]}.items():
        if type(value) not in (int, float) or not 0.0 <= value <= most[name]:
            return f"{name} must be a number from 0 to {most[name]:g}, got {brief(value)}"
    if sha256_of(read_regular(scores.parent, scores.name)) != facts["scores_sha256"]:
        return "the checksum of its scores is wrong"
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


def _parquet(part: PartScores) -> bytes:
    """The scores as a Parquet file; the same scores give the same bytes."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder, duckdb.connect(config={"threads": 1}) as connection:
        path = Path(folder) / "scores.parquet"
        connection.register("part", {"score": part.score, "group": part.group, "label": part.label})
        connection.execute(f"COPY part TO {quote_text(str(path))} (FORMAT parquet)")
        return path.read_bytes()
