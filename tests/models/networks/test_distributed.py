"""Two processes compute the gradient of one process on the joined batch."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import multiprocessing

from training_processes import penalised_gradients, rows, work


def test_a_loop_of_one_s_own_has_the_gradient_of_the_joined_batch(tmp_path: Path) -> None:
    multiprocessing.spawn(work, (str(tmp_path),), nprocs=2)
    alone = penalised_gradients(rows(), parallel=False)
    assert any(gradient.abs().max() > 0.01 for gradient in alone)
    for index in range(2):
        gradients = torch.load(tmp_path / f"{index}.pt", weights_only=True)
        for one, other in zip(gradients, alone, strict=True):
            torch.testing.assert_close(one, other, rtol=0.0, atol=1e-5)
