"""XGBoost behind the classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity._types import FloatArray
from localparity._validation import require
from localparity.models._backend import Pace
from localparity.models.trees._backend import Objective, TreeBackend, TreeModel, Watched, library_names
from localparity.models.trees._checks import check_xgboost
from localparity.models.trees._classifier import BoostedClassifier


def _xgboost() -> Any:
    return require("xgboost", extra="boost")


class _XGBoostModel(TreeModel):
    def margins(self, features: Any) -> FloatArray:
        names, types = self.booster.feature_names, self.booster.feature_types
        rows = _xgboost().DMatrix(features, feature_names=names, feature_types=types, enable_categorical=True)
        return np.asarray(self.booster.predict(rows, output_margin=True), dtype=np.float64)

    def n_trees(self) -> int:
        return int(self.booster.num_boosted_rounds())

    def dump_booster(self) -> bytes:
        return bytes(self.booster.save_raw("json"))

    @staticmethod
    def parse_booster(content: bytes) -> Any:
        check_xgboost(content)
        booster = _xgboost().Booster()
        booster.load_model(bytearray(content))
        return booster


class _XGBoostBackend(TreeBackend):
    model_type = _XGBoostModel
    objective_names = ("objective",)

    def common_parameters(self, seed: int, n_jobs: int | None) -> dict[str, Any]:
        threads = {} if n_jobs is None else {"nthread": n_jobs}
        return {"seed": seed, "tree_method": "hist", **threads}

    def dataset(self, features: Any, training: Any = None) -> Any:
        encoder = self.classifier.encoder_
        types = ["q" if known is None else "c" for known in encoder.categories_]
        options: dict[str, Any] = {"feature_names": library_names(encoder), "feature_types": types}
        if training is not None:
            return _xgboost().DMatrix(features, enable_categorical=True, **options)
        bins = {"max_bin": self.parameters["max_bin"]} if "max_bin" in self.parameters else {}
        return _xgboost().QuantileDMatrix(features, enable_categorical=True, **bins, **options)

    def grow(self, objective: Objective, pace: Pace, watched: Watched | None) -> Any:
        # Ours replaces the plain objective, whose name lets the library turn margins into scores.
        score = 1.0 / (1.0 + np.exp(-self.start))
        parameters = self.parameters | {"learning_rate": pace.learning_rate}
        parameters |= {"objective": "binary:logistic", "base_score": score}
        parameters |= {"disable_default_eval_metric": True}
        options: dict[str, Any] = {}
        if watched is not None:
            rows, loss = watched
            options = {
                "evals": [(rows, "validation")],
                "custom_metric": lambda margins, _: ("loss", loss(margins)),
                "early_stopping_rounds": self.patience,
                "verbose_eval": False,
            }
        booster = _xgboost().train(parameters, self.training, pace.steps, obj=objective, **options)
        return booster if self.patience is None else booster[: booster.best_iteration + 1]


class LocalParityXGBClassifier(BoostedClassifier):
    """XGBoost's trees for two classes, with a penalty on the maximal local disparity, or a bound on it.

    The sensitive feature is needed to fit and not to predict. Columns may be numbers or texts, as they are
    or as categories of a pandas data frame, and values may be missing: a missing text is a category of its
    own, and the trees learn which way a missing number goes. What `fit` did not see counts as unknown, with
    an `UnseenValuesWarning`.

    Parameters
    ----------
    strength : float, optional
        The weight of the penalty, as in `MCDPObjective`; None is 0.2.
    max_mcdp : float, optional
        In place of a strength: find the most accurate model whose MCDP(epsilon) on a validation part is
        within this bound. If there is none, a `BoundNotMetWarning` says so.
    confidence : float, optional
        Promise `max_mcdp` for the population, with this probability. Strengths found on the validation part
        are tested on people held out of everything else, those with the lowest MCDP first, up to the first
        that is not known to be within the bound; the most accurate of those before it is kept. That holds
        however many strengths are tested (fixed-sequence testing; Angelopoulos et al. 2021, "Learn then
        Test"), if the rows are an independent sample; with weights approximately, as in `mcdp_interval`.
    epsilon : float
        The half-width of the windows, of `max_mcdp` and of the penalty.
    criterion : str
        Who is compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds".
    temperature : float
        The steepness of the sigmoid that replaces a step. Every tree sees all rows, so it can be steeper
        than where batches are small.
    search : str, optional
        "exact" or "soft", as in `MCDPObjective`; None is "soft", or "exact" where `epsilon` is above 0.
    sharpness : float
        The power of the soft search.
    n_estimators : int
        The largest number of trees.
    learning_rate : float
        The share of each tree's step that is taken.
    patience : int, optional
        Stop after this many trees without a lower loss plus strength x MCDP on the validation part, and
        drop the trees after the best.
    validation_fraction : float
        The share of the rows held out where `max_mcdp` or `patience` needs a validation part; with a
        `confidence` it is held out for the test first, and the same share of the rest for validation.
    n_jobs : int, optional
        The number of threads; None leaves it to the library.
    random_state : int, Generator or None
        The same seed gives the same bits.
    booster_params : dict, optional
        Further parameters of XGBoost, such as ``{"max_depth": 4}``.
    verbose : bool
        Whether to show a progress bar for each fit, with the MCDP of the validation part if there is one.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes; scores are probabilities of the second.
    groups_ : tuple
        The groups' names.
    booster_ : xgboost.Booster
        The trees.
    start_ : float
        The margin before the first tree.
    strength_ : float
        The strength, given or found.
    n_estimators_ : int
        The number of trees.
    text_features_ : list of str
        The names of the text columns.
    trials_ : list of Trial
        With `max_mcdp`, the strengths that were tried; with a `confidence`, those that were tested, in order.
    bound_met_ : bool
        With `max_mcdp`, whether the bound is met; with a `confidence`, whether it is promised.
    promise_ : str
        What is known of the bound and for whom, in a sentence.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> model = lp.models.LocalParityXGBClassifier(strength=0.5, n_estimators=20, random_state=0)
    >>> model = model.fit(census.data, census.target, sensitive_features=census.sensitive_features)
    >>> model.predict_proba(census.data).shape
    (2000, 2)
    """

    _model_type = _XGBoostModel
    _backend_type = _XGBoostBackend
    _libraries = ("xgboost",)
