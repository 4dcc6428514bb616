"""Runs as files, to be trained on one machine and added to a store on another; needs no DuckDB."""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import asdict
from io import BytesIO
from pathlib import Path

import numpy as np

from localparity._io._files import parse_json, reading, write_whole
from localparity.paper import Run, Store
from localparity.paper._store import PartScores, Record


def save_run(path: Path, record: Record, test: PartScores) -> None:
    """Write a trained run and the scores of its test part as one .npz."""
    facts = {**asdict(record), "key": record.run.key}
    content = BytesIO()
    np.savez_compressed(
        content, facts=np.array(json.dumps(facts)), score=test.score, group=test.group, label=test.label
    )
    write_whole(path, content.getvalue())


def load_run(path: Path) -> tuple[Record, PartScores]:
    """What `save_run` wrote."""
    errors = (OSError, EOFError, MemoryError, zlib.error, zipfile.BadZipFile, NotImplementedError)
    with path.open("rb") as file, reading(str(path), *errors):
        found = np.load(file, allow_pickle=False)
        facts = parse_json(str(found["facts"]).encode())
        test = PartScores(found["score"], found["group"], found["label"])
        run = Run(**facts.pop("run"))
        if run.key != facts.pop("key"):
            raise ValueError(f"{path} was trained with settings that have changed since")
        return Record(run, **facts), test


def add_runs(store: Store, folder: Path) -> int:
    """Add the runs in a folder to a store, and return their number."""
    paths = sorted(folder.glob("*.npz"))
    for path in paths:
        store.add(*load_run(path))
    return len(paths)
