"""The convolution is torch's, and so are its derivatives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from localparity.training._convolution import Convolution


@pytest.mark.parametrize(("side", "stride", "padding"), [(3, 1, 1), (3, 2, 1), (1, 2, 0), (5, 2, 2)])
@pytest.mark.parametrize("size", [6, 7])
def test_first_and_second_derivatives(side: int, stride: int, padding: int, size: int) -> None:
    torch.manual_seed(0)
    layer = Convolution(2, 3, side, stride, padding).double()
    images = torch.randn(2, 2, size, size, dtype=torch.float64, requires_grad=True)

    def through(images: Tensor, weight: Tensor) -> Tensor:
        return torch.func.functional_call(layer, {"weight": weight}, (images,))

    torch.testing.assert_close(
        layer(images), torch.nn.functional.conv2d(images, layer.weight, None, stride, padding)
    )
    assert torch.autograd.gradcheck(through, (images, layer.weight))
    assert torch.autograd.gradgradcheck(through, (images, layer.weight))


def test_within_autocast_it_computes_in_that_precision() -> None:
    layer = Convolution(2, 3, 3)
    images = torch.randn(1, 2, 5, 5)
    with torch.autocast("cpu", torch.bfloat16):
        outcome = layer(images)
    assert outcome.dtype == torch.bfloat16
    outcome.float().sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype == torch.float32
