"""Labels at the ends of lines, for figures of many lines."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np


def label_ends(ax: Any, column: float | None = None) -> None:
    """Write the label of each line at its last point, on the right; labels are kept apart.

    In a `column`, a share of the width, thin lines lead to them. The scales are to be set before.
    """
    to_share = (ax.transData + ax.transAxes.inverted()).transform
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    ends = [to_share((line.get_xdata()[-1], line.get_ydata()[-1])) for line in lines]
    heights = np.array([height for _, height in ends])
    order = np.argsort(heights, kind="stable")
    for _ in range(200):
        for low, high in pairwise(order):
            overlap = 0.05 - (heights[high] - heights[low])
            near = column is not None or abs(ends[high][0] - ends[low][0]) < 0.35
            if overlap > 1e-6 and near:
                heights[high] += overlap / 2
                heights[low] -= overlap / 2
    for line, (right, level), height in zip(lines, ends, heights, strict=True):
        text = {"color": line.get_color(), "fontsize": "small", "va": "center"}
        if column is not None:
            path = [right + 0.01, column - 0.01], [level, height]
            ax.plot(*path, color=line.get_color(), lw=0.5, alpha=0.5, transform=ax.transAxes)
        at = right + 0.02 if column is None else column
        ax.text(at, height, line.get_label(), transform=ax.transAxes, **text)
