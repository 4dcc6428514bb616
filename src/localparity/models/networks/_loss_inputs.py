"""What the losses are called with, checked; the messages say how to make it fit."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_CODES = "torch.as_tensor(np.unique(groups, return_inverse=True)[1])"


def check_batch(y_score: Any, sensitive_features: Any, y_true: Any, sample_weight: Any) -> None:
    """Raise a ValueError where a batch is no tensors of one length, or has no rows."""
    given = {"sensitive_features": sensitive_features, "y_true": y_true, "sample_weight": sample_weight}
    given = {name: values for name, values in given.items() if values is not None}
    for name, values in {"y_score": y_score, **given}.items():
        if not isinstance(values, Tensor):
            advice = _CODES if name == "sensitive_features" else f"torch.as_tensor({name})"
            raise ValueError(f"{name} must be a tensor, got {type(values).__name__}; use {advice}")
    if y_score.ndim != 1:
        raise ValueError(
            f"y_score must have shape (n_samples,), got {tuple(y_score.shape)}{_one_column(y_score)}"
        )
    if not len(y_score):
        raise ValueError(
            "y_score is empty; leave out batches without rows, or, where several processes train, gather the "
            "rows of all of them with localparity.models.gather_rows"
        )
    for name, values in given.items():
        if values.shape != y_score.shape:
            advice = f"; use {name}.squeeze(1)" if values.shape == (len(y_score), 1) else ""
            raise ValueError(
                f"{name} has shape {tuple(values.shape)}, y_score has {tuple(y_score.shape)}{advice}"
            )


def check_integers(groups: Tensor) -> None:
    """Raise a ValueError where groups are no codes."""
    if groups.is_floating_point() or groups.is_complex():
        raise ValueError(
            f"sensitive_features must be integers or booleans, got {groups.dtype}; use "
            "sensitive_features.long() for codes"
        )


def check_codes(groups: Tensor, n_groups: int | None = None) -> None:
    """Raise a ValueError where a code is negative, or beyond the number of groups."""
    lowest, highest = (int(end) for end in torch.aminmax(groups))
    if lowest < 0:
        raise ValueError(f"sensitive_features must hold codes >= 0, got {lowest}")
    if n_groups is not None and highest >= n_groups:
        raise ValueError(f"sensitive_features must hold codes below n_groups={n_groups}, got {highest}")


def _one_column(y_score: Tensor) -> str:
    """How two dimensions become one: those of a single output, or of a score for each of two classes."""
    if y_score.ndim != 2:
        return ""
    columns = y_score.shape[1]
    if columns == 1:
        return "; use y_score.squeeze(1)"
    if columns == 2:
        return "; use y_score[:, 1], or y_score[:, 1] - y_score[:, 0] for the logits of two classes"
    return "; call the loss on the column of one class"
