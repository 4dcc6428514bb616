"""MCDP inside a training loop: update with each batch, compute on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._types import Compare, Criterion, Group, ScoreRange
from localparity._validation import as_count, as_epsilon, as_score_range, require, score_resolution
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.counts._bounded import cell_edges, grid_cells
from localparity.counts._comparison import require_labels
from localparity.counts._score_counts import on_cells
from localparity.engines._torch import counting_of, from_torch
from localparity.engines._torch_cells import Grid
from localparity.engines._torch_rows import (
    TensorRows,
    as_flat_scores,
    as_groups,
    as_labels,
    check_range,
    numpy_dtype,
)
from localparity.metrics import Interval, mcdp_bounds

if TYPE_CHECKING:
    from torch import Tensor


class LocalDisparity:
    """MCDP(epsilon) over the batches of a loop, with the interface of torchmetrics.

    With `level` the state is one tensor of counts on a grid of ``2**level`` cells, whatever the number of
    rows; processes sum theirs, and `bounds` gives the bounds of the exact value. Without it all scores are
    kept, processes gather theirs, and the value is exact.

    Parameters
    ----------
    n_groups : int
        Groups are the integers from 0 to ``n_groups - 1``.
    epsilon : float
        The half-width of the windows, as a fraction of the score range.
    level : int, optional
        The grid has ``2**level`` cells; None keeps all scores.
    criterion, compare : str
        Who is compared, as in `mcdp`.
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
        score_range: ScoreRange = (0.0, 1.0),
    ) -> None:
        self._torch = require("torch", extra="train")
        self.n_groups = as_count(n_groups, "n_groups", at_least=2)
        self.epsilon = as_epsilon(epsilon)
        self.level = None if level is None else as_count(level, "level")
        self.comparison = Comparison(criterion, compare)
        self.score_range = as_score_range(score_range)
        self._n_labels = 2 if self.comparison.needs_labels else 1
        self.reset()

    def reset(self) -> None:
        """Discard all batches."""
        self._kept: list[tuple[Tensor, Tensor]] = []
        self._state: Tensor | None = None
        self._resolution = 0.0

    def update(self, y_score: Tensor, sensitive_features: Tensor, y_true: Tensor | None = None) -> None:
        """Count a batch.

        Parameters
        ----------
        y_score : torch.Tensor
            Scores inside `score_range`, shape (n_samples,), of a floating dtype, on any device.
        sensitive_features : torch.Tensor
            The group of each row, an integer.
        y_true : torch.Tensor, optional
            Labels 0 and 1, where the criterion needs them.
        """
        scores = as_flat_scores(y_score)
        if self.level is None:
            check_range(scores, self.score_range)
            self._kept.append((scores, self._codes(scores, sensitive_features, y_true)))
        else:
            rows = TensorRows(scores, self._codes(scores, sensitive_features, y_true))
            grid = Grid(self.score_range, self.n_groups * self._n_labels, self.level)
            counted = counting_of(self._torch, scores).count_places(self._torch, rows, grid).rows.flatten()
            self._state = counted if self._state is None else self._state + counted
        resolution = score_resolution(numpy_dtype(scores), self.score_range)
        self._resolution = max(self._resolution, resolution)

    def compute(self) -> Tensor:
        """Return MCDP(epsilon) of all batches, and of all processes where several run, as a scalar tensor."""
        value: Tensor = self._torch.tensor(self.bounds().estimate, dtype=self._torch.float64)
        return value

    def bounds(self) -> Interval:
        """Return MCDP(epsilon) with bounds that always hold; all are equal where all scores are kept."""
        criterion, compare = self.comparison.criterion, self.comparison.compare
        return mcdp_bounds(self.counts(), epsilon=self.epsilon, criterion=criterion, compare=compare)

    def counts(self) -> ScoreCounts:
        """Return the counts of all batches, and of all processes where several run."""
        if self.level is None:
            scores, codes = self._gathered()
            return from_torch(
                scores,
                codes // self._n_labels,
                y_true=codes % 2 if self._n_labels == 2 else None,
                score_range=self.score_range,
                epsilons=[self.epsilon],
                criterion=self.comparison.criterion,
                compare=self.comparison.compare,
            )
        state = self._summed()
        rows = state.reshape(self.n_groups * self._n_labels, -1).cpu().numpy()
        numbers = np.flatnonzero(rows.any(axis=0))
        edges = cell_edges(numbers, self.level, self.score_range)
        atoms: dict[tuple[Group, int | None], Atoms] = {}
        for code, row in enumerate(rows[:, numbers]):
            label = code % 2 if self._n_labels == 2 else None
            atoms[code // self._n_labels, label] = Atoms.of_counts(edges[row > 0], row[row > 0])
        cells = grid_cells(numbers, self.level, self.score_range)
        return on_cells(ScoreCounts(atoms, self.score_range, self._resolution), cells)

    def _codes(self, scores: Tensor, sensitive_features: Tensor, y_true: Tensor | None) -> Tensor:
        """The group, and the label where there is one, of each row as one integer."""
        groups = as_groups(sensitive_features, scores)
        if groups.dtype == self._torch.bool:
            groups = groups.view(self._torch.uint8)
        low, high = (int(end) for end in groups.aminmax())
        if low < 0 or high >= self.n_groups:
            wrong = low if low < 0 else high
            raise ValueError(f"sensitive_features must be between 0 and {self.n_groups - 1}, got {wrong}")
        require_labels(self.comparison, y_true)
        codes = groups.int()
        if y_true is None or self._n_labels == 1:
            return codes
        return 2 * codes + as_labels(y_true, scores)

    def _summed(self) -> Tensor:
        """The state, summed over the processes."""
        if self._state is None:
            raise ValueError("update must be called before compute, got no batch")
        state, distributed = self._state, self._torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            state = state.clone()
            distributed.all_reduce(state)
        return state

    def _gathered(self) -> tuple[Tensor, Tensor]:
        """All scores and codes, of all processes."""
        if not self._kept:
            raise ValueError("update must be called before compute, got no batch")
        parts = tuple(self._torch.cat(column) for column in zip(*self._kept, strict=True))
        distributed = self._torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            parts = tuple(_gather_all(distributed, self._torch, part) for part in parts)
        return parts[0], parts[1]


def _gather_all(distributed: Any, torch: Any, part: Tensor) -> Tensor:
    """The tensors of all processes, which may differ in length, concatenated."""
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
