"""Damaged stores, and results from other machines."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from benchmarks._carried import load_run, save_run

from fuzzing import damaged, damaged_json, fuzz, read_or_refuse, sealed
from localparity.paper import Run, Store
from localparity.paper._store import DamagedRunWarning, OutdatedRunWarning, PartScores, Record

pytest.importorskip("torch")

RUN = Run("adult", "erm", 0.0, seed=0)
PART = PartScores(np.array([0.1, 0.9]), np.array([0, 1]), np.array([1, 0]))
RECORD = Record(RUN, {"test_ap": 0.7}, 1.0, "cpu", {"localparity": "0.1.0", "torch": "2.13.0"})


@pytest.mark.parametrize("kind", ["store.json", "json", "parquet"])
def test_a_damaged_store_sets_the_run_aside_or_says_so(kind: str, tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "store"
    Store(whole).add(RECORD, PART)
    (path,) = whole.glob("store.json" if kind == "store.json" else f"runs/*.{kind}")
    valid = path.read_bytes()

    def check(content: bytes) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        (folder / path.relative_to(whole)).write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedRunWarning)
            warnings.simplefilter("ignore", OutdatedRunWarning)
            store = read_or_refuse(lambda: Store(folder), str(folder))
            if store is not None:
                read_or_refuse(store.check_version, str(folder))
                records = store.records()
                assert len(records) <= 1
                assert kind != "parquet" or content == valid or not records
                for record in records:
                    assert record.run not in store or store.scores(record.run).score.size

    inputs = damaged(valid)
    if kind.endswith("json"):
        inputs |= damaged_json(json.loads(valid)).map(sealed)
    fuzz(inputs, check)


def test_a_damaged_run_file_is_refused_or_read(tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    save_run(path, RECORD, PART)
    valid = path.read_bytes()

    def check(content: bytes) -> None:
        path.write_bytes(content)
        read_or_refuse(lambda: load_run(path), str(path))

    fuzz(damaged(valid), check)
