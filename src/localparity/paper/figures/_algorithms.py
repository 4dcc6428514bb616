"""Error and speed-up of Algorithm 2 over K and epsilon (Figure 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localparity._validation import require
from localparity.paper._algorithm_study import EPSILONS, KS, AlgorithmStudy, Approximation
from localparity.paper.figures._style import finish, show_percent
from localparity.report.displays._display import COLOURS

PROFILE_TITLE = "exact profile, every epsilon at once"


def draw_errors(ax: Any, study: AlgorithmStudy, title: str = "") -> None:
    """How far Algorithm 2 is above MCDP on average over the runs, and for the middle 80% of them.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    study : AlgorithmStudy
        What was measured.
    title : str
        What stands above.

    Examples
    --------
    >>> from localparity.paper._algorithm_study import study
    >>> from localparity.paper.figures._cdfs import toy_people
    >>> from localparity.paper.figures._style import panels
    >>> figure, ((ax,),) = panels(1)
    >>> draw_errors(ax, study("adult", "", [toy_people(50)]))
    >>> ax.get_ylabel()
    'estimate less MCDP'
    """
    for own, colour in _draw_lines(ax, study, lambda each: each.error, profile=0.0):
        low, high = ([getattr(each, name) for each in own] for name in ("error_low", "error_high"))
        ax.fill_between([each.k for each in own], low, high, color=colour, alpha=0.15, lw=0)
    ax.set_ylabel("estimate less MCDP")
    show_percent(ax.yaxis)
    finish(ax, title)


def draw_speed_ups(ax: Any, study: AlgorithmStudy, title: str = "") -> None:
    """How many times faster than Algorithm 1: Algorithm 2, and the exact profile of all epsilons at once.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    study : AlgorithmStudy
        What was measured.
    title : str
        What stands above.
    """
    _draw_lines(
        ax, study, lambda each: study.algorithm_1 / each.seconds, profile=study.algorithm_1 / study.profile
    )
    ax.set_yscale("log")
    ax.margins(y=0.25)
    ticker = require("matplotlib.ticker", extra="report")
    ax.yaxis.set_major_locator(ticker.FixedLocator([c * 10**n for n in range(7) for c in (1, 2, 3, 5)]))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.yaxis.set_minor_locator(ticker.NullLocator())
    ax.set_ylabel("times faster\nthan Algorithm 1")
    finish(ax, title)


def _draw_lines(
    ax: Any, study: AlgorithmStudy, value: Callable[[Approximation], float], *, profile: float
) -> list[tuple[list[Approximation], str]]:
    """A value of Algorithm 2 over K, a line for each epsilon, and that of the exact profile.

    Returns what each line is drawn from, and its colour.
    """
    lines = []
    for epsilon, colour, marker in zip(EPSILONS, COLOURS, "osD", strict=False):
        own = [each for each in study.approximations if each.epsilon == epsilon]
        name = f"Algorithm 2, epsilon {epsilon:g}"
        look = {"color": colour, "marker": marker, "lw": 1.2, "ms": 4}
        ax.plot([each.k for each in own], [value(each) for each in own], label=name, **look)
        lines.append((own, colour))
    ax.axhline(profile, color="black", ls="--", lw=1.1, label=PROFILE_TITLE)
    ax.set_xscale("log", base=2)
    ax.set_xticks(KS, [str(k) for k in KS])
    ax.set_xlabel("K, points to a half-width")
    return lines
