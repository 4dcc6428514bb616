"""Intervals: the formula, the seeds, the shapes. Whether they hold is simulated in tests/slow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.uncertainty import _bootstrap, _resampling
from localparity.uncertainty._resampling import Pool


@pytest.fixture(scope="module")
def census() -> Any:
    return lp.datasets.make_census(600, random_state=5, as_frame=False)


def interval_of(census: Any, **options: Any) -> lp.Interval:
    options = {"sensitive_features": census.sensitive_features, "y_true": None, **options}
    return lp.mcdp_interval(options.pop("y_true"), census.score, **options)


def test_dkw_is_the_sum_of_two_massart_radii(census: Any) -> None:
    female = int((census.sensitive_features == "Female").sum())
    # An error of 10% is divided over the two distributions.
    radius = sum(math.sqrt(math.log(2 / 0.05) / (2 * size)) for size in (female, 600 - female))
    found = interval_of(census, level=0.9)
    estimate = lp.mcdp(None, census.score, sensitive_features=census.sensitive_features)
    assert found.estimate == estimate
    assert found.low == pytest.approx(estimate - radius)
    assert found.high == pytest.approx(estimate + radius)
    assert found.level == 0.9


def test_dkw_divides_the_error_over_all_distributions(census: Any) -> None:
    labels = census.target
    found = interval_of(census, y_true=labels, criterion="equalized_odds", level=0.9)
    worst = {}
    for label in (0, 1):
        sizes = [
            int(((census.sensitive_features == g) & (labels == label)).sum()) for g in ("Female", "Male")
        ]
        radius = sum(math.sqrt(math.log(2 / 0.025) / (2 * size)) for size in sizes)
        criterion = ("predictive_equality", "equal_opportunity")[label]
        value = lp.mcdp(
            labels, census.score, sensitive_features=census.sensitive_features, criterion=criterion
        )
        worst[label] = (value - radius, value + radius)
    assert found.low == pytest.approx(max(0.0, *(low for low, _ in worst.values())))
    assert found.high == pytest.approx(max(high for _, high in worst.values()))


def test_dkw_stays_in_the_unit_interval_and_counts_weights_by_their_effective_size() -> None:
    options = {"sensitive_features": ["a", "b"]}
    found = lp.mcdp_interval(None, [0.1, 0.9], **options)
    assert (found.low, found.estimate, found.high) == (0.0, 1.0, 1.0)
    rng = np.random.default_rng(0)
    scores, groups = rng.random(400), rng.integers(0, 2, 400)
    plain = lp.mcdp_interval(None, scores, sensitive_features=groups)
    same = lp.mcdp_interval(None, scores, sensitive_features=groups, sample_weight=np.full(400, 0.3))
    uneven = lp.mcdp_interval(
        None, scores, sensitive_features=groups, sample_weight=rng.exponential(size=400)
    )
    assert same.high == pytest.approx(plain.high)
    assert uneven.high - uneven.estimate > plain.high - plain.estimate


@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bootstrap_is_seeded_and_does_not_depend_on_the_number_of_jobs(
    census: Any, compare: str, weighted: bool
) -> None:
    options: dict[str, Any] = {"kind": "bootstrap", "n_resamples": 60, "epsilon": 0.02, "compare": compare}
    if weighted:
        options["sample_weight"] = np.linspace(0.5, 2.0, 600)
    one = interval_of(census, random_state=1, **options)
    two = interval_of(census, random_state=1, n_jobs=2, **options)
    all_cores = interval_of(census, random_state=np.random.default_rng(1), n_jobs=-1, **options)
    other = interval_of(census, random_state=2, **options)
    assert one == two == all_cores
    assert one != other
    assert 0.0 <= one.low < one.high <= 1.0


def test_the_bootstrap_holds_its_own_estimate_near_parity() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.random(1000), rng.integers(0, 2, 1000)
    found = lp.mcdp_interval(
        None, scores, sensitive_features=groups, kind="bootstrap", n_resamples=100, random_state=0
    )
    assert found.low <= found.estimate <= found.high


def test_bootstrap_of_a_group_of_one_knows_no_deviation() -> None:
    found = lp.mcdp_interval(
        None, [0.2, 0.8], sensitive_features=["a", "b"], kind="bootstrap", n_resamples=5, random_state=0
    )
    assert (found.low, found.high) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "exact"}, "kind is 'exact' where one of 'dkw', 'bootstrap' is expected"),
        ({"level": 95}, "level is 95 where a number between 0 and 1 is expected"),
        ({"kind": "bootstrap", "n_resamples": 0}, "n_resamples is 0 where a whole number >= 1 is expected"),
        ({"kind": "bootstrap", "n_jobs": 0}, "n_jobs is 0 where a whole number >= 1 is expected"),
        ({"kind": "bootstrap", "compare": "x"}, "compare is 'x' where one of"),
        ({"epsilon": -1}, "epsilon is -1 where a number >= 0 is expected"),
        ({"min_group_size": 500}, "where min_group_size is 500"),
    ],
)
def test_wrong_arguments(census: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        interval_of(census, **options)


@pytest.mark.parametrize("knots", [3, 60])
def test_both_ways_of_drawing_keep_the_sizes_and_agree_on_average(knots: int) -> None:
    """Knot by knot where rows are many to a knot, and row by row where they are few."""
    rows = np.zeros((2, knots), dtype=np.int64)
    rows[:, :3] = [[50, 0, 20], [10, 1, 0]]
    pool = Pool(np.linspace(0.1, 0.3, knots), rows, rows.sum(axis=1))
    rng = np.random.default_rng(0)
    draws = np.array([_bootstrap.draw_with_replacement(pool, rng) for _ in range(500)])
    assert (draws.sum(axis=2) == rows.sum(axis=1)).all()
    np.testing.assert_allclose(draws.mean(axis=0), rows, atol=0.8)


@pytest.mark.compiled
def test_the_bootstrap_at_fewer_thresholds_is_nearly_that_of_all(
    census: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine = interval_of(census, kind="bootstrap", n_resamples=300, random_state=0)
    monkeypatch.setattr(_resampling, "MOST_KNOTS", 300)
    coarse = interval_of(census, kind="bootstrap", n_resamples=300, random_state=0)
    assert coarse.estimate == fine.estimate
    assert coarse.low == pytest.approx(fine.low, abs=0.02)
    assert coarse.high == pytest.approx(fine.high, abs=0.02)
