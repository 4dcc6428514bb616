"""Two processes compute the loss and the gradient of one process on the joined batch."""

from __future__ import annotations

import pytest
import torch
from torch import multiprocessing

from localparity.models.networks import METHODS
from training_processes import loss_and_gradients, penalised_gradients, rows, trained, work


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[torch.Tensor]]]:
    folder = tmp_path_factory.mktemp("processes")
    multiprocessing.spawn(work, (str(folder),), nprocs=2)
    return [torch.load(folder / f"{index}.pt", weights_only=True) for index in range(2)]


@pytest.mark.parametrize("name", list(METHODS))
def test_loss_and_gradient_are_those_of_the_joined_batch(
    name: str, found: list[dict[str, list[torch.Tensor]]]
) -> None:
    alone = loss_and_gradients(name, rows())
    for process in found:
        for one, other in zip(process[name], alone, strict=True):
            torch.testing.assert_close(one, other, rtol=0.0, atol=1e-6)


def test_a_trained_network_is_that_of_one_process(found: list[dict[str, list[torch.Tensor]]]) -> None:
    for process in found:
        for one, other in zip(process["trained"], trained(), strict=True):
            torch.testing.assert_close(one, other, rtol=0.0, atol=1e-5)


def test_a_loop_of_one_s_own_has_the_gradient_of_the_joined_batch(
    found: list[dict[str, list[torch.Tensor]]],
) -> None:
    alone = penalised_gradients(rows(), parallel=False)
    assert any(gradient.abs().max() > 0.01 for gradient in alone)
    for process in found:
        for one, other in zip(process["parallel"], alone, strict=True):
            torch.testing.assert_close(one, other, rtol=0.0, atol=1e-5)
