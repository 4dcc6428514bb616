"""Average precision against a disparity, for every method and strength (Figures 3 and 6, appendix)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from localparity._validation import require
from localparity.paper._grids import TITLES
from localparity.paper._published import published
from localparity.paper._results_table import METRIC_TITLES
from localparity.paper._selection import by_strength, by_variant
from localparity.paper._store import Record
from localparity.paper.figures._style import (
    PUBLISHED_TITLE,
    finish,
    floor_line,
    look_of,
    note,
    show_percent,
)

_COLLAPSED = 0.9


def draw_trade_off(
    ax: Any, records: Sequence[Record], metric: str, *, floor: float | None = None, title: str = ""
) -> None:
    """The test AP of methods against a disparity: up and to the left is better.

    Each marker is the mean over the seeds at one strength, with the deviation on both axes; a line joins a
    method's strengths. Strengths whose mean AP is below 90% of the highest are not drawn, so that the others
    can be distinguished, and a note says whose they are. `floor` is the disparity expected under parity.
    """
    forms: dict[str, int] = {}
    highest = max(
        _mean_and_deviation(runs, "test_ap")[0]
        for _, own in by_variant(records)
        for runs in by_strength(own).values()
    )
    left_out: list[str] = []
    for variant, own in by_variant(records):
        method, strengths = own[0].run.method, by_strength(own)
        look = look_of(method, forms.get(method, 0))
        forms[method] = forms.get(method, 0) + 1
        kept = {
            strength: runs
            for strength, runs in strengths.items()
            if _mean_and_deviation(runs, "test_ap")[0] >= _COLLAPSED * highest
        }
        if len(kept) < len(strengths):
            left_out.append(f"{variant}: {len(strengths) - len(kept)} below")
        draw_strengths(ax, kept, metric, variant, look)
    if left_out:
        note(ax, "\n".join(left_out), x=0.03)
    _finish(ax, metric, floor, title)


def draw_temperatures(
    ax: Any,
    records: Mapping[float, Sequence[Record]],
    metric: str,
    *,
    floor: float | None = None,
    title: str = "",
) -> None:
    """The trade-off of one method at several temperatures, as `draw_trade_off` draws it."""
    colours = ordered_colours(len(records))
    for place, (temperature, own) in enumerate(sorted(records.items())):
        look = {
            **look_of("diffmcdp"),
            "color": colours[place],
            "marker": "osD^vP"[place % 6],
            "lw": 1.3,
            "ms": 5.0,
        }
        draw_strengths(ax, by_strength(own), metric, f"temperature {temperature:g}", look)
    _finish(ax, metric, floor, title)


def draw_published(ax: Any, dataset: str, metric: str) -> None:
    """The paper's value of every method on a data set, as hollow markers."""
    for method in TITLES:
        theirs = published(dataset, method)
        if metric in theirs:
            look = {**look_of(method), "ls": "none", "mfc": "white", "zorder": 2}
            x, y = theirs[metric].mean / 100.0, theirs["ap"].mean / 100.0
            ax.plot([x], [y], label=PUBLISHED_TITLE if method == "erm" else None, **look)


def draw_strengths(
    ax: Any, strengths: Mapping[float, Sequence[Record]], metric: str, name: str, look: Mapping[str, Any]
) -> None:
    """A line through the strengths of one method, with error bars."""
    if not strengths:
        return
    values = np.array(
        [
            [_mean_and_deviation(own, f"test_{metric}"), _mean_and_deviation(own, "test_ap")]
            for own in strengths.values()
        ]
    )
    (x, x_spread), (y, y_spread) = values[:, 0].T, values[:, 1].T
    bars = {"elinewidth": 0.7, "capsize": 1.5, "capthick": 0.7, "ecolor": (look["color"], 0.4)}
    ax.errorbar(x, y, xerr=x_spread, yerr=y_spread, label=name, **bars, **look)


def ordered_colours(count: int) -> list[Any]:
    """Colours from pale to dark for values that have an order."""
    ramp = require("matplotlib", extra="report").colormaps["viridis_r"]
    return [ramp(0.15 + 0.75 * place / max(1, count - 1)) for place in range(count)]


def _mean_and_deviation(records: Sequence[Record], name: str) -> tuple[float, float]:
    values = np.array([record.metrics[name] for record in records])
    return float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else 0.0


def _finish(ax: Any, metric: str, floor: float | None, title: str) -> None:
    if floor is not None:
        floor_line(ax, floor)
    ax.set_xlim(0.0, None)
    ax.margins(y=0.08)
    ax.set_xlabel(METRIC_TITLES[metric])
    ax.set_ylabel("average precision")
    show_percent(ax.xaxis)
    show_percent(ax.yaxis)
    finish(ax, title)
