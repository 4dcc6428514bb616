"""How long the command takes to start: help, the first audit of a small file on a machine, and the next one.

``python -m benchmarks.cold_start`` (`make bench` runs it) starts each in a process of its own, in turns with
a Python that does nothing, and writes the medians to results/cold_start.json. The first audit finds nothing
compiled; the files of the package and of what it needs have been read before.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import NamedTuple

from benchmarks._draws import draw_scores
from benchmarks._measure import add_busy, machine, record_at, write_json

ROWS = (1_000, 5_000)
BARS = {
    "help": 0.25,
    **{f"first_audit_{rows}": 1.2 for rows in ROWS},
    **{f"second_audit_{rows}": 0.6 for rows in ROWS},
}
"""The most seconds that each may take."""

COMMAND = [sys.executable, "-m", "localparity"]


class Took(NamedTuple):
    """The seconds of a process, by the clock and by the processors."""

    seconds: float
    cpu_seconds: float


def run(words: Sequence[str], cache: Path) -> Took:
    """Run a process whose compiled code is kept in a folder."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    before, start = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, env=environment, check=True, capture_output=True)
    took, after = time.perf_counter() - start, getrusage(RUSAGE_CHILDREN)
    return Took(took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def write_scores(path: Path, rows: int) -> None:
    scores, groups = draw_scores(rows, "disparity")
    lines = (f"{score},{('Female', 'Male')[group]}\n" for score, group in zip(scores, groups, strict=True))
    path.write_text("p,sex\n" + "".join(lines))


def take_turn(files: dict[int, Path], cache: Path) -> dict[str, Took]:
    """Run each once, from an empty cache."""
    found = {"nothing": run([sys.executable, "-c", "pass"], cache), "help": run([*COMMAND, "--help"], cache)}
    for rows, path in files.items():
        for which in ("first", "second"):
            audit = [*COMMAND, "audit", str(path), "--score", "p", "--group", "sex"]
            found[f"{which}_audit_{rows}"] = run(audit, cache / str(rows))
    return found


def measure(turns: int) -> dict[str, Took]:
    """The medians of some turns, after one that reads the files and compiles Python."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {rows: folder / f"{rows}.csv" for rows in ROWS}
        for rows, path in files.items():
            write_scores(path, rows)
        found = [take_turn(files, folder / str(turn)) for turn in range(turns + 1)][1:]
    return {what: Took(*map(median, zip(*(turn[what] for turn in found), strict=True))) for what in found[0]}


def main() -> None:
    """Measure, write, and fail where something takes longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results/cold_start.json"))
    add_busy(parser)
    options = parser.parse_args()
    out = record_at(options.out, busy=options.busy)
    found = measure(options.turns)
    medians = {
        name: {what: round(took[place], 3) for what, took in found.items()}
        for place, name in enumerate(Took._fields)
    }
    write_json(out, {"machine": machine(), "turns": options.turns, **medians, "bars": BARS})
    late = [what for what, most in BARS.items() if found[what].seconds > most]
    sys.exit(f"longer than it may take: {', '.join(late)}" if late else None)


if __name__ == "__main__":
    main()
