"""The random numbers of the published code's start are those that torch draws for such a program."""

from __future__ import annotations

import pytest
import torch
from benchmarks.faithful import MEASURED_AFTER, PublishedStart
from torch import nn
from torch.nn.functional import dropout
from torch.utils.data import DataLoader, TensorDataset

from localparity.models.networks import TensorRows
from localparity.models.networks._networks import Dropout
from localparity.paper import Run

ROWS, FEATURES, BATCH, WIDTHS = 2500, 5, 1024, (512, 256, 64)


def rows() -> TensorRows:
    drawn = torch.Generator().manual_seed(0)
    numbers = torch.arange(ROWS)
    features = torch.randn(ROWS, FEATURES, generator=drawn)
    return TensorRows(features, (numbers % 2).float(), numbers % 3 % 2, torch.ones(ROWS))


def linear_layers(module: nn.Module) -> list[nn.Linear]:
    return [layer for layer in module.modules() if isinstance(layer, nn.Linear)]


@pytest.mark.parametrize("method", ["advdebias", "dralign"])
def test_a_published_start_is_what_torch_draws_after_one_seed(method: str) -> None:
    start = PublishedStart(Run("adult", method, 0.4, seed=3), rows())
    torch.manual_seed(3)
    adversary = [(64, 50), (50, 1)] if method == "advdebias" else []
    sizes = [(FEATURES, 512), (512, 256), (256, 64), (64, 1), *adversary]
    for found, size in zip([*linear_layers(start.network), *linear_layers(start.method)], sizes, strict=True):
        expected = nn.Linear(*size)
        torch.testing.assert_close(found.weight, expected.weight, rtol=0.0, atol=0.0)
        torch.testing.assert_close(found.bias, expected.bias, rtol=0.0, atol=0.0)
    numbers = TensorDataset(torch.arange(ROWS))
    taken = 0
    for _ in range(3):
        for (batch,) in DataLoader(numbers, batch_size=BATCH, shuffle=True, drop_last=True):
            assert torch.equal(start.draw(), batch)
            masks = [layer.drawn for layer in start.network.modules() if isinstance(layer, Dropout)]
            if method == "dralign":
                for mask, width in zip(masks, WIDTHS, strict=True):
                    assert torch.equal(mask > 0.0, dropout(torch.ones(BATCH, width), 0.5) > 0.0)
            taken += 1
            if taken in MEASURED_AFTER:
                for shuffled in (True, False, False):
                    list(DataLoader(numbers, batch_size=BATCH, shuffle=shuffled))
    assert taken == 6
