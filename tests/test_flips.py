"""A change of any single byte of a file that is kept is refused, or no number is another one for it."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.monitoring import Monitor, ScoreSketch
from localparity.paper import Run, Store
from localparity.paper._store import DamagedRunWarning, OutdatedRunWarning, PartScores, Record
from localparity.results import ModelCard

pytest.importorskip("datasketches")

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)
CENSUS = lp.datasets.make_census(300, random_state=0)
SEX = CENSUS.sensitive_features
RUN = Run("adult", "erm", 0.0, seed=0)
VERSIONS = {"localparity": lp.__version__, "torch": "2.13.0"}


def batch(number: int) -> lp.Predictions:
    scores = np.random.default_rng(number).random(12)
    return lp.Predictions.from_arrays(None, scores, sensitive_features=list("ab" * 6))


def make_sketch(folder: Path) -> None:
    sketch = ScoreSketch(k=8)
    sketch.add(batch(0))
    (folder / "sketch").write_bytes(sketch.to_bytes())


def read_sketch(folder: Path) -> Any:
    atoms = ScoreSketch.from_bytes((folder / "sketch").read_bytes()).counts().atoms
    return {key: (part.scores.tolist(), part.weights.tolist()) for key, part in atoms.items()}


def make_repair(folder: Path) -> None:
    lp.models.ScoreRepair().fit(CENSUS.score, sensitive_features=SEX).save(folder)


def read_repair(folder: Path) -> Any:
    return lp.load(folder).transform(CENSUS.score, sensitive_features=SEX).tolist()


def make_trees(folder: Path) -> None:
    trees = lp.models.LocalParityLGBMClassifier(0.1, n_estimators=1, random_state=0)
    trees.fit(CENSUS.data[["age"]], CENSUS.target, sensitive_features=SEX).save(folder)


def read_trees(folder: Path) -> Any:
    return lp.load(folder).predict_proba(CENSUS.data[["age"]]).tolist()


def read_card(folder: Path) -> Any:
    return ModelCard.read(folder).to_dict()


def make_monitor(folder: Path) -> None:
    for number in (0, 1):
        Monitor(folder).append(batch(number), at=NOON + timedelta(days=number), batch_id=str(number))


def read_monitor(folder: Path) -> Any:
    """The series before and after one more batch, and what becomes of batches that were counted."""
    before = Monitor(folder).series(0.05)
    return before, append_three(folder), Monitor(folder).series(0.05), Monitor(folder).since_start()


def append_three(folder: Path) -> tuple[bool, bool, list[bytes]]:
    monitor = Monitor(folder)
    again = monitor.append(batch(0), at=NOON, batch_id="0")
    with pytest.raises(ValueError, match=r"batch 'b' has the same rows as batch '1'"):
        monitor.append(batch(1), at=NOON, batch_id="b")
    added = monitor.append(batch(2), at=NOON + timedelta(days=2), batch_id="2")
    return again, added, [path.read_bytes() for path in sorted(folder.glob("periods/*.period"))]


def make_pruned(folder: Path) -> None:
    make_monitor(folder)
    Monitor(folder).prune(1)


def read_pruned(folder: Path) -> Any:
    return Monitor(folder).series(0.05), Monitor(folder).since_start()


def make_asked(folder: Path) -> None:
    make_monitor(folder)
    Monitor(folder).series(0.05)
    Monitor(folder).since_start()


def make_store(folder: Path) -> None:
    part = PartScores(np.array([0.1, 0.9]), np.array([0, 1]), np.array([1, 0]))
    Store(folder).add(Record(RUN, {"test_ap": 0.7}, 1.0, "cpu", VERSIONS), part)


def read_store(folder: Path) -> Any:
    """The runs and their scores; a run that is set aside is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DamagedRunWarning)
        warnings.simplefilter("error", OutdatedRunWarning)
        try:
            store = Store(folder)
            return [(record, store.scores(record.run).score.tolist()) for record in store.records()]
        except (DamagedRunWarning, OutdatedRunWarning) as error:
            raise ValueError(str(error)) from error


def flips(path: Path, step: int) -> Iterator[bytes]:
    """The content of a file with one bit of a byte changed, of every byte or of some."""
    valid = path.read_bytes()
    for place in range(0, len(valid), step):
        for bit in range(8) if step == 1 and len(valid) < 5000 else [place % 8]:
            content = bytearray(valid)
            content[place] ^= 1 << bit
            yield bytes(content)


KEPT: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any], str]] = {
    "sketch": (make_sketch, read_sketch, "sketch"),
    "repair": (make_repair, read_repair, "model.json"),
    "maps of a repair": (make_repair, read_repair, "data-*/maps.npy"),
    "trees": (make_trees, read_trees, "model.json"),
    "text of trees": (make_trees, read_trees, "data-*/model.trees"),
    "card": (make_repair, read_card, "data-*/model_card.json"),
    "settings of a monitor": (make_monitor, read_monitor, "monitor.json"),
    "period": (make_monitor, read_monitor, "periods/2026-05-17.period"),
    "index of a monitor": (make_monitor, append_three, "index.sqlite"),
    "time of the index": (make_monitor, append_three, "index.fresh"),
    "removed periods of a monitor": (make_pruned, read_pruned, "removed.sketch"),
    "a removed period": (make_pruned, append_three, "removed/2026-05-17.period"),
    "remembered series": (make_asked, read_monitor, "notes/series-*.json"),
    "remembered people": (make_asked, read_monitor, "notes/since-start.sketch"),
    "run": (make_store, read_store, "runs/*.json"),
    "scores of a run": (make_store, read_store, "runs/*.parquet"),
    "mark of a store": (make_store, read_store, "store.json"),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where the system has one: what is kept for good is waited for on a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def check_flips(name: str, folder: Path, step: int) -> None:
    make, read, pattern = KEPT[name]
    whole, copy = folder / "whole", folder / "copy"
    whole.mkdir()
    make(whole)
    (path,) = whole.glob(pattern)
    changes_files = make in (make_monitor, make_pruned, make_asked, make_store)
    shutil.copytree(whole, copy)
    expected = read(copy)
    for content in flips(path, step):
        if changes_files:
            shutil.rmtree(copy)
            shutil.copytree(whole, copy)
        (copy / path.relative_to(whole)).write_bytes(content)
        try:
            found = read(copy)
        except ValueError:
            continue
        assert found == expected


@pytest.mark.parametrize("name", KEPT)
def test_a_change_of_one_byte_is_refused_or_harmless(name: str, folder: Path) -> None:
    check_flips(name, folder, 397 if "index" in name else 41)


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_every_change_of_one_byte_is_refused_or_harmless(name: str, folder: Path) -> None:
    check_flips(name, folder, 1)
