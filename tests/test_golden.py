"""Files that earlier versions wrote: a change of a format is seen here, and old files stay readable or are named."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity._io._files import seal_json
from localparity.monitoring import Monitor, ScoreSketch, Watch
from localparity.paper._selection import records_of

GOLDEN = Path(__file__).parent / "golden"


def test_a_sketch_of_format_2_is_read() -> None:
    pytest.importorskip("datasketches")
    data = (GOLDEN / "sketch-2.bin").read_bytes()
    sketch = ScoreSketch.from_bytes(data)
    assert (sketch.k, sketch.size, sketch.labelled) == (8, 4, True)
    assert sketch.counts().groups == ("a", "b")
    assert lp.mcdp(sketch.counts(), criterion="equal_opportunity") == 1.0
    assert sketch.to_bytes() == data


def test_a_model_of_format_4_is_read() -> None:
    model = lp.load(GOLDEN / "model-4")
    assert model.transform([0.1, 0.9], sensitive_features=["f", "m"]).tolist() == pytest.approx([0.2, 0.65])


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (1, "model.json was written by localparity 0.1, in format 1; .* 4: train the model again"),
        (9, "model.json was written by a newer localparity, in format 9; .* 4: update"),
        ("4", "model.json is damaged: its format must be a whole number, got '4'"),
    ],
)
def test_a_model_of_another_format_is_named(tmp_path: Path, found: object, message: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(GOLDEN / "model-4", folder)
    described = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_bytes(seal_json({**described, "format": found}))
    with pytest.raises(ValueError, match=message):
        lp.load(folder)


@pytest.fixture
def monitored(tmp_path: Path) -> Path:
    pytest.importorskip("datasketches")
    return shutil.copytree(GOLDEN / "monitor-7", tmp_path / "kept")


def test_a_monitor_of_format_7_is_read_and_goes_on(monitored: Path) -> None:
    monitor, watch = Monitor(monitored), Watch(min_group_size=1)
    assert [point.interval.estimate for point in monitor.series(watch)] == [1.0, 0.5]
    batch = lp.Predictions.from_arrays(None, [0.1, 0.3, 0.2], sensitive_features=["a", "a", "b"])
    day = datetime(2026, 5, 18, tzinfo=UTC)
    assert not monitor.append(batch, at=day, batch_id="2")
    assert monitor.append(batch, at=day, batch_id="3")
    assert [point.rows for point in monitor.series(watch)] == [4, 7]


@pytest.mark.parametrize(("found", "author"), [(1, "localparity 0.1"), (9, "a newer localparity")])
def test_a_monitor_of_another_format_is_named(monitored: Path, found: int, author: str) -> None:
    store = Monitor(monitored).store
    (payload,) = store.recall("state").values()
    store.remember("state", {"": json.dumps({**json.loads(payload), "format": found}).encode()})
    with pytest.raises(ValueError, match=rf"kept was written by {author}, in format {found}"):
        Monitor(monitored)


def test_a_store_of_format_1_is_read(tmp_path: Path) -> None:
    store = lp.paper.Store(shutil.copytree(GOLDEN / "store-1", tmp_path / "store"))
    run = lp.paper.Run("adult", "erm", 0.0, seed=0)
    assert run in store
    (record,) = store.records()
    assert (record.run, record.metrics, record.seconds) == (run, {"ap": 0.75, "mcdp0": 1.0}, 1.5)


@pytest.mark.parametrize(("found", "author"), [(0, "localparity 0.1"), (9, "a newer localparity")])
def test_a_store_of_another_format_is_named(tmp_path: Path, found: int, author: str) -> None:
    folder = shutil.copytree(GOLDEN / "store-1", tmp_path / "store")
    (folder / "store.json").write_text(json.dumps({"format": found}))
    with pytest.raises(ValueError, match=rf"store.json was written by {author}, in format {found}"):
        lp.paper.Store(folder)


def test_json_of_version_5_stays_as_it_is() -> None:
    """A field that is gone, or has another meaning, needs another version."""
    golden = json.loads((GOLDEN / "audit-5.json").read_text())
    rng = np.random.default_rng(0)
    groups = np.repeat(["f", "m"], [60, 40])
    scores = np.round(rng.random(100) * np.where(groups == "f", 0.8, 1.0), 3)
    asked: dict[str, Any] = {"epsilons": [0, 0.05], "n_resamples": 99, "random_state": 0}
    found = json.loads(lp.audit(None, scores, sensitive_features=groups, **asked).to_json(max_mcdp=0.1))
    assert found["version"] == golden["version"] == 5
    assert _shape(golden).items() <= _shape(found).items()
    (then,), (now,) = golden["audits"], found["audits"]
    assert [each["mcdp"] for each in now["findings"]] == [each["mcdp"] for each in then["findings"]]


def _shape(value: Any, place: str = "") -> dict[str, str]:
    """The places of a JSON, with the kind of value at each."""
    if isinstance(value, dict):
        return {name: kind for key in value for name, kind in _shape(value[key], f"{place}/{key}").items()}
    if isinstance(value, list):
        return {name: kind for each in value for name, kind in _shape(each, f"{place}/*").items()}
    return {place: type(value).__name__}


def test_a_run_without_a_metric_that_tables_need_is_named(tmp_path: Path) -> None:
    store = lp.paper.Store(shutil.copytree(GOLDEN / "store-1", tmp_path / "store"))
    with pytest.raises(ValueError, match=r"the run adult ERM 0 seed 0 in .* has no metric 'val_ap'"):
        records_of(store)
