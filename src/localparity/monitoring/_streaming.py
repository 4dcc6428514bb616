"""MCDP inside a training loop: update with each batch, compute on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._scale import score_resolution
from localparity._types import Compare, Criterion, Group, ScoreRange
from localparity._validation import InputError, as_count, as_epsilon, as_score_range, require
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.counts._coarsen import cell_edges, grid_cells
from localparity.counts._comparison import require_labels
from localparity.counts._score_counts import on_cells
from localparity.engines._torch import counting_of, from_torch
from localparity.engines._torch_cells import (
    CellPlaces,
    DeviceRows,
    as_flat_scores,
    check_range,
    numpy_dtype,
    tensor_groups,
    tensor_labels,
)
from localparity.metrics import Interval, mcdp_bounds

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torchmetrics import Metric
    from torchmetrics.utilities.distributed import gather_all_tensors
else:
    torch = require("torch", extra="train")
    Metric = require("torchmetrics", extra="train").Metric
    gather_all_tensors = require("torchmetrics.utilities.distributed", extra="train").gather_all_tensors

_DTYPES = (torch.float64, torch.float32, torch.float16)
"""The dtypes of scores, from the finest to the coarsest."""
_GATHERED_DTYPES = (*_DTYPES, torch.int32, torch.int64)


def gather_all(values: torch.Tensor, group: Any = None) -> list[torch.Tensor]:
    """Gather the vectors of all processes; an empty one may be of another dtype than the others."""
    head = torch.tensor([values.numel(), _GATHERED_DTYPES.index(values.dtype)], device=values.device)
    heads = [part.tolist() for part in gather_all_tensors(head, group)]
    dtype = next((_GATHERED_DTYPES[code] for size, code in heads if size), values.dtype)
    return list(gather_all_tensors(values.to(dtype), group))


class LocalDisparity(Metric):
    """MCDP(epsilon) over the batches of a loop: a `torchmetrics.Metric`.

    Without `level` all scores are kept, and the value is exact. With it the state is one tensor of counts on
    a grid of ``2**level`` cells, whatever the number of rows, and `bounds` gives bounds of the exact value.
    Where several processes run, `compute`, `bounds` and `counts` are those of the rows of all of them, and
    every process has to call them.

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
    **options
        Further arguments of `torchmetrics.Metric`, such as ``sync_on_compute=False`` for the result of this
        process alone, or ``process_group``.

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

    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    _scores: list[Tensor]
    _codes: list[Tensor]
    _cells: Tensor
    _coarsest: Tensor

    def __init__(
        self,
        *,
        n_groups: int = 2,
        epsilon: float = 0.0,
        level: int | None = None,
        criterion: Criterion = "demographic_parity",
        compare: Compare = "between_groups",
        score_range: ScoreRange = (0.0, 1.0),
        **options: Any,
    ) -> None:
        super().__init__(**{"dist_sync_fn": gather_all, **options})
        self.n_groups = as_count(n_groups, "n_groups", at_least=2)
        self.epsilon = as_epsilon(epsilon)
        self.level = None if level is None else as_count(level, "level")
        self.comparison = Comparison(criterion, compare)
        self.score_range = as_score_range(score_range)
        self._n_labels = 2 if self.comparison.needs_labels else 1
        if self.level is None:
            self.add_state("_scores", [], "cat")
            self.add_state("_codes", [], "cat")
        else:
            grid = self._grid(self.level)
            self.add_state("_cells", torch.zeros(grid.n_keys * grid.n_places, dtype=torch.int64), "sum")
            self.add_state("_coarsest", torch.zeros(1, dtype=torch.int64), "max")

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
            self._codes.append(self._coded(scores, sensitive_features, y_true))
            self._scores.append(scores)
            return
        rows = DeviceRows(scores, self._coded(scores, sensitive_features, y_true))
        counted = counting_of(torch, scores).count_places(torch, rows, self._grid(self.level))
        self._cells = self._cells.to(scores.device) + counted.rows.flatten()
        self._coarsest = self._coarsest.to(scores.device).clamp_min(_DTYPES.index(scores.dtype))

    def compute(self) -> Tensor:
        """Return MCDP(epsilon) of all batches, and of all processes where several run, as a scalar tensor."""
        return torch.tensor(self.bounds().estimate, dtype=torch.float64)

    def bounds(self) -> Interval:
        """Return MCDP(epsilon) with bounds that always hold; all are equal where all scores are kept."""
        criterion, compare = self.comparison.criterion, self.comparison.compare
        return mcdp_bounds(self.counts(), epsilon=self.epsilon, criterion=criterion, compare=compare)

    def counts(self) -> ScoreCounts:
        """Return the counts of all batches, and of all processes where several run."""
        # `compute` has joined the states of the processes already.
        with self.sync_context(self.dist_sync_fn, should_sync=self._to_sync and not self._is_synced):
            return self._counts_of_scores() if self.level is None else self._counts_of_cells(self.level)

    def _grid(self, level: int) -> CellPlaces:
        return CellPlaces(self.score_range, self.n_groups * self._n_labels, level)

    def _counts_of_scores(self) -> ScoreCounts:
        scores, codes = _joined(self._scores), _joined(self._codes)
        if not len(scores):
            raise ValueError("update must be called before compute, got no batch")
        return from_torch(
            scores,
            codes // self._n_labels,
            y_true=codes % 2 if self._n_labels == 2 else None,
            score_range=self.score_range,
            epsilons=[self.epsilon],
            criterion=self.comparison.criterion,
            compare=self.comparison.compare,
        )

    def _counts_of_cells(self, level: int) -> ScoreCounts:
        rows = self._cells.reshape(self.n_groups * self._n_labels, -1).cpu().numpy()
        numbers = np.flatnonzero(rows.any(axis=0))
        if not numbers.size:
            raise ValueError("update must be called before compute, got no batch")
        edges = cell_edges(numbers, level, self.score_range)
        atoms: dict[tuple[Group, int | None], Atoms] = {}
        for code, row in enumerate(rows[:, numbers]):
            label = code % 2 if self._n_labels == 2 else None
            atoms[code // self._n_labels, label] = Atoms.of_counts(edges[row > 0], row[row > 0])
        cells = grid_cells(numbers, level, self.score_range)
        dtype = _DTYPES[int(self._coarsest)]
        resolution = score_resolution(numpy_dtype(torch.empty(0, dtype=dtype)), self.score_range)
        return on_cells(ScoreCounts(atoms, self.score_range, resolution), cells)

    def _coded(self, scores: Tensor, sensitive_features: Tensor, y_true: Tensor | None) -> Tensor:
        """The group, and the label where there is one, of each row as one integer."""
        groups = tensor_groups(sensitive_features, scores)
        if groups.dtype == torch.bool:
            groups = groups.view(torch.uint8)
        low, high = (int(end) for end in groups.aminmax())
        if low < 0 or high >= self.n_groups:
            wrong = low if low < 0 else high
            raise InputError(f"must be between 0 and {self.n_groups - 1}, got {wrong}", "sensitive_features")
        require_labels(self.comparison, y_true)
        codes = groups.int()
        if y_true is None or self._n_labels == 1:
            return codes
        return 2 * codes + tensor_labels(y_true, scores)


def _joined(parts: list[Tensor] | Tensor) -> Tensor:
    """A state as one tensor, which it is where the processes' have been gathered."""
    if isinstance(parts, list):
        return torch.cat(parts) if parts else torch.empty(0)
    return parts
