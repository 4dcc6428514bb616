"""Scores whose local disparity is within a bound, from anyone's scores or classifier."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from localparity._validation import FloatArray, as_epsilon, as_groups, as_level, as_score_range, as_scores
from localparity.metrics._counts import ScoreCounts
from localparity.metrics._criteria import labels_of
from localparity.postprocessing._fitting import as_bound, fit_maps
from localparity.predictions import Names, Predictions


def _wraps_classifier(repair: ScoreRepair) -> bool:
    if repair.estimator is None:
        raise AttributeError("ScoreRepair has an estimator=None and works on scores: use transform")
    return True


class ScoreRepair(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Bring MCDP(epsilon) of any scores within a bound, moving as few scores as little as it takes.

    Works on scores (``estimator=None``) or wraps a classifier.

    Parameters
    ----------
    estimator : classifier, optional
        Whose scores are repaired; None where `fit` and `transform` are given the scores themselves.
    max_mcdp : float
        The most that MCDP(epsilon) may be after the repair.
    epsilon : float
        The half-width of the windows, as a fraction of the score range.
    confidence : float, optional
        With this probability the bound holds for new people of the same population too, not only for those
        of `fit`.
    criterion : str
        Which people are compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds".
    prefit : bool
        Whether the estimator is fitted already and stays as it is.
    score_range : tuple of float
        The lowest and the highest score there can be.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> repair = lp.postprocessing.ScoreRepair(max_mcdp=0.05).fit(census.score, sensitive_features=sex)
    >>> repaired = repair.transform(census.score, sensitive_features=sex)
    >>> lp.mcdp(None, repaired, sensitive_features=sex) <= 0.05
    True
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    def __init__(
        self,
        estimator: Any = None,
        *,
        max_mcdp: float = 0.05,
        epsilon: float = 0.0,
        confidence: float | None = None,
        criterion: str = "demographic_parity",
        prefit: bool = False,
        score_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.estimator = estimator
        self.max_mcdp = max_mcdp
        self.epsilon = epsilon
        self.confidence = confidence
        self.criterion = criterion
        self.prefit = prefit
        self.score_range = score_range

    def fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> ScoreRepair:
        """Learn each group's map; and the classifier, where there is one that is not fitted."""
        bound, epsilon = as_bound(self.max_mcdp), as_epsilon(self.epsilon)
        confidence = None if self.confidence is None else as_level(self.confidence, "confidence")
        if self.estimator is not None:
            self.estimator_ = self.estimator if self.prefit else clone(self.estimator).fit(X, y)
            self.classes_ = self.estimator_.classes_
            y = (np.asarray(y) == self.classes_[1]).astype(np.int64)
        labels = y if labels_of(self.criterion) != (None,) else None
        if labels is None and labels_of(self.criterion) != (None,):
            raise ValueError(f"y is None where criterion={self.criterion!r} needs labels 0 and 1")
        predictions = Predictions.checked(
            labels,
            self._scores(X),
            sensitive_features,
            sample_weight,
            self.score_range,
            Names("y", "scores", "sensitive_features", "sample_weight"),
        )
        fitted = fit_maps(
            ScoreCounts.from_predictions(predictions),
            bound=bound,
            epsilon=epsilon,
            confidence=confidence,
            criterion=self.criterion,
        )
        self.groups_ = predictions.groups
        self.maps_, self.mcdp_, self.unrepaired_mcdp_ = fitted.maps, fitted.mcdp, fitted.unrepaired_mcdp
        return self

    def transform(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """The repaired scores."""
        check_is_fitted(self)
        score_range = as_score_range(self.score_range)
        scores = np.clip(as_scores(self._scores(X), score_range, "scores").values, *score_range)
        codes, groups = as_groups(sensitive_features, scores.size, at_least=1)
        repaired = np.empty(scores.size)
        for code, group in enumerate(groups):
            if group not in self.maps_:
                known = ", ".join(map(repr, self.groups_))
                raise ValueError(
                    f"sensitive_features has the group {group!r}, which fit did not see; it saw {known}"
                )
            members = codes == code
            repaired[members] = self.maps_[group](scores[members].astype(np.float64))
        return repaired

    @available_if(_wraps_classifier)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """The two classes' repaired scores; the second column is that of the positive class."""
        scores = self.transform(X, sensitive_features=sensitive_features)
        return np.column_stack([1.0 - scores, scores])

    @available_if(_wraps_classifier)  # type: ignore[untyped-decorator]
    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """The class of each row: the second where its repaired score is above one half."""
        above = self.transform(X, sensitive_features=sensitive_features) > 0.5
        chosen: NDArray[Any] = self.classes_[above.astype(np.int64)]
        return chosen

    def _scores(self, X: Any) -> Any:
        return X if self.estimator is None else self.estimator_.predict_proba(X)[:, 1]
