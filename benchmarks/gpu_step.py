"""One optimiser step of each method on a GPU, over that of ERM: ``python -m benchmarks.gpu_step``.

The methods take turns, so that all of them see the same machine; results/gpu_step.json has the table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks._measure import add_busy, record_at, write_json
from localparity.models.networks import METHODS, TensorRows, TrainingSettings
from localparity.models.networks._methods import make_method
from localparity.models.networks._networks import multilayer
from localparity.models.networks._trainer import Training

RESULT = Path(__file__).parent.parent / "results" / "gpu_step.json"
ROUNDS = 200
BATCH = 1024
SETTINGS = TrainingSettings(steps=25, batch_size=BATCH)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_busy(parser)
    out = record_at(RESULT, busy=parser.parse_args().busy)
    device = torch.device("cuda")
    rows = made_rows(device)
    for method in METHODS:
        same_training(method, rows, SETTINGS)
    same_training("diffmcdp", rows, replace(SETTINGS, memory=4096, balanced=True))
    found = {
        "device": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "batch": BATCH,
        "launched_one_by_one": measure(rows, recorded=False),
        "recorded": measure(rows, recorded=True),
    }
    write_json(out, found)


def measure(rows: TensorRows, *, recorded: bool) -> dict[str, dict[str, float]]:
    """The median time of each method's step, and its ratio to ERM's."""
    steps = {method: stepper(method, rows, recorded=recorded) for method in METHODS}
    times: dict[str, list[float]] = {method: [] for method in METHODS}
    for turn in range(ROUNDS):
        for method, step in steps.items():
            torch.cuda.synchronize()
            started = time.perf_counter()
            step()
            torch.cuda.synchronize()
            if turn >= ROUNDS // 10:
                times[method].append(time.perf_counter() - started)
    typical = {method: sorted(taken)[len(taken) // 2] for method, taken in times.items()}
    return {
        "milliseconds": {method: round(1e3 * taken, 3) for method, taken in typical.items()},
        "over_erm": {method: round(taken / typical["erm"], 3) for method, taken in typical.items()},
    }


def stepper(method: str, rows: TensorRows, *, recorded: bool) -> Callable[[], object]:
    steps = make_steps(method, rows, SETTINGS, recorded=recorded)
    return lambda: steps.take(0)


def make_steps(method: str, rows: TensorRows, settings: TrainingSettings, *, recorded: bool) -> Training:
    torch.manual_seed(0)
    network = multilayer(101, (512, 256, 64), 0.5).to(rows.features.device)
    made = make_method(method, 0.2, 2, settings)
    training = Training(made, network, rows, seed=0)
    training.recorded = recorded
    return training


def same_training(method: str, rows: TensorRows, settings: TrainingSettings) -> None:
    """Recorded steps end where steps that are launched one by one end."""
    ends = []
    for recorded in (True, False):
        steps = make_steps(method, rows, settings, recorded=recorded)
        for step in range(settings.steps):
            steps.take(step)
        weights = steps.parameters()
        ends.append(torch.cat([weight.detach().flatten() for weight in weights]))
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4)
    print(method, "is the same, to", float((ends[0] - ends[1]).abs().max()))


def made_rows(device: torch.device) -> TensorRows:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(20 * BATCH, 101, generator=generator)
    groups = (torch.rand(len(features), generator=generator) < 0.33).long()
    labels = (features[:, 0] + 0.5 * groups > 0.7).float()
    return TensorRows(features, labels, groups, torch.ones(len(features))).to(device)


if __name__ == "__main__":
    main()
