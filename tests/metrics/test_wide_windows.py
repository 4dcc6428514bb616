"""Windows of any width, as in the paper's Algorithm 1: the definition's value, whatever holds the rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
import oracles

EPSILONS = [Fraction(step, 20) for step in range(31)]  # 0, 0.05, ..., 1.5


def cases() -> list[tuple[np.ndarray, np.ndarray, list[float]]]:
    """Scores, groups, and MCDP at each epsilon in rational arithmetic: mass at both ends, gaps that turn."""
    rng, found = np.random.default_rng(0), []
    for size in (2, 3, 5, 9, 14, 20):
        for spread in (3, 10, 100):
            steps, groups = rng.integers(0, spread + 1, size), rng.permutation(np.arange(size) % 2)
            steps[groups == 0] = np.where(rng.random((groups == 0).sum()) < 0.5, 0, steps[groups == 0])
            samples = [
                [(Fraction(int(step), spread), Fraction(1)) for step in steps[groups == group]]
                for group in (0, 1)
            ]
            found.append((steps / spread, groups, [float(oracles.mcdp(*samples, e)) for e in EPSILONS]))
    return found


def of_arrays(scores: np.ndarray, groups: np.ndarray, epsilons: list[float]) -> Any:
    return lp.mcdp(None, scores, sensitive_features=groups, epsilon=epsilons)


def of_counts(scores: np.ndarray, groups: np.ndarray, epsilons: list[float]) -> Any:
    people = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    return lp.mcdp(lp.ScoreCounts.from_predictions(people), epsilon=epsilons)


def of_duckdb(scores: np.ndarray, groups: np.ndarray, epsilons: list[float]) -> Any:
    import duckdb

    with duckdb.connect() as connection:
        table = connection.from_df(pd.DataFrame({"p": scores, "g": groups}))
        counts = lp.engines.from_duckdb(table, score="p", group="g", epsilons=epsilons, max_scores=2, level=2)
        return lp.mcdp(counts, epsilon=epsilons)


def of_torch(scores: np.ndarray, groups: np.ndarray, epsilons: list[float]) -> Any:
    torch = pytest.importorskip("torch")
    tensors = torch.tensor(scores), torch.tensor(groups)
    counts = lp.engines.from_torch(*tensors, epsilons=epsilons, max_scores=2, level=2)
    return lp.mcdp(counts, epsilon=epsilons)


def of_a_sketch(scores: np.ndarray, groups: np.ndarray, epsilons: list[float]) -> Any:
    pytest.importorskip("datasketches")
    sketch = lp.monitoring.ScoreSketch()
    sketch.update(lp.Predictions.from_arrays(None, scores, sensitive_features=groups))
    return [lp.mcdp(sketch.counts(), epsilon=epsilon) for epsilon in epsilons]


@pytest.mark.parametrize("measure", [of_arrays, of_counts, of_duckdb, of_torch, of_a_sketch])
def test_it_is_the_definition_at_every_epsilon(measure: Any) -> None:
    epsilons = list(map(float, EPSILONS))
    wide = 0
    for scores, groups, expected in cases():
        np.testing.assert_allclose(measure(scores, groups, epsilons), expected, rtol=0, atol=1e-15)
        wide += any(value > 0 for value, epsilon in zip(expected, EPSILONS, strict=True) if epsilon > 0.5)
    assert wide >= 5
