"""Intervals: the formula, the seeds, the shapes. Whether they hold is simulated in tests/slow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.uncertainty import _deviations
from localparity.uncertainty._bands import band_radius, bootstrap_radii, threshold_end
from localparity.uncertainty._deviations import deviation_resamples
from localparity.uncertainty._resampling import Draws


@pytest.fixture(scope="module")
def census() -> Any:
    return lp.datasets.make_census(600, random_state=5, as_frame=False)


def interval_of(census: Any, **options: Any) -> lp.results.Interval:
    options = {"sensitive_features": census.sensitive_features, "y_true": None, **options}
    return lp.mcdp_interval(options.pop("y_true"), census.score, **options)


def test_the_ends_are_those_of_the_band_and_of_one_threshold(census: Any) -> None:
    female = int((census.sensitive_features == "Female").sum())
    sizes = (female, 600 - female)
    estimate = lp.mcdp(None, census.score, sensitive_features=census.sensitive_features)
    found = interval_of(census, confidence=0.9)
    assert (found.estimate, found.confidence) == (estimate, 0.9)
    # Either end may fail with half of the error, of which the band takes a tenth above.
    assert found.low == pytest.approx(estimate - band_radius(sizes, 0.05))
    assert found.high == pytest.approx(threshold_end(estimate, sizes, 0.045))
    short, long = (interval_of(census, confidence=0.9, epsilon=epsilon) for epsilon in (0.001, 0.3))
    assert short.estimate < estimate
    assert short.high == found.high
    assert threshold_end(long.estimate, sizes, 0.045) <= long.high < found.high


@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("n_groups", [2, 4])
def test_upper_ends_never_rise_with_epsilon(compare: str, n_groups: int) -> None:
    """MCDP cannot: the margin doubled at once from epsilon 0 to 0.01."""
    rng = np.random.default_rng(15)
    groups = rng.integers(0, n_groups, 1000)
    scores = rng.random(1000) ** (1.0 + (groups == 0))
    options: dict[str, Any] = {"sensitive_features": groups, "compare": compare}
    epsilons = [0.0, 0.001, 0.01, 0.05, 0.2, 0.45]
    audit = lp.audit(None, scores, epsilons=epsilons, n_resamples=19, random_state=0, **options)
    for intervals in (*(pair.intervals for pair in audit.pairs), [each.interval for each in audit.findings]):
        highs = [interval.high for interval in intervals]
        assert highs == sorted(highs, reverse=True)
        assert all(each.low <= each.estimate <= each.high for each in intervals)
    assert n_groups > 2 or audit.findings[-1].interval.high < audit.findings[0].interval.high
    for finding in audit.findings:
        alone = lp.mcdp_interval(None, scores, epsilon=finding.epsilon, **options)
        assert alone.high == finding.interval.high


def test_an_audit_without_epsilon_0_has_the_same_ends() -> None:
    rng = np.random.default_rng(15)
    rows = lp.Predictions.from_arrays(None, rng.random(40_000), sensitive_features=np.arange(40_000) % 2)
    one, other = (
        lp.mcdp_interval(each, epsilon=0.05) for each in (rows, lp.ScoreCounts.from_predictions(rows))
    )
    assert one == other


def test_one_side_takes_the_whole_error(census: Any) -> None:
    both = interval_of(census, confidence=0.9)
    upper, lower = (interval_of(census, confidence=0.95, side=side) for side in ("upper", "lower"))
    assert (upper.low, upper.high) == (0.0, pytest.approx(both.high))
    assert (lower.low, lower.high) == (both.low, 1.0)
    weighted = {"sample_weight": np.ones(600), "random_state": 0}
    both, upper, lower = (interval_of(census, side=side, **weighted) for side in ("both", "upper", "lower"))
    assert (upper.low, upper.high, lower.low, lower.high) == (0.0, both.high, both.low, 1.0)


def test_only_lower_ends_share_the_error_over_pairs(census: Any) -> None:
    labels = census.target
    found = interval_of(census, y_true=labels, criterion="equalized_odds", confidence=0.9)
    low, high = [0.0], []
    for label, criterion in enumerate(("predictive_equality", "equal_opportunity")):
        among = labels == label
        first, second = (int((census.sensitive_features[among] == g).sum()) for g in ("Female", "Male"))
        value = lp.mcdp(
            labels, census.score, sensitive_features=census.sensitive_features, criterion=criterion
        )
        low.append(value - band_radius((first, second), 0.025))
        high.append(threshold_end(value, (first, second), 0.045))
    assert (found.low, found.high) == pytest.approx((max(low), max(high)))


def test_intervals_stay_in_the_unit_interval_and_know_little_of_groups_of_one() -> None:
    for method in ("finite_sample", "bootstrap"):
        found = lp.mcdp_interval(
            None, [0.1, 0.9], sensitive_features=["a", "b"], method=method, random_state=0
        )
        assert (found.low, found.estimate, found.high) == (0.0, 1.0, 1.0)


def test_uneven_weights_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(400), rng.integers(0, 2, 400)
    options: dict[str, Any] = {"sensitive_features": groups, "method": "bootstrap", "random_state": 0}
    plain = lp.mcdp_interval(None, scores, **options)
    same = lp.mcdp_interval(None, scores, sample_weight=np.full(400, 0.3), **options)
    uneven = lp.mcdp_interval(None, scores, sample_weight=rng.exponential(size=400), **options)
    assert same.high == pytest.approx(plain.high)
    assert uneven.high - uneven.estimate > 1.2 * (plain.high - plain.estimate)


def test_rows_of_one_person_count_as_little_more_than_one() -> None:
    rng = np.random.default_rng(0)
    scores, groups = np.repeat(rng.random(200), 5), np.repeat(np.arange(200) % 2, 5)
    options: dict[str, Any] = {"sensitive_features": groups, "random_state": 0}
    rows = lp.mcdp_interval(None, scores, method="bootstrap", **options)
    people = lp.mcdp_interval(None, scores, cluster=np.repeat(np.arange(200), 5), **options)
    assert people.estimate == rows.estimate
    assert people.high - people.estimate == pytest.approx(5**0.5 * (rows.high - rows.estimate), rel=0.1)
    alone = lp.mcdp_interval(None, scores, cluster=np.arange(1000), **options)
    assert alone.high == pytest.approx(rows.high, abs=0.01)


@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bootstrap_is_seeded_and_does_not_depend_on_the_number_of_jobs(
    census: Any, compare: str, weighted: bool
) -> None:
    options: dict[str, Any] = {"method": "bootstrap", "n_resamples": 60, "epsilon": 0.02, "compare": compare}
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
        None, scores, sensitive_features=groups, method="bootstrap", n_resamples=100, random_state=0
    )
    assert found.low <= found.estimate <= found.high


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "exact"}, "method .*got 'exact'"),
        ({"confidence": 95}, "confidence .*got 95"),
        ({"side": "two"}, "side .*got 'two'"),
        ({"method": "bootstrap", "n_resamples": 0}, "n_resamples must be >= 19 .* got 0"),
        ({"method": "bootstrap", "n_jobs": 0}, "n_jobs .*got 0"),
        ({"method": "bootstrap", "compare": "x"}, "compare .*got 'x'"),
        ({"epsilon": -1}, r"epsilon must be .* got -1"),
        ({"min_group_size": 500}, "min_group_size is 500"),
    ],
)
def test_wrong_arguments(census: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        interval_of(census, **options)


def test_the_bootstrap_adds_the_radius_of_its_band(census: Any) -> None:
    known = lp.Predictions.from_arrays(None, census.score, sensitive_features=census.sensitive_features)
    counts = lp.ScoreCounts.from_predictions(known)
    resampled = deviation_resamples(counts, lp.Comparison(), np.zeros(1), Draws(99, 4))
    (radius,) = bootstrap_radii(resampled, 0.9)
    for epsilon in (0.0, 0.05):
        found = interval_of(
            census, method="bootstrap", confidence=0.9, n_resamples=99, random_state=4, epsilon=epsilon
        )
        assert (found.low, found.high) == pytest.approx((found.estimate - radius, found.estimate + radius))


@pytest.mark.compiled
def test_the_bootstrap_at_fewer_thresholds_is_nearly_that_of_all(
    census: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine = interval_of(census, method="bootstrap", n_resamples=300, random_state=0)
    monkeypatch.setattr(_deviations, "MOST_KNOTS", 300)
    monkeypatch.setattr(_deviations, "LEAST_KNOTS", 300)
    coarse = interval_of(census, method="bootstrap", n_resamples=300, random_state=0)
    assert coarse.estimate == fine.estimate
    assert coarse.low == pytest.approx(fine.low, abs=0.02)
    assert coarse.high == pytest.approx(fine.high, abs=0.02)


def test_a_bootstrap_counts_in_what_the_counts_leave_open() -> None:
    census = lp.datasets.make_census(3000, random_state=6, as_frame=False)
    known = lp.Predictions.from_arrays(None, census.score, sensitive_features=census.sensitive_features)
    exact = lp.ScoreCounts.from_predictions(known)
    coarse = lp.counts.bounded(exact, max_scores=10, level=3)
    options = {"method": "bootstrap", "n_resamples": 50, "random_state": 0, "epsilons": [0.0, 0.05]}
    for finding in lp.audit(coarse, **options).findings:
        bounds = lp.mcdp_bounds(coarse, epsilon=finding.epsilon)
        assert finding.interval.low <= bounds.low < bounds.high <= finding.interval.high


def test_what_counts_leave_open_does_not_leave_the_range() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.uniform(0.05, 0.3, 300), rng.uniform(0.26, 0.45, 300)])
    rows = lp.Predictions.from_arrays(None, scores, sensitive_features=np.repeat(["a", "b"], 300))
    exact = lp.ScoreCounts.from_predictions(rows)
    options = {"method": "bootstrap", "n_resamples": 50, "random_state": 0, "epsilons": [0.0]}
    (found,) = lp.audit(lp.counts.bounded(exact, max_scores=10, level=2), **options).findings
    assert 0.5 < found.mcdp < 0.9
    (known,) = lp.audit(exact, **options).findings
    # What is known at the ends of the cells is a lower bound; between them there may be any gap.
    assert found.mcdp - 0.1 < found.interval.low < known.mcdp < found.interval.high == 1.0
    assert known.mcdp - 0.1 < known.interval.low < known.mcdp < known.interval.high < known.mcdp + 0.1
