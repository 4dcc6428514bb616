"""Results of runs as files, to be trained on one machine and added to a store on another; needs no DuckDB."""

from __future__ import annotations

import json
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np

from localparity._io._files import parse_json, reading, write_whole
from localparity.paper import Run, Store
from localparity.paper._result import PartScores, Result


def save_result(path: Path, run: Run, result: Result) -> None:
    """Write a run and its result as one .npz."""
    facts = {
        "run": run.to_dict(),
        "key": run.key,
        "metrics": result.metrics,
        "seconds": result.seconds,
        "device": result.device,
        "versions": result.versions,
        "start": result.start,
    }
    content = BytesIO()
    test = result.test
    np.savez_compressed(
        content, facts=np.array(json.dumps(facts)), score=test.score, group=test.group, label=test.label
    )
    write_whole(path, content.getvalue())


def load_result(path: Path) -> tuple[Run, Result]:
    """The run and the result that `save_result` wrote."""
    errors = (OSError, EOFError, MemoryError, zlib.error, zipfile.BadZipFile, NotImplementedError)
    with path.open("rb") as file, reading(str(path), *errors):
        found = np.load(file, allow_pickle=False)
        facts = parse_json(str(found["facts"]).encode())
        test = PartScores(found["score"], found["group"], found["label"])
        run = Run(**facts.pop("run"))
        if run.key != facts.pop("key"):
            raise ValueError(f"{path} was trained with settings that have changed since")
        return run, Result(test=test, **facts)


def add_results(store: Store, folder: Path) -> int:
    """Add the results in a folder to a store, and return their number."""
    paths = sorted(folder.glob("*.npz"))
    for path in paths:
        store.add(*load_result(path))
    return len(paths)
