"""The permutation test against all permutations, scipy and the strata."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

import localparity as lp
import oracles
from localparity._text import p_value_text
from localparity.auditing._wording import chance
from localparity.metrics._gap_curve import gap_curves
from localparity.uncertainty import _permutation as _pool
from localparity.uncertainty._deviations import deviation_resamples
from localparity.uncertainty._intervals import measured_pair
from localparity.uncertainty._permutation import (
    ParityTest,
    adjusted_p_values,
    least_p_value,
    p_value_of,
    parity_test,
    summarise_null,
)
from localparity.uncertainty._resampling import Draws


@pytest.mark.compiled
def test_goes_to_the_p_value_over_all_permutations() -> None:
    scores, groups = [0.1, 0.2, 0.3, 0.5, 0.7, 0.9], [0, 0, 0, 1, 0, 1]
    observed = lp.mcdp(None, scores, sensitive_features=groups, epsilon=0.05)
    every = [
        lp.mcdp(None, scores, sensitive_features=list(dealt), epsilon=0.05)
        for dealt in set(permutations(groups))
    ]
    expected = np.mean([value >= observed - 1e-12 for value in every])
    found = lp.permutation_test(
        None, scores, sensitive_features=groups, epsilon=0.05, n_resamples=4000, random_state=0
    )
    assert found.statistic == observed
    assert found.p_value == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 4000))
    assert found.null_mean == pytest.approx(np.mean(every), abs=0.02)


@pytest.mark.compiled
def test_agrees_with_scipy_at_epsilon_zero() -> None:
    rng = np.random.default_rng(4)
    scores, groups = rng.beta(2, 2, 300), rng.integers(0, 2, 300)
    scores[groups == 1] **= 1.25
    found = lp.permutation_test(None, scores, sensitive_features=groups, n_resamples=3000, random_state=0)
    expected = ks_2samp(scores[groups == 0], scores[groups == 1]).pvalue
    assert found.p_value == pytest.approx(expected, abs=0.03)
    assert found.null_quantiles[0.5] < found.null_quantiles[0.9] < found.null_quantiles[0.99]


def test_labels_make_strata_inside_which_groups_are_dealt() -> None:
    # All of the disparity is one of labels: inside each label the groups are alike.
    labels = np.repeat([0, 1], 200)
    groups = np.concatenate([np.tile([0, 0, 0, 1], 50), np.tile([0, 1, 1, 1], 50)])
    scores = np.random.default_rng(0).random(400) * 0.5 + 0.5 * labels
    options: dict[str, Any] = {"sensitive_features": groups, "n_resamples": 200, "random_state": 0}
    assert lp.permutation_test(labels, scores, **options).p_value < 0.01
    assert lp.permutation_test(labels, scores, criterion="equalized_odds", **options).p_value > 0.05


@pytest.mark.parametrize("weighted", [False, True])
def test_is_seeded_and_does_not_depend_on_the_number_of_jobs(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    options: dict[str, Any] = {"sensitive_features": rng.integers(0, 3, 200), "n_resamples": 50}
    if weighted:
        options["sample_weight"] = rng.exponential(size=200)
    scores = rng.random(200).round(1)
    one = lp.permutation_test(None, scores, random_state=3, **options)
    assert one == lp.permutation_test(None, scores, random_state=3, n_jobs=2, **options)
    assert one != lp.permutation_test(None, scores, random_state=4, **options)


def test_the_data_counts_as_one_permutation_and_ties_count_against_it() -> None:
    null = np.array([0.1, 0.2, 0.3, 0.3, 0.4, 0.5, 0.5, 0.6, 0.7])
    assert p_value_of(0.3, null) == 0.8
    # A value that rounding has put just below is as large; one that is below is not.
    assert p_value_of(0.3 + 1e-13, null) == 0.8
    assert p_value_of(0.3 + 1e-11, null) == 0.6
    found = summarise_null(0.45, 0.8, null)
    assert (found.statistic, found.p_value) == (0.45, 0.8)
    assert found.null_mean == pytest.approx(0.4)
    assert found.null_quantiles == pytest.approx({0.5: 0.4, 0.9: 0.62, 0.95: 0.66, 0.99: 0.692})


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 12), st.data())
def test_p_values_are_adjusted_over_pairs_and_epsilons(
    pairs: int, epsilons: int, resamples: int, data: st.DataObject
) -> None:
    value = st.integers(0, 6)
    seen, null = (
        data.draw(st.lists(st.lists(value, min_size=epsilons, max_size=epsilons), min_size=n, max_size=n))
        for n in (pairs, resamples)
    )
    exact = [[[Fraction(number, 10) for number in row] for row in each] for each in (seen, null)]
    expected = oracles.adjusted_p_values(*exact)
    found = adjusted_p_values(np.array(seen) / 10, np.array(null) / 10)
    np.testing.assert_allclose(found, np.array(expected, dtype=float), atol=1e-12)
    # One epsilon alone has the p-value of the largest of all pairs.
    if epsilons == pairs == 1:
        assert found[0, 0] == p_value_of(seen[0][0] / 10, np.array(null)[:, 0] / 10)


def test_a_test_that_others_confirm_has_the_larger_of_both_p_values() -> None:
    rng = np.random.default_rng(0)
    rows = lp.Predictions.from_arrays(None, rng.random(300), sensitive_features=np.arange(300) % 3)
    counts = lp.ScoreCounts.from_predictions(rows)
    epsilons = np.array([0.0, 0.05])
    pairs = [measured_pair(curve, epsilons) for curve in gap_curves(counts, lp.Comparison())]
    first = parity_test(pairs, counts, lp.Comparison(), epsilons, Draws(99, 0))
    deviated = deviation_resamples(counts, lp.Comparison(), epsilons, Draws(99, 0))
    second = ParityTest([], adjusted_p_values(deviated.studentised, deviated.scaled), (deviated,))
    both = first.confirmed_by(deviated)
    np.testing.assert_array_equal(both.p_values, np.maximum(first.p_values, second.p_values))
    assert [each.p_value for each in both.results] == both.p_values.min(axis=0).tolist()
    assert [each.null_mean for each in both.results] == [each.null_mean for each in first.results]
    larger = np.maximum(first.detectable(0.9), second.detectable(0.9))
    np.testing.assert_array_equal(both.detectable(0.9), larger)


def test_a_tiny_group_does_not_hide_what_large_groups_show() -> None:
    """Twenty people of a third group took the p-value from 0.001 to 0.18 when pairs were not studentised."""
    rng = np.random.default_rng(51)
    sizes = [2000, 2000, 15]
    scores = np.concatenate([rng.beta(2, 3, 2000), rng.beta(2.6, 3, 2000), rng.beta(2, 3, 15)])
    groups = np.repeat(["a", "b", "tiny"], sizes)
    options: dict[str, Any] = {"n_resamples": 199, "random_state": 0}
    large = groups != "tiny"
    alone = lp.permutation_test(None, scores[large], sensitive_features=groups[large], **options)
    beside = lp.permutation_test(None, scores, sensitive_features=groups, **options)
    assert alone.p_value == beside.p_value == 0.005
    # What is reported stays unscaled: the tiny group's gap is the largest, and parity measures as much.
    assert beside.statistic > alone.statistic
    assert beside.null_mean > 0.2 > alone.null_mean


@pytest.mark.parametrize("kind", ["weights", "clusters"])
def test_groups_that_were_sampled_differently_are_not_dealt(kind: str) -> None:
    """Both groups have one weighted distribution; group a's low scores are rare and heavy, or come in crowds."""
    rng = np.random.default_rng(1)
    scores, groups = rng.random(2000), np.repeat([0, 1], 1000)
    options: dict[str, Any] = {"n_resamples": 199, "random_state": 0}
    if kind == "weights":
        thin = (groups == 0) & (scores < 0.3) & (rng.random(2000) > 0.2)
        scores, groups = scores[~thin], groups[~thin]
        options["sample_weight"] = np.where((groups == 0) & (scores < 0.3), 5.0, 1.0)
    else:
        scores = np.repeat(scores[::10], 10)
        options["cluster"] = np.arange(2000) // 10
    found = lp.permutation_test(None, scores, sensitive_features=groups, **options)
    assert found.p_value > 0.05
    del options["sample_weight" if kind == "weights" else "cluster"]
    assert lp.permutation_test(None, scores, sensitive_features=groups, **options).p_value < 0.05


