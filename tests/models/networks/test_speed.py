"""A step with the exact search costs little more than a step without a penalty."""

from __future__ import annotations

import time

import pytest
import torch

from localparity.models import MethodOptions, TensorRows, TrainingPlan
from localparity.models.networks._methods import make_method
from localparity.models.networks._networks import multilayer
from localparity.models.networks._training import Steps, Training


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [10.0, 80.0])
def test_a_step_with_the_exact_search_costs_at_most_half_as_much_again(temperature: float) -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(1024, 101, generator=generator)
    labels = (features[:, 0] > 0.7).float()
    rows = TensorRows(
        features, labels, (torch.rand(1024, generator=generator) < 0.33).long(), torch.ones(1024)
    )
    runs, plan = {}, TrainingPlan()
    for name in ("erm", "diffmcdp"):
        method = make_method(name, 0.2, 2, MethodOptions(temperature=temperature))
        network = multilayer(101, (512, 256, 64), 0.5)
        runs[name] = Steps(Training(method, network, plan, rows, seed=0), plan)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(60):
        for name, steps in runs.items():
            start = time.perf_counter()
            steps.take(0)
            times[name].append(time.perf_counter() - start)
    best = {name: sorted(taken)[len(taken) // 4] for name, taken in times.items()}
    print(f"temperature {temperature:g}: {best['diffmcdp'] / best['erm']:.2f} {best}")
    assert best["diffmcdp"] <= 1.5 * best["erm"], best
