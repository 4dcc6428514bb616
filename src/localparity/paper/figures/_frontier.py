"""The frontier beside the methods of the paper: group-blind repair, at every bound."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from localparity._io._files import reading
from localparity._types import FloatArray
from localparity.paper.figures._style import FRONTIER_TITLE


def read_frontier(path: Path) -> dict[str, FloatArray]:
    """The frontier of every data set in a CSV of `benchmarks.frontier`.

    A row has MCDP(0) and AP on the test parts at a bound, means over the seeds; the lowest MCDP(0) is first.
    """
    found: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    with path.open(encoding="utf-8", newline="") as stream, reading(str(path)):
        for row in csv.DictReader(stream):
            if row["method"] == FRONTIER_TITLE:
                values = [float(row["test_mcdp0"]) / 100.0, float(row["test_ap"]) / 100.0]
                found[row["data"]][row["setting"]].append(values)
    return {
        dataset: np.array(sorted(np.mean(values, axis=0).tolist() for values in settings.values()))
        for dataset, settings in found.items()
    }


def draw_frontier(ax: Any, points: FloatArray) -> None:
    """A broad line below the methods."""
    ax.plot(*points.T, color="0.45", lw=2.5, alpha=0.6, zorder=2, label=FRONTIER_TITLE)