def test_another_score_range_is_the_same_test() -> None:
    rng = np.random.default_rng(5)
    scores, groups = rng.integers(0, 65, 60) / 64, rng.integers(0, 2, 60)
    options: dict[str, Any] = {"epsilon": 0.03, "n_resamples": 40, "random_state": 0}
    one = lp.permutation_test(None, scores, sensitive_features=groups, **options)
    two = lp.permutation_test(
        None, 256 * scores - 128, sensitive_features=groups, score_range=(-128, 128), **options
    )
    assert one == two


def test_counts_that_are_not_exact_are_tested_by_the_least_that_they_allow() -> None:
    """A grid of few cells, or a sketch, moves a gap by more than parity does among many people."""
    rng = np.random.default_rng(3)
    rows = lp.Predictions.from_arrays(None, rng.random(3000), sensitive_features=np.arange(3000) % 2)
    exact = lp.ScoreCounts.from_predictions(rows)
    for counts in (
        replace(exact, rank_error=0.02),
        replace(exact, rank_error=0.5),
        lp.counts.bounded(exact, max_scores=10, level=3),
    ):
        options: dict[str, Any] = {"n_resamples": 99, "random_state": 0}
        audit = lp.audit(counts, epsilons=[0.0], **options)
        found = lp.permutation_test(counts, **options)
        assert found == audit.findings[0].test
        assert found.statistic == lp.mcdp(counts)
    assert lp.permutation_test(replace(exact, rank_error=0.5), **options).p_value == 1.0
    assert lp.permutation_test(exact, **options).p_value < 1.0


