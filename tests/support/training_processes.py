"""What each of two processes computes; here, where a spawned process can import it."""

from __future__ import annotations

from pathlib import Path

import torch

from localparity.losses import MCDPLoss
from localparity.models.networks import TensorRows, gather_rows


def rows() -> TensorRows:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(60, 5, generator=generator)
    groups = (torch.arange(60) >= 30).long()
    return TensorRows(features, (features[:, 0] > 0).float(), groups, torch.linspace(0.5, 1.5, 60))


def penalised_gradients(part: TensorRows, *, parallel: bool) -> list[torch.Tensor]:
    """The gradients of `MCDPLoss` in a loop of one's own, as docs/how_to/pytorch.rst has it."""
    torch.manual_seed(4)
    model: torch.nn.Module = torch.nn.Linear(5, 1)
    if parallel:
        model = torch.nn.parallel.DistributedDataParallel(model)
    scores = gather_rows(torch.sigmoid(model(part.features)).squeeze(1))
    MCDPLoss(n_groups=2)(scores, gather_rows(part.groups)).backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def work(index: int, folder: str) -> None:
    """Write the gradients of a process, whose part of the rows is not as large as the other's."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=index, world_size=2
    )
    share = [torch.arange(0, 11), torch.arange(11, 30)][index]
    part = rows().take(torch.cat([share, share + 30]))
    torch.save(penalised_gradients(part, parallel=True), Path(folder) / f"{index}.pt")
    torch.distributed.destroy_process_group()
