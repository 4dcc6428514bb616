"""LightGBM and XGBoost behind the classifiers, and their trees as a `Forest`."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._files import parse_json
from localparity._types import FloatArray
from localparity._validation import InputError, require
from localparity.models._base import Pace
from localparity.models._encoding import CategoryEncoder
from localparity.models.trees._classifiers import (
    BoostedClassifier,
    Forest,
    Objective,
    TreeBackend,
    Watched,
    library_names,
)
from localparity.models.trees._kernels import BY_CATEGORY, MISSING_LEFT, ZERO_MISSING

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


def lightgbm_forest(*boosters: Any, start: float = 0.0) -> Forest:
    """Return the trees of boosters that were just grown, each up to the best where it stopped early."""
    texts = [booster.model_to_string().partition("\nend of trees")[0] for booster in boosters]
    head = texts[0].partition("\nTree=")[0]
    fields = [
        dict(re.findall("^(.+?)=(.*)$", tree, re.M))
        for text in texts
        for tree in re.split(r"^Tree=\d+$", text, flags=re.M)[1:]
    ]
    if any(tree.get("is_linear", "0") != "0" for tree in fields):
        raise InputError("must not ask for linear trees, which cannot be saved", "booster_params")
    trees, sets = [], [np.zeros(0, np.int64)]
    for tree in fields:
        bounds = _whole(tree, "cat_boundaries") if int(tree["num_cat"]) else np.zeros(1, np.int64)
        trees.append(_lightgbm_nodes(tree, len(sets) - 1))
        sets += np.split(_whole(tree, "cat_threshold"), bounds[1:-1])[: bounds.size - 1]
    outputs = int(re.findall(r"^num_tree_per_iteration=(\d+)$", head, re.M)[0])
    if re.search("^average_output$", head, re.M):
        for nodes in trees:
            nodes["value"][nodes["feature"] < 0] *= outputs / len(trees)
    return _joined(trees, sets, n_features=boosters[0].num_feature(), n_outputs=outputs, start=start)


def _whole(tree: dict[str, str], name: str) -> NDArray[np.int64]:
    return np.array(tree.get(name, "").split(), dtype=np.int64)


def _lightgbm_nodes(tree: dict[str, str], sets: int) -> dict[str, NDArray[Any]]:
    """Return the splits of a tree and then its leaves, after so many sets of categories."""
    leaves = np.array(tree["leaf_value"].split(), dtype=np.float64)
    values = np.array(tree.get("threshold", "").split(), dtype=np.float64)
    kinds, none = _whole(tree, "decision_type"), np.zeros(leaves.size)
    missing, by_category = kinds >> 2 & 3, kinds & 1 > 0
    # Where nothing was missing at the fit, a missing number is 0. A missing category is in no set.
    goes_left = np.where(missing > 0, kinds & 2 > 0, values >= 0.0) & ~by_category
    zero_missing = ~by_category & (missing == 1)
    flags = BY_CATEGORY * by_category + MISSING_LEFT * goes_left + ZERO_MISSING * zero_missing
    children = {}
    for name in ("left", "right"):
        child = _whole(tree, f"{name}_child")
        children[name] = np.concatenate([np.where(child < 0, values.size + ~child, child), none])
    return {
        "feature": np.concatenate([_whole(tree, "split_feature"), none - 1]),
        **children,
        "flags": np.concatenate([flags, none]),
        "value": np.concatenate([values + sets * by_category, leaves]),
    }


def _joined(trees: list[dict[str, NDArray[Any]]], sets: list[NDArray[Any]], **options: Any) -> Forest:
    """Return trees, whose children are counted from their roots, as one forest; the first set is empty."""
    sizes = np.array([tree["feature"].size for tree in trees])
    roots = np.cumsum(sizes) - sizes
    arrays = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    return Forest(
        feature=arrays["feature"].astype(np.int32),
        left=(arrays["left"] + np.repeat(roots, sizes)).astype(np.int32),
        right=(arrays["right"] + np.repeat(roots, sizes)).astype(np.int32),
        flags=arrays["flags"].astype(np.uint8),
        value=arrays["value"].astype(np.float64),
        roots=roots.astype(np.int32),
        bounds=np.cumsum([words.size for words in sets]).astype(np.int32),
        words=np.concatenate(sets).astype(np.uint32),
        **options,
    )


class _LightGBMBackend(TreeBackend):
    objective_names = OBJECTIVE_NAMES
    common_parameters = staticmethod(lightgbm_parameters)

    def dataset(self, features: Any, training: Any = None) -> Any:
        # The objective has the labels, but the library requires some too.
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
        return lightgbm().train(parameters, self.training, pace.steps, **options)

    def forest(self, booster: Any) -> Forest:
        return lightgbm_forest(booster, start=self.start)


class LocalParityLGBMClassifier(BoostedClassifier):
    """LightGBM's trees for two classes, with a penalty on the maximal local disparity, or a bound on it.

    It takes the same tables as `LocalParityXGBClassifier`, and needs the group to fit and not to predict.

    Parameters
    ----------
    strength, max_mcdp, confidence, epsilon, criterion, temperature
        The penalty or the bound, as in `LocalParityXGBClassifier`.
    n_estimators, learning_rate, patience, validation_fraction, n_jobs, random_state, verbose
        How the trees are grown, as in `LocalParityXGBClassifier`.
    booster_params : dict, optional
        Further parameters of LightGBM, such as ``{"num_leaves": 15}``.

    Attributes
    ----------
    booster_ : lightgbm.Booster
        What grew the trees; a model that was loaded has none.
    start_ : float
        The margin before the first tree, which the booster itself does not add.
    n_estimators_, classes_, groups_, strength_, text_features_, trials_, bound_met_, promise_
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

    _backend_type = _LightGBMBackend
    _libraries = ("lightgbm",)