def test_a_sketch_at_parity_is_not_rejected_for_its_own_error() -> None:
    pytest.importorskip("datasketches")
    rng = np.random.default_rng(16)
    sketch = lp.monitoring.ScoreSketch(k=64)
    sketch.update(
        lp.Predictions.from_arrays(None, rng.random(40_000), sensitive_features=np.repeat([0, 1], 20_000))
    )
    found = lp.permutation_test(sketch.counts(), n_resamples=39, random_state=0)
    assert found.p_value > 0.05
    assert found.statistic > 3.0 * found.null_mean


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"n_resamples .*got 0"):
        lp.permutation_test(None, [0.1, 0.2], sensitive_features=[0, 1], n_resamples=0)


@pytest.mark.compiled
def test_the_test_is_valid_where_scores_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under parity a p-value is at most alpha in no more than alpha of the cases; here in just as many."""
    monkeypatch.setattr(_pool, "MOST_MEASURED", 0)
    rng = np.random.default_rng(2)
    small = 0
    for seed in range(400):
        scores, groups = rng.random(120), np.repeat([0, 1], 60)
        found = lp.permutation_test(
            None, scores, sensitive_features=groups, epsilon=0.01, n_resamples=39, random_state=seed
        )
        small += found.p_value <= 0.1
    assert abs(small / 400 - 0.1) < 4 * np.sqrt(0.09 / 400)


@pytest.mark.compiled
def test_what_parity_measures_does_not_depend_on_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    scores, groups = rng.random(2000), rng.integers(0, 2, 2000)
    labels = rng.integers(0, 2, 2000)
    options: dict[str, Any] = {"sensitive_features": groups, "n_resamples": 600, "random_state": 0}
    for criterion in ("demographic_parity", "equalized_odds"):
        monkeypatch.setattr(_pool, "MOST_MEASURED", 10**6)
        one = lp.permutation_test(labels, scores, criterion=criterion, **options)
        monkeypatch.setattr(_pool, "MOST_MEASURED", 0)
        other = lp.permutation_test(labels, scores, criterion=criterion, **options)
        assert other.statistic == one.statistic
        assert other.null_mean == pytest.approx(one.null_mean, rel=0.04)
        assert other.p_value == pytest.approx(one.p_value, abs=0.12)
        assert other == lp.permutation_test(labels, scores, criterion=criterion, n_jobs=2, **options)


@pytest.mark.parametrize(
    ("count", "n_resamples", "text", "audits"),
    [
        (1, 1000, "<= 0.001", "fewer than 1 in 1,000"),
        (1, 100, "<= 0.01", "fewer than 1 in 100"),
        (1, 300, "<= 0.0034", "fewer than 1 in 300"),
        (2, 1000, "0.0020", "2 in 1,000"),
        (2, 100_000, "0.00002", "2 in 100,000"),
        (1001, 1000, "1.0000", "100 in 100"),
    ],
)
def test_the_least_p_value_is_written_as_a_bound(
    count: int, n_resamples: int, text: str, audits: str
) -> None:
    """0.0010 and "0.10% of audits" said what 1,000 resamples cannot: 100 said 0.99% of the same file."""
    p_value = count / (1 + n_resamples)
    assert p_value_text(p_value, least_p_value(n_resamples)) == text
    assert chance(p_value, n_resamples) == audits


def test_no_p_value_is_a_dash() -> None:
    assert p_value_text(None, least_p_value(0)) == "-"
