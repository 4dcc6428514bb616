"""The model that predicts by default in group-blind repair: a logistic regression and boosted trees.

Everything about it is chosen by the loss of rows that no part of it was fitted on: whether the trees start
from the logistic regression or from nothing, how many there are, and how much of either is in the blend.
Where the truth is additive, hardly any trees are left; where it is not, the trees learn the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from localparity._io._sealed import Files
from localparity._types import FloatArray, IntArray, Seed
from localparity._validation import InputError, as_count
from localparity.models._encoding import CategoryEncoder, TableFeatures
from localparity.models._folder import FolderMixin, dump_classes, restore_classes
from localparity.models._rows import as_seed, assign_folds
from localparity.models.trees._boosters import (
    lightgbm,
    lightgbm_dataset,
    lightgbm_forest,
    lightgbm_parameters,
)
from localparity.models.trees._classifiers import Forest, check_width

_FOLDS = 5
_PATIENCE = 20
_AS_GOOD = 1.0005
"""A loss that is at most so many times the least is as good: fewer trees predict faster."""

_GROWN = {
    "learning_rate": 0.1,
    "num_leaves": 15,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
}
_CLEARLY = 0.995
"""What a loss is at most times another to be clearly better."""

_KNOTS = 5
_FEW, _MOST = 20, 50
"""Whole numbers of at most so many values are codes too; of a text, so many values have a column."""

_INVERSE_RIDGE = 1.0
_FAINT = 1e-3


class _Terms(NamedTuple):
    """The columns that one feature has in the logistic regression.

    A number is itself, standardised, how far it is above each knot, and whether it is missing; texts and
    numbers of few whole values have a column for each of their levels.
    """

    centre: float
    scale: float
    knots: FloatArray
    levels: FloatArray
    is_text: bool

    @classmethod
    def learn(cls, values: FloatArray, *, is_text: bool) -> _Terms:
        """Return the columns of a feature with these values, NaN where one is missing."""
        none = np.zeros(0)
        known = values[~np.isnan(values)]
        distinct, counts = np.unique(known, return_counts=True)
        if is_text:
            most = np.argsort(-counts, kind="stable")[:_MOST]
            return cls(0.0, 1.0, none, np.sort(distinct[most]), is_text=True)
        if distinct.size < 2:
            return cls(0.0, 1.0, none, none, is_text=False)
        centre, scale = float(known.mean()), float(known.std())
        if distinct.size == 2:
            return cls(centre, scale, none, none, is_text=False)
        knots = np.unique(np.quantile(known, (np.arange(_KNOTS) + 0.5) / _KNOTS))
        are_codes = distinct.size <= _FEW and bool((distinct == np.round(distinct)).all())
        return cls(centre, scale, knots, distinct if are_codes else none, is_text=False)

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.levels.size + (0 if self.is_text else 2 + self.knots.size)

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the columns of rows."""
        levels = values[:, None] == self.levels
        if self.is_text:
            return np.asarray(levels, dtype=np.float32)
        missing = np.isnan(values)
        above = np.maximum(values[:, None] - self.knots, 0.0)
        scaled = np.column_stack([values - self.centre, above]) / self.scale
        columns = [np.where(missing[:, None], 0.0, scaled), missing, levels]
        return np.asarray(np.column_stack(columns), dtype=np.float32)


