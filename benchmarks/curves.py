"""Time and memory over the number of rows, of every engine and of what others do with the same rows.

``python -m benchmarks.curves`` (`make bench` runs it) writes results/curves.csv after each number of rows and
draws results/curves.png and .svg at the end. ``--rows 1e7,1e8`` measures these anew and keeps the others, so
that a run that was interrupted can go on; ``--rows none`` only draws. The times of one number of rows are
medians of calls that take turns, so that their ratios mean something on a machine that has other work.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks._curves_figure import draw
from benchmarks._measure import add_busy, median_seconds, peak_bytes, record_at, write_table
from benchmarks._series import ALL, SampleFiles, prepare

RESULTS = Path(__file__).parent.parent / "results"
ROWS = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)
LEAST_FOR_MEMORY = 10**4
"""Below it, what a call takes is lost in what a process holds anyway."""


class Point(NamedTuple):
    """One line of the file."""

    rows: int
    series: str
    panel: str
    seconds: float
    over_sort: float
    megabytes: float | None
    over_scores: float | None
    answer: float


def measure(folder: Path, rows: int) -> list[Point]:
    """Every series that can bear so many rows."""
    sample = SampleFiles(folder, rows)
    sample.write()
    chosen = [series for series in ALL if rows <= series.largest]
    calls = [series.prepare(sample) for series in chosen]
    found = median_seconds(calls)
    sort_took, _ = found[0]
    exact = [answer for series, (_, answer) in zip(chosen, found, strict=True) if series.exact]
    if max(exact) - min(exact) > 1e-12:
        raise ValueError(f"the engines do not agree on MCDP: {exact}")
    del calls
    points = []
    for series, (took, answer) in zip(chosen, found, strict=True):
        memory = over = None
        if rows >= LEAST_FOR_MEMORY:
            grown = peak_bytes(partial(prepare, folder, rows, series.name))
            memory, over = round(grown / 1e6, 2), round(grown / (8 * rows), 2)
        taken, ratio = float(f"{took:.4g}"), round(took / sort_took, 3)
        point = Point(rows, series.name, series.panel, taken, ratio, memory, over, round(answer, 6))
        print(*point, sep="\t", flush=True)
        points.append(point)
    if rows != min(ROWS):  # the processes that measure memory warm up on the fewest
        sample.remove()
    return points


def read_points(path: Path) -> list[Point]:
    """What was measured before."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    found = csv.DictReader(line for line in lines if not line.startswith("#"))

    def number(text: str) -> float | None:
        return float(text) if text else None

    return [
        Point(
            int(row["rows"]),
            row["series"],
            row["panel"],
            float(row["seconds"]),
            float(row["over_sort"]),
            number(row["megabytes"]),
            number(row["over_scores"]),
            float(row["answer"]),
        )
        for row in found
    ]


def write_points(path: Path, points: Sequence[Point]) -> None:
    """All of them, or none."""
    write_table(path, Point._fields, sorted(points, key=lambda point: point.rows))


def parse_rows(text: str) -> list[int]:
    return [] if text == "none" else [int(float(part)) for part in text.split(",")]


def main() -> None:
    """Measure, write and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=parse_rows, default=ROWS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    add_busy(parser)
    options = parser.parse_args()
    out = record_at(options.out, busy=options.busy or not options.rows)
    points = read_points(options.out / "curves.csv")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        SampleFiles(folder, min(ROWS)).write()
        for rows in options.rows:
            found = measure(folder, rows)
            points = [point for point in points if point.rows != rows] + found
            if out is not None:
                write_points(out / "curves.csv", points)
    if not options.busy:
        draw(points, options.out)


if __name__ == "__main__":
    main()
