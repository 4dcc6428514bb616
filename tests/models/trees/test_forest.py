"""Trees as arrays of our own: the same margins as the library's, and others refused before anything walks them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
from localparity.models.trees import _kernels
from localparity.models.trees._boosters import lightgbm_forest, xgboost_forest
from localparity.models.trees._classifiers import Forest

ROWS, WIDTH = 300, 4
"""The last column is of categories."""


def table(seed: int, categories: int, gaps: float) -> tuple[Any, Any]:
    """Numbers of few and of many values, zeros and categories, some missing; and labels that depend on all."""
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=ROWS), rng.integers(-2, 3, ROWS), np.round(rng.exponential(size=ROWS), 1)]
    features = np.column_stack([*columns, rng.integers(0, categories, ROWS)]).astype(np.float64)
    likely = features[:, 0] + features[:, 1] + features[:, 3] % 3
    features[rng.random(features.shape) < gaps] = np.nan
    return features, (likely + rng.normal(size=ROWS) > 1.0).astype(np.float64)


def odd_rows(forest: Forest, features: Any, seed: int) -> Any:
    """Rows beside and at the thresholds of the trees, with other values that a split may treat apart."""
    rng = np.random.default_rng(seed)
    numbers = forest.value[(forest.feature >= 0) & (forest.flags & _kernels.BY_CATEGORY == 0)]
    numbers = np.concatenate([numbers, [0.0, -0.0, 1e-36, -1e-36, 1e-34, 1e30, np.nan]])
    numbers = numbers[~np.isinf(numbers)]
    near = [numbers, np.nextafter(numbers, np.inf), np.nextafter(numbers, -np.inf)]
    near += [np.nextafter(numbers.astype(np.float32), np.float32(np.inf)).astype(np.float64)]
    rows = rng.choice(np.concatenate(near), (ROWS, WIDTH))
    rows[:, -1] = rng.choice([*range(70), np.nan], ROWS)
    return np.vstack([features, rows])


seeds = st.integers(0, 2**16)
designs = st.tuples(seeds, st.sampled_from((2, 5, 40)), st.sampled_from((0.0, 0.2)))
lightgbm_options = st.fixed_dictionaries(
    {
        "num_leaves": st.sampled_from((2, 3, 31)),
        "min_data_in_leaf": st.sampled_from((1, 20, 400)),
        "zero_as_missing": st.booleans(),
        "use_missing": st.booleans(),
        "max_cat_to_onehot": st.sampled_from((1, 64)),
        "min_data_per_group": st.just(1),
        "boosting": st.sampled_from(("gbdt", "dart", "rf")),
        "bagging_fraction": st.just(0.7),
        "bagging_freq": st.just(1),
        "objective": st.sampled_from(("binary", "multiclass")),
    }
)


@given(designs, lightgbm_options)
def test_margins_are_those_of_lightgbm(design: tuple[int, int, float], options: dict[str, Any]) -> None:
    features, labels = table(*design)
    if options["objective"] == "multiclass":
        labels, options = labels + (features[:, 2] > 1.0), options | {"num_class": 3}
    fixed = {"verbose": -1, "num_threads": 1, "seed": 0}
    rows = lightgbm.Dataset(features, labels, categorical_feature=[WIDTH - 1])
    booster = lightgbm.train({**fixed, **options}, rows, 5)
    forest = lightgbm_forest(booster)
    some = odd_rows(forest, features, design[0])
    expected = np.reshape(booster.predict(some, raw_score=True), (len(some), -1))
    margins = forest.margins(some)
    if options["boosting"] == "rf":  # scores are of the mean, which the library's margins are not
        np.testing.assert_allclose(margins, expected / 5.0, rtol=1e-14, atol=1e-14)
    else:
        np.testing.assert_array_equal(margins, expected)


xgboost_options = st.fixed_dictionaries(
    {
        "max_depth": st.sampled_from((1, 3, 8)),
        "min_child_weight": st.sampled_from((0.1, 1.0, 1e6)),
        "max_cat_to_onehot": st.sampled_from((1, 64)),
        "grow_policy": st.sampled_from(("depthwise", "lossguide")),
        "gamma": st.sampled_from((0.0, 2.0)),
        "num_parallel_tree": st.sampled_from((1, 2)),
        "base_score": st.floats(0.01, 0.99),
    }
)


@given(designs, xgboost_options)
def test_margins_are_those_of_xgboost(design: tuple[int, int, float], options: dict[str, Any]) -> None:
    features, labels = table(*design)
    named: dict[str, Any] = {"feature_types": [*"q" * (WIDTH - 1), "c"], "enable_categorical": True}
    rows = xgboost.QuantileDMatrix(features, labels, **named)
    fixed = {"objective": "binary:logistic", "tree_method": "hist", "nthread": 1, "seed": 0}
    booster = xgboost.train({**fixed, **options}, rows, 5)
    forest = xgboost_forest(booster)
    some = odd_rows(forest, features, design[0])
    expected = booster.predict(xgboost.DMatrix(some, **named), output_margin=True)
    np.testing.assert_array_equal(forest.margins(some)[:, 0], expected)


CENSUS = lp.datasets.make_census(600, random_state=0)
KINDS = {"lightgbm": lp.models.LocalParityLGBMClassifier, "xgboost": lp.models.LocalParityXGBClassifier}


def fitted(kind: str, **options: Any) -> Any:
    model = KINDS[kind](0.1, n_estimators=3, n_jobs=1, random_state=0, booster_params=options)
    return model.fit(CENSUS.data, CENSUS.target, sensitive_features=CENSUS.sensitive_features)


FOREST = fitted("lightgbm", max_cat_to_onehot=1, min_data_per_group=1, cat_smooth=1).model_.forest


def some_rows(rows: int) -> Any:
    features = np.random.default_rng(0).normal(20.0, 20.0, (rows, 4))
    features[::7, 0] = np.nan
    return features


def test_compiled_and_plain_give_the_same_bits() -> None:
    features, kernels = some_rows(500), ("add_leaves", "number_leaves", "reachable_leaves", "add_reachable")
    sums = []
    for name in ("plain", "fast"):
        add, number, reach, add_reachable = (getattr(getattr(_kernels, kernel), name) for kernel in kernels)
        for single in (False, True):
            sums.append(np.zeros((500, 1)))
            add(features, FOREST._nodes, FOREST.roots, FOREST._sets, single, sums[-1])
        numbers = [FOREST._numbers(column) for column in range(4)]
        starts = np.cumsum([0, *map(len, numbers)])
        leaves = number(FOREST._nodes, FOREST.roots)
        tables = reach(FOREST._nodes, FOREST._sets, leaves, np.concatenate(numbers), starts, 1, 3)
        sums.append(np.zeros((500, 1)))
        add_reachable(starts[:4] + np.arange(500)[:, None] % 3, *tables, 1, True, sums[-1])
    np.testing.assert_array_equal(sums[:3], sums[3:])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("leaves", [4, 64, 200])
def test_many_rows_get_the_margins_of_few(kind: str, leaves: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From tables, which trees of more than 64 leaves do not have, and by walking: the same bits."""
    if kind == "lightgbm":
        forest = fitted(kind, num_leaves=leaves, min_data_in_leaf=1).model_.forest
    else:
        options = {"grow_policy": "lossguide", "min_child_weight": 0.0, "reg_lambda": 0.0}
        forest = fitted(kind, max_leaves=leaves, max_depth=0, **options).model_.forest
    features = np.vstack([some_rows(2000), np.where(some_rows(2000) > 30.0, np.nan, 0.0)])
    some = [forest.margins(features[first : first + 400]) for first in range(0, 4000, 400)]
    monkeypatch.setattr("localparity.models.trees._classifiers._TABLE", 500)
    assert len(forest._numbers(1)) > 3
    np.testing.assert_array_equal(forest.margins(features), np.vstack(some))
    assert forest._add_from_tables(features, np.zeros((4000, 1))) == (leaves < 200)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_predicts_without_the_library(kind: str, tmp_path: Path) -> None:
    model = fitted(kind)
    model.save(tmp_path)
    code = (
        f"import sys; sys.modules.update(lightgbm=None, xgboost=None); import localparity as lp;"
        f"c = lp.datasets.make_census(600, random_state=0); m = lp.load({str(tmp_path)!r});"
        "print(m.predict_proba(c.data)[:, 1].tobytes().hex())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == model.predict_proba(CENSUS.data)[:, 1].tobytes().hex()
    assert model.booster_ is not None
    with pytest.raises(AttributeError, match="booster_ is not saved"):
        _ = lp.load(tmp_path).booster_


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("lightgbm", {"linear_tree": True}, "booster_params must not ask for linear trees"),
        ("xgboost", {"booster": "dart"}, "booster_params must not have 'booster'"),
    ],
)
def test_trees_of_other_kinds_are_refused(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(kind, **options)


def changed(name: str, by: Callable[[Any], Any]) -> dict[str, Any]:
    array = getattr(FOREST, name).copy()
    by(array)
    return {name: array}


SPLIT = int(np.argmax((FOREST.feature >= 0) & (FOREST.flags & _kernels.BY_CATEGORY == 0)))
CHOICE = int(np.argmax((FOREST.feature >= 0) & (FOREST.flags & _kernels.BY_CATEGORY > 0)))
LEAF = int(np.argmax(FOREST.feature < 0))


@pytest.mark.parametrize(
    ("name", "at", "by", "message"),
    [
        ("feature", SPLIT, 4, "feature must be below 4"),
        ("feature", SPLIT, -2, "feature must be below 4"),
        ("left", SPLIT, SPLIT, "left must come after"),
        ("left", SPLIT, -1, "left must come after"),
        ("left", SPLIT, FOREST.right[SPLIT], "left must be no other node's child"),
        ("right", SPLIT, 2**31 - 1, "right must come after"),
        ("flags", SPLIT, 8, "flags must be below 8"),
        ("value", SPLIT, np.nan, "value must not be NaN"),
        ("value", LEAF, np.inf, "value must be finite"),
        ("value", CHOICE, -1.0, "value must be one of"),
        ("value", CHOICE, 0.5, "value must be the whole"),
        ("value", CHOICE, 1e300, "value must be one of"),
        ("roots", 0, -1, "roots must be below"),
        ("roots", 0, 2**31 - 1, "roots must be below"),
        ("bounds", 0, 1, "bounds must be those"),
        ("bounds", 1, 10**9, "bounds must ascend"),
        ("bounds", -1, 10**9, "bounds must be those"),
    ],
)
def test_arrays_that_are_no_trees_are_refused(name: str, at: int, by: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(FOREST, **changed(name, lambda array: array.__setitem__(at, by)))


def test_a_forest_is_its_description_and_its_file() -> None:
    described, content = FOREST.dump()
    same = Forest.parse(described, content)
    features = np.random.default_rng(0).normal(20.0, 20.0, (50, 4))
    np.testing.assert_array_equal(same.margins(features), FOREST.margins(features))
    for lie, message in (
        ({"nodes": described["nodes"] + 1}, "the trees must take .* bytes, got"),
        ({"nodes": 0}, "nodes must be >= 1, got 0"),
        ({"roots": -1}, "roots must be >= 1, got -1"),
        ({"outputs": 2}, "roots must be as many for each of 2 outputs"),
        ({"features": 1}, "feature must be below 1"),
        ({"start": "x"}, "start"),
    ):
        with pytest.raises(ValueError, match=message):
            Forest.parse(described | lie, content)
    with pytest.raises(ValueError, match="X must have 4 columns, got 3"):
        FOREST.margins(features[:, :3])
