"""Time and memory over the number of rows, of every engine and of what others do with the same rows.

``python -m benchmarks.curves`` (`make bench` runs it) writes results/curves.csv after each number of rows and
draws results/curves.png and .svg at the end. ``--rows 1e7,1e8`` measures these anew and keeps the others, so
that a run that was interrupted can go on; ``--rows none`` only draws. The times of one number of rows are
medians of calls that take turns, so that their ratios mean something on a machine that has other work.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._labels import label_ends
from benchmarks._measure import add_busy, median_seconds, peak_bytes, record_at, write_table
from benchmarks._series import ALL, SampleFiles, prepare
from localparity.paper._figures import panels, save
from localparity.report.displays._base import COLOURS, QUIET, finish, styled

# The figure: above the time, below the peak of memory, over the number of rows.

GPU = Path(__file__).parent.parent / "results" / "gpu_scale.json"
TITLES = {
    "engines": "The engines",
    "others": "The paper's algorithms, scipy and fairlearn",
    "intervals": "With an interval",
}
SORT, PROFILE = "numpy's sort", "mcdp_profile, every epsilon"
# A colour means one tool, in every panel.
TOOLS = {
    "numpy": QUIET,
    "mcdp": COLOURS[0],
    "ScoreCounts": COLOURS[0],
    "paper": COLOURS[1],
    "from_spark": COLOURS[2],
    "from_torch": COLOURS[3],
    "from_duckdb": COLOURS[4],
    "scipy": COLOURS[5],
    "fairlearn": COLOURS[6],
}
MARKERS = "sD^vP*X"
SHORT = {"demographic_parity_difference": "parity difference", "mcdp_profile, every epsilon": "mcdp_profile"}


def draw(points: Sequence[Any], out: Path) -> list[Path]:
    """Write curves.png and curves.svg."""
    with styled():
        figure, (above, below) = panels(3, 2, height=3.6)
        figure.set_size_inches(13.5, 8.0)
        for column, (panel, title) in enumerate(TITLES.items()):
            names = [point.series for point in points if point.panel == panel]
            looks = {
                name: _look(name, place) for place, name in enumerate(dict.fromkeys([SORT, PROFILE, *names]))
            }
            for ax, field in ((above[column], "seconds"), (below[column], "megabytes")):
                for name, look in looks.items():
                    _draw_line(ax, name, [point for point in points if point.series == name], field, look)
            if panel == "engines":
                _draw_gpu(above[column], below[column])
            finish(above[column], title)
        _scale_alike(above, "median time, seconds")
        _scale_alike(below, "peak memory, MB")
        figure.canvas.draw()
        for ax in (*above, *below):
            label_ends(ax, column=0.68)
        return save(figure, out, "curves", kinds=("png", "svg"))


def _look(name: str, place: int) -> dict[str, Any]:
    colour = next(colour for tool, colour in TOOLS.items() if name.startswith(tool))
    if name == SORT:
        return {"color": colour, "ls": ":", "marker": "o", "ms": 3.0, "lw": 1.6}
    if name == PROFILE:
        return {"color": colour, "ls": "-", "marker": "o", "ms": 5.0, "lw": 2.2}
    own = name.startswith(("mcdp", "from_", "ScoreCounts"))
    return {"color": colour, "ls": "-" if own else "--", "marker": MARKERS[place - 2], "ms": 4.5, "lw": 1.3}


def _draw_line(ax: Any, name: str, line: Sequence[Any], field: str, look: dict[str, Any]) -> None:
    # A peak of less than a tenth of a megabyte is nothing that can be told from what was there.
    found = [(point.rows, value) for point in line if (value := getattr(point, field)) and value > 0]
    found = [(rows, value) for rows, value in found if field == "seconds" or value >= 0.1]
    if found:
        for long, short in SHORT.items():
            name = name.replace(long, short)
        ax.plot(*zip(*found, strict=True), label=name, **look)


def _draw_gpu(above: Any, below: Any) -> None:
    """The one number of rows that was measured on a GPU, with single precision."""
    found = json.loads(GPU.read_text(encoding="utf-8"))
    look = {"color": TOOLS["from_torch"], "ls": "", "marker": "*", "ms": 12.0}
    label = f"from_torch, {found['device'].removeprefix('NVIDIA ')}"
    above.plot([found["rows"]], [found["audit_s"]], label=label, **look)
    megabytes = found["audit_peak_over_scores"] * 4 * found["rows"] / 1e6
    below.plot([found["rows"]], [megabytes], label=label, **look)


def _scale_alike(axes: Sequence[Any], label: str) -> None:
    axes[0].set_ylabel(label)
    for ax in axes:
        finish(ax)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("rows")
        ax.minorticks_off()
    low = min(ax.get_ylim()[0] for ax in axes)
    high = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(low, high)
        # The labels stand on the right of the last point.
        ax.set_xlim(500, 3e12 if ax is axes[0] else 3e11)
        ax.set_xticks([10.0**power for power in range(3, 10 if ax is axes[0] else 9)])


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
