"""Trees that are whole pass; others are refused before a library reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from localparity.datasets import make_census
from localparity.models import LocalParityLGBMClassifier, LocalParityXGBClassifier
from localparity.models.trees._boosters import check_lightgbm, check_xgboost
from localparity.models.trees._stock import StockTrees

CENSUS = make_census(300, random_state=0)
GROUPS = CENSUS.sensitive_features


def lightgbm_text(**options: Any) -> str:
    model = LocalParityLGBMClassifier(0.1, n_estimators=2, random_state=0, booster_params=options)
    names = {"hours_per_week": "hours per week", "education_years": "années"}
    model.fit(CENSUS.data.rename(columns=names), CENSUS.target, sensitive_features=GROUPS)
    return str(model.booster_.model_to_string())


def xgboost_json(**options: Any) -> dict[str, Any]:
    model = LocalParityXGBClassifier(0.1, n_estimators=2, random_state=0, booster_params=options)
    model.fit(CENSUS.data, CENSUS.target, sensitive_features=GROUPS)
    found: dict[str, Any] = json.loads(bytes(model.booster_.save_raw("json")))
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_leaves": 2},
        {"min_data_in_leaf": 300},
        {"min_data_per_group": 5, "cat_smooth": 1, "max_cat_to_onehot": 1, "min_data_in_leaf": 5},
        {"max_cat_to_onehot": 10, "min_data_in_leaf": 5},
        {"linear_tree": True},
    ],
)
def test_trees_of_lightgbm_pass(options: dict[str, Any]) -> None:
    check_lightgbm(lightgbm_text(**options))


def test_trees_for_several_classes_pass() -> None:
    jobs = StockTrees(n_estimators=2, random_state=0)
    jobs.fit(CENSUS.data.drop(columns="occupation"), CENSUS.data["occupation"].astype(str))
    check_lightgbm(jobs.booster_.model_to_string())


@pytest.mark.parametrize(
    "options", [{}, {"max_depth": 1}, {"gamma": 5.0}, {"max_cat_to_onehot": 1}, {"min_child_weight": 1e6}]
)
def test_trees_of_xgboost_pass(options: dict[str, Any]) -> None:
    check_xgboost(json.dumps(xgboost_json(**options)).encode())


PLAIN = lightgbm_text()


@pytest.mark.parametrize(
    ("pattern", "by", "message"),
    [
        (r"num_leaves=\d+", "num_leaves=2147483647", "must have 2147483647 values"),
        (r"num_leaves=\d+", "num_leaves=0", "num_leaves must be"),
        (r"num_leaves=\d+", "num_leaves=-1", "num_leaves must be"),
        (r"left_child=\S+", "left_child=0", "make a tree"),
        (r"left_child=\S+", "left_child=999", "make a tree"),
        (r"left_child=\S+", "left_child=-999", "left_child must be"),
        (r"left_child=\S+ ", "left_child=", "left_child must have"),
        (r"split_feature=\S+", "split_feature=4", "split_feature must be .* 3, got '4'"),
        (r"split_feature=\S+", "split_feature=-1", "split_feature must be"),
        (r"threshold=\S+", "threshold=nan", "threshold must be numbers, got nan"),
        (r"leaf_value=\S+", "leaf_value=nan", "leaf_value must be finite numbers, got nan"),
        (r"threshold=\S+", "threshold=x", "could not convert"),
        (r"leaf_value=\S+", "leaf_value=inf", "leaf_value must be finite"),
        (r"decision_type=\S+", "decision_type=1", "threshold must be one of 0 sets"),
        (r"num_cat=0", "num_cat=1000000", "cat_boundaries"),
        (r"max_feature_idx=\d+", "max_feature_idx=900000000", "feature_names must have 900000001"),
        (r"num_class=1", "num_class=7", "num_class"),
        (r"tree_sizes=\d+", "tree_sizes=99999999", "tree_sizes"),
        (r"Tree=1\n", "Tree=7\n", "Tree=7 must be Tree=1"),
        (r"end of trees", "", "end of trees"),
        (r"shrinkage=", "num_leaves=", "once"),
    ],
)
def test_a_damaged_text_is_refused(pattern: str, by: str, message: str) -> None:
    changed = re.sub(pattern, by, PLAIN, count=1)
    if "tree_sizes" not in by and "end" not in pattern:  # those that fit the change
        starts = [found.start() for found in re.finditer(r"^Tree=\d+\n", changed, re.M)]
        ends = [*starts[1:], changed.index("end of trees")]
        sizes = [len(changed[start:end].encode()) for start, end in zip(starts, ends, strict=True)]
        changed = re.sub(r"tree_sizes=.*", f"tree_sizes={' '.join(map(str, sizes))}", changed)
    with pytest.raises((ValueError, KeyError), match=message):
        check_lightgbm(changed)


def tree_of(model: dict[str, Any]) -> Any:
    return model["learner"]["gradient_booster"]["model"]["trees"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: tree_of(model)["left_children"].__setitem__(0, 0), "make a tree"),
        (lambda model: tree_of(model)["left_children"].__setitem__(0, 9999), "make a tree"),
        (lambda model: tree_of(model)["left_children"].__setitem__(1, -1), "make a tree"),
        (lambda model: tree_of(model)["left_children"].pop(), "left_children must have"),
        (lambda model: tree_of(model)["split_indices"].__setitem__(0, 4), "split_indices must be below 4, got 4"),
        (lambda model: tree_of(model)["split_conditions"].__setitem__(0, float("nan")), "split_conditions must be numbers"),
        (lambda model: tree_of(model)["split_conditions"].__setitem__(0, "x"), "split_conditions must be numbers"),
        (lambda model: tree_of(model)["split_conditions"].__setitem__(-1, float("inf")), "must be finite"),
        (lambda model: tree_of(model)["tree_param"].__setitem__("num_nodes", "2147483647"), "must have 2147483647"),
        (lambda model: tree_of(model)["tree_param"].__setitem__("num_feature", "9"), "4 features"),
        (lambda model: tree_of(model)["parents"].__setitem__(1, 3), "parent of nodes"),
        (lambda model: tree_of(model)["categories_sizes"].append(7), "categories_sizes must have"),
        (lambda model: tree_of(model)["categories"].clear(), "categories must be"),
        (lambda model: model["learner"]["learner_model_param"].__setitem__("num_feature", "9"), "must have 9"),
        (lambda model: model["learner"]["gradient_booster"]["model"]["tree_info"].__setitem__(0, 5), "tree_info"),
        (lambda model: model["learner"]["gradient_booster"]["model"]["iteration_indptr"].append(9), "iteration_indptr"),
        (lambda model: model["learner"]["gradient_booster"].__setitem__("name", "dart"), "gbtree, got 'dart'"),
    ],
)  # fmt: skip
def test_a_damaged_json_is_refused(change: Callable[[dict[str, Any]], object], message: str) -> None:
    model = xgboost_json()
    change(model)
    with pytest.raises(ValueError, match=message):
        check_xgboost(json.dumps(model).encode())
