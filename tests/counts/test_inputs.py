"""Predictions and counts stand for arrays in everything that takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import localparity as lp

METRICS: dict[str, Callable[..., Any]] = {
    "mcdp": lp.mcdp,
    "mcdp_approximate": lambda *arrays, **options: lp.mcdp_approximate(*arrays, epsilon=0.05, **options),
    "mcdp_profile": lambda *arrays, **options: lp.mcdp_profile(*arrays, **options).values.tolist(),
    "abcc": lp.abcc,
    "delta_dp": lp.delta_dp,
    "p_rule": lp.p_rule,
    "spdd": lp.spdd,
    "mcdp_interval": lambda *arrays, **options: lp.mcdp_interval(
        *arrays, n_resamples=19, random_state=0, **options
    ),
    "permutation_test": lambda *arrays, **options: lp.permutation_test(
        *arrays, n_resamples=19, random_state=0, **options
    ),
    "audit": lambda *arrays, **options: lp.audit(
        *arrays, n_resamples=19, random_state=0, **options
    ).to_json(),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_the_same_value_from_arrays_predictions_and_counts(
    metric: Callable[..., Any], groups: int, weighted: bool
) -> None:
    rng = np.random.default_rng(groups)
    labels, scores = rng.integers(0, 2, 120), 10.0 * rng.random(120).round(2)
    arrays: dict[str, Any] = {
        "sensitive_features": np.arange(120) % groups,
        "sample_weight": rng.integers(1, 4, 120) if weighted else None,
        "score_range": (0.0, 10.0),
    }
    rows = lp.Predictions.from_arrays(labels, scores, **arrays)
    options: dict[str, Any] = {"criterion": "equalized_odds", "compare": "to_overall"}
    expected = metric(labels, scores, **arrays, **options)
    for data in (rows, lp.ScoreCounts.from_predictions(rows)):
        assert metric(data, **options) == expected
        assert metric(data, score_range=(0.0, 10.0), **options) == expected


def test_a_pair_of_predictions_or_counts_has_its_curve() -> None:
    rows = lp.Predictions.from_arrays(None, [0.2, 0.4, 0.4, 0.8], sensitive_features=list("ffmm"))
    for data in (rows, lp.ScoreCounts.from_predictions(rows)):
        assert lp.gap_curve(data, groups=("m", "f")).gap.tolist() == [-0.5, -0.5, 0.0]
    with pytest.raises(ValueError, match="group 'f' has 2 rows, min_group_size is 3"):
        lp.gap_curve(rows, min_group_size=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_score": [0.1, 0.2]}, "y_score .*Predictions"),
        ({"sensitive_features": ["a", "b"]}, "sensitive_features .*Predictions"),
        ({"sample_weight": [1, 2]}, "sample_weight .*Predictions"),
        ({"score_range": (0.0, 2.0)}, r"score_range .*\(0.0, 2.0\).*\(0.0, 1.0\)"),
        ({"criterion": "equal_opportunity"}, "criterion='equal_opportunity' needs"),
    ],
)
def test_nothing_is_given_twice(options: dict[str, Any], message: str) -> None:
    rows = lp.Predictions.from_arrays(None, [0.1, 0.2], sensitive_features=["a", "b"])
    with pytest.raises(ValueError, match=message):
        lp.mcdp(rows, **options)


def test_arrays_that_are_missing_are_named() -> None:
    with pytest.raises(ValueError, match=r"y_score .*got None"):
        lp.mcdp([0, 1])
    with pytest.raises(ValueError, match=r"sensitive_features .*got None"):
        lp.mcdp(None, [0.1, 0.2])


def test_strata_and_curves_are_computed_once() -> None:
    rows = lp.Predictions.from_arrays([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], sensitive_features=list("aabb"))
    counts = lp.ScoreCounts.from_predictions(rows)
    assert lp.gap_curve(counts) is lp.gap_curve(counts)
    assert lp.mcdp_profile(counts).curves[0] is lp.gap_curve(counts)
    assert lp.gap_curve(counts) is not lp.gap_curve(counts.without([]))
