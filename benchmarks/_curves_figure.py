"""The figure of the curves: above the time, below the peak of memory, over the number of rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from localparity.paper._figures import panels, save
from localparity.report.displays._base import COLOURS, QUIET, finish

GPU = Path(__file__).parent.parent / "results" / "gpu_scale.json"
TITLES = {
    "engines": "The engines",
    "others": "Beside the paper, scipy and fairlearn",
    "intervals": "With an interval",
}
SORT, PROFILE, TORCH = "numpy's sort", "mcdp_profile, every epsilon", "from_torch, CPU"
MARKERS = "sD^vP*X"


def draw(points: Sequence[Any], out: Path) -> list[Path]:
    """Write curves.png and curves.svg."""
    figure, (above, below) = panels(3, 2, height=3.6)
    figure.set_size_inches(13.5, 9.5)
    for column, (panel, title) in enumerate(TITLES.items()):
        names = [point.series for point in points if point.panel == panel]
        looks = {
            name: _look(name, place) for place, name in enumerate(dict.fromkeys([SORT, PROFILE, *names]))
        }
        for ax, field in ((above[column], "seconds"), (below[column], "megabytes")):
            for name, look in looks.items():
                _draw_line(ax, name, [point for point in points if point.series == name], field, look)
        if panel == "engines":
            _draw_gpu(above[column], below[column], looks[TORCH]["color"])
        finish(above[column], title)
        below[column].legend(
            *above[column].get_legend_handles_labels(),
            fontsize="small",
            frameon=False,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.17),
        )
    _scale_alike(above, "median of the time, seconds")
    _scale_alike(below, "peak of the memory taken, MB")
    return save(figure, out, "curves", kinds=("png", "svg"))


def _look(name: str, place: int) -> dict[str, Any]:
    if name == SORT:
        return {"color": QUIET, "ls": ":", "marker": "o", "ms": 3.0, "lw": 1.6}
    if name == PROFILE:
        return {"color": COLOURS[0], "ls": "-", "marker": "o", "ms": 5.0, "lw": 2.2}
    own = name.startswith(("mcdp", "from_", "ScoreCounts"))
    colour = COLOURS[1 + (place - 2) % (len(COLOURS) - 1)]
    return {"color": colour, "ls": "-" if own else "--", "marker": MARKERS[place - 2], "ms": 4.5, "lw": 1.3}


def _draw_line(ax: Any, name: str, line: Sequence[Any], field: str, look: dict[str, Any]) -> None:
    # A peak of less than a tenth of a megabyte is nothing that can be told from what was there.
    found = [(point.rows, value) for point in line if (value := getattr(point, field)) and value > 0]
    found = [(rows, value) for rows, value in found if field == "seconds" or value >= 0.1]
    if found:
        ax.plot(*zip(*found, strict=True), label=name, **look)


def _draw_gpu(above: Any, below: Any, colour: str) -> None:
    """The one number of rows that was measured on a GPU, with single precision."""
    found = json.loads(GPU.read_text(encoding="utf-8"))
    look = {"color": colour, "ls": "", "marker": "*", "ms": 12.0}
    label = f"from_torch, {found['device']}, float32"
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
        ax.set_xlim(500, 3e9 if ax is axes[0] else 3e8)
