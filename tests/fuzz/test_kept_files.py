"""Files that are kept: one that was changed or damaged is refused, or no number is another one for it.

One that lies, and whose checksum fits, is refused or works. Every kind of file is a row of `KEPT`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import localparity as lp
from fuzzing import damaged, damaged_json, fuzz, read_or_refuse, sealed
from localparity import models
from localparity.models.trees._stock import StockModel
from localparity.monitoring import Monitor, ScoreSketch, Watch
from localparity.monitoring._sketch import join_parts, open_sealed, seal_parts, split_parts
from localparity.paper import Run, Store
from localparity.paper._store import DamagedRunWarning, OutdatedRunWarning, PartScores, Record
from localparity.results import ModelCard
from processes import memory_folder

pytest.importorskip("datasketches")
pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:X has feature names")

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)
CENSUS = lp.datasets.make_census(300, random_state=0)
NUMBERS = CENSUS.data.select_dtypes("number")
SEX = CENSUS.sensitive_features
WOMEN = CENSUS.data["occupation"].map({"care": 0.78, "office": 0.55, "technical": 0.4, "trades": 0.1})
CHANCES = np.column_stack([WOMEN, 1.0 - WOMEN])
PART = PartScores(np.array([0.1, 0.9]), np.array([0, 1]), np.array([1, 0]))
RUN = Run("adult", "erm", 0.0, seed=0)
RECORD = Record(RUN, {"test_ap": 0.7}, 1.0, "cpu", {"localparity": lp.__version__, "torch": "2.13.0"})


class UnfitError(Exception):
    """A whole file that does not fit the data, as the message says."""


@contextmanager
def applied(*names: str) -> Iterator[None]:
    """What is read is applied to data: an error has one of the names of arguments."""
    try:
        yield
    except ValueError as error:
        if not any(name in str(error) for name in names):
            raise AssertionError(f"the message has none of {names}") from error
        raise UnfitError(str(error)) from error


def batch(number: int) -> lp.Predictions:
    scores = np.random.default_rng(number).random(12)
    return lp.Predictions.from_arrays(None, scores, sensitive_features=list("ab" * 6))


def sketch_of(batches: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        sketch = ScoreSketch(k=8)
        for number in range(batches):
            sketch.update(batch(number))
        (folder / "sketch").write_bytes(sketch.to_bytes())

    return make


def read_sketch(folder: Path) -> Any:
    sketch = ScoreSketch.from_bytes((folder / "sketch").read_bytes())
    if not sketch.size:
        return []
    assert sketch.merge(sketch).size == 2 * sketch.size
    counts = sketch.counts()
    assert counts.size == sketch.size
    return {key: (part.scores.tolist(), part.weights.tolist()) for key, part in counts.atoms.items()}


def fitted(model: Any, features: Any = NUMBERS) -> Callable[[Path], None]:
    return lambda folder: model.fit(features, CENSUS.target, sensitive_features=SEX).save(folder)


def read_classifier(features: Any = NUMBERS) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        model = lp.load(folder)
        with applied("feature", "column"):
            scores = model.predict_proba(features)
        assert scores.shape == (300, 2)
        return scores.tolist()

    return read


def make_repair(folder: Path) -> None:
    models.ScoreRepair().fit(CENSUS.score, sensitive_features=SEX).save(folder)


def read_repair(folder: Path) -> Any:
    repair = lp.load(folder)
    with applied("sensitive_features", "scores", "score_range"):
        return repair.transform(CENSUS.score, sensitive_features=SEX).tolist()


def make_blind_repair(folder: Path) -> None:
    repair = models.GroupBlindRepair(0.2, min_group_size=5)
    repair.fit(CENSUS.score, sensitive_features=SEX, group_probabilities=CHANCES).save(folder)


def read_blind_repair(folder: Path) -> Any:
    repair = lp.load(folder)
    with applied("group_probabilities", "criterion"):
        scores = repair.transform(CENSUS.score, group_probabilities=CHANCES)
    assert np.isfinite(scores).all()
    return scores.tolist()


def read_card(folder: Path) -> Any:
    return ModelCard.read(folder).to_dict()


ALL = Watch(epsilon=0.05, max_mcdp=0.1, min_group_size=1)


def make_monitor(folder: Path) -> None:
    """Three days, of which the first was removed, and what is remembered of the others."""
    for number in (0, 1, 2):
        Monitor(folder).append(batch(number), at=NOON + timedelta(days=number), batch_id=str(number))
    Monitor(folder).prune(2)
    read_series(folder)


def read_monitor(folder: Path) -> Any:
    """The series before and after one more batch, and what becomes of batches that were counted."""
    warnings.filterwarnings("ignore", ".*damaged, and is found out anew")  # pytest forgets it after the test
    before, monitor = read_series(folder), Monitor(folder)
    again = [monitor.append(batch(number), at=NOON, batch_id=str(number)) for number in (0, 1)]
    for number in (0, 1, 2):
        with pytest.raises(
            (ValueError, OSError), match=f"same rows as batch '{number}'|monitor.sqlite|damaged"
        ):
            monitor.append(batch(number), at=NOON + timedelta(days=3), batch_id="b")
    added = monitor.append(batch(3), at=NOON + timedelta(days=2), batch_id="3")
    return before, again, added, read_series(folder)


def read_series(folder: Path) -> Any:
    """The series, and everyone."""
    return Monitor(folder).series(ALL), Monitor(folder).since_start(ALL)


def make_store(folder: Path) -> None:
    Store(folder).add(RECORD, PART)


def read_store(folder: Path) -> Any:
    """The runs and their scores; where one is set aside, the others can be read, and that is a refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DamagedRunWarning)
        warnings.simplefilter("error", OutdatedRunWarning)
        try:
            return read_runs(folder)
        except (DamagedRunWarning, OutdatedRunWarning) as error:
            refused = error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedRunWarning)
        warnings.simplefilter("ignore", OutdatedRunWarning)
        assert len(read_runs(folder)) <= 1
    raise ValueError(str(refused)) from refused


