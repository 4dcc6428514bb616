"""The device to train on."""

from __future__ import annotations

import torch


def as_device(name: str) -> torch.device:
    """The torch device with this name; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device must be 'auto' or a torch device, got {name!r}: {error}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r} needs CUDA, which this machine or this build of torch lacks")
    return device