def _xgboost() -> Any:
    return require("xgboost", extra="boost")


def xgboost_forest(booster: Any) -> Forest:
    """Return the trees of a booster that was just grown."""
    learner = parse_json(bytes(booster.save_raw("json")))["learner"]
    sets = [np.zeros(0, np.uint32)]
    trees = [_xgboost_nodes(tree, sets) for tree in learner["gradient_booster"]["model"]["trees"]]
    # The margin by the library's own steps, so that the bits are the same.
    score = np.float32(learner["learner_model_param"]["base_score"].strip("[]"))
    start = float(np.float32(-math.log(float(np.float32(1.0) / score - np.float32(1.0)))))
    return _joined(trees, sets, n_features=booster.num_features(), start=start, single=True)


def _xgboost_nodes(tree: dict[str, Any], sets: list[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the nodes of a tree from its root down, and add its sets of categories to the others."""
    order, left, right = [0], tree["left_children"], tree["right_children"]
    for node in order:
        order += [left[node], right[node]] if left[node] >= 0 else []
    places = np.zeros(len(left), np.int64)
    places[order] = np.arange(len(order))
    values = np.array(tree["split_conditions"], dtype=np.float32)
    splits, by_category = np.array(left) >= 0, np.zeros(len(left), dtype=bool)
    # A number goes left below the condition, which is: at or below the next lower number.
    values[splits] = np.nextafter(values[splits], np.float32(-np.inf))
    for node, first, size in zip(
        tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
    ):
        chosen = np.array(tree["categories"][first : first + size])
        words = np.zeros(chosen.max() // 32 + 1, np.uint32)
        np.bitwise_or.at(words, chosen // 32, np.uint32(1) << (chosen % 32).astype(np.uint32))
        by_category[node], values[node] = True, len(sets) - 1
        sets.append(words)
    # A category of the set goes right; here it goes left.
    goes_left = splits & (np.array(tree["default_left"], dtype=bool) != by_category)
    return {
        "feature": np.where(splits, tree["split_indices"], -1)[order],
        "left": places[np.where(by_category, right, left)[order]],
        "right": places[np.where(by_category, left, right)[order]],
        "flags": (BY_CATEGORY * by_category + MISSING_LEFT * goes_left)[order],
        "value": values[order],
    }


class _XGBoostBackend(TreeBackend):
    objective_names = ("objective", "booster")

    @staticmethod
    def common_parameters(seed: int, n_jobs: int | None) -> dict[str, Any]:
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

    def forest(self, booster: Any) -> Forest:
        return xgboost_forest(booster)


class LocalParityXGBClassifier(BoostedClassifier):
    """XGBoost's trees for two classes, with a penalty on the maximal local disparity, or a bound on it.

    The group is needed to fit and not to predict. Columns may be numbers or texts, and values may be missing:
    a missing text is a separate category, and the trees learn which way a missing number goes. What `fit`
    did not see counts as unknown, with an `UnseenValuesWarning`.

    Parameters
    ----------
    strength : float, optional
        The weight of the penalty, as in `MCDPObjective`; None is 0.2.
    max_mcdp, confidence, criterion, validation_fraction
        The bound, who is compared, and the rows held out, as in `LocalParityClassifier`.
    epsilon : float
        The half-width of the windows, of `max_mcdp` and of the penalty.
    temperature : float
        The steepness of the sigmoid that replaces a step. Every tree sees all rows, so it can be steeper
        than where batches are small.
    n_estimators, learning_rate : int and float
        The largest number of trees, and the share of each tree's step that is taken.
    patience : int, optional
        Stop after this many trees without a lower loss plus strength x MCDP on the validation part, and
        drop the trees after the best.
    n_jobs, random_state
        The number of threads, None leaves it to the library; and the seed, which gives the same bits.
    booster_params : dict, optional
        Further parameters of XGBoost, such as ``{"max_depth": 4}``.
    verbose : bool
        Whether to show a progress bar for each fit, with the MCDP of the validation part if there is one.

    Attributes
    ----------
    booster_ : xgboost.Booster
        What grew the trees; a model that was loaded has none.
    n_estimators_, start_ : int and float
        The number of trees, and the margin before the first.
    classes_, groups_, strength_, text_features_, trials_, bound_met_, promise_
        As in `LocalParityClassifier`.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> model = lp.models.LocalParityXGBClassifier(strength=0.5, n_estimators=20, random_state=0)
    >>> model = model.fit(census.data, census.target, sensitive_features=census.sensitive_features)
    >>> model.predict_proba(census.data).shape
    (2000, 2)
    """

    _backend_type = _XGBoostBackend
    _libraries = ("xgboost",)
