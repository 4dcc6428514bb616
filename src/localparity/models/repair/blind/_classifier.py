"""A classifier whose scores are within a bound without looking at the group."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from localparity._types import ArrayLike, Criterion, FloatArray, Groups, Seed
from localparity._validation import as_count, as_number, require
from localparity.counts import Comparison
from localparity.models._columns import with_categories
from localparity.models._folder import Files, FolderMixin, dump_classes, restore_classes
from localparity.models._rows import TrainingRows, as_seed, check_training_rows
from localparity.models._two_classes import TwoClassMixin
from localparity.models.repair._wrapped import check_wrapped, dump_parts, parse_part
from localparity.models.repair.blind._features import BlindRows
from localparity.models.repair.blind._ingredients import (
    Ingredients,
    assign_folds,
    blind_rows,
    cross_fit,
    mean_prediction,
)
from localparity.models.repair.blind._repair import GroupBlindRepair

_SUBSAMPLED = {"feature_fraction": 0.5, "bagging_fraction": 0.8, "bagging_freq": 1, "lambda_l2": 1.0}
"""How the default trees are grown, chosen on validation parts of Adult and Bank."""


class GroupBlindClassifier(FolderMixin, TwoClassMixin, BaseEstimator):  # type: ignore[misc]
    """The most accurate scores within a bound that are made of features alone.

    Two classifiers are fitted, of the class and of the group. Their predictions for rows that they were not
    fitted on go to a `GroupBlindRepair`, which finds the best scores under the bound. The group is needed to
    fit and not to predict.

    Parameters
    ----------
    estimator, group_estimator : classifier, optional
        Predict the class and the group; they must have `predict_proba`. By default boosted trees, which take
        tables as `TableClassifier` does. Probabilities should be calibrated: the repair takes them at their
        word when it trades positives for parity, though never when it measures MCDP.
    max_mcdp, epsilon, confidence, criterion, output, min_group_size
        The bound and what it holds for, as in `GroupBlindRepair`. For a criterion that compares people by
        label, a group estimator is fitted among the people of each label.
    cv : int or "prefit"
        The number of folds. Each pair of classifiers is fitted without one fold and predicts for it. "prefit"
        takes the two as they are, the group estimator with the groups as its classes; pass `fit` other rows
        than they were fitted on.
    ensemble : bool
        Whether new rows get the mean of what all pairs predict. If not, one more pair is fitted on all rows,
        which predicts `cv` times as fast, and a little worse.
    validation_fraction : float
        The share of the rows that is held out where a `confidence` is asked for.
    random_state : int, Generator or None
        The same seed gives the same folds and held-out rows; it seeds the default trees too.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes; scores are probabilities of the second.
    groups_, left_out_ : tuple
        All groups, and those too small to take part in the bound.
    ingredients_ : list of Ingredients
        The fitted pairs of classifiers.
    repair_ : GroupBlindRepair
        The fitted repair.
    mcdp_ : float
        MCDP(epsilon) of the people fitted on, each scored by models that did not see them.
    promise_ : str
        What holds and for whom.

    Examples
    --------
    >>> import localparity as lp
    >>> from sklearn.linear_model import LogisticRegression
    >>> census = lp.datasets.make_census(4000, random_state=0)
    >>> X, sex = census.data[["age", "education_years", "hours_per_week"]], census.sensitive_features
    >>> plain = LogisticRegression(max_iter=1000)
    >>> model = lp.models.GroupBlindClassifier(plain, plain, max_mcdp=0.08, random_state=0)
    >>> model = model.fit(X, census.target, sensitive_features=sex)
    >>> model.predict_proba(X).shape, model.mcdp_ <= 0.08
    ((4000, 2), True)
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    _unsaved: ClassVar[dict[str, Any]] = {"estimator": None, "group_estimator": None}
    _libraries = ("lightgbm",)

    def __init__(
        self,
        estimator: Any = None,
        group_estimator: Any = None,
        *,
        max_mcdp: float = 0.05,
        epsilon: float = 0.0,
        confidence: float | None = None,
        criterion: Criterion = "demographic_parity",
        output: str = "original",
        min_group_size: int = 30,
        cv: int | str = 5,
        ensemble: bool = True,
        validation_fraction: float = 0.3,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.group_estimator = group_estimator
        self.max_mcdp = max_mcdp
        self.epsilon = epsilon
        self.confidence = confidence
        self.criterion = criterion
        self.output = output
        self.min_group_size = min_group_size
        self.cv = cv
        self.ensemble = ensemble
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Groups = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifiers, unless they are fitted, and the repair.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            Two classes, of any kind that can be sorted.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; of several columns, the combinations that occur.
        sample_weight : array-like of shape (n_samples,), optional
            Weights that are not negative; a row of weight 0 counts as absent.

        Returns
        -------
        GroupBlindClassifier
            The fitted classifier.
        """
        repair, seed = self._check_parameters(), as_seed(self.random_state)
        (X,) = indexable(X)
        if self.estimator is None or self.group_estimator is None:
            X = with_categories(X)
        rows = check_training_rows(self, X, y, sensitive_features, sample_weight).with_weight()
        self._fitted_on = rows.describe()
        held_out = None
        if self.confidence is not None:
            by_class = Comparison(self.criterion).needs_labels
            rows, held_out = rows.hold_out(self.validation_fraction, seed, by_class=by_class)
        least = rows if held_out is None else held_out
        repair._check_groups(least.groups, least.labels.astype(np.int64), rows.group_names)
        fitted = self._fit_ingredients(rows, seed, weighted=sample_weight is not None)
        tested = None
        if held_out is not None:
            tested = blind_rows(held_out, *mean_prediction(self.ingredients_, held_out.features))
        self.classes_, self.groups_, self.left_out_ = rows.classes, rows.group_names, repair.left_out_
        self.repair_ = repair._fit_rows(fitted, tested, rows.group_names)
        self.mcdp_, self.promise_ = repair.mcdp_, repair.promise_
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class after the repair.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features, in the columns that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            The second column is the repaired score.
        """
        check_is_fitted(self)
        scores = self.repair_._repaired(*mean_prediction(self.ingredients_, X))
        return np.column_stack([1.0 - scores, scores])

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return int(self._reads_features.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the features, if the classifiers know them."""
        names: NDArray[Any] = self._reads_features.feature_names_in_
        return names

    @property
    def text_features_(self) -> list[str]:
        """The names of the text columns, if the classifiers know them."""
        names: list[str] = self._reads_features.text_features_
        return names

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "promise_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = [one for one in (self.estimator, self.group_estimator) if one is not None]
        inputs = [get_tags(one).input_tags for one in given]
        tags.input_tags.allow_nan = all(one.allow_nan for one in inputs)
        tags.input_tags.sparse = len(given) == 2 and all(one.sparse for one in inputs)
        return tags

    @property
    def _reads_features(self) -> Any:
        """The model that reads a row's features first."""
        return self.ingredients_[0].estimator

    def _check_parameters(self) -> GroupBlindRepair:
        """Return the repair to be fitted, or raise a ValueError for parameters that are wrong."""
        repair = GroupBlindRepair(
            self.max_mcdp,
            epsilon=self.epsilon,
            confidence=self.confidence,
            criterion=self.criterion,
            output=self.output,
            min_group_size=self.min_group_size,
            validation_fraction=self.validation_fraction,
        )
        repair._check_parameters()
        check_wrapped(estimator=self.estimator, group_estimator=self.group_estimator)
        if self.cv == "prefit":
            if self.estimator is None or self.group_estimator is None:
                raise ValueError("cv='prefit' needs a fitted estimator and group_estimator, got None")
        elif as_count(self.cv, "cv") < 2:
            raise ValueError(f"cv must be >= 2 or 'prefit', got {self.cv}")
        return repair

    def _fit_ingredients(self, rows: TrainingRows, seed: int, *, weighted: bool) -> BlindRows:
        """Fit the pairs of classifiers, and return the rows with what the unseen folds' models predict."""
        labels = Comparison(self.criterion).labels
        if self.cv == "prefit":
            fitted = Ingredients.fitted(self.estimator, self.group_estimator, rows, len(labels))
            self.ingredients_ = [fitted]
            return blind_rows(rows, *fitted.predict(rows.features))
        pair = tuple(
            _trees(seed) if given is None else given for given in (self.estimator, self.group_estimator)
        )
        folds = assign_folds(rows, int(self.cv), seed)
        self.ingredients_, predicted = cross_fit(pair, rows, labels, folds, weighted=weighted)
        if not self.ensemble:
            self.ingredients_ = [Ingredients.fit(pair, rows, labels, weighted=weighted)]
        return predicted

    def _dump(self) -> tuple[dict[str, Any], Files]:
        learned = {
            **dump_classes(self.classes_),
            "codes": [[codes.tolist() for codes in one.codes] for one in self.ingredients_],
            "mcdp": self.mcdp_,
            "promise": self.promise_,
        }
        parts: dict[str, Any] = {"repair": self.repair_}
        groups = [one for pair in self.ingredients_ for one in pair.group_estimators]
        return learned, dump_parts(
            estimator=[pair.estimator for pair in self.ingredients_], group_estimator=groups, **parts
        )

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        self.estimator = self.group_estimator = None
        self.classes_ = restore_classes(learned, two=True)
        self.repair_ = parse_part(files, "repair")
        if not isinstance(self.repair_, GroupBlindRepair):
            raise ValueError(f"repair must be a GroupBlindRepair, got a {type(self.repair_).__name__}")
        self.groups_, self.left_out_ = self.repair_.groups_, self.repair_.left_out_
        self.ingredients_ = []
        place = 0
        for number, codes in enumerate(learned["codes"]):
            groups = tuple(parse_part(files, f"group_estimator/{place + one}") for one in range(len(codes)))
            place += len(codes)
            if len(groups) != len(self.repair_.features_.labels):
                raise ValueError(f"codes must be as many as labels are compared, got {len(groups)}")
            estimator = parse_part(files, f"estimator/{number}")
            self.ingredients_.append(Ingredients.restored(estimator, groups, codes, len(self.groups_)))
        self.mcdp_ = as_number(learned["mcdp"], "mcdp")
        self.promise_ = str(learned["promise"])


def _trees(seed: int) -> Any:
    """Return the trees that predict by default."""
    require("lightgbm", extra="boost")
    from localparity.models.trees import TableClassifier

    return TableClassifier(booster_params=_SUBSAMPLED, random_state=seed)
