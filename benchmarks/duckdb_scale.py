"""An audit of 10^8 rows of Parquet by DuckDB with a 2 GB memory limit, against DuckDB's own GROUP BY.

Run from the root of the repository: ``python -m benchmarks.duckdb_scale`` (`make bench-scale` does). It makes
a file of about 400 MB under the folder for temporary files (or --folder) once, runs each side in a process of
its own, in turns, and writes results/duckdb_scale.json (or --out): the ratio of the shortest times, to
be at most 3, and the peak resident memory of the audits, to be under 3 GB.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

import localparity as lp
from benchmarks._measure import add_busy, record_at, write_json

EPSILONS = (0.0, 0.01, 0.05, 0.1)
MEMORY_LIMIT = "2GB"


def make_file(path: Path, rows: int) -> None:
    """Two groups, float32 scores whose power the group decides."""
    connection = duckdb.connect(config={"memory_limit": MEMORY_LIMIT})
    connection.execute(
        "COPY (SELECT CAST(pow(random(), CASE WHEN second THEN 1.3 ELSE 1.1 END) AS FLOAT) AS score, "
        "CASE WHEN second THEN 'Female' ELSE 'Male' END AS sex "
        f"FROM (SELECT random() < 0.4 AS second FROM range({rows}))) TO '{path}.new' (FORMAT parquet)"
    )
    Path(f"{path}.new").replace(path)


def group_by(path: Path) -> dict[str, object]:
    connection = duckdb.connect(config={"memory_limit": MEMORY_LIMIT})
    start = time.perf_counter()
    found = connection.execute(
        f"SELECT CAST(ceil(score * {2**20}) AS INTEGER) AS cell, sex, count(*) AS n "
        f"FROM '{path}' GROUP BY ALL"
    ).fetchnumpy()
    return {"seconds": time.perf_counter() - start, "cells": found["n"].size}


def audit(path: Path) -> dict[str, object]:
    start = time.perf_counter()
    counts = lp.engines.from_duckdb(
        path, score="score", group="sex", epsilons=EPSILONS, memory_limit=MEMORY_LIMIT
    )
    found = lp.audit(counts, epsilons=EPSILONS, n_resamples=0)
    seconds = time.perf_counter() - start
    bounds = [lp.mcdp_bounds(counts, epsilon=epsilon) for epsilon in EPSILONS]
    return {
        "seconds": seconds,
        "peak_resident_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "mcdp": [finding.mcdp for finding in found.findings],
        "exact": all(
            each.low == finding.mcdp == each.high
            for each, finding in zip(bounds, found.findings, strict=True)
        ),
    }


def main() -> None:
    """Measure both sides in turns and write one object of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--out", type=Path, default=Path("results/duckdb_scale.json"))
    add_busy(parser)
    parser.add_argument("--side", choices=["group_by", "audit"])
    options = parser.parse_args()
    path = options.folder / f"localparity-{options.rows}.parquet"
    if options.side:
        side = {"group_by": group_by, "audit": audit}[options.side]
        print(json.dumps(side(path)))
        return
    out = record_at(options.out, busy=options.busy)
    if not path.exists():
        make_file(path, options.rows)
    results: dict[str, list[dict[str, float]]] = {"group_by": [], "audit": []}
    for _ in range(options.repeats):
        for side_name, runs in results.items():
            command = [
                sys.executable,
                "-m",
                "benchmarks.duckdb_scale",
                "--rows",
                str(options.rows),
                "--folder",
                str(options.folder),
            ]
            ran = subprocess.run([*command, "--side", side_name], capture_output=True, text=True, check=True)
            runs.append(json.loads(ran.stdout))
    times = {name: min(run["seconds"] for run in runs) for name, runs in results.items()}
    summary = {
        "rows": options.rows,
        "repeats": options.repeats,
        "group_by_s": times["group_by"],
        "audit_s": times["audit"],
        "audit_over_group_by": times["audit"] / times["group_by"],
        "audit_peak_gb": max(run["peak_resident_gb"] for run in results["audit"]),
    }
    write_json(out, {**summary, **results})


if __name__ == "__main__":
    main()
