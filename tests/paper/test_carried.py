"""Runs that are trained on one machine and added to a store on another."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks._carried import add_runs, load_run, save_run

import experiment_runs
import localparity as lp
from localparity.paper import Run, Store
from localparity.paper import _runs as _grids
from localparity.paper._store import PartScores, Record

ROOT = Path(__file__).parents[2]
RUN = Run("adult", "diffmcdp", 0.3, 0)


def trained(run: Run = RUN, seed: int = 0) -> tuple[Record, PartScores]:
    rng = np.random.default_rng(seed)
    part = PartScores(rng.random(200), np.where(rng.random(200) < 0.4, "f", "m"), rng.random(200) < 0.5)
    metrics = {**part.measure("val"), **part.measure("test")}
    return Record(run, metrics, 1.5, "cpu", {"localparity": lp.__version__, "torch": "2.13.0"}), part


def test_runs_trained_elsewhere_can_be_added(tmp_path: Path) -> None:
    other = Run("bank", "erm", 0.0, 1)
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    for run in (RUN, other):
        here.add(*trained(run, run.seed))
        save_run(tmp_path / "carried" / f"{run.key}.npz", *trained(run, run.seed))
    assert add_runs(there, tmp_path / "carried") == 2
    assert [path.name for path in here.runs.iterdir()] != []
    for path in here.runs.iterdir():
        assert path.read_bytes() == (there.runs / path.name).read_bytes()


def test_training_needs_no_duckdb(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
sys.modules["duckdb"] = None
from pathlib import Path
import experiment_runs
from localparity.paper import grid
from benchmarks._carried import save_run
from localparity.paper._train import train_runs
with experiment_runs.installed():
    runs = grid("adult", methods=["erm"], seeds=1)
    for record, scores in train_runs(runs, "cpu"):
        save_run(Path({str(tmp_path)!r}) / f"{{record.run.key}}.npz", record, scores)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(experiment_runs.__file__).parent)
    (path,) = tmp_path.glob("*.npz")
    with experiment_runs.installed():
        record, scores = load_run(path)
    assert (record.run.dataset, record.run.method) == ("adult", "erm")
    assert scores.score.size == 450


def test_a_carried_run_trained_with_other_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_run(tmp_path / "a.npz", *trained())
    monkeypatch.setitem(_grids._SETTINGS["paper"], "adult", {"diffmcdp": {"steps": 151}})
    with pytest.raises(ValueError, match=r"a.npz.*changed"):
        add_runs(Store(tmp_path / "store"), tmp_path)


def test_a_carried_run_that_is_damaged(tmp_path: Path) -> None:
    run, path = Run("adult", "erm", 0.0, 0), tmp_path / "a.npz"
    save_run(path, *trained(run))
    whole = path.read_bytes()
    for content, message in (
        (whole[:-30], "a.npz is damaged: File is not a zip file"),
        (b"", "a.npz is damaged: No data left in file"),
        (pickle.dumps({"facts": 1}), "a.npz is damaged: .*pickled"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            add_runs(Store(tmp_path / "store"), tmp_path)
    np.savez(path, facts=np.array("[1]"), score=[0.1], group=[0], label=[0])
    with pytest.raises(ValueError, match=r"a.npz is damaged: .*JSON.*list"):
        load_run(path)
