"""XGBoost behind the classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity._types import FloatArray
from localparity._validation import require
from localparity.models.trees._booster import Metric, Plan
from localparity.models.trees._classifier import BoostedClassifier
from localparity.models.trees._objective import MCDPObjective


class _XGBoost:
    """See `Library`."""

    objective_names: tuple[str, ...] = ("objective",)

    @property
    def _library(self) -> Any:
        return require("xgboost", extra="boost")

    def parameters(self, learning_rate: float, seed: int, n_jobs: int | None) -> dict[str, Any]:
        threads = {} if n_jobs is None else {"nthread": n_jobs}
        return {"learning_rate": learning_rate, "seed": seed, "tree_method": "hist", **threads}

    def dataset(self, X: Any, plan: Plan, training: Any) -> Any:
        if training is not None:
            return self._library.DMatrix(X, enable_categorical=True)
        bins = {"max_bin": plan.parameters["max_bin"]} if "max_bin" in plan.parameters else {}
        return self._library.QuantileDMatrix(X, enable_categorical=True, **bins)

    def train(
        self, training: Any, plan: Plan, objective: MCDPObjective, validation: tuple[Any, Metric] | None
    ) -> Any:
        # The name of the plain objective, whose place ours takes, lets the library turn margins into scores.
        score = 1.0 / (1.0 + np.exp(-plan.start))
        parameters = plan.parameters | {"objective": "binary:logistic", "base_score": score}
        parameters |= {"disable_default_eval_metric": True}
        watched: dict[str, Any] = {}
        if validation is not None:
            rows, metric = validation
            watched = {
                "evals": [(rows, "validation")],
                "custom_metric": lambda margins, _: ("loss", metric(margins)),
                "early_stopping_rounds": plan.patience,
                "verbose_eval": False,
            }
        booster = self._library.train(parameters, training, plan.rounds, obj=objective, **watched)
        return booster if validation is None else booster[: booster.best_iteration + 1]

    def margins(self, booster: Any, X: Any, start: float) -> FloatArray:
        rows = self._library.DMatrix(X, enable_categorical=True)
        return np.asarray(booster.predict(rows, output_margin=True), dtype=np.float64)

    def rounds(self, booster: Any) -> int:
        return int(booster.num_boosted_rounds())

    def dump(self, booster: Any) -> bytes:
        return bytes(booster.save_raw("json"))

    def parse(self, dumped: bytes) -> Any:
        booster = self._library.Booster()
        booster.load_model(bytearray(dumped))
        return booster


class LocalParityXGBClassifier(BoostedClassifier):
    """XGBoost's trees for two classes, with a penalty on the maximal local disparity, or a bound on it.

    The sensitive feature is needed to fit and not to predict. Columns may be numbers, with NaN where a value
    is missing, or categorical columns of a pandas data frame, as XGBoost takes them.

    Parameters
    ----------
    strength : float, optional
        The weight of the penalty, as in `MCDPObjective`; None is 0.2.
    max_mcdp : float, optional
        In place of a strength: the most accurate model is sought whose MCDP(epsilon) on a validation part
        is within this bound. Where none is found, a `BoundNotMetWarning` says so.
    max_mcdp_confidence : float, optional
        The upper end of the interval of this level must then be within the bound, in place of the estimate.
        It is not adjusted for the search, which keeps the best of several strengths.
    epsilon : float
        The half-width of the windows: of `max_mcdp` and of the penalty.
    criterion : str
        Which people are compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds".
    temperature : float
        The steepness of the sigmoid that stands for a step. Every tree sees all rows, so it can be steeper
        than where batches are small.
    search : str, optional
        "exact" or "soft", as in `MCDPObjective`; None is "soft", and "exact" with `epsilon`.
    sharpness : float
        The power of the soft search.
    n_estimators : int
        How many trees are grown, at most.
    learning_rate : float
        How much of each tree's step is taken.
    patience : int, optional
        After so many trees without a better one on the validation part, by loss plus strength x MCDP, no
        more are grown, and those after the best are dropped.
    validation_fraction : float
        The share of the rows held out where `max_mcdp` or `patience` needs a validation part.
    n_jobs : int, optional
        How many threads; None leaves it to the library.
    random_state : int, RandomState or None
        The same seed gives the same bits.
    booster_params : dict, optional
        Further parameters of XGBoost, such as ``{"max_depth": 4}``.

    Attributes
    ----------
    classes_ : ndarray
        The two classes; scores are those of the second.
    groups_ : tuple
        The groups' names.
    booster_ : xgboost.Booster
        The trees.
    strength_ : float
        The strength, given or found.
    n_estimators_ : int
        How many trees there are.
    trials_ : list of Trial
        With `max_mcdp`, the strengths that were tried and what the validation part says of them.
    bound_met_ : bool
        With `max_mcdp`, whether the bound is met.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> people = census.data.astype({"occupation": "category"})
    >>> model = lp.models.LocalParityXGBClassifier(strength=0.5, n_estimators=20, random_state=0)
    >>> model = model.fit(people, census.target, sensitive_features=census.sensitive_features)
    >>> model.predict_proba(people).shape
    (2000, 2)
    """

    _library = _XGBoost()
