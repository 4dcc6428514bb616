"""Recent scores, kept to find in them what a batch is too small to show."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class ScoredRows(NamedTuple):
    """Scores without a gradient, and what belongs to them."""

    scores: Tensor
    groups: Tensor
    y_true: Tensor
    sample_weight: Tensor


class ScoreMemory(nn.Module):
    """A ring of the last scored rows.

    Parameters
    ----------
    rows : int
        How many rows it holds; the oldest make room for new ones.

    Examples
    --------
    >>> import torch
    >>> memory = ScoreMemory(4)
    >>> memory.remember(torch.rand(3), torch.tensor([0, 1, 0]), None, None)
    >>> int((memory.groups >= 0).sum())
    3
    """

    scores: Tensor
    groups: Tensor
    y_true: Tensor
    sample_weight: Tensor
    written: Tensor

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.register_buffer("scores", torch.zeros(rows))
        self.register_buffer("groups", torch.full((rows,), -1, dtype=torch.int64))
        self.register_buffer("y_true", torch.zeros(rows))
        self.register_buffer("sample_weight", torch.zeros(rows))
        self.register_buffer("written", torch.zeros((), dtype=torch.int64))
        self.begun = False

    def rows(
        self, scores: Tensor, groups: Tensor, y_true: Tensor | None, sample_weight: Tensor | None
    ) -> ScoredRows:
        """What is remembered; before anything is, the batch itself."""
        if not self.begun:
            return _complete(scores, groups, y_true, sample_weight)
        return ScoredRows(self.scores.to(scores), self.groups, self.y_true, self.sample_weight)

    @torch.no_grad()
    def remember(
        self, scores: Tensor, groups: Tensor, y_true: Tensor | None, sample_weight: Tensor | None
    ) -> None:
        """Keep the batch, in place of the oldest rows."""
        size = len(self.scores)
        batch = _complete(scores, groups, y_true, sample_weight)
        places = (self.written + torch.arange(len(scores), device=self.scores.device))[-size:] % size
        for name, values in batch._asdict().items():
            buffer = getattr(self, name)
            buffer[places] = values[-size:].to(buffer)
        self.written += len(scores)
        self.begun = True

    def get_extra_state(self) -> Tensor:
        """Whether anything was remembered: known without a look at the device."""
        return torch.tensor(self.begun)

    def set_extra_state(self, state: Tensor) -> None:
        """Put back what `get_extra_state` gave."""
        self.begun = bool(state)


def _complete(
    scores: Tensor, groups: Tensor, y_true: Tensor | None, sample_weight: Tensor | None
) -> ScoredRows:
    rows = scores.detach()
    return ScoredRows(
        rows,
        groups,
        torch.zeros_like(rows) if y_true is None else y_true,
        torch.ones_like(rows) if sample_weight is None else sample_weight,
    )
