"""Tensors and plain values in one file, written whole or not at all."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from localparity._io._files import write_whole
from localparity._validation import require


def save_tensors(path: Path, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Write tensors and JSON values to a safetensors file, whole or not at all."""
    save = require("safetensors.torch", extra="train").save
    content = save(
        {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
        metadata={"values": json.dumps(values)},
    )
    write_whole(path, content)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote; any other file is a ValueError."""
    safetensors = require("safetensors", extra="train")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            values = json.loads(file.metadata()["values"])
    except (OSError, safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as tensors saved by localparity: {error}") from error
    return tensors, values


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors by parameter and name."""
    return {
        f"{place}.{name}": torch.as_tensor(value)
        for place, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Load what `optimizer_state` returned; the settings stay the optimiser's own."""
    described = optimizer.state_dict()
    described["state"] = {}
    for key, tensor in tensors.items():
        place, name = key.split(".", 1)
        described["state"].setdefault(int(place), {})[name] = tensor
    optimizer.load_state_dict(described)


def join_states(states: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The tensors of several states under names such as "network/head.bias"."""
    return {f"{part}/{name}": tensor for part, state in states.items() for name, tensor in state.items()}


def split_states(tensors: Mapping[str, Tensor]) -> defaultdict[str, dict[str, Tensor]]:
    """What `join_states` joined; a state without tensors is empty."""
    states: defaultdict[str, dict[str, Tensor]] = defaultdict(dict)
    for key, tensor in tensors.items():
        part, name = key.split("/", 1)
        states[part][name] = tensor
    return states
