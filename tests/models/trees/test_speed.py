"""A round with the penalty costs little more than a round of the library's own objective."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from localparity.models import MCDPObjective

ABOVE = pytest.mark.xfail(
    reason="1.29 to 1.66 was seen: margins and gradients go through Python, and penalised trees are larger",
    strict=False,
)


def xgboost_round(X: Any, y: Any, objective: Any) -> Callable[[], None]:
    import xgboost

    data = xgboost.QuantileDMatrix(X, y)
    booster = xgboost.Booster({"objective": "binary:logistic", "base_score": 0.3, "nthread": 1}, [data])
    return lambda: booster.update(data, booster.num_boosted_rounds(), fobj=objective)


def lightgbm_round(X: Any, y: Any, objective: Any) -> Callable[[], None]:
    import lightgbm

    plain = {"num_threads": 1, "verbose": -1, "force_row_wise": True}
    data = lightgbm.Dataset(X, y, params=plain)
    booster = lightgbm.Booster({"objective": "none" if objective else "binary", **plain}, data)
    return lambda: booster.update(fobj=objective)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [10**5, 10**6])
@pytest.mark.parametrize(
    "options", [{"search": "soft"}, {"search": "soft", "temperature": 100.0}, {}, {"epsilon": 0.05}]
)
@pytest.mark.parametrize("library", [pytest.param(xgboost_round, marks=ABOVE), lightgbm_round])
def test_a_round_costs_at_most_half_as_much_again(
    library: Callable[..., Callable[[], None]], options: dict[str, Any], rows: int
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 20)).astype(np.float32)
    groups = (rng.random(rows) < 0.4).astype(int)
    y = (X[:, 0] + 0.5 * X[:, 1] + 0.3 * groups + rng.normal(size=rows) > 0.8).astype(int)
    objective = MCDPObjective(y, sensitive_features=groups, strength=0.3, **options)
    rounds = {"plain": library(X, y, None), "penalised": library(X, y, objective)}
    times: dict[str, list[float]] = {name: [] for name in rounds}
    for _ in range(20):
        for name, grow in rounds.items():
            start = time.process_time()
            grow()
            times[name].append(time.process_time() - start)
    best = {name: sorted(taken)[len(taken) // 4] for name, taken in times.items()}
    print(f"{library.__name__} {options} {rows}: {best['penalised'] / best['plain']:.2f} {best}")
    assert best["penalised"] <= 1.5 * best["plain"], best
