"""How a model does on people whom it was not fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.metrics import average_precision_score

from localparity._types import Criterion, FloatArray, Seed
from localparity.metrics import Interval
from localparity.models._rows import TrainingRows
from localparity.uncertainty import mcdp_interval, permutation_test


@dataclass(frozen=True)
class HeldOutAudit:
    """A short audit of a model's scores of people whom it was not fitted on.

    Attributes
    ----------
    rows : int
        How many rows there are.
    average_precision : float
        The average precision.
    interval : Interval
        MCDP(epsilon), by the bootstrap.
    noise_floor : float
        MCDP(epsilon) expected under parity, with these scores.

    Examples
    --------
    >>> import localparity as lp
    >>> found = lp.models.HeldOutAudit(500, 0.77, lp.Interval(0.02, 0.04, 0.06, 0.95), 0.03)
    >>> found.interval.estimate <= 0.05
    True
    """

    rows: int
    average_precision: float
    interval: Interval
    noise_floor: float


def audit_held_out(
    rows: TrainingRows,
    scores: FloatArray,
    *,
    epsilon: float,
    criterion: Criterion,
    confidence: float,
    n_resamples: int,
    random_state: Seed,
) -> HeldOutAudit:
    """Return the audit of a model's scores of some rows."""
    options: dict[str, Any] = {
        "sensitive_features": rows.groups,
        "sample_weight": rows.weights,
        "epsilon": epsilon,
        "criterion": criterion,
        "n_resamples": n_resamples,
        "random_state": random_state,
    }
    scored = (rows.labels, scores)
    return HeldOutAudit(
        rows.labels.size,
        float(average_precision_score(*scored, sample_weight=rows.weights)),
        mcdp_interval(*scored, confidence=confidence, method="bootstrap", **options),
        permutation_test(*scored, **options).null_mean,
    )
