"""The worst windows of several epsilons on one gap curve (Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from localparity.metrics import gap_curve
from localparity.paper._part_scores import PartScores
from localparity.paper.figures._style import finish, show_percent
from localparity.report._thin import thin_steps
from localparity.report.displays._display import COLOURS

EPSILONS = (0.0, 0.02, 0.05)


def draw_windows(ax: Any, part: PartScores, epsilons: Sequence[float] = EPSILONS, title: str = "") -> None:
    """The absolute gap at every threshold, and for each epsilon the window that carries MCDP(epsilon)."""
    curve = gap_curve(None, part.score, sensitive_features=part.group)
    kept = thin_steps(curve.knots, np.abs(curve.gap))
    thresholds = np.union1d(curve.knots[kept], [0.0, 1.0])
    ax.step(thresholds, np.abs(curve(thresholds)), where="post", color="black", lw=1.1, zorder=3)
    for epsilon, colour in zip(epsilons, COLOURS[1:], strict=False):
        window = curve.worst_window(epsilon)
        least = abs(window.gap)
        name = f"MCDP({epsilon:g}) is {least:.2%}"
        if epsilon == 0.0:
            ax.plot([window.low], [least], "o", color=colour, label=name, zorder=5)
            continue
        width = window.high - window.low
        ax.bar(window.low, least, width, align="edge", color=colour, alpha=0.25, lw=0)
        ax.plot([window.low, window.high], [least, least], color=colour, lw=2.0, label=name, zorder=4)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, None)
    ax.set_xlabel("threshold")
    ax.set_ylabel("absolute gap")
    show_percent(ax.yaxis)
    ax.legend(frameon=False, fontsize="small")
    finish(ax, title)
