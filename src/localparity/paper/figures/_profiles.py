"""MCDP over epsilon for every method, with a band over the seeds (Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from localparity._types import FloatArray
from localparity.metrics import mcdp_profile
from localparity.paper._run import Run
from localparity.paper._selection import Selection
from localparity.paper._store import Store
from localparity.paper.figures._style import FLOOR_TITLE, finish, look_of, show_percent
from localparity.report.displays._display import QUIET

EPSILONS = np.linspace(0.0, 0.15, 61)


def draw_profiles(
    ax: Any,
    store: Store,
    selections: Sequence[Selection],
    *,
    floor: tuple[FloatArray, FloatArray] | None = None,
    title: str = "",
) -> None:
    """MCDP(epsilon) of the selected run of every method: mean and deviation over the seeds.

    `floor` is epsilons, and the MCDP expected under parity at each.
    """
    forms: dict[str, int] = {}
    for selection in selections:
        if not selection.chosen:
            continue
        profiles = np.array([_profile(store, record.run) for record in selection.chosen.values()])
        mean = profiles.mean(axis=0)
        look = look_of(selection.method, forms.get(selection.method, 0))
        forms[selection.method] = forms.get(selection.method, 0) + 1
        ax.plot(EPSILONS, mean, label=selection.variant, markevery=(5, 10), **look)
        if len(profiles) > 1:
            spread = profiles.std(axis=0, ddof=1)
            ax.fill_between(EPSILONS, mean - spread, mean + spread, color=look["color"], alpha=0.12, lw=0)
    if floor is not None:
        ax.plot(*floor, color=QUIET, ls=(0, (1, 1.5)), lw=1.2, label=FLOOR_TITLE)
    ax.set_xlim(0.0, EPSILONS[-1])
    ax.set_xticks([0.0, 0.05, 0.1, 0.15])
    ax.set_ylim(0.0, None)
    ax.set_xlabel("epsilon, half of a window's width")
    ax.set_ylabel("MCDP(epsilon)")
    show_percent(ax.yaxis)
    finish(ax, title)


def _profile(store: Store, run: Run) -> FloatArray:
    part = store.scores(run)
    values: FloatArray = mcdp_profile(None, part.score, sensitive_features=part.group)(EPSILONS)
    return values
