"""Sweeps: killed and resumed, repeated, on several processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import experiment_runs
from experiment_runs import SHORT
from localparity.paper import Run, Store, grid, run_missing
from localparity.paper._store import DamagedRunWarning

SWEEP = ["reproduce", "adult", "--methods", "diffdp,diffmcdp", "--seeds", "1", "--device", "cpu"]


def start(store: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command as people type it, on the small data set, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, experiment_runs.__file__, *SWEEP, "--store", str(store), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error"},
    )


def finished(store: Path) -> set[str]:
    return {path.name for path in store.glob("runs/*.json")}


def contents(store: Path) -> dict[str, object]:
    """Everything but the times."""
    found: dict[str, object] = {}
    for path in store.glob("runs/[!.]*"):
        if path.suffix == ".json":
            facts = json.loads(path.read_bytes())
            del facts["seconds"], facts["sha256"]
            found[path.name] = facts
        else:
            found[path.name] = path.read_bytes()
    return found


def kill_after(process: subprocess.Popen[str], store: Path, runs: int) -> None:
    limit = time.monotonic() + 600
    while len(finished(store)) < runs:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_a_sweep_killed_twice_ends_with_the_same_store(small: None, tmp_path: Path) -> None:
    whole, killed = Store(tmp_path / "whole"), tmp_path / "killed"
    assert run_missing(whole, grid("adult", methods=["diffdp", "diffmcdp"], seeds=1), device="cpu") == 11
    kill_after(start(killed), killed, 2)
    first = finished(killed)
    times = {name: (killed / "runs" / name).stat().st_mtime_ns for name in first}
    kill_after(start(killed), killed, len(first) + 2)
    there = len(finished(killed))
    process = start(killed)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert f"trained {11 - there} runs, found {there};" in out
    assert 2 <= len(first) < there < 11
    assert times == {name: (killed / "runs" / name).stat().st_mtime_ns for name in first}
    assert contents(killed) == contents(whole.folder)


def test_what_is_there_is_not_run_again_and_what_is_damaged_is(small: None, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    runs = grid("bank", methods=["diffdp"], strengths=[0.1], seeds=1)
    told: list[Run] = []
    assert run_missing(store, runs, device="cpu", progress=lambda run, metrics: told.append(run)) == 2
    assert told == runs
    before = contents(store.folder)
    assert run_missing(store, runs, device="cpu") == 0
    (path,) = store.runs.glob("*diffdp*.parquet")
    path.write_bytes(b"PAR1 but not really")
    with pytest.warns(DamagedRunWarning, match="is damaged"):
        assert run_missing(store, runs, device="cpu") == 1
    after = contents(store.folder)
    assert {name: after[name] for name in before} == before
    assert sorted(after.keys() - before.keys()) == [
        f"{path.with_suffix('.json').name}.damaged",
        f"{path.name}.damaged",
    ]


def test_a_number_of_jobs_that_cannot_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(ValueError, match=r"jobs.*0"):
        run_missing(store, [], jobs=0)


def test_a_store_of_another_version_is_not_resumed(small: None, tmp_path: Path) -> None:
    (tmp_path / "store.json").write_text('{"format": 1, "localparity": "0.0.1"}')
    with pytest.raises(ValueError, match=r"0\.0\.1"):
        run_missing(Store(tmp_path), grid("adult", seeds=1))


@pytest.mark.slow
def test_several_processes_give_the_same_store(data_folder: Path, tmp_path: Path) -> None:
    runs = grid("adult", methods=["diffmcdp"], strengths=[0.3], seeds=1)
    assert runs[0].settings.steps != SHORT["steps"]
    one, several = Store(tmp_path / "one"), Store(tmp_path / "several")
    run_missing(one, runs, device="cpu")
    assert run_missing(several, runs, device="cpu", jobs=2) == 2
    assert contents(several.folder) == contents(one.folder)
