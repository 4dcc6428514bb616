"""Recent scores, kept to find in them what a batch is too small to show."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class ScoredRows(NamedTuple):
    """Scores with the groups' codes, labels and weights, as the losses compute with them."""

    scores: Tensor
    groups: Tensor
    y_true: Tensor | None
    sample_weight: Tensor | None


class ScoreMemory(nn.Module):
    """A ring buffer of the last rows scored; -1 is the group of an empty slot."""

    scores: Tensor
    groups: Tensor
    y_true: Tensor
    sample_weight: Tensor
    written: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("scores", torch.zeros(size))
        self.register_buffer("groups", torch.full((size,), -1, dtype=torch.int64))
        self.register_buffer("y_true", torch.zeros(size))
        self.register_buffer("sample_weight", torch.zeros(size))
        self.register_buffer("written", torch.zeros((), dtype=torch.int64))
        self.begun = False

    def rows(self, batch: ScoredRows) -> ScoredRows:
        """The rows remembered; before there are any, the batch itself."""
        if not self.begun:
            return _complete(batch)
        return ScoredRows(self.scores.to(batch.scores), self.groups, self.y_true, self.sample_weight)

    @torch.no_grad()
    def remember(self, batch: ScoredRows) -> None:
        """Write the batch over the oldest rows."""
        size, count = len(self.scores), len(batch.scores)
        places = (self.written + torch.arange(count, device=self.scores.device))[-size:] % size
        for name, values in _complete(batch)._asdict().items():
            buffer = getattr(self, name)
            buffer[places] = values[-size:].to(buffer)
        self.written += count
        self.begun = True

    def get_extra_state(self) -> Tensor:
        """Whether there are rows yet, which is known without reading the device."""
        return torch.tensor(self.begun)

    def set_extra_state(self, state: Tensor) -> None:
        """Restore what `get_extra_state` returned."""
        self.begun = bool(state)


def _complete(rows: ScoredRows) -> ScoredRows:
    """The rows without gradients, with labels 0 and weights 1 if they have none."""
    scores = rows.scores.detach()
    return ScoredRows(
        scores,
        rows.groups,
        torch.zeros_like(scores) if rows.y_true is None else rows.y_true,
        torch.ones_like(scores) if rows.sample_weight is None else rows.sample_weight,
    )
