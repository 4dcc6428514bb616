"""What each of two processes computes; here, where a spawned process can import it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import torch

from localparity.losses import MCDPLoss
from localparity.models.networks import METHODS, TensorRows, Trainer, TrainingSettings, gather_rows
from localparity.models.networks._distributed import average_gradients
from localparity.models.networks._methods import make_method, objective
from localparity.models.networks._networks import Network, multilayer


def rows() -> TensorRows:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(60, 5, generator=generator)
    groups = (torch.arange(60) >= 30).long()
    return TensorRows(features, (features[:, 0] > 0).float(), groups, torch.linspace(0.5, 1.5, 60))


def network() -> Network:
    torch.manual_seed(1)
    return multilayer(5, (16, 8), 0.0)


def loss_and_gradients(name: str, part: TensorRows) -> list[torch.Tensor]:
    torch.manual_seed(2)
    model, method = network(), make_method(name, 0.7, 2, TrainingSettings())
    method.prepare(part, model)
    torch.manual_seed(3)
    loss = objective(method, model, part, nullcontext())
    loss.backward()
    parameters = [*model.parameters(), *method.parameters()]
    average_gradients(parameters)
    return [loss.detach(), *(parameter.grad for parameter in parameters)]


def penalised_gradients(part: TensorRows, *, parallel: bool) -> list[torch.Tensor]:
    """The gradients of `MCDPLoss` in a loop of one's own, as docs/how_to/pytorch.rst has it."""
    torch.manual_seed(4)
    model: torch.nn.Module = torch.nn.Linear(5, 1)
    if parallel:
        model = torch.nn.parallel.DistributedDataParallel(model)
    scores = gather_rows(torch.sigmoid(model(part.features)).squeeze(1))
    MCDPLoss(n_groups=2)(scores, gather_rows(part.groups)).backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def part_of(index: int) -> TensorRows:
    """Shards of different sizes; FairMixup's rows stay in step, group after group."""
    shares = [torch.arange(0, 11), torch.arange(11, 30)]
    return rows().take(torch.cat([shares[index], shares[index] + 30]))


def work(index: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=index, world_size=2
    )
    found = {name: loss_and_gradients(name, part_of(index)) for name in METHODS}
    found["trained"] = trained()
    found["parallel"] = penalised_gradients(part_of(index), parallel=True)
    torch.save(found, Path(folder) / f"{index}.pt")
    torch.distributed.destroy_process_group()


def trained() -> list[torch.Tensor]:
    trainer = Trainer(
        make_method("diffmcdp", 0.7, 2, TrainingSettings(steps=4, batch_size=20)), network(), seed=5
    )
    trainer.fit(rows())
    return list(trainer.network.state_dict().values())
