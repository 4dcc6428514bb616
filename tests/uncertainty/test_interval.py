"""Intervals: the formula, the seeds, the shapes. Whether they hold is simulated in tests/slow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.uncertainty import _bootstrap, _resampling
from localparity.uncertainty._dkw import dkw_radius
from localparity.uncertainty._resampling import Pool, Resampled


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


@pytest.mark.parametrize(("size", "level"), [(1, 0.5), (10, 0.9), (1000, 0.95), (250.5, 0.999)])
def test_a_radius_turns_the_inequality_round(size: float, level: float) -> None:
    """Massart: the distance exceeds r with a probability of at most 2 exp(-2 n r^2)."""
    assert 2 * math.exp(-2 * size * dkw_radius(size, level) ** 2) == pytest.approx(1 - level)


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


def test_the_bootstrap_reflects_the_deviations_about_the_estimate() -> None:
    # The quantiles of 41 equally spaced values at 0.05 and 0.95 are the third and the third last.
    values = np.linspace(0.2, 0.6, 41)[:, None] + np.array([0.0, 0.1, -0.2, 0.3])
    seen = np.array([0.4, 0.4, 0.4, 0.4])
    estimates = np.array([0.45, 0.15, 0.95, 0.3])
    low, high = _bootstrap.bootstrap_bounds(estimates, Resampled(seen, values), 0.9)
    # About the estimate; below 0, cut; above 1, cut; all below the estimate, which stays in.
    np.testing.assert_allclose(low, [0.27, 0.0, 0.95, 0.0], atol=1e-12)
    np.testing.assert_allclose(high, [0.63, 0.23, 1.0, 0.3], atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_bootstrap_draws_each_group_from_its_own(weighted: bool) -> None:
    rows = np.array([[6.0, 2.0, 0.0], [0.0, 1.0, 3.0]]) if weighted else np.array([[6, 2, 0], [0, 1, 3]])
    pool = Pool(np.array([0.1, 0.2, 0.3]), rows, np.array([8, 4]), weighted)
    rng = np.random.default_rng(0)
    draws = np.array([_bootstrap.draw_with_replacement(pool, rng) for _ in range(600)])
    np.testing.assert_array_equal(draws.sum(axis=2), np.tile([8, 4], (600, 1)))
    assert (draws[:, rows == 0] == 0).all()
    np.testing.assert_allclose(draws.mean(axis=0), rows, atol=0.3)
    # n p (1 - p) people, not fewer: each is drawn anew.
    shares = rows / rows.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(draws.var(axis=0), shares * (1 - shares) * [[8], [4]], atol=0.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "exact"}, "kind is 'exact' where one of 'dkw', 'bootstrap' is expected"),
        ({"level": 95}, "level is 95 where a number between 0 and 1 is expected"),
        ({"kind": "bootstrap", "n_resamples": 0}, "n_resamples is 0 where a whole number >= 1 is expected"),
        ({"kind": "bootstrap", "n_jobs": 0}, "n_jobs is 0 where a whole number >= 1 is expected"),
        ({"kind": "bootstrap", "compare": "x"}, "compare is 'x' where one of"),
        ({"epsilon": -1}, r"epsilon must be .* got -1"),
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


def test_a_bootstrap_counts_in_what_the_counts_leave_open() -> None:
    census = lp.datasets.make_census(3000, random_state=6, as_frame=False)
    known = lp.Predictions.from_arrays(None, census.score, sensitive_features=census.sensitive_features)
    exact = lp.ScoreCounts.from_predictions(known)
    coarse = lp.scale.bounded(exact, max_scores=10, level=3)
    options = {"interval": "bootstrap", "n_resamples": 50, "random_state": 0, "epsilons": [0.0, 0.05]}
    for finding in lp.Audit.from_counts(coarse, **options).findings:
        low, high = coarse.mcdp_bounds(finding.epsilon)
        assert finding.interval.low <= low < high <= finding.interval.high


def test_what_counts_leave_open_does_not_leave_the_range() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.uniform(0.05, 0.3, 300), rng.uniform(0.26, 0.45, 300)])
    rows = lp.Predictions.from_arrays(None, scores, sensitive_features=np.repeat(["a", "b"], 300))
    exact = lp.ScoreCounts.from_predictions(rows)
    options = {"interval": "bootstrap", "n_resamples": 50, "random_state": 0, "epsilons": [0.0]}
    (found,) = lp.Audit.from_counts(lp.scale.bounded(exact, max_scores=10, level=2), **options).findings
    assert 0.5 < found.mcdp < 0.9
    assert (found.interval.low, found.interval.high) == (0.0, 1.0)
    (known,) = lp.Audit.from_counts(exact, **options).findings
    assert known.mcdp - 0.1 < known.interval.low < known.mcdp < known.interval.high < known.mcdp + 0.1
