"""MCDP inside a training loop: update with each batch, compute when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._types import Compare, Criterion, Group
from localparity._validation import as_count, as_epsilon, as_score_range, check_rows, range_scale, require
from localparity.counts import ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.counts._bounded import cell_edges, grid_cells
from localparity.counts._comparison import labels_of
from localparity.counts._score_counts import on_cells
from localparity.engines._torch import check_scores, check_whole, from_torch
from localparity.metrics import Interval, mcdp_bounds

if TYPE_CHECKING:
    from torch import Tensor


class LocalDisparity:
    """MCDP(epsilon) over the batches of a loop, in the manner of torchmetrics.

    With `level` the state is one tensor of counts on a grid of ``2**level`` cells, whatever the number of
    rows, and processes join theirs by a sum; `bounds` says what the exact value lies between. Without it all
    scores are kept, processes join theirs by gathering them, and the value is exact.

    Parameters
    ----------
    n_groups : int
        Groups are whole numbers from 0 up to, but not at, this.
    epsilon : float
        The half-width of the windows, as a fraction of the score range.
    level : int, optional
        The grid has ``2**level`` cells; None keeps all scores.
    criterion, compare : str
        Which people, and which groups, are compared, as in `mcdp`.
    score_range : tuple of float
        The lowest and the highest score there can be.

    Examples
    --------
    >>> import torch
    >>> import localparity as lp
    >>> metric = lp.monitoring.LocalDisparity(n_groups=2, epsilon=0.1, level=12)
    >>> metric.update(torch.tensor([0.2, 0.9]), torch.tensor([0, 1]))
    >>> metric.update(torch.tensor([0.4, 0.8]), torch.tensor([0, 1]))
    >>> metric.compute()
    tensor(1., dtype=torch.float64)
    >>> metric.reset()
    """

    def __init__(
        self,
        *,
        n_groups: int = 2,
        epsilon: float = 0.0,
        level: int | None = None,
        criterion: Criterion = "demographic_parity",
        compare: Compare = "between_groups",
        score_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self._torch = require("torch", extra="train")
        self.n_groups = as_count(n_groups, "n_groups", at_least=2)
        self.epsilon = as_epsilon(epsilon)
        self.level = None if level is None else as_count(level, "level")
        self.criterion, self.compare = criterion, compare
        self.score_range = as_score_range(score_range)
        self._labels = 1 if labels_of(criterion) == (None,) else 2
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._kept: list[tuple[Tensor, Tensor]] = []
        self._state: Tensor | None = None
        self._resolution = 0.0

    def update(self, scores: Tensor, groups: Tensor, labels: Tensor | None = None) -> None:
        """Count a batch.

        Parameters
        ----------
        scores : torch.Tensor
            One score a row, of a floating dtype, on any device.
        groups : torch.Tensor
            One whole number a row.
        labels : torch.Tensor, optional
            Labels 0 and 1, where the criterion needs them.
        """
        checked = check_scores(scores, self.score_range)
        self._resolution = max(self._resolution, checked.resolution)
        scores = scores.detach().flatten()
        codes = self._codes(scores, groups.flatten(), None if labels is None else labels.flatten())
        if self.level is None:
            self._kept.append((scores, codes))
            return
        scale = range_scale(self.score_range)
        low, high = (scale * end for end in self.score_range)
        fractions = (checked.values.double() * scale - low) / (high - low)
        numbers = self._torch.ceil(fractions * 2.0**self.level).long()
        size = 2**self.level + 1
        counted = self._torch.bincount(codes * size + numbers, minlength=self.n_groups * self._labels * size)
        self._state = counted if self._state is None else self._state + counted

    def compute(self) -> Tensor:
        """MCDP(epsilon) of all batches, of all processes where several run, as a tensor of one number."""
        return self._torch.tensor(  # type: ignore[no-any-return]
            self.bounds().estimate, dtype=self._torch.float64
        )

    def bounds(self) -> Interval:
        """MCDP(epsilon) and what it lies between; the same number where all scores are kept."""
        return mcdp_bounds(
            self.counts(), epsilon=self.epsilon, criterion=self.criterion, compare=self.compare
        )

    def counts(self) -> ScoreCounts:
        """The counts of all batches, of all processes where several run."""
        if self.level is None:
            scores, codes = self._gathered()
            labels = codes % 2 if self._labels == 2 else None
            return from_torch(
                scores,
                codes // self._labels,
                labels=labels,
                score_range=self.score_range,
                epsilons=[self.epsilon],
                criterion=self.criterion,
                compare=self.compare,
            )
        state = self._summed()
        rows = state.reshape(self.n_groups * self._labels, -1).cpu().numpy()
        numbers = np.flatnonzero(rows.any(axis=0))
        edges = cell_edges(numbers, self.level, self.score_range)
        atoms: dict[tuple[Group, int | None], Atoms] = {}
        for code, row in enumerate(rows[:, numbers]):
            label = code % 2 if self._labels == 2 else None
            atoms[code // self._labels, label] = Atoms.of_counts(edges[row > 0], row[row > 0])
        cells = grid_cells(numbers, self.level, self.score_range)
        return on_cells(ScoreCounts(atoms, self.score_range, self._resolution), cells)

    def _codes(self, scores: Tensor, groups: Tensor, labels: Tensor | None) -> Tensor:
        """The group, and label where there is one, of each row as one whole number."""
        check_whole(groups)
        check_rows("groups", groups.numel(), scores.numel(), of="scores")
        low, high = (int(end) for end in groups.long().aminmax())
        if low < 0 or high >= self.n_groups:
            wrong = low if low < 0 else high
            raise ValueError(
                f"groups has {wrong} where whole numbers from 0 to {self.n_groups - 1} are expected"
            )
        if self._labels == 1:
            return groups.long()
        if labels is None:
            raise ValueError(f"labels is None where criterion={self.criterion!r} needs labels 0 and 1")
        check_rows("labels", labels.numel(), scores.numel(), of="scores")
        whole = labels.long()
        if not bool(((whole == labels) & (whole >= 0) & (whole <= 1)).all()):
            raise ValueError("labels has values where labels 0 and 1 are expected")
        return 2 * groups.long() + whole

    def _summed(self) -> Tensor:
        """The state, summed over the processes."""
        if self._state is None:
            raise ValueError("there is nothing to compute: no batch was counted")
        state, distributed = self._state, self._torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            state = state.clone()
            distributed.all_reduce(state)
        return state

    def _gathered(self) -> tuple[Tensor, Tensor]:
        """All scores and codes, of all processes."""
        if not self._kept:
            raise ValueError("there is nothing to compute: no batch was counted")
        parts = tuple(self._torch.cat(column) for column in zip(*self._kept, strict=True))
        distributed = self._torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            parts = tuple(_gather_all(distributed, self._torch, part) for part in parts)
        return parts[0], parts[1]


def _gather_all(distributed: Any, torch: Any, part: Tensor) -> Tensor:
    """The tensors of all processes, of whatever lengths, one after the other."""
    size = torch.tensor([part.numel()], device=part.device)
    sizes = [torch.zeros_like(size) for _ in range(distributed.get_world_size())]
    distributed.all_gather(sizes, size)
    longest = max(int(each) for each in sizes)
    padded = torch.zeros(longest, dtype=part.dtype, device=part.device)
    padded[: part.numel()] = part
    gathered = [torch.empty_like(padded) for _ in sizes]
    distributed.all_gather(gathered, padded)
    found: Tensor = torch.cat([each[: int(size)] for each, size in zip(gathered, sizes, strict=True)])
    return found
