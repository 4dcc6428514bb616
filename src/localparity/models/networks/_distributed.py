"""Several processes: rows are gathered with their gradients, so that a loss is that of the whole batch.

As in data-parallel training, every process computes the same loss on the gathered rows, and the processes'
gradients are averaged. The gradient of a gathered row is therefore multiplied by the number of processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist


def world_size() -> int:
    """The number of processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def process_index() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


def gather_rows(values: Tensor) -> Tensor:
    """Gather the rows of all processes, one process after the other; gradients flow to the process's own.

    Parameters
    ----------
    values : Tensor of shape (n_samples, ...)
        This process's rows; the processes may have different numbers of them.

    Returns
    -------
    Tensor
        The same on every process; `values` itself if there is one process.

    Examples
    --------
    >>> import torch
    >>> gather_rows(torch.tensor([0.1, 0.2]))
    tensor([0.1000, 0.2000])
    """
    if world_size() == 1:
        return values
    gathered: Tensor = _Gather.apply(values)  # type: ignore[no-untyped-call]
    return gathered


def mean_over_processes(values: Tensor) -> Tensor:
    """The mean of the processes' tensors; its gradient is passed on as it is."""
    if world_size() == 1:
        return values
    mean: Tensor = _Mean.apply(values)  # type: ignore[no-untyped-call]
    return mean


def average_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace the gradients of every process by their mean over the processes."""
    if world_size() == 1:
        return
    for parameter in parameters:
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= world_size()


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        sizes = [torch.zeros(1, dtype=torch.int64, device=values.device) for _ in range(world_size())]
        dist.all_gather(sizes, torch.tensor([len(values)], device=values.device))
        counts = [int(size) for size in sizes]
        padded = values.new_zeros((max(counts), *values.shape[1:]))
        padded[: len(values)] = values
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        start = sum(counts[: process_index()])
        ctx.own = slice(start, start + len(values))
        return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0][ctx.own] * world_size()


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.clone()
        dist.all_reduce(total)
        return total / world_size()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]
