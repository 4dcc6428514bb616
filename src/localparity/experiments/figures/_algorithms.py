"""Error and speed-up of Algorithm 2 over K and epsilon (Figure 5)."""

from __future__ import annotations

from typing import Any

from localparity._optional import require
from localparity.experiments._algorithm_study import EPSILONS, KS, AlgorithmStudy
from localparity.experiments.figures._style import finish, show_percent
from localparity.report._display import COLOURS

PROFILE_TITLE = "exact profile, every epsilon at once"
_LINE = {"lw": 1.2, "ms": 4}


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
    >>> from localparity.experiments._algorithm_study import study
    >>> from localparity.experiments.figures._cdfs import toy_people
    >>> from localparity.experiments.figures._style import panels
    >>> figure, ((ax,),) = panels(1)
    >>> draw_errors(ax, study("adult", [toy_people(50)]))
    >>> ax.get_xlabel()
    'K, points to a half-width'
    """
    for epsilon, colour, marker in zip(EPSILONS, COLOURS, "osD", strict=False):
        own = [each for each in study.approximations if each.epsilon == epsilon]
        ks = [each.k for each in own]
        ax.plot(ks, [each.error for each in own], color=colour, marker=marker, label=_name(epsilon), **_LINE)
        low, high = ([getattr(each, name) for each in own] for name in ("error_low", "error_high"))
        ax.fill_between(ks, low, high, color=colour, alpha=0.15, lw=0)
    ax.axhline(0.0, color="black", ls="--", lw=1.1, label=PROFILE_TITLE)
    _axis_of_k(ax)
    ax.set_ylabel("estimate less MCDP")
    show_percent(ax.yaxis)
    finish(ax, title)


def draw_speed_ups(ax: Any, study: AlgorithmStudy, title: str = "") -> None:
    """How many times faster than Algorithm 1: Algorithm 2, and the exact profile with every epsilon at once.

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
    >>> from localparity.experiments._algorithm_study import study
    >>> from localparity.experiments.figures._cdfs import toy_people
    >>> from localparity.experiments.figures._style import panels
    >>> figure, ((ax,),) = panels(1)
    >>> draw_speed_ups(ax, study("adult", [toy_people(50)]))
    >>> ax.get_xlabel()
    'K, points to a half-width'
    """
    for epsilon, colour, marker in zip(EPSILONS, COLOURS, "osD", strict=False):
        own = [each for each in study.approximations if each.epsilon == epsilon]
        times = [study.algorithm_1 / each.seconds for each in own]
        ax.plot([each.k for each in own], times, color=colour, marker=marker, label=_name(epsilon), **_LINE)
    profile = study.algorithm_1 / study.profile
    ax.axhline(profile, color="black", ls="--", lw=1.1, label=PROFILE_TITLE)
    _axis_of_k(ax)
    ax.set_yscale("log")
    ax.margins(y=0.25)
    ticker = require("matplotlib.ticker", extra="report")
    ax.yaxis.set_major_locator(ticker.FixedLocator([c * 10**n for n in range(7) for c in (1, 2, 3, 5)]))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.yaxis.set_minor_locator(ticker.NullLocator())
    ax.set_ylabel("times faster\nthan Algorithm 1")
    finish(ax, title)


def _name(epsilon: float) -> str:
    return f"Algorithm 2, epsilon {epsilon:g}"


def _axis_of_k(ax: Any) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks(KS, [str(k) for k in KS])
    ax.set_xlabel("K, points to a half-width")
