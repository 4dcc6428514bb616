"""Tensors of all processes, gathered within a stated time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from localparity._validation import require

if TYPE_CHECKING:
    import torch
else:
    torch = require("torch", extra="train")

_DTYPES = (torch.float16, torch.float32, torch.float64, torch.int32, torch.int64)


def gather_all(values: torch.Tensor, group: Any = None, *, timeout: int) -> list[torch.Tensor]:
    """Gather the vectors of all processes.

    Parameters
    ----------
    values : torch.Tensor
        This process's vector; others may be longer, and where it is empty its dtype is that of the others.
    group : torch.distributed.ProcessGroup, optional
        The processes; all by default.
    timeout : int
        The number of seconds after which a process that does not take part is an error.

    Returns
    -------
    list of torch.Tensor
        The vector of each process.
    """
    head = torch.tensor([values.numel(), _DTYPES.index(values.dtype)], device=values.device)
    heads = [each.tolist() for each in _all_gather(head, group, timeout)]
    dtype = next((_DTYPES[code] for size, code in heads if size), values.dtype)
    padded = torch.zeros(max(size for size, _ in heads), dtype=dtype, device=values.device)
    padded[: values.numel()] = values
    parts = _all_gather(padded, group, timeout)
    return [part[:size] for part, (size, _) in zip(parts, heads, strict=True)]


def _all_gather(values: torch.Tensor, group: Any, timeout: int) -> list[torch.Tensor]:
    """The tensors of all processes, which are of one shape."""
    distributed = torch.distributed
    gathered = [torch.empty_like(values) for _ in range(distributed.get_world_size(group))]
    work = distributed.all_gather(gathered, values, group=group, async_op=True)
    try:
        work.wait(timedelta(seconds=timeout))
    except RuntimeError as error:
        raise RuntimeError(
            f"not all processes took part within {timeout} s ({error}); call compute on every process, or "
            "sync on every process and then compute on one; sync_on_compute=False leaves the others out"
        ) from error
    return gathered
