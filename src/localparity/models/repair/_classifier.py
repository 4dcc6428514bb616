"""The wrapped classifier: fitted, or taken as it is, and the rows that the repair is then fitted on."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, has_fit_parameter

from localparity._types import Group
from localparity._validation import Grouping, as_rng
from localparity.models._rows import as_classes, groups_of_rows, two_classes

if TYPE_CHECKING:
    from localparity.models.repair._score_repair import ScoreRepair


_ALMOST_PERFECT = 0.999
"""An area under the ROC curve that few models reach on rows that they were not trained on."""


class People(NamedTuple):
    """Whom a repair is fitted on; `names` are those of the groups where `sensitive_features` are codes."""

    X: Any
    y: Any
    sensitive_features: Any
    sample_weight: Any
    group_probabilities: Any
    names: tuple[Group, ...] | None = None


def positive_scores(repair: ScoreRepair, X: Any) -> Any:
    """The scores that are repaired: given, or the wrapped classifier's of the second class."""
    return X if repair.estimator is None else repair.estimator_.predict_proba(X)[:, 1]


def fit_classifier(
    repair: ScoreRepair, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
) -> People:
    """Fit the classifiers that are not, and say on whom the repair is to be fitted."""
    for name in ("estimator", "group_estimator"):
        _check_has_scores(getattr(repair, name), name)
    (X,) = indexable(X)
    rows = _num_samples(X)
    labels = None if y is None and repair.prefit else as_classes(repair, y, rows)
    weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
    if labels is not None and not repair.prefit:
        two_classes(labels if weights is None else labels[weights > 0.0])
    grouping = groups_of_rows(sensitive_features, rows)
    training = held = np.arange(rows)
    if not (repair.prefit or repair.validation_fraction is None):
        assert labels is not None
        training, held = _hold_out(repair, labels, grouping, weights)
    _fit_estimator(repair, X, labels, weights, training)
    _fit_group_estimator(repair, X, grouping, training)
    own_X = _safe_indexing(X, held)
    return People(
        own_X,
        None if labels is None else (labels[held] == repair.classes_[1]).astype(np.int64),
        grouping.codes[held],
        None if weights is None else weights[held],
        None if repair.group_estimator is None else group_columns(repair, own_X, grouping.names),
        grouping.names,
    )


def group_columns(repair: ScoreRepair, X: Any, groups: tuple[Group, ...]) -> Any:
    """P(group | x) by the group estimator, its columns in the order of the groups."""
    classes = list(repair.group_estimator_.classes_)
    names = list(groups) if repair.prefit else list(range(len(groups)))
    if set(classes) != set(names):
        raise ValueError(
            f"group_estimator predicts {classes} where the groups are {', '.join(map(repr, groups))}"
        )
    return repair.group_estimator_.predict_proba(X)[:, [classes.index(name) for name in names]]


def warn_of_training_rows(
    repair: ScoreRepair, scores: NDArray[Any], labels: NDArray[np.int64] | None
) -> None:
    """Warn where a fitted classifier was likely trained on the rows that a promise is to be made from.

    It can tell by a classifier that keeps how many rows it was fitted on, as nearest neighbours and forests
    with out-of-bag scores do, and by scores that separate the classes almost perfectly. It cannot tell of
    most classifiers, where they do not fit their training rows that closely; and other rows of the same
    number, or an easy task, are warned of in vain.
    """
    fitted_rows = _rows_fitted_on(repair.estimator_)
    if fitted_rows == scores.size:
        why = f"{_name_of(repair.estimator_)} was fitted on as many rows, {fitted_rows}"
    elif labels is not None and 0 < labels.sum() < labels.size:
        area = float(roc_auc_score(labels, scores))
        if area <= _ALMOST_PERFECT:
            return
        why = f"{_name_of(repair.estimator_)} separates the two classes almost perfectly (AUC {area:.4f})"
    else:
        return
    warnings.warn(
        f"prefit=True and confidence={repair.confidence:g} are given with what may be the classifier's own "
        f"training rows: {why}; on those nothing is promised, so fit the repair on rows that were held back",
        UserWarning,
        stacklevel=3,
    )


def _rows_fitted_on(estimator: Any) -> int | None:
    """How many rows a classifier, or the last step of a pipeline, says that it was fitted on."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if hasattr(last, "n_samples_fit_"):
        return int(last.n_samples_fit_)
    if hasattr(last, "oob_decision_function_"):
        return len(last.oob_decision_function_)
    return None


def _name_of(estimator: Any) -> str:
    return type(estimator).__name__


def _check_has_scores(estimator: Any, name: str) -> None:
    if estimator is not None and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{name} is a {type(estimator).__name__}, which has no predict_proba and so no scores; "
            "wrap it in sklearn.calibration.CalibratedClassifierCV"
        )


def _hold_out(
    repair: ScoreRepair, labels: NDArray[Any], grouping: Grouping, weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows to train on and those to repair on, with the same shares of groups and classes."""
    assert repair.validation_fraction is not None
    classes = np.unique(labels, return_inverse=True)[1]
    cells = 2 * grouping.codes.astype(np.int64) + classes
    order = as_rng(repair.random_state).permutation(labels.size)
    order = order[np.argsort(cells[order], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(cells))])
    held = np.zeros(labels.size, dtype=bool)
    for start, end in pairwise(starts):
        share = int(np.ceil(repair.validation_fraction * (end - start))) if end - start > 1 else 0
        held[order[start : start + share]] = True
    for part in (held, ~held):
        counted = part if weights is None else part & (weights > 0.0)
        counts = np.bincount(grouping.codes[counted], minlength=len(grouping.names))
        if not counts.all():
            raise ValueError(
                f"group {grouping.names[int(np.argmin(counts))]!r} has too few rows for a training part and "
                "one to repair on; use validation_fraction=None, or a fitted classifier and prefit=True"
            )
    return np.flatnonzero(~held), np.flatnonzero(held)


def _fit_estimator(
    repair: ScoreRepair,
    X: Any,
    labels: NDArray[Any] | None,
    weights: NDArray[np.float64] | None,
    training: NDArray[np.int64],
) -> None:
    if repair.prefit:
        check_is_fitted(repair.estimator)
        repair.estimator_ = repair.estimator
    else:
        assert labels is not None
        options = {}
        if weights is not None:
            if not has_fit_parameter(repair.estimator, "sample_weight"):
                name = type(repair.estimator).__name__
                raise ValueError(f"sample_weight is given where {name}.fit does not take it")
            options = {"sample_weight": weights[training]}
        repair.estimator_ = clone(repair.estimator)
        repair.estimator_.fit(_safe_indexing(X, training), labels[training], **options)
    repair.classes_ = repair.estimator_.classes_
    if len(repair.classes_) != 2:
        raise ValueError(f"estimator has the classes {list(repair.classes_)} where two are expected")


def _fit_group_estimator(
    repair: ScoreRepair, X: Any, grouping: Grouping, training: NDArray[np.int64]
) -> None:
    if repair.group_estimator is None:
        return
    if repair.prefit:
        check_is_fitted(repair.group_estimator)
        repair.group_estimator_ = repair.group_estimator
        return
    codes = grouping.codes.astype(np.int64)[training]
    repair.group_estimator_ = clone(repair.group_estimator).fit(_safe_indexing(X, training), codes)
