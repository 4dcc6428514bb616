"""MCDP of tensors, without counts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from localparity._types import Compare, Criterion, FloatArray, ScoreRange
from localparity._validation import as_epsilons, as_score_range
from localparity.counts import Comparison
from localparity.counts._comparison import require_labels
from localparity.engines._torch import TorchScores, from_torch
from localparity.engines._torch_search import MOST_KEYS, MOST_ROWS, Search
from localparity.metrics import mcdp

if TYPE_CHECKING:
    from torch import Tensor


def mcdp_from_torch(
    y_score: Tensor,
    sensitive_features: Tensor,
    *,
    y_true: Tensor | None = None,
    sample_weight: Tensor | None = None,
    epsilon: float | Sequence[float] = 0.0,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    score_range: ScoreRange = (0.0, 1.0),
) -> float | FloatArray:
    """MCDP of the worst pair, of tensors on a GPU or on the CPU; the same number that `mcdp` gives of arrays.

    On a GPU the scores stay there and are not sorted: two passes over the rows find the few scores that
    decide. `from_torch` takes longer, and returns counts from which every other metric is computed.

    Parameters
    ----------
    y_score : torch.Tensor
        Scores inside `score_range`, shape (n_samples,), of a floating dtype.
    sensitive_features : torch.Tensor
        The group of each row: integers or booleans.
    y_true : torch.Tensor, optional
        Labels 0 and 1, where the criterion needs them.
    sample_weight : torch.Tensor, optional
        Weights that are not negative.
    epsilon : float or sequence of float
        The half-width of the windows, as a fraction of the score range; several at once cost little more.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    score_range : tuple of float
        The lowest and the highest score there can be.

    Returns
    -------
    float or ndarray
        A fraction in [0, 1]; of several epsilons, one for each.

    Examples
    --------
    >>> import torch
    >>> import localparity as lp
    >>> scores, sex = torch.tensor([0.1, 0.3, 0.5, 0.4, 0.6, 0.9]), torch.tensor([0, 0, 0, 1, 1, 1])
    >>> lp.engines.mcdp_from_torch(scores, sex, epsilon=[0.0, 0.1])
    array([0.66666667, 0.33333333])
    """
    epsilons, comparison = as_epsilons(epsilon), Comparison(criterion, compare)
    require_labels(comparison, y_true)
    asked: dict[str, Any] = {"epsilon": epsilon, "criterion": criterion, "compare": compare}
    labels = y_true if comparison.needs_labels else None
    if y_score.device.type != "cuda":
        columns = {"sensitive_features": _on_cpu(sensitive_features), "sample_weight": _on_cpu(sample_weight)}
        return _mcdp(_on_cpu(labels), _on_cpu(y_score), **columns, **asked, score_range=score_range)
    given: dict[str, Any] = {"y_true": labels, "sample_weight": sample_weight}
    given["score_range"] = as_score_range(score_range)
    source = TorchScores(y_score, sensitive_features, **given)
    if sample_weight is not None or len(source.keys) > MOST_KEYS or source.rows.size >= MOST_ROWS:
        counts = from_torch(
            y_score,
            sensitive_features,
            **given,
            epsilons=epsilons.ravel().tolist(),
            criterion=criterion,
            compare=compare,
        )
        return _mcdp(counts, **asked)
    found = Search(source, comparison, epsilons.ravel()).mcdp()
    return found.reshape(epsilons.shape) if epsilons.ndim else float(found[0])


def _mcdp(*arrays: Any, **options: Any) -> float | FloatArray:
    """MCDP of arrays or counts."""
    found: float | FloatArray = mcdp(*arrays, **options)
    return found


def _on_cpu(part: Tensor | None) -> Tensor | None:
    """What a row has, flat and in the memory of the CPU."""
    return None if part is None else part.detach().flatten().cpu()
