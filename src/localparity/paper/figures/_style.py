"""What the figures share: colours, sizes, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from localparity._io._files import write_whole
from localparity._validation import require
from localparity.paper._grids import TITLES
from localparity.report.displays._display import COLOURS, QUIET

_BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY, _BLACK = COLOURS
_COLOUR_OF = dict(zip(TITLES, (_BLACK, _SKY, _BLUE, _GREEN, _ORANGE, _PINK, _RED), strict=True))
_MARKER_OF = dict(zip(TITLES, "osD^vP*", strict=True))
_DASHES = ("-", "--", ":", "-.")
FORMATS = ("png", "svg", "pdf")
FLOOR_TITLE = "expected under parity"
PUBLISHED_TITLE = "hollow: the paper's"
FRONTIER_TITLE = "group-blind repair"
_WIDTH, _HEIGHT = 3.4, 2.7


def look_of(method: str, form: int = 0) -> dict[str, Any]:
    """The colour, marker and line of a method; its further forms differ in the line."""
    ours = method == "diffmcdp"
    return {
        "color": _COLOUR_OF[method],
        "marker": _MARKER_OF[method],
        "ls": _DASHES[form % len(_DASHES)],
        "lw": 1.8 if ours else 1.1,
        "ms": 7.0 if ours else 4.0,
        "zorder": 4 if ours else 3,
    }


def panels(columns: int, rows: int = 1, *, height: float = _HEIGHT) -> tuple[Any, list[list[Any]]]:
    """A figure with one or more rows of axes."""
    figure_class = require("matplotlib.figure", extra="report").Figure
    figure = figure_class(figsize=(_WIDTH * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False).tolist()


def legend_below(
    figure: Any, axes: Sequence[Any], *, last: Sequence[str] = (FRONTIER_TITLE, PUBLISHED_TITLE, FLOOR_TITLE)
) -> None:
    """One legend for several axes, below them: each name once, some of them last."""
    found: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    names = sorted(found, key=lambda name: name in last)
    figure.legend(
        [found[name] for name in names],
        names,
        loc="outside lower center",
        ncols=_columns_that_fit(names, 72.0 * figure.get_figwidth()),
        frameon=False,
        fontsize="small",
        handlelength=1.8,
        columnspacing=1.2,
    )


def _columns_that_fit(names: Sequence[str], points: float) -> int:
    """The most columns of a legend that fit into a width; matplotlib fills them one after the other."""
    for columns in range(len(names), 1, -1):
        length, longer = divmod(len(names), columns)
        ends = [length * (place + 1) + min(place + 1, longer) for place in range(columns)]
        parts = [names[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        if sum(42.0 + 5.0 * max(map(len, part)) for part in parts) <= points:
            rows = -(-len(names) // columns)
            return -(-len(names) // rows)
    return 1


def show_percent(axis: Any) -> None:
    """Few ticks, in percent, without trailing zeros."""
    ticker = require("matplotlib.ticker", extra="report")
    axis.set_major_locator(ticker.MaxNLocator(5, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{100 * value:g}%"))


def finish(ax: Any, title: str = "") -> None:
    """A light grid, open axes, a title."""
    ax.grid(alpha=0.25, lw=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if title:
        ax.set_title(title, fontsize="medium")


def note(ax: Any, text: str, *, x: float = 0.97, y: float = 0.05) -> None:
    """Numbers in a corner of the axes."""
    ax.text(
        x,
        y,
        text,
        transform=ax.transAxes,
        ha="right" if x > 0.5 else "left",
        va="top" if y > 0.5 else "bottom",
        fontsize="small",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
    )


def floor_line(ax: Any, value: float) -> None:
    """A vertical line at the MCDP expected under parity."""
    ax.axvline(value, color=QUIET, ls=(0, (1, 1.5)), lw=1.2, zorder=1, label=FLOOR_TITLE)


def save(figure: Any, out: Path, name: str, *, kinds: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure in each format; the same figure gives the same bytes."""
    matplotlib = require("matplotlib", extra="report")
    written = []
    with matplotlib.rc_context({"svg.hashsalt": "localparity", "pdf.fonttype": 42}):
        for kind in kinds:
            content = BytesIO()
            stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
            figure.savefig(content, format=kind, dpi=200, metadata=stamp)
            path = out / f"{name}.{kind}"
            write_whole(path, content.getvalue())
            written.append(path)
    return written
