"""A convolution whose second derivatives cost no more than its first ones.

A convolution, the gradient of its input and the gradient of its weights are three views of one form that is
linear in the images, in the weights and in the gradient of the outcome; each one's derivatives are the other
two. PyTorch's own second derivatives take the gradient of the weights as a convolution with a filter as large
as the image, which takes ten times as long.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.functional import conv2d
from torch.nn.grad import conv2d_input, conv2d_weight


class _Form(Function):
    """What the three share: the other two tensors are kept, and the shape of the convolution."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        first, second, ctx.shapes, ctx.places = inputs
        ctx.save_for_backward(first, second)


class _Outcome(_Form):
    """From images and weights."""

    @staticmethod
    def forward(images: Tensor, weights: Tensor, shapes: Any, places: tuple[int, int]) -> Tensor:
        return conv2d(images, weights, None, *places)

    @staticmethod
    def backward(ctx: Any, change: Tensor) -> tuple[Tensor | None, ...]:
        images, weights = ctx.saved_tensors
        rest = ctx.shapes, ctx.places
        of_images = _OfImages.apply(change, weights, *rest) if ctx.needs_input_grad[0] else None
        return of_images, _OfWeights.apply(change, images, *rest), None, None


class _OfImages(_Form):
    """From the gradient of the outcome and the weights."""

    @staticmethod
    def forward(outcome: Tensor, weights: Tensor, shapes: Any, places: tuple[int, int]) -> Tensor:
        return conv2d_input(shapes[0], weights, outcome, *places)

    @staticmethod
    def backward(ctx: Any, change: Tensor) -> tuple[Tensor | None, ...]:
        outcome, weights = ctx.saved_tensors
        rest = ctx.shapes, ctx.places
        return _Outcome.apply(change, weights, *rest), _OfWeights.apply(outcome, change, *rest), None, None


class _OfWeights(_Form):
    """From the gradient of the outcome and the images."""

    @staticmethod
    def forward(outcome: Tensor, images: Tensor, shapes: Any, places: tuple[int, int]) -> Tensor:
        return conv2d_weight(images, shapes[1], outcome, *places)

    @staticmethod
    def backward(ctx: Any, change: Tensor) -> tuple[Tensor | None, ...]:
        outcome, images = ctx.saved_tensors
        rest = ctx.shapes, ctx.places
        of_images = _OfImages.apply(outcome, change, *rest) if ctx.needs_input_grad[1] else None
        return _Outcome.apply(images, change, *rest), of_images, None, None


class Convolution(nn.Conv2d):
    """``nn.Conv2d`` without bias.

    Examples
    --------
    >>> Convolution(3, 8, 3, stride=2)(torch.zeros(1, 3, 9, 9)).shape
    torch.Size([1, 8, 4, 4])
    """

    def __init__(self, inputs: int, outputs: int, side: int, stride: int = 1, padding: int = 0) -> None:
        super().__init__(inputs, outputs, side, stride, padding, bias=False)
        self.places = stride, padding

    def forward(self, images: Tensor) -> Tensor:
        """The outcome, in the precision that is asked for."""
        weights = self.weight
        if torch.is_autocast_enabled(images.device.type):
            dtype = torch.get_autocast_dtype(images.device.type)
            images, weights = images.to(dtype), weights.to(dtype)
        outcome: Tensor = _Outcome.apply(images, weights, (images.shape, weights.shape), self.places)
        return outcome
