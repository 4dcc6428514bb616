"""scikit-learn's own checks of estimators, for those that need the group of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import _num_samples


class Supplied:
    """Supplies the sensitive feature, which scikit-learn's checks know nothing of, from the rows themselves."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        try:
            groups = (np.abs(np.asarray(X, dtype=float)[:, 0]) * 1000).astype(int) % 2
        except (TypeError, ValueError, IndexError):
            groups = np.zeros(_num_samples(X), dtype=int)
        if len(set(groups)) < 2:
            groups = np.arange(len(groups)) % 2
        return super().fit(X, y, sensitive_features=groups, sample_weight=sample_weight)  # type: ignore[misc]


def assert_passes(estimator: Any, known: dict[str, str] | None = None) -> None:
    """Every check is passed but those that are known to fail, by their names."""
    found = check_estimator(estimator, on_fail=None, on_skip=None, expected_failed_checks=known or {})
    assert [(check["check_name"], check["exception"]) for check in found if check["status"] == "failed"] == []
    assert len(found) > 50
