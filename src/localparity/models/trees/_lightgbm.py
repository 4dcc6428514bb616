"""LightGBM behind the classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity._types import FloatArray
from localparity._validation import require
from localparity.models.trees._booster import Metric, Plan
from localparity.models.trees._classifier import BoostedClassifier
from localparity.models.trees._objective import MCDPObjective


class _LightGBM:
    """See `Library`."""

    objective_names: tuple[str, ...] = ("objective", "objective_type", "app", "application", "loss")

    @property
    def _library(self) -> Any:
        return require("lightgbm", extra="boost")

    def parameters(self, learning_rate: float, seed: int, n_jobs: int | None) -> dict[str, Any]:
        threads = {} if n_jobs is None else {"num_threads": n_jobs}
        fixed = {"deterministic": True, "force_row_wise": True, "verbose": -1}
        return {"learning_rate": learning_rate, "seed": seed, **fixed, **threads}

    def dataset(self, X: Any, plan: Plan, training: Any) -> Any:
        # The labels are the objective's; the library wants some.
        blank, start = np.zeros(X.shape[0]), np.full(X.shape[0], plan.start)
        options = {"reference": training, "init_score": start, "params": dict(plan.parameters)}
        return self._library.Dataset(X, blank, **options)

    def train(
        self, training: Any, plan: Plan, objective: MCDPObjective, validation: tuple[Any, Metric] | None
    ) -> Any:
        watched: dict[str, Any] = {}
        if validation is not None:
            rows, metric = validation
            watched = {
                "valid_sets": [rows],
                "feval": lambda margins, _: ("loss", metric(margins), False),
                "callbacks": [self._library.early_stopping(plan.patience, verbose=False)],
            }
        parameters = plan.parameters | {"objective": objective, "metric": "none"}
        booster = self._library.train(parameters, training, plan.rounds, **watched)
        return booster if validation is None else self.parse(self.dump(booster))

    def margins(self, booster: Any, X: Any, start: float) -> FloatArray:
        return np.asarray(booster.predict(X, raw_score=True), dtype=np.float64) + start

    def rounds(self, booster: Any) -> int:
        return int(booster.num_trees())

    def dump(self, booster: Any) -> bytes:
        return str(booster.model_to_string()).encode()

    def parse(self, dumped: bytes) -> Any:
        return self._library.Booster(model_str=dumped.decode())


class LocalParityLGBMClassifier(BoostedClassifier):
    """LightGBM's trees for two classes, with a penalty on the maximal local disparity, or a bound on it.

    The sensitive feature is needed to fit and not to predict. Columns may be numbers, with NaN where a value
    is missing, or categorical columns of a pandas data frame, as LightGBM takes them.

    Parameters
    ----------
    strength, max_mcdp, max_mcdp_confidence, epsilon, criterion, temperature, search, sharpness
        The penalty or the bound, as for `LocalParityXGBClassifier`.
    n_estimators, learning_rate, patience, validation_fraction, n_jobs, random_state
        How the trees are grown, as for `LocalParityXGBClassifier`.
    booster_params : dict, optional
        Further parameters of LightGBM, such as ``{"num_leaves": 15}``.

    Attributes
    ----------
    classes_, groups_, strength_, n_estimators_, trials_, bound_met_
        As those of `LocalParityXGBClassifier`.
    booster_ : lightgbm.Booster
        The trees.
    start_ : float
        The margin before the first tree, which the booster itself does not add.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> people = census.data.astype({"occupation": "category"})
    >>> model = lp.models.LocalParityLGBMClassifier(max_mcdp=0.2, n_estimators=20, random_state=0)
    >>> model = model.fit(people, census.target, sensitive_features=census.sensitive_features)
    >>> model.bound_met_
    True
    """

    _library = _LightGBM()
