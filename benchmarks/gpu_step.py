"""One optimiser step of each method on a GPU, over that of ERM: ``python -m benchmarks.gpu_step``.

The methods take turns, so that all of them see the same machine; results/gpu_step.json has the table.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import torch

from localparity.training import METHODS, MCDPLoss, MethodOptions, Plan, Rows, Trainer
from localparity.training._methods import make_method
from localparity.training._networks import multilayer

RESULT = Path(__file__).parent.parent / "results" / "gpu_step.json"
ROUNDS = 200
BATCH = 1024


def main() -> None:
    device = torch.device("cuda")
    rows = made_rows(device)
    same_as_unrecorded(rows)
    steps = {method: stepper(method, rows) for method in METHODS}
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
    found = {
        "device": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "batch": BATCH,
        "milliseconds": {method: round(1e3 * taken, 3) for method, taken in typical.items()},
        "over_erm": {method: round(taken / typical["erm"], 3) for method, taken in typical.items()},
    }
    RESULT.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


def made_rows(device: torch.device) -> Rows:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(20 * BATCH, 101, generator=generator)
    groups = (torch.rand(len(features), generator=generator) < 0.33).long()
    labels = (features[:, 0] + 0.5 * groups > 0.7).float()
    return Rows(features, labels, groups, torch.ones(len(features))).to(device)


def stepper(method: str, rows: Rows):
    made = make_method(method, 0.2, 2, MethodOptions())
    network = multilayer(101, (512, 256, 64), 0.5).to(rows.features.device)
    trainer = Trainer(made, network, Plan(batch_size=BATCH))
    trainer.begin(rows)
    optimizer = torch.optim.AdamW(trainer.parameters(), lr=1e-3)
    return lambda: trainer._step(optimizer, 0)


def same_as_unrecorded(rows: Rows) -> None:
    """A recorded search gives, batch after batch, what the search gives."""
    recorded, plain = MCDPLoss(n_groups=2), MCDPLoss()
    for start in range(0, 5 * BATCH, BATCH):
        part = rows.take(torch.arange(start, start + BATCH, device=rows.features.device))
        gradients = []
        for loss in (recorded, plain):
            scores = torch.sigmoid(part.features[:, 1]).requires_grad_()
            value = loss(scores, part.groups)
            value.backward()
            gradients.append(torch.cat([scores.grad, value.detach()[None]]))
        torch.testing.assert_close(*gradients)
    assert recorded._replayed.recordings
    assert not plain._replayed.recordings


if __name__ == "__main__":
    main()
