"""LightGBM and XGBoost behind the classifiers, and the checks of their saved trees.

Trees are checked before a library reads them: it may crash or hang on others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np

from localparity._io._files import parse_json
from localparity._types import FloatArray
from localparity._validation import as_number, require
from localparity.models._base import Pace
from localparity.models._encoding import CategoryEncoder
from localparity.models.trees._classifiers import (
    BoostedClassifier,
    Objective,
    TreeBackend,
    TreeModel,
    Watched,
    library_names,
)

_TREE = re.compile(r"^Tree=(\d+)\n", re.MULTILINE)
_END = "end of trees"
_WHOLE = re.compile(r"-?\d{1,10}")
_MOST = 2**31


def check_lightgbm(text: str) -> None:
    """Raise a ValueError unless a text has the trees that its header tells of, each of them whole."""
    starts = [match.start() for match in _TREE.finditer(text)]
    end = text.find(_END)
    if not starts or end < starts[-1] or text.count(_END) != 1 or "\0" in text or "\r" in text:
        raise ValueError(f"a LightGBM model must have trees, followed by {_END!r}")
    head = _fields(text[: starts[0]])
    n_features = _one(head, "max_feature_idx") + 1
    for name in ("feature_names", "feature_infos"):
        _check_size(head[name].split(" "), n_features, name)
    classes = _one(head, "num_class", at_least=1)
    if _one(head, "num_tree_per_iteration") != classes or len(starts) % classes:
        raise ValueError(f"num_class must go with {len(starts)} trees, got {classes}")
    sizes = _wholes(head, "tree_sizes", len(starts))
    parts = [text[start:after] for start, after in zip(starts, (*starts[1:], end), strict=True)]
    if sizes != [len(part.encode()) for part in parts]:
        raise ValueError(f"tree_sizes must be the sizes of the trees, got {head['tree_sizes']!r}")
    for number, part in enumerate(parts):
        fields = _fields(part)
        if _one(fields, "Tree") != number:
            raise ValueError(f"Tree={fields['Tree']} must be Tree={number}")
        _check_lightgbm_tree(fields, n_features)


def _check_lightgbm_tree(fields: Mapping[str, str], n_features: int) -> None:
    leaves = _one(fields, "num_leaves", at_least=1)
    splits, categories = leaves - 1, _one(fields, "num_cat")
    for name in ("leaf_value", "leaf_weight", "leaf_count", "leaf_const"):
        if name == "leaf_value" or fields.get(name):
            _numbers(fields, name, leaves)
    for name in ("threshold", "split_gain", "internal_value", "internal_weight", "internal_count"):
        if (splits and name == "threshold") or fields.get(name):
            # A split of the missing values from all others has an infinite threshold.
            _numbers(fields, name, splits, finite=False)
    if fields.get("is_linear", "0") != "0":
        terms = sum(_wholes(fields, "num_features", leaves, most=n_features))
        _wholes(fields, "leaf_features", terms, most=n_features - 1)
        _numbers(fields, "leaf_coeff", terms)
    if not splits:
        return
    _wholes(fields, "split_feature", splits, most=n_features - 1)
    kinds = _wholes(fields, "decision_type", splits, most=255)
    left, right = (_wholes(fields, name, splits, least=-leaves) for name in ("left_child", "right_child"))
    # A leaf is a negative number; here it comes after the splits.
    children = [
        [child if child >= 0 else splits + ~child for child in pair] for pair in zip(left, right, strict=True)
    ]
    if count_reached(children + [[]] * leaves) != splits + leaves:
        raise ValueError(f"left_child and right_child must make a tree of {leaves} leaves")
    if categories:
        _check_categories(fields, categories)
    chosen = [
        float(value) for value, kind in zip(fields["threshold"].split(), kinds, strict=True) if kind & 1
    ]
    if any(not (value.is_integer() and 0 <= value < categories) for value in chosen):
        raise ValueError(f"threshold must be one of {categories} sets of categories, got {chosen}")


def _check_categories(fields: Mapping[str, str], categories: int) -> None:
    bounds = _wholes(fields, "cat_boundaries", categories + 1)
    if bounds[0] != 0 or any(after < before for before, after in pairwise(bounds)):
        raise ValueError(f"cat_boundaries must rise from 0, got {bounds}")
    _wholes(fields, "cat_threshold", bounds[-1], most=2**32 - 1)


def check_xgboost(content: bytes) -> None:
    """Raise a ValueError unless JSON has the trees that it tells of, each of them whole."""
    learner = parse_json(content)["learner"]
    n_features = int(learner["learner_model_param"]["num_feature"])
    for name in ("feature_names", "feature_types"):
        if learner.get(name):
            _check_size(learner[name], n_features, name)
    booster = learner["gradient_booster"]
    if booster["name"] != "gbtree":
        raise ValueError(f"the booster must be gbtree, got {booster['name']!r}")
    model = booster["model"]
    trees = model["trees"]
    _check_size(trees, int(model["gbtree_model_param"]["num_trees"]), "trees")
    if model["tree_info"] != [0] * len(trees):
        raise ValueError("tree_info must be 0 for each tree")
    rounds = model["iteration_indptr"]
    if rounds[0] != 0 or rounds[-1] != len(trees) or rounds != sorted(map(_whole, rounds)):
        raise ValueError(f"iteration_indptr must rise from 0 to {len(trees)}, got {rounds}")
    for number, tree in enumerate(trees):
        _check_xgboost_tree(tree, number, n_features)


def _check_xgboost_tree(tree: Mapping[str, Any], number: int, n_features: int) -> None:
    parameters = {name: int(value) for name, value in tree["tree_param"].items()}
    nodes, deleted = parameters["num_nodes"], parameters["num_deleted"]
    if (tree["id"], parameters["num_feature"], parameters["size_leaf_vector"]) != (
        number,
        n_features,
        1,
    ) or nodes < 1:
        raise ValueError(f"tree {number} must have its number, {n_features} features and one value in a leaf")
    for name in ("left_children", "right_children", "parents", "split_indices", "default_left", "split_type"):
        _check_size(tree[name], nodes, name)
        for value in tree[name]:
            _whole(value)
    for name in ("base_weights", "loss_changes", "split_conditions", "sum_hessian"):
        _check_size(tree[name], nodes, name)
        for value, child in zip(tree[name], tree["left_children"], strict=True):
            _check_number(value, name, finite=child == -1)
    left, right = tree["left_children"], tree["right_children"]
    children = [[] if one == -1 == other else [one, other] for one, other in zip(left, right, strict=True)]
    if count_reached(children) != nodes - deleted:
        raise ValueError(f"left_children and right_children must make a tree of {nodes - deleted} nodes")
    for node, pair in enumerate(children):
        if pair and not 0 <= tree["split_indices"][node] < n_features:
            raise ValueError(f"split_indices must be below {n_features}, got {tree['split_indices'][node]}")
        if any(tree["parents"][child] != node for child in pair):
            raise ValueError(f"the parent of nodes {pair} must be {node}")
    _check_xgboost_categories(tree, nodes)


def _check_xgboost_categories(tree: Mapping[str, Any], nodes: int) -> None:
    categories = [_whole(value) for value in tree["categories"]]
    split = [_whole(value) for value in tree["categories_nodes"]]
    starts, sizes = (
        [_whole(value) for value in tree[f"categories_{name}"]] for name in ("segments", "sizes")
    )
    _check_size(starts, len(split), "categories_segments")
    _check_size(sizes, len(split), "categories_sizes")
    by_category = [node for node in range(nodes) if tree["split_type"][node] == 1]
    inside = all(
        start >= 0 and 0 < size <= len(categories) - start for start, size in zip(starts, sizes, strict=True)
    )
    if split != by_category or not inside or any(not 0 <= value < 2**24 for value in categories):
        raise ValueError("categories must be those of the nodes that split by them")


def count_reached(children: Sequence[Sequence[int]]) -> int:
    """The number of nodes from the first one down; -1 where one is reached twice or does not exist."""
    reached, waiting = {0}, [0]
    while waiting:
        for child in children[waiting.pop()]:
            if child in reached or not 0 <= child < len(children):
                return -1
            reached.add(child)
            waiting.append(child)
    return len(reached)


def _fields(text: str) -> dict[str, str]:
    """The values by their names, a line each."""
    pairs = [line.partition("=")[::2] for line in text.split("\n") if "=" in line]
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a field must be given once")
    return dict(pairs)


def _one(fields: Mapping[str, str], name: str, *, at_least: int = 0) -> int:
    return _wholes(fields, name, 1, least=at_least)[0]


def _wholes(
    fields: Mapping[str, str], name: str, size: int, *, least: int = 0, most: int = _MOST
) -> list[int]:
    """The whole numbers of a field, between a least and a largest one."""
    texts = fields[name].split()
    _check_size(texts, size, name)
    for text in texts:
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
            raise ValueError(f"{name} must be whole numbers between {least} and {most}, got {text!r}")
    return [int(text) for text in texts]


def _numbers(fields: Mapping[str, str], name: str, size: int, *, finite: bool = True) -> None:
    texts = fields[name].split()
    _check_size(texts, size, name)
    for text in texts:
        _check_number(float(text.replace("_", "x")), name, finite=finite)


def _check_number(value: Any, name: str, *, finite: bool) -> None:
    """Check a number, which may be infinite only in a split."""
    if type(value) not in (int, float) or math.isnan(value) or (finite and math.isinf(value)):
        raise ValueError(f"{name} must be {'finite ' if finite else ''}numbers, got {value!r}")


def _whole(value: Any) -> int:
    if type(value) is not int or not -_MOST < value < 2**32:
        raise ValueError(f"a tree must have whole numbers, got {value!r}")
    return value


def _check_size(values: Iterable[Any], size: int, name: str) -> None:
    n_values = len(list(values))
    if n_values != size:
        raise ValueError(f"{name} must have {size} values, got {n_values}")


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

    def dump(self) -> tuple[dict[str, Any], bytes]:
        return {"start": self.start}, str(self.booster.model_to_string()).encode()

    @classmethod
    def parse(cls, described: dict[str, Any], content: bytes) -> Self:
        return cls(parse_lightgbm(content), as_number(described["start"], "start"))


class _LightGBMBackend(TreeBackend):
    model_type = _LightGBMModel
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
        booster = lightgbm().train(parameters, self.training, pace.steps, **options)
        if self.patience is None:
            return booster
        return lightgbm().Booster(model_str=booster.model_to_string())


class LocalParityLGBMClassifier(BoostedClassifier):
    """LightGBM's trees for two classes, with a penalty on the maximal local disparity, or a bound on it.

    It takes the same tables as `LocalParityXGBClassifier`, and needs the group to fit and not to predict.

    Parameters
    ----------
    strength, max_mcdp, confidence, epsilon, criterion, temperature, search, sharpness
        The penalty or the bound, as in `LocalParityXGBClassifier`.
    n_estimators, learning_rate, patience, validation_fraction, n_jobs, random_state, verbose
        How the trees are grown, as in `LocalParityXGBClassifier`.
    booster_params : dict, optional
        Further parameters of LightGBM, such as ``{"num_leaves": 15}``.

    Attributes
    ----------
    booster_ : lightgbm.Booster
        The trees.
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

    _model_type = _LightGBMModel
    _backend_type = _LightGBMBackend
    _libraries = ("lightgbm",)