def read_runs(folder: Path) -> Any:
    store = Store(folder)
    store.check_version()
    runs = [
        (record, store.scores(record.run).score.tolist()) for record in store.records() if record.run in store
    ]
    assert all(scores for _, scores in runs)
    return runs


@dataclass(frozen=True)
class Kept:
    """What makes a folder, what reads a value from it, and the file that is changed; how it is tried.

    A message about it has the path of `named` in the folder, or `text`. Of an index, which is large, fewer bytes are changed.
    """

    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    file: str
    tried: str = "flips"
    named: str = ""
    text: str = ""
    step: int = 41


AGE = CENSUS.data[["age"]]
NETWORK = fitted(models.LocalParityClassifier(hidden=(4,), steps=2, random_state=0))
XGBOOST = fitted(models.LocalParityXGBClassifier(0.1, n_estimators=2, random_state=0))
LIGHTGBM = fitted(models.LocalParityLGBMClassifier(0.1, n_estimators=1, random_state=0), AGE)
STOCK = StockModel(n_estimators=2, random_state=0)
BLIND = fitted(models.GroupBlindClassifier(STOCK, STOCK, max_mcdp=0.6, cv=2, random_state=0))

KEPT = {
    "sketch": Kept(sketch_of(1), read_sketch, "sketch", "flips damage lies", text="the sketch"),
    "sketch of many rows": Kept(sketch_of(34), read_sketch, "sketch", "damage lies", text="the sketch"),
    "sketch of none": Kept(sketch_of(0), read_sketch, "sketch", "damage", text="the sketch"),
    "repair": Kept(make_repair, read_repair, "model.json", "flips damage lies"),
    "maps of a repair": Kept(make_repair, read_repair, "data-*/maps.npy", "flips damage lies"),
    "card": Kept(make_repair, read_card, "data-*/model_card.json"),
    "network": Kept(NETWORK, read_classifier(), "model.json", "damage lies"),
    "tensors": Kept(NETWORK, read_classifier(), "data-*/model.safetensors", "damage lies"),
    "XGBoost": Kept(XGBOOST, read_classifier(), "model.json", "damage lies"),
    "trees of XGBoost": Kept(XGBOOST, read_classifier(), "data-*/model.trees", "damage lies"),
    "LightGBM": Kept(LIGHTGBM, read_classifier(AGE), "model.json", "flips damage lies"),
    "trees of LightGBM": Kept(LIGHTGBM, read_classifier(AGE), "data-*/model.trees", "flips damage lies"),
    "group-blind repair": Kept(make_blind_repair, read_blind_repair, "model.json", "damage lies"),
    "group-blind classifier": Kept(BLIND, read_classifier(), "model.json", "damage lies"),
    "monitor": Kept(make_monitor, read_monitor, "monitor.sqlite", step=397),
    "series of a monitor": Kept(make_monitor, read_series, "monitor.sqlite", "damage"),
    "run": Kept(make_store, read_store, "runs/*.json", "flips damage lies"),
    "scores of a run": Kept(make_store, read_store, "runs/*.parquet", "flips damage"),
    "mark of a store": Kept(make_store, read_store, "store.json", "flips damage lies"),
}


