"""10^8 rows of Parquet counted and audited by DuckDB with a 2 GB memory limit, against a filtered scan.

Run from the root of the repository: ``python -m benchmarks.duckdb_scale`` (`make bench-scale` does; --quick
takes 10^7 rows). It makes a file of about 400 MB under the folder for temporary files (or --folder) once,
runs each side in processes of its own, in turns, and writes the shortest times to results/duckdb_scale.json
(or --out). The measure is DuckDB's ``SELECT count(*) ... WHERE score > 0.5 AND sex = 'Female'``: counting to
an exact MCDP may take 3 times as long, and the whole command ``localparity audit`` 5 times and a second, both
with less than 1.5 GB of memory. GROUP BY on 2**20 cells, which finds bounds only, stands beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import localparity as lp
from benchmarks._measure import add_busy, machine, record_at, write_json

EPSILONS = (0.0, 0.01, 0.05, 0.1)
MEMORY_LIMIT = "2GB"
MOST_PEAK_GB = 1.5


def make_file(path: Path, rows: int) -> None:
    """Two groups, float32 scores whose power the group decides."""
    connection = duckdb.connect(config={"memory_limit": MEMORY_LIMIT})
    connection.execute(
        "COPY (SELECT CAST(pow(random(), CASE WHEN second THEN 1.3 ELSE 1.1 END) AS FLOAT) AS score, "
        "CASE WHEN second THEN 'Female' ELSE 'Male' END AS sex "
        f"FROM (SELECT random() < 0.4 AS second FROM range({rows}))) TO '{path}.new' (FORMAT parquet)"
    )
    Path(f"{path}.new").replace(path)


def query(text: str) -> object:
    connection = duckdb.connect(config={"memory_limit": MEMORY_LIMIT})
    return connection.execute(text).fetchnumpy()


def scan(path: Path) -> object:
    return query(f"SELECT count(*) FROM '{path}' WHERE score > 0.5 AND sex = 'Female'")


def group_by(path: Path) -> object:
    cell = f"CAST(ceil(score * {2**20}) AS INTEGER)"
    return query(f"SELECT {cell} AS cell, sex, count(*) AS n FROM '{path}' GROUP BY ALL")


def count(path: Path) -> list[list[float]]:
    """The bounds of MCDP, which are equal."""
    counts = lp.engines.from_duckdb(
        path, score="score", group="sex", epsilons=EPSILONS, memory_limit=MEMORY_LIMIT
    )
    bounds = [lp.mcdp_bounds(counts, epsilon=epsilon) for epsilon in EPSILONS]
    return [[each.low, each.high] for each in bounds]


SIDES: dict[str, Callable[[Path], object]] = {"scan": scan, "count": count, "group_by": group_by}


def run_side(name: str, path: Path) -> None:
    """Print the seconds that a side takes, after once to warm up."""
    SIDES[name](path)
    start = time.perf_counter()
    found = SIDES[name](path)
    took = {"seconds": time.perf_counter() - start}
    print(json.dumps({**took, "bounds": found} if name == "count" else took))


def run(words: list[str]) -> dict[str, object]:
    """The seconds and the peak memory of a process, and what it prints as JSON."""
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, "-m", *words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    took = {"seconds": time.perf_counter() - start, "peak_gb": used.ru_maxrss / 1e6}
    return {**took, **json.loads(printed)}


def take_turn(path: Path) -> dict[str, dict[str, object]]:
    """Run each side once, and the whole command."""
    found = {name: run(["benchmarks.duckdb_scale", "--side", name, "--file", str(path)]) for name in SIDES}
    audit = ["localparity", "audit", str(path), "--score", "score", "--group", "sex", "--json"]
    whole = run([*audit, "--epsilon", ",".join(map(str, EPSILONS))])
    return {**found, "audit": {name: whole[name] for name in ("seconds", "peak_gb")}}


def summarize(turns: list[dict[str, dict[str, object]]]) -> dict[str, object]:
    """The shortest time of each side, the ratios, the largest peaks and whether MCDP is exact."""
    took = {name: min(float(str(turn[name]["seconds"])) for turn in turns) for name in turns[0]}
    peak = {name: max(float(str(turn[name]["peak_gb"])) for turn in turns) for name in ("count", "audit")}
    bounds = [turn["count"]["bounds"] for turn in turns]
    assert isinstance(bounds[0], list)
    return {
        **{f"{name}_s": seconds for name, seconds in took.items()},
        "count_over_scan": took["count"] / took["scan"],
        "audit_over_scan": took["audit"] / took["scan"],
        "audit_over_group_by": took["audit"] / took["group_by"],
        "count_peak_gb": peak["count"],
        "audit_peak_gb": peak["audit"],
        "exact": all(low == high for low, high in bounds[0]) and all(each == bounds[0] for each in bounds),
    }


def main() -> None:
    """Measure all sides in turns, write one object of JSON, and fail where a bar is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**8)
    parser.add_argument("--quick", action="store_const", const=10**7, dest="rows")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--out", type=Path, default=Path("results/duckdb_scale.json"))
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    add_busy(parser)
    options = parser.parse_args()
    if options.side:
        run_side(options.side, options.file)
        return
    path = options.folder / f"localparity-{options.rows}.parquet"
    if not path.exists():
        make_file(path, options.rows)
    out = record_at(options.out, busy=options.busy)
    turns = [take_turn(path) for _ in range(options.turns)]
    found = {"machine": machine(), "rows": options.rows, "repeats": options.turns, **summarize(turns)}
    scan_s, count_s, audit_s = (float(str(found[f"{name}_s"])) for name in ("scan", "count", "audit"))
    peak = max(float(str(found[f"{name}_peak_gb"])) for name in ("count", "audit"))
    holds = {
        "count": count_s <= 3.0 * scan_s,
        "audit": audit_s <= 5.0 * scan_s + 1.0,
        "peak": peak < MOST_PEAK_GB,
        "exact": bool(found["exact"]),
    }
    write_json(out, {**found, "holds": holds, "turns": turns})
    missed = [name for name, met in holds.items() if not met]
    sys.exit(f"not met: {', '.join(missed)}" if missed else None)


if __name__ == "__main__":
    main()