def _xgboost() -> Any:
    return require("xgboost", extra="boost")


class _XGBoostModel(TreeModel):
    def margins(self, features: Any) -> FloatArray:
        names, types = self.booster.feature_names, self.booster.feature_types
        rows = _xgboost().DMatrix(features, feature_names=names, feature_types=types, enable_categorical=True)
        return np.asarray(self.booster.predict(rows, output_margin=True), dtype=np.float64)

    def n_trees(self) -> int:
        return int(self.booster.num_boosted_rounds())

    def dump(self) -> tuple[dict[str, Any], bytes]:
        return {"start": self.start}, bytes(self.booster.save_raw("json"))

    @classmethod
    def parse(cls, described: dict[str, Any], content: bytes) -> Self:
        check_xgboost(content)
        booster = _xgboost().Booster()
        booster.load_model(bytearray(content))
        return cls(booster, as_number(described["start"], "start"))


class _XGBoostBackend(TreeBackend):
    model_type = _XGBoostModel
    objective_names = ("objective",)

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


class LocalParityXGBClassifier(BoostedClassifier):
    """XGBoost's trees for two classes, with a penalty on the maximal local disparity, or a bound on it.

    The group is needed to fit and not to predict. Columns may be numbers or texts, and values may be missing:
    a missing text is a category of its own, and the trees learn which way a missing number goes. What `fit`
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
    search : str, optional
        "exact" or "soft", as in `MCDPObjective`; None is "soft", or "exact" where `epsilon` is above 0.
    sharpness : float
        The power of the soft search.
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
    booster_, n_estimators_, start_ : xgboost.Booster, int and float
        The trees, their number, and the margin before the first.
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

    _model_type = _XGBoostModel
    _backend_type = _XGBoostBackend
    _libraries = ("xgboost",)
