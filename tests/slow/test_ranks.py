"""Intervals on the scale of ranks, against known populations: small groups, ties, and one group of few."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter1d

import localparity as lp

pytestmark = pytest.mark.slow
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
REPEATS, EPSILONS = 400, (0.0, 0.02, 0.1)


def exponential(
    scale: float, ties: bool
) -> tuple[Draw, Callable[[NDArray[np.float64]], NDArray[np.float64]]]:
    """Incomes without a highest one, to whole numbers where there are ties, and how many are at or below."""

    def draw(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        found = rng.exponential(scale, size)
        return np.ceil(found) if ties else found

    return draw, lambda at: 1.0 - np.exp(-at / scale)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("sizes", [(300, 300), (2000, 20), (60, 40)])
@pytest.mark.parametrize("scales", [(4.0, 4.0), (4.0, 7.0)])
def test_intervals_hold_on_the_scale_of_the_ranks(
    sizes: tuple[int, int], scales: tuple[float, float], ties: bool
) -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], sizes)
    parts = [exponential(scale, ties) for scale in scales]
    missed_below, missed_above = 0, np.zeros(len(EPSILONS))
    for _ in range(REPEATS):
        scores = np.concatenate([draw(rng, size) for (draw, _), size in zip(parts, sizes, strict=True)])
        found = lp.audit(
            None, scores, sensitive_features=groups, score_range="rank", epsilons=EPSILONS, n_resamples=0
        ).findings
        at = np.sort(scores)
        true = np.abs(parts[0][1](at) - parts[1][1](at))
        # Where a step of the ranks is met by a window is a matter of one step: both ways are tried.
        steps = [int(2 * epsilon * at.size) for epsilon in EPSILONS]
        least = [minimum_filter1d(true, step + 2, mode="constant").max() for step in steps[1:]]
        most = [minimum_filter1d(true, max(step - 1, 1)).max() for step in steps]
        missed_below += any(
            finding.interval.low > value + 1e-12
            for finding, value in zip(found, [true.max(), *most[1:]], strict=True)
        )
        missed_above += [
            finding.interval.high < value - 1e-12
            for finding, value in zip(found, [true.max(), *least], strict=True)
        ]
    error = 3 * np.sqrt(0.05 * 0.95 / REPEATS)
    assert missed_below / REPEATS <= 0.05 + error
    assert (missed_above / REPEATS <= 0.05 + error).all(), missed_above / REPEATS
