"""Scores whose local disparity is within a bound, from anyone's scores or classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, TransformerTags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from localparity._types import Criterion, FloatArray
from localparity._validation import (
    as_epsilon,
    as_fraction,
    as_groups,
    as_probability,
    as_score_range,
    as_scores,
    score_resolution,
)
from localparity.counts._comparison import labels_of
from localparity.counts._score_counts import ScoreCounts
from localparity.metrics import mcdp
from localparity.models.repair._classifier import (
    People,
    fit_classifier,
    group_columns,
    positive_scores,
    warn_of_training_rows,
)
from localparity.models.repair._fitting import Repair, find_repair, unmoved
from localparity.models.repair._promise import (
    check_reached,
    margin_of,
    promise_sentence,
)
from localparity.models.repair._rows import as_probabilities, blend_rows, map_rows
from localparity.predictions import Names, Predictions, check_predictions

_NAMES = Names("y", "scores", "sensitive_features", "sample_weight")


def _wraps_classifier(repair: ScoreRepair) -> bool:
    if repair.estimator is None:
        raise AttributeError("estimator is None where predict and predict_proba need one; use transform")
    return True


def _takes_scores(repair: ScoreRepair) -> bool:
    if repair.estimator is not None:
        raise AttributeError("estimator is given where transform takes scores; use predict_proba")
    return True


class ScoreRepair(BaseEstimator):  # type: ignore[misc]
    r"""Bring MCDP(epsilon) of any scores within a bound, moving as few of them as little as it takes.

    Wherever the groups' cumulative distributions are further apart than the bound, they are drawn towards
    their Wasserstein barycentre until they are not; everywhere else scores stay as they are, but for one that
    another of its group comes to, which makes room. Each group's scores go through one increasing map, so
    that ranks inside a group never change. A score that `fit` did not see goes through the same map, on a
    straight line between its neighbours.

    It works on scores, ``ScoreRepair(max_mcdp=0.05).fit(scores, sensitive_features=groups)``, or wraps a
    classifier, ``ScoreRepair(classifier).fit(X, y, sensitive_features=groups)``.

    What it promises is told by `promise_`. Without a `confidence`, the bound holds exactly for the people
    fitted on. With one, it holds with that probability for the population that they were drawn from: by the
    Dvoretzky-Kiefer-Wolfowitz inequality, whatever the distributions, if they are an independent sample and
    their scores were not computed on rows that the model was trained on. The same holds for equal opportunity
    and predictive equality: the map of a group is made for its people of one label and applied to all of
    them, so no label is needed to predict. For equalized odds one map has to serve both labels, and a low
    bound may be out of reach, which is an error that names the lowest found.

    Where the group is unknown at prediction, give P(group | x), or a `group_estimator` that predicts it: a
    score becomes the mean of what the groups' maps make of it. The bound then holds for the people fitted on,
    where that is within reach at all. For others nothing can be promised, and ranks inside a group may
    change.

    Parameters
    ----------
    estimator : classifier, optional
        Whose scores are repaired; None where `fit` and `transform` take the scores themselves.
    max_mcdp : float
        The most that MCDP(epsilon) may be after the repair. With 0 the groups' distributions coincide up to
        ties: two groups of 3 and 2 people cannot do so exactly, and `mcdp_` tells what is left.
    epsilon : float
        The half-width of the windows, as a fraction of the score range. Gaps above the bound on stretches too
        short for a window are left alone.
    confidence : float, optional
        The probability with which the bound holds in the population, under the conditions that `promise_`
        names; with weights approximately, each group counting as its effective size.
    criterion : str
        Which people are compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds".
    group_estimator : classifier, optional
        Predicts the group from the features, where it is unknown at prediction.
    prefit : bool
        Whether the estimators are fitted already and stay as they are. Give `fit` other rows than they were
        fitted on: with a `confidence`, rows that look like those are warned of.
    validation_fraction : float, optional
        The share of the rows on which the repair of an estimator that is not fitted yet is held back from
        its training; None fits both on all rows, whose scores are then not those of new people.
    score_range : tuple of float
        The lowest and the highest score there can be.
    random_state : int, Generator or None
        The same seed holds back the same rows.

    Attributes
    ----------
    groups_ : tuple
        The groups' names.
    maps_ : dict
        Each group's `ScoreMap`.
    unrepaired_mcdp_, mcdp_ : float
        MCDP(epsilon) of the people fitted on, before and after.
    margin_ : float
        How far below `max_mcdp` the repair had to aim for its confidence; 0 without one.
    promise_ : str
        In a sentence, what holds and for whom.
    soft_ : bool
        Whether the groups are unknown at prediction.
    estimator_, group_estimator_ : classifier
        As fitted.
    classes_ : ndarray
        The two classes of a wrapped classifier.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> repair = lp.models.ScoreRepair(max_mcdp=0.05).fit(census.score, sensitive_features=sex)
    >>> repaired = repair.transform(census.score, sensitive_features=sex)
    >>> lp.mcdp(None, repaired, sensitive_features=sex) <= 0.05
    True
    >>> print(repair.promise_)
    MCDP(0) is at most 0.05 among the 2,000 people fitted on; of others nothing is promised without a
    confidence.
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
        criterion: Criterion = "demographic_parity",
        group_estimator: Any = None,
        prefit: bool = False,
        validation_fraction: float | None = 0.2,
        score_range: tuple[float, float] = (0.0, 1.0),
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_mcdp = max_mcdp
        self.epsilon = epsilon
        self.confidence = confidence
        self.criterion = criterion
        self.group_estimator = group_estimator
        self.prefit = prefit
        self.validation_fraction = validation_fraction
        self.score_range = score_range
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        group_probabilities: Any = None,
    ) -> ScoreRepair:
        """Learn each group's map; and the classifiers, where there are any that are not fitted.

        Parameters
        ----------
        X : array-like
            The scores; with an estimator, its features.
        y : array-like, optional
            Labels 0 and 1 where the criterion needs them; with an estimator, two classes.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; of several columns, the combinations that occur.
        sample_weight : array-like, optional
            Weights that are not negative.
        group_probabilities : array-like of shape (rows, groups), optional
            P(group | x) of each row, a column for each group in sorted order, where `transform` will have
            these in place of the groups.

        Returns
        -------
        ScoreRepair
            Itself.
        """
        self._check_parameters(group_probabilities is not None)
        people = People(X, y, sensitive_features, sample_weight, group_probabilities)
        if self.estimator is not None:
            people = fit_classifier(self, X, y, sensitive_features, sample_weight)
        predictions = self._predictions(people)
        if self.estimator is not None and self.prefit and self.confidence is not None:
            warn_of_training_rows(self, predictions.scores, people.y)
        self.groups_ = predictions.groups
        self.soft_ = people.group_probabilities is not None
        self._learn(predictions, people.group_probabilities)
        return self

    @available_if(_takes_scores)  # type: ignore[untyped-decorator]
    def transform(
        self, X: Any, *, sensitive_features: Any = None, group_probabilities: Any = None
    ) -> FloatArray:
        """The repaired scores; a repair that wraps a classifier has `predict_proba` in its place.

        Parameters
        ----------
        X : array-like
            The scores.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row, among those that `fit` saw.
        group_probabilities : array-like of shape (rows, groups)
            In place of the groups, where `fit` had them too.

        Returns
        -------
        ndarray of shape (rows,)
        """
        return self._repaired(X, sensitive_features, group_probabilities)

    @available_if(_wraps_classifier)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """The two classes' probabilities after the repair; the second column is the repaired score.

        Parameters
        ----------
        X : array-like or data frame
            The features.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; not with a `group_estimator`.

        Returns
        -------
        ndarray of shape (rows, 2)
        """
        scores = self._repaired(X, sensitive_features)
        return np.column_stack([1.0 - scores, scores])

    @available_if(_wraps_classifier)  # type: ignore[untyped-decorator]
    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """The class of each row: the second where its repaired score is above one half.

        Parameters
        ----------
        X : array-like or data frame
            The features.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; not with a `group_estimator`.

        Returns
        -------
        ndarray of shape (rows,)
        """
        above = self._repaired(X, sensitive_features) > 0.5
        chosen: NDArray[Any] = self.classes_[above.astype(np.int64)]
        return chosen

    @property
    def n_features_in_(self) -> int:
        """How many features the wrapped classifier has."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the wrapped classifier's features, where it knows them."""
        names: NDArray[Any] = self.estimator_.feature_names_in_
        return names

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "maps_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is None:
            tags.transformer_tags = TransformerTags()
        else:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=False)
            tags.target_tags.required = True
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

    def _repaired(self, X: Any, sensitive_features: Any, group_probabilities: Any = None) -> FloatArray:
        """The scores through the maps of their groups, or through the mean of all maps."""
        check_is_fitted(self)
        low, high = as_score_range(self.score_range)
        given = as_scores(positive_scores(self, X), (low, high), "scores").values
        scores = np.clip(given.astype(np.float64, copy=False), low, high)
        if not self.soft_:
            if group_probabilities is not None:
                raise ValueError("group_probabilities is given where fit had the groups only; fit with both")
            return map_rows(scores, as_groups(sensitive_features, scores.size, at_least=1), self.maps_)
        if sensitive_features is not None:
            raise ValueError("sensitive_features is given where the repair was fitted for unknown groups")
        if self.group_estimator is not None:
            group_probabilities = group_columns(self, X, self.groups_)
        if group_probabilities is None:
            raise ValueError("group_probabilities is None where fit had them in place of the groups")
        shares = as_probabilities(group_probabilities, scores.size, self.groups_)
        return np.clip(blend_rows(scores, shares, self.maps_), low, high)

    def _check_parameters(self, soft: bool) -> None:
        """What can be said of the parameters before the data is looked at."""
        as_fraction(self.max_mcdp, "max_mcdp")
        as_epsilon(self.epsilon)
        low, high = as_score_range(self.score_range)
        if not np.isfinite(high - low):
            raise ValueError(f"score_range must be no longer than float64 holds, got ({low}, {high})")
        labels_of(self.criterion)
        if self.group_estimator is not None and self.estimator is None:
            raise ValueError(
                "group_estimator is given where estimator is None; give group_probabilities to fit"
            )
        if soft and self.estimator is not None:
            raise ValueError(
                "group_probabilities is given where a group_estimator predicts them; leave it out"
            )
        if self.validation_fraction is not None:
            as_probability(self.validation_fraction, "validation_fraction")
        if self.confidence is None:
            return
        as_probability(self.confidence, "confidence")
        if soft or self.group_estimator is not None:
            raise ValueError(
                "confidence is given where the groups are unknown at prediction and nothing can be promised"
            )
        if self.estimator is not None and not self.prefit and self.validation_fraction is None:
            raise ValueError(
                "confidence is given where validation_fraction is None: scores of the classifier's own "
                "training rows promise nothing of new people; hold some back, or give a fitted classifier "
                "and prefit=True"
            )

    def _predictions(self, people: People) -> Predictions:
        labels = people.y if labels_of(self.criterion) != (None,) else None
        if labels is None and labels_of(self.criterion) != (None,):
            raise ValueError(f"y is None where criterion={self.criterion!r} needs labels 0 and 1")
        predictions = check_predictions(
            labels,
            positive_scores(self, people.X),
            people.sensitive_features,
            sample_weight=people.sample_weight,
            score_range=self.score_range,
            names=_NAMES,
        )
        return predictions if people.names is None else replace(predictions, groups=people.names)

    def _learn(self, predictions: Predictions, group_probabilities: Any) -> None:
        """Find the maps, or say why there are none.

        What `transform` returns is of double precision, and is measured as such, whatever came.
        """
        bound, epsilon = as_fraction(self.max_mcdp, "max_mcdp"), as_epsilon(self.epsilon)
        counts = ScoreCounts.from_predictions(predictions)
        self.unrepaired_mcdp_ = as_returned = mcdp(counts, epsilon=epsilon, criterion=self.criterion)
        resolution = score_resolution(np.dtype(np.float64), predictions.score_range)
        if counts.resolution != resolution:
            counts = replace(counts, resolution=resolution)
            predictions = replace(predictions, resolution=resolution)
            as_returned = mcdp(counts, epsilon=epsilon, criterion=self.criterion)
        measure = None
        if group_probabilities is not None:
            shares = as_probabilities(group_probabilities, len(predictions), predictions.groups)
            scores = np.clip(predictions.scores.astype(np.float64), *predictions.score_range)

            def measure(maps: Any) -> float:
                blended = np.clip(blend_rows(scores, shares, maps), *predictions.score_range)
                repaired = replace(predictions, scores=blended)
                return mcdp(repaired, epsilon=epsilon, criterion=self.criterion)

        self.margin_ = 0.0
        if self.confidence is not None:
            self.margin_ = margin_of(counts, self.criterion, self.confidence, self.random_state)
        aim = bound - self.margin_
        if as_returned <= aim:
            repair = Repair(unmoved(counts, self.criterion), as_returned)
        else:
            repair = find_repair(
                counts, aim=max(aim, 0.0), epsilon=epsilon, criterion=self.criterion, measure=measure
            )
            check_reached(self, counts, repair.mcdp)
        self.maps_, self.mcdp_ = repair.maps, repair.mcdp
        self.promise_ = promise_sentence(self, len(predictions))
