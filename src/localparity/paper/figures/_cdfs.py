"""Pairs of cumulative distributions with their metrics (Figures 1 and 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity.metrics import abcc, delta_dp, mcdp
from localparity.paper._part_scores import PartScores
from localparity.paper.figures._style import finish, note
from localparity.report import GroupCdfDisplay


def draw_cdfs(ax: Any, part: PartScores, title: str = "") -> None:
    """Two groups' cumulative distributions, the gap, and the difference of means, ABCC and MCDP(0)."""
    compared: dict[str, Any] = {"y_score": part.score, "sensitive_features": part.group}
    GroupCdfDisplay.from_predictions(None, ax=ax, **compared)
    ax.get_legend().remove()
    numbers = {
        "means differ": delta_dp(None, **compared),
        "ABCC": abcc(None, **compared),
        "MCDP(0)": mcdp(None, **compared),
    }
    note(ax, "\n".join(f"{name} {value:.2%}" for name, value in numbers.items()))
    finish(ax, title)


def toy_scores(rows: int = 2000) -> PartScores:
    """Men at both ends of the scores and women in the middle: the same mean, and far apart."""
    from scipy.stats import beta

    places = (np.arange(rows) + 0.5) / rows
    scores = np.concatenate([beta.ppf(places, 0.55, 0.6), beta.ppf(places, 5.0, 5.6)])
    return PartScores(scores, np.repeat(["Male", "Female"], rows), np.zeros(2 * rows))
