"""LightGBM behind the classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity._types import FloatArray
from localparity._validation import require
from localparity.models._backend import Pace
from localparity.models._encoding import CategoryEncoder
from localparity.models.trees._backend import Objective, TreeBackend, TreeModel, Watched, library_names
from localparity.models.trees._checks import check_lightgbm
from localparity.models.trees._classifier import BoostedClassifier

OBJECTIVE_NAMES = ("objective", "objective_type", "app", "application", "loss")
"""LightGBM's names for the parameter that the estimators set."""


def lightgbm() -> Any:
    """Return the library."""
    return require("lightgbm", extra="boost")


def lightgbm_parameters(seed: int, n_jobs: int | None) -> dict[str, Any]:
    """Return LightGBM's parameters for trees that depend on nothing but the rows and the seed."""
    threads = {} if n_jobs is None else {"num_threads": n_jobs}
    fixed = {"deterministic": True, "force_row_wise": True, "verbose": -1}
    return {"seed": seed, **fixed, **threads}


def lightgbm_dataset(
    encoder: CategoryEncoder, features: FloatArray, labels: FloatArray, **options: Any
) -> Any:
    """Return encoded rows as LightGBM trains on them."""
    names = library_names(encoder)
    named = {} if names is None else {"feature_name": names}
    places = encoder.text_places
    return lightgbm().Dataset(features, labels, categorical_feature=places, **named, **options)


def parse_lightgbm(content: bytes) -> Any:
    """Return the booster that a text describes, once its trees are checked."""
    text = content.decode()
    check_lightgbm(text)
    return lightgbm().Booster(model_str=text)


class _LightGBMModel(TreeModel):
    def margins(self, features: Any) -> FloatArray:
        return np.asarray(self.booster.predict(features, raw_score=True), dtype=np.float64) + self.start

    def n_trees(self) -> int:
        return int(self.booster.num_trees())

    def dump_booster(self) -> bytes:
        return str(self.booster.model_to_string()).encode()

    @staticmethod
    def parse_booster(content: bytes) -> Any:
        return parse_lightgbm(content)


class _LightGBMBackend(TreeBackend):
    model_type = _LightGBMModel
    objective_names = OBJECTIVE_NAMES

    def common_parameters(self, seed: int, n_jobs: int | None) -> dict[str, Any]:
        return lightgbm_parameters(seed, n_jobs)

    def dataset(self, features: Any, training: Any = None) -> Any:
        # The objective has the labels; the library wants some all the same.
        blank, start = np.zeros(features.shape[0]), np.full(features.shape[0], self.start)
        options = {"reference": training, "init_score": start, "params": dict(self.parameters)}
        return lightgbm_dataset(self.classifier.encoder_, features, blank, **options)

    def grow(self, objective: Objective, pace: Pace, watched: Watched | None) -> Any:
        options: dict[str, Any] = {}
        if watched is not None:
            rows, loss = watched
            options = {"valid_sets": [rows], "feval": lambda margins, _: ("loss", loss(margins), False)}
            if self.patience is not None:
                options["callbacks"] = [lightgbm().early_stopping(self.patience, verbose=False)]
        parameters = self.parameters | {"learning_rate": pace.learning_rate}
        parameters |= {"objective": objective, "metric": "none"}
        booster = lightgbm().train(parameters, self.training, pace.steps, **options)
        if self.patience is None:
            return booster
        return lightgbm().Booster(model_str=booster.model_to_string())


class LocalParityLGBMClassifier(BoostedClassifier):
    """LightGBM's trees for two classes, with a penalty on the maximal local disparity, or a bound on it.

    The sensitive feature is needed to fit and not to predict. Columns may be numbers or texts, as they are
    or as categories of a pandas data frame, and values may be missing: a missing text is a category of its
    own, and the trees learn which way a missing number goes. What `fit` did not see counts as unknown, with
    an `UnseenValuesWarning`.

    Parameters
    ----------
    strength, max_mcdp, confidence, epsilon, criterion, temperature, search, sharpness
        The penalty or the bound, as in `LocalParityXGBClassifier`.
    n_estimators, learning_rate, patience, validation_fraction, n_jobs, random_state
        How the trees are grown, as in `LocalParityXGBClassifier`.
    booster_params : dict, optional
        Further parameters of LightGBM, such as ``{"num_leaves": 15}``.
    verbose : bool
        Whether to show a progress bar, as in `LocalParityXGBClassifier`.

    Attributes
    ----------
    booster_ : lightgbm.Booster
        The trees.
    start_ : float
        The margin before the first tree, which the booster itself does not add.
    classes_, groups_, strength_, n_estimators_, text_features_, trials_, bound_met_, promise_
        As in `LocalParityXGBClassifier`.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> model = lp.models.LocalParityLGBMClassifier(max_mcdp=0.2, n_estimators=20, random_state=0)
    >>> model = model.fit(census.data, census.target, sensitive_features=census.sensitive_features)
    >>> model.bound_met_
    True
    """

    _model_type = _LightGBMModel
    _backend_type = _LightGBMBackend
    _libraries = ("lightgbm",)
