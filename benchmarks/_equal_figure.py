"""Average precision against MCDP(0) at every strength of the search with equal budgets, and the frontier."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks._equal_choice import EqualRun
from localparity.paper._figures import (
    draw_frontier,
    legend_below,
    look_of,
    panels,
    read_frontier,
    save,
)
from localparity.paper._runs import TITLES
from localparity.report.displays._base import finish, point_to_better, show_percent


def draw(path: Path, tested: list[EqualRun], frontier: Path, names: dict[str, str], seeds: range) -> None:
    """One panel for each data set; a marker is the mean over the seeds at one strength."""
    figure, (axes,) = panels(len(names), height=3.2)
    repaired = read_frontier(frontier)
    for ax, (dataset, name) in zip(axes, names.items(), strict=True):
        for method in TITLES:
            points = _points([run for run in tested if (run.dataset, run.method) == (dataset, method)], seeds)
            ax.plot(*points.T, label=TITLES[method], **look_of(method))
        draw_frontier(ax, repaired[dataset])
        highest = max(value for each in ax.lines for value in each.get_ydata())
        ax.set_ylim(0.85 * highest, 1.01 * highest)
        ax.set_xlim(0.0, None)
        ax.set_xlabel("MCDP(0)")
        show_percent(ax.xaxis)
        show_percent(ax.yaxis)
        finish(ax, name)
        point_to_better(ax)
    axes[0].set_ylabel("average precision")
    legend_below(figure, axes)
    save(figure, path.parent, path.stem, kinds=("png",))


def _points(runs: list[EqualRun], seeds: range) -> np.ndarray:
    """MCDP(0) and AP of the test parts at each strength, from the lowest on."""
    by_strength: dict[float, list[EqualRun]] = defaultdict(list)
    for run in runs:
        if run.seed in seeds:
            by_strength[run.strength].append(run)
    return np.array(
        [
            [fmean(run.metrics[name] for run in own) for name in ("test_mcdp_0", "test_ap")]
            for _, own in sorted(by_strength.items())
        ]
    )
