"""Scores and groups to measure with; in a module of its own, so that a fresh process can import it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def draw_scores(rows: int, name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, rows)
    return (rng.random(rows) if name == "parity" else rng.beta(2 + groups, 3 - groups)), groups
