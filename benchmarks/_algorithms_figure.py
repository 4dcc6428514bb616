"""Error and speed-up of Algorithm 2 over K and epsilon: the paper's Figure 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib import ticker

from localparity.paper._data import DATA_SETS
from localparity.paper._figures import legend_below, panels, save
from localparity.report.displays._base import COLOURS, finish, show_percent

if TYPE_CHECKING:
    from benchmarks.algorithms import AlgorithmStudy, Approximation

PROFILE_TITLE = "exact profile, every epsilon at once"


def write_figure(studies: Sequence[AlgorithmStudy], out: Path) -> list[Path]:
    """The errors above and the speed-ups below, a column for each data set."""
    figure, (errors, speeds) = panels(len(studies), 2)
    for error, speed, study in zip(errors, speeds, studies, strict=True):
        draw_errors(error, study, DATA_SETS[study.dataset].title)
        draw_speed_ups(speed, study)
    legend_below(figure, [*errors, *speeds], last=[PROFILE_TITLE])
    return save(figure, out, "figure-5")


def draw_errors(ax: Any, study: AlgorithmStudy, title: str = "") -> None:
    """How far Algorithm 2 is above MCDP: the mean over the runs, and the middle 80% of them."""
    for own, colour in _draw_lines(ax, study, lambda each: each.error, profile=0.0):
        low, high = ([getattr(each, name) for each in own] for name in ("error_low", "error_high"))
        ax.fill_between([each.k for each in own], low, high, color=colour, alpha=0.15, lw=0)
    ax.set_ylabel("estimate less MCDP")
    show_percent(ax.yaxis)
    finish(ax, title)


def draw_speed_ups(ax: Any, study: AlgorithmStudy, title: str = "") -> None:
    """How many times faster than Algorithm 1: Algorithm 2, and the exact profile of all epsilons at once."""
    _draw_lines(
        ax, study, lambda each: study.algorithm_1 / each.seconds, profile=study.algorithm_1 / study.profile
    )
    ax.set_yscale("log")
    ax.margins(y=0.25)
    ax.yaxis.set_major_locator(ticker.FixedLocator([c * 10**n for n in range(7) for c in (1, 2, 3, 5)]))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.yaxis.set_minor_locator(ticker.NullLocator())
    ax.set_ylabel("times faster\nthan Algorithm 1")
    finish(ax, title)


def _draw_lines(
    ax: Any, study: AlgorithmStudy, value: Callable[[Approximation], float], *, profile: float
) -> list[tuple[list[Approximation], str]]:
    """A line over K for each epsilon, and the exact profile's; returns each line's points and colour."""
    lines = []
    epsilons = sorted({each.epsilon for each in study.approximations})
    for epsilon, colour, marker in zip(epsilons, COLOURS, "osD", strict=False):
        own = [each for each in study.approximations if each.epsilon == epsilon]
        name = f"Algorithm 2, epsilon {epsilon:g}"
        look = {"color": colour, "marker": marker, "lw": 1.2, "ms": 4}
        ax.plot([each.k for each in own], [value(each) for each in own], label=name, **look)
        lines.append((own, colour))
    ks = sorted({each.k for each in study.approximations})
    ax.axhline(profile, color="black", ls="--", lw=1.1, label=PROFILE_TITLE)
    ax.set_xscale("log", base=2)
    ax.set_xticks(ks, [str(k) for k in ks])
    ax.set_xlabel("K, points to a half-width")
    return lines