class _Basis(NamedTuple):
    """The columns of a logistic regression, feature by feature."""

    terms: tuple[_Terms, ...]

    @classmethod
    def learn(cls, features: FloatArray, text_places: list[int]) -> _Basis:
        """Return the columns for features as the trees take them."""
        places = range(features.shape[1])
        return cls(tuple(_Terms.learn(features[:, place], is_text=place in text_places) for place in places))

    def __call__(self, features: FloatArray) -> FloatArray:
        """Return the columns of rows."""
        return np.hstack([term(features[:, place]) for place, term in enumerate(self.terms)])

    def margins(self, features: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Return what the coefficients, the intercepts last, make of rows, without all columns at once."""
        sums, first = np.tile(coefficients[-1], (len(features), 1)), 0
        for place, term in enumerate(self.terms):
            sums += term(features[:, place]) @ coefficients[first : first + term.width]
            first += term.width
        return sums


class _Target(NamedTuple):
    """The codes of the classes, 0 where a row has no weight, and the weights."""

    codes: IntArray
    weights: FloatArray
    n_classes: int

    @property
    def n_outputs(self) -> int:
        """How many margins a row has: one for two classes."""
        return self.n_classes if self.n_classes > 2 else 1

    @property
    def base(self) -> FloatArray:
        """The margins of the classes' shares."""
        logarithms = np.log(np.bincount(self.codes, self.weights, minlength=self.n_classes))
        return np.asarray(
            logarithms[1:] - logarithms[0] if self.n_outputs == 1 else logarithms - logarithms.max()
        )

    def loss(self, margins: FloatArray) -> float:
        """Return the mean log loss of margins."""
        logarithms = log_softmax(_with_first(margins), axis=1)[np.arange(self.codes.size), self.codes]
        return float(-(self.weights @ logarithms) / self.weights.sum())

    def take(self, indexes: IntArray) -> _Target:
        """Return some of the rows."""
        return _Target(self.codes[indexes], self.weights[indexes], self.n_classes)

    def fit_logistic(self, columns: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """Return the coefficients of a logistic regression, the intercepts last.

        Faint rows at 0, one for each class, let a class occur that no row has.
        """
        weights = np.concatenate([self.weights, np.full(self.n_classes, _FAINT)])
        codes = np.concatenate([self.codes, np.arange(self.n_classes)])
        rows = np.vstack([columns, np.zeros((self.n_classes, columns.shape[1]), columns.dtype)])
        model = LogisticRegression(C=_INVERSE_RIDGE, tol=1e-3, max_iter=200, warm_start=start is not None)
        if start is not None:
            model.coef_, model.intercept_ = np.ascontiguousarray(start[:-1].T), start[-1].copy()
        model.fit(rows, codes, sample_weight=weights)
        return np.vstack([model.coef_.T, model.intercept_]).astype(np.float64)


def _with_first(margins: FloatArray) -> FloatArray:
    """Return margins of all classes; of two, the first class has margin 0."""
    return margins if margins.shape[1] > 1 else np.hstack([np.zeros_like(margins), margins])


def _probabilities(margins: FloatArray) -> FloatArray:
    """Return the probabilities of the classes."""
    return np.asarray(softmax(_with_first(margins), axis=1))


def _best_share(target: _Target, linear: FloatArray, grown: FloatArray) -> tuple[float, float]:
    """Return the least loss of a blend, and the share that the second has in it."""

    def loss(share: float) -> float:
        return target.loss(linear + share * (grown - linear))

    found = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": 0.01}).x
    return min((loss(share), share) for share in (0.0, float(found), 1.0))


class _Start(NamedTuple):
    """How much of the logistic regression trees start from, and the share of features a tree looks at."""

    linear: float
    features: float


_STARTS = (_Start(0.0, 0.5), _Start(1.0, 1.0))


class _Grower(NamedTuple):
    """Grows trees on all rows but those of a fold, from margins that the rows have before."""

    encoder: CategoryEncoder
    features: FloatArray
    target: _Target
    folds: IntArray
    parameters: dict[str, Any]
    rounds: int

    def start(self, linear: FloatArray, start: _Start) -> FloatArray:
        """Return the margins that trees start from."""
        return self.target.base + start.linear * (linear - self.target.base)

    def grow(self, fold: int, linear: FloatArray, start: _Start) -> tuple[Any, FloatArray]:
        """Return a booster, and the loss of the fold's rows before it and after each round.

        It stops when that loss has not fallen for some rounds.
        """
        has_weight, margins, data = self.target.weights > 0.0, self.start(linear, start), list[Any]()
        parameters = {**self.parameters, "feature_fraction": start.features}
        for part in (self.folds != fold, self.folds == fold):
            rows = np.flatnonzero(part & has_weight)
            labels = self.target.codes[rows].astype(np.float64)
            options = {"reference": data[0]} if data else {}
            options |= {"weight": self.target.weights[rows], "params": parameters}
            options |= {"init_score": margins[rows].ravel(order="F")}
            data.append(lightgbm_dataset(self.encoder, self.features[rows], labels, **options))
        losses: dict[str, Any] = {}
        watching = [lightgbm().early_stopping(_PATIENCE, verbose=False), lightgbm().record_evaluation(losses)]
        options = {"valid_sets": data[1:], "callbacks": watching}
        booster = lightgbm().train(parameters, data[0], self.rounds, **options)
        before = self.target.take(rows).loss(margins[rows])
        return booster, np.array([before, *losses["valid_0"][parameters["metric"]]])

    def trees(self, rounds: int, *boosters: Any) -> Forest:
        """Return the boosters' trees of so many rounds, or of all where there are fewer."""
        for booster in boosters:
            booster.best_iteration = rounds
        return lightgbm_forest(*boosters)


class StockModel(TableFeatures, FolderMixin, BaseEstimator):  # type: ignore[misc]
    """A logistic regression and LightGBM's trees for any number of classes, blended in logits.

    Numbers may bend at five knots in the logistic regression, and texts and codes have a column for each
    value. Rows in folds say how many trees there are and how they are blended; the models of all folds are
    averaged. A missing text is a separate category, and the trees learn which way a missing number goes.
    What `fit` did not see counts as unknown, with an `UnseenValuesWarning`.
    """

    classes_: NDArray[Any]
    basis_: _Basis
    coefficients_: FloatArray
    forest_: Forest | None
    tree_share_: float
    _libraries = ("lightgbm",)

    def __init__(
        self, n_estimators: int = 600, *, n_jobs: int | None = None, random_state: Seed = None
    ) -> None:
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: NDArray[Any], *, sample_weight: FloatArray | None = None) -> Self:
        """Fit the model, with five folds."""
        if sample_weight is not None and not (sample_weight > 0.0).all():
            indexes = np.flatnonzero(sample_weight > 0.0)
            X, y, sample_weight = _safe_indexing(X, indexes), y[indexes], sample_weight[indexes]
        _, codes = np.unique(y, return_inverse=True)
        self.cross_fit(X, y, assign_folds(codes, _FOLDS, as_seed(self.random_state)), sample_weight)
        return self

    def cross_fit(
        self, X: Any, y: NDArray[Any], folds: IntArray, sample_weight: FloatArray | None = None
    ) -> FloatArray:
        """Fit the model, and return each row's probabilities by the parts that its fold had no part in.

        Rows of weight 0 are predicted and not fitted on; `classes_` are those of the others.
        """
        rounds = as_count(self.n_estimators, "n_estimators")
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.classes_ = np.unique(y[weights > 0.0])
        codes = np.where(weights > 0.0, np.searchsorted(self.classes_, y), 0)
        target = _Target(codes, weights, len(self.classes_))
        features = self._learn_features(X, weights)
        self.basis_ = _Basis.learn(features[weights > 0.0], self.encoder_.text_places)
        fitted = self._fit_linear(features, target, folds)
        binary = target.n_outputs == 1
        parameters = {
            **lightgbm_parameters(as_seed(self.random_state), self.n_jobs),
            **_GROWN,
            "objective": "binary" if binary else "multiclass",
            "num_class": target.n_outputs,
            "metric": "binary_logloss" if binary else "multi_logloss",
        }
        grower = _Grower(self.encoder_, features, target, folds, parameters, rounds)
        trees, start = self._grow(grower, fitted)
        linear = np.stack(fitted)[folds, np.arange(folds.size)]
        grown = grower.start(linear, start) + trees
        _, share = _best_share(target, linear, grown)
        kept = 1.0 - share + share * start.linear
        self.coefficients_ = kept * self.coefficients_
        self.coefficients_[-1] += (1.0 - kept) * target.base
        self.tree_share_ = share / len(fitted)
        return _probabilities(linear + share * (grown - linear))

    def _fit_linear(self, features: FloatArray, target: _Target, folds: IntArray) -> list[FloatArray]:
        """Fit a logistic regression without each fold, and return all rows' margins by each."""
        columns = self.basis_(features)
        among = np.flatnonzero(target.weights > 0.0)
        start = target.take(among).fit_logistic(columns[among])
        models, margins = [], []
        for fold in range(int(folds.max()) + 1):
            inside = np.flatnonzero((folds != fold) & (target.weights > 0.0))
            models.append(target.take(inside).fit_logistic(columns[inside], start))
            margins.append(columns @ models[-1][:-1] + models[-1][-1])
        self.coefficients_ = np.mean(models, axis=0)
        return margins

    def _grow(self, grower: _Grower, fitted: list[FloatArray]) -> tuple[FloatArray, _Start]:
        """Grow each fold's trees; return the margins that they add to rows of the fold, and their start.

        Trees start from the logistic regression where that is clearly better in the first fold.
        """
        first, target = np.flatnonzero(grower.folds == 0), grower.target
        tried = []
        for start in _STARTS:
            booster, losses = grower.grow(0, fitted[0], start)
            grown = grower.start(fitted[0], start)[first]
            if rounds := int(np.argmin(losses)):
                grown = grown + grower.trees(rounds, booster).margins(grower.features[first])
            loss, _ = _best_share(target.take(first), fitted[0][first], grown)
            tried.append((loss, start, booster, losses))
        plain, linear = tried
        _, start, *of_first = linear if linear[0] < _CLEARLY * plain[0] else plain
        others = [grower.grow(fold, fitted[fold], start) for fold in range(1, len(fitted))]
        boosters, curves = zip(of_first, *others, strict=True)
        longest = max(losses.size for losses in curves)
        padded = [np.pad(losses, (0, longest - losses.size), mode="edge") for losses in curves]
        losses = np.bincount(grower.folds, target.weights) @ np.array(padded)
        rounds = int(np.argmax(losses <= _AS_GOOD * losses.min()))
        margins = np.zeros_like(fitted[0])
        self.forest_ = grower.trees(rounds, *boosters) if rounds else None
        for fold, booster in enumerate(boosters if rounds else ()):
            inside = np.flatnonzero(grower.folds == fold)
            margins[inside] = grower.trees(rounds, booster).margins(grower.features[inside])
        return margins, start

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class."""
        check_is_fitted(self)
        features = self._read_features(X)
        margins = self.basis_.margins(features, self.coefficients_)
        if self.forest_ is not None:
            margins += self.tree_share_ * self.forest_.margins(features)
        return _probabilities(margins)

    def _dump(self) -> tuple[dict[str, Any], Files]:
        described, content = (None, None) if self.forest_ is None else self.forest_.dump()
        learned = {
            **self._dump_features(),
            **dump_classes(self.classes_),
            "terms": [
                [term.centre, term.scale, term.knots.tolist(), term.levels.tolist(), term.is_text]
                for term in self.basis_.terms
            ],
            "coefficients": self.coefficients_.tolist(),
            "tree_share": self.tree_share_,
            "trees": described,
        }
        return learned, {} if content is None else {"model.trees": content}

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        self._restore_features(learned)
        self.classes_ = restore_classes(learned)
        terms = [
            _Terms(float(centre), float(scale), _numbers(knots), _numbers(levels), is_text is True)
            for centre, scale, knots, levels, is_text in learned["terms"]
        ]
        if len(terms) != self.n_features_in_ or not all(term.scale > 0.0 for term in terms):
            raise InputError(f"must be those of {self.n_features_in_} features", "terms")
        self.basis_ = _Basis(tuple(terms))
        self.coefficients_ = _numbers(learned["coefficients"])
        self.tree_share_ = float(_numbers(learned["tree_share"]))
        outputs = len(self.classes_) if len(self.classes_) != 2 else 1
        expected = (1 + sum(term.width for term in terms), outputs)
        if self.classes_.ndim != 1 or self.coefficients_.shape != expected:
            raise InputError(f"must have shape {expected}, got {self.coefficients_.shape}", "coefficients")
        self.forest_ = None
        if learned["trees"] is not None:
            self.forest_ = Forest.parse(learned["trees"], files["model.trees"])
            check_width(self.forest_, self.n_features_in_)
            if self.forest_.n_outputs != outputs:
                raise ValueError(f"the trees are not those of the classes {learned['classes']!r}")


def _numbers(values: Any) -> FloatArray:
    """Return finite numbers from a file, or raise a ValueError."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("numbers of a model must be finite")
    return array
