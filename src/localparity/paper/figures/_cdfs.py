"""Pairs of cumulative distributions with their numbers (Figures 1 and 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity.metrics import abcc, delta_dp, mcdp
from localparity.paper._result import Scored
from localparity.paper.figures._style import finish, note
from localparity.report import GroupCdfDisplay


def draw_cdfs(ax: Any, people: Scored, title: str = "") -> None:
    """Two groups' cumulative distributions, the gap, and the difference of means, ABCC and MCDP(0).

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    people : Scored
        Scores with their groups.
    title : str
        What stands above.

    Examples
    --------
    >>> from localparity.paper.figures._style import panels
    >>> figure, ((ax,),) = panels(1)
    >>> draw_cdfs(ax, toy_people(100), "a toy")
    >>> ax.get_title()
    'a toy'
    """
    compared: dict[str, Any] = {"y_score": people.score, "sensitive_features": people.group}
    GroupCdfDisplay.from_predictions(None, ax=ax, **compared)
    ax.get_legend().remove()
    numbers = {
        "means differ": delta_dp(None, **compared),
        "ABCC": abcc(None, **compared),
        "MCDP(0)": mcdp(None, **compared),
    }
    note(ax, "\n".join(f"{name} {value:.2%}" for name, value in numbers.items()))
    finish(ax, title)


def toy_people(rows: int = 2000) -> Scored:
    """Men at both ends of the scores and women in the middle: the same mean, and far apart.

    Examples
    --------
    >>> people = toy_people()
    >>> men = people.group == "Male"
    >>> bool(abs(people.score[men].mean() - people.score[~men].mean()) < 0.02)
    True
    """
    from scipy.stats import beta

    places = (np.arange(rows) + 0.5) / rows
    scores = np.concatenate([beta.ppf(places, 0.55, 0.6), beta.ppf(places, 5.0, 5.6)])
    return Scored(scores, np.repeat(["Male", "Female"], rows), np.zeros(2 * rows))