def tried(way: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", [name for name, kept in KEPT.items() if way in kept.tried.split()])


class Trial:
    """A folder, its copy, in which files have another content, and the value of the folder as it is."""

    def __init__(self, name: str, folder: Path) -> None:
        self.kept = KEPT[name]
        self.whole, self.copy = folder / "whole", folder / "copy"
        self.whole.mkdir()
        self.kept.make(self.whole)
        (path,) = self.whole.glob(self.kept.file)
        self.file, self.valid = str(path.relative_to(self.whole)), path.read_bytes()
        self.expected = self.read({})

    def read(self, files: dict[str, bytes]) -> Any:
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.whole, self.copy)
        for name, content in files.items():
            (self.copy / name).write_bytes(content)
        return self.kept.read(self.copy)

    def read_or_refuse(self, files: dict[str, bytes]) -> Any:
        """The value; None where the file is refused by name, or does not fit the data."""
        with suppress(UnfitError):
            return read_or_refuse(
                lambda: self.read(files), self.kept.text or str(self.copy / self.kept.named)
            )
        return None

    def lies(self) -> st.SearchStrategy[dict[str, bytes]]:
        """Files of other contents whose checksums fit."""
        if self.file == "sketch":
            header, parts = open_sealed(self.valid, "it")
            headers = damaged_json(header).map(lambda header: (header, parts))
            sketches = headers | damaged(parts[0]).map(lambda part: (header, [part, *parts[1:]]))
            return sketches.filter(lambda pair: isinstance(pair[0], dict)).map(
                lambda pair: {self.file: seal_parts(*pair)}
            )
        if not self.file.startswith("data-"):
            return damaged_json(json.loads(self.valid)).map(lambda value: {self.file: sealed(value)})
        description = json.loads((self.whole / "model.json").read_bytes())

        def described(content: bytes) -> dict[str, bytes]:
            files = {Path(self.file).name: hashlib.sha256(content).hexdigest()}
            return {self.file: content, "model.json": sealed({**description, "files": files})}

        return damaged(self.valid).map(described)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where the system has one: what is kept for good is waited for on a disk."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        yield Path(name)


def check_flips(name: str, folder: Path, step: int) -> None:
    """Change a bit of every byte, or of some, and every bit of a small file whose every byte is changed."""
    trial = Trial(name, folder)
    for place in range(0, len(trial.valid), step):
        for bit in range(8) if step == 1 and len(trial.valid) < 5000 else [place % 8]:
            content = bytearray(trial.valid)
            content[place] ^= 1 << bit
            try:
                value = trial.read({trial.file: bytes(content)})
            except (ValueError, OSError, UnfitError):
                continue
            assert value == trial.expected


@tried("flips")
def test_a_change_of_one_byte_is_refused_or_harmless(name: str, folder: Path) -> None:
    check_flips(name, folder, KEPT[name].step)


@pytest.mark.slow
@tried("flips")
def test_every_change_of_one_byte_is_refused_or_harmless(name: str, folder: Path) -> None:
    check_flips(name, folder, 1)


@tried("damage")
def test_a_damaged_file_is_refused_or_harmless(name: str, folder: Path) -> None:
    trial = Trial(name, folder)

    def check(content: bytes) -> None:
        value = trial.read_or_refuse({trial.file: content})
        assert value is None or value == trial.expected

    fuzz(damaged(trial.valid), check)


@tried("lies")
def test_a_file_that_lies_and_whose_checksum_fits_is_refused_or_works(name: str, folder: Path) -> None:
    trial = Trial(name, folder)
    fuzz(trial.lies(), trial.read_or_refuse)


@pytest.mark.parametrize(("kind", "name"), [("state", ""), ("period", ""), ("period", f"{NOON:%Y-%m-%d}")])
def test_a_row_of_a_monitor_that_lies_is_refused_or_works(kind: str, name: str, folder: Path) -> None:
    monitor = Monitor(folder)
    monitor.append(batch(0), at=NOON, batch_id="0")
    payload = monitor.store.recall(kind)[name]
    header, parts = (json.loads(payload), []) if kind == "state" else split_parts(payload, "it")

    def check(lying: Any) -> None:
        content = json.dumps(lying).encode() if kind == "state" else join_parts(lying, parts)
        with monitor.store.writing():
            monitor.store.remember(kind, {name: content})
        read_or_refuse(lambda: read_series(folder), str(folder))

    fuzz(damaged_json(header).filter(lambda lying: kind == "state" or isinstance(lying, dict)), check)
