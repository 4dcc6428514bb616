"""Smoothed cumulative distributions of the groups' scores, and their gaps.

Everything is written with masks and fixed shapes, so that it works under ``torch.func.vmap``,
``torch.compile`` and CUDA graphs.
"""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from localparity._types import Criterion
from localparity.counts._comparison import labels_of


def contrasts(
    groups: Tensor,
    n_groups: int,
    *,
    criterion: Criterion = "demographic_parity",
    y_true: Tensor | None = None,
    sample_weight: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """For each comparison, each row's signed share: positive in the one group, negative in the other.

    A comparison is a pair of groups among the people that the criterion compares. The shares of each group
    sum to one, so that ``contrasts @ scores`` is a difference of means; a comparison that lacks one of its
    groups is all zeros. Groups are codes from 0; a row with a code outside ``range(n_groups)`` is ignored.
    The result has shape (comparisons, rows).
    """
    weights = torch.ones_like(groups, dtype=dtype) if sample_weight is None else sample_weight.to(dtype)
    rows = []
    for label in labels_of(criterion):
        counted = weights if label is None or y_true is None else weights * (y_true == label)
        members = [counted * (groups == group) for group in range(n_groups)]
        totals = [member.sum() for member in members]
        shares = [
            member / total.clamp_min(torch.finfo(dtype).tiny)
            for member, total in zip(members, totals, strict=True)
        ]
        for first, second in combinations(range(n_groups), 2):
            both = (totals[first] > 0) & (totals[second] > 0)
            rows.append((shares[first] - shares[second]) * both)
    return torch.stack(rows)


def soft_gap(scores: Tensor, contrast: Tensor, thresholds: Tensor, temperature: float) -> Tensor:
    r"""The smoothed gap of each comparison at thresholds.

    .. math::
        \tilde\Delta(t) = \sum_i c_i \sigma(\tau (t - p_i))

    Thresholds are the same for all comparisons, shape (points,), or each comparison's own, shape
    (comparisons, points), which is the shape of the result. As the temperature grows, the smoothed gap
    tends to the gap.
    """
    below = torch.sigmoid(temperature * (thresholds[..., None] - scores))
    if thresholds.ndim == 1:
        return contrast @ below.T
    return (below @ contrast[..., None])[..., 0]


def gap_slopes(
    scores: Tensor, contrast: Tensor, thresholds: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """The first and second derivative of `soft_gap` in the threshold, each comparison at its own points.

    Examples
    --------
    >>> scores, contrast = torch.tensor([0.2, 0.8]), torch.tensor([[1.0, -1.0]])
    >>> first, second = gap_slopes(scores, contrast, torch.tensor([[0.5]]), temperature=10.0)
    >>> abs(float(first)) < 1e-6, float(second) < 0
    (True, True)
    """
    below = torch.sigmoid(temperature * (thresholds[..., None] - scores))
    bump = below * (1.0 - below)
    first = (bump @ contrast[..., None])[..., 0] * temperature
    second = ((bump * (1.0 - 2.0 * below)) @ contrast[..., None])[..., 0] * temperature**2
    return first, second
