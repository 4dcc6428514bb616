"""The permutation test against all permutations, scipy and the strata."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import hypergeom, ks_2samp

import localparity as lp
from localparity.uncertainty import _permutation, _resampling
from localparity.uncertainty._permutation import deal_groups, summarise_null
from localparity.uncertainty._resampling import Draws, Pool, resample


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


def test_both_ways_of_dealing_keep_the_sizes_and_the_people(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([[5, 0, 2], [1, 1, 1], [0, 4, 0]])
    pool = Pool(np.array([0.1, 0.2, 0.3]), rows, rows.sum(axis=1))
    for few in (True, False):
        monkeypatch.setattr(_permutation, "one_by_one", lambda rows, knots, few=few: few)
        dealt = deal_groups(pool, np.random.default_rng(0))
        np.testing.assert_array_equal(dealt.sum(axis=1), rows.sum(axis=1))
        np.testing.assert_array_equal(dealt.sum(axis=0), rows.sum(axis=0))


def test_billions_of_people_are_dealt_too() -> None:
    rows = np.array([[3 * 10**9, 10**9, 0], [10**9, 10**9, 2 * 10**9]])
    dealt = deal_groups(Pool(np.array([0.1, 0.2, 0.3]), rows, rows.sum(axis=1)), np.random.default_rng(0))
    np.testing.assert_array_equal(dealt.sum(axis=1), rows.sum(axis=1))
    np.testing.assert_allclose(dealt[0] / dealt[0].sum(), [0.5, 0.25, 0.25], atol=1e-4)


@pytest.mark.parametrize("people", [10**9 - 1, 10**9])
def test_people_are_dealt_up_to_where_numpy_deals_and_drawn_from_there_on(people: int) -> None:
    rows = np.array([[people // 2, 0], [0, people - people // 2]])
    dealt = deal_groups(Pool(np.array([0.1, 0.2]), rows, rows.sum(axis=1)), np.random.default_rng(0))
    np.testing.assert_array_equal(dealt.sum(axis=1), rows.sum(axis=1))
    # Dealing hands everybody out; of as many drawn, some come twice.
    assert (dealt.sum(axis=0) == rows.sum(axis=0)).all() == (people < 10**9)
    np.testing.assert_allclose(dealt / people, 0.25, atol=1e-4)


def test_people_with_weights_are_drawn_from_all_of_them() -> None:
    weights = np.array([[6.0, 0.0], [0.0, 2.0]])
    pool = Pool(np.array([0.1, 0.2]), weights, np.array([3, 4]), weighted=True)
    streams = np.random.default_rng(0).spawn(500)
    dealt = np.array([deal_groups(pool, stream) for stream in streams])
    np.testing.assert_allclose(dealt.sum(axis=2), np.tile([6.0, 2.0], (500, 1)))
    np.testing.assert_allclose(dealt.mean(axis=0), [[4.5, 1.5], [1.5, 0.5]], atol=0.2)


def test_dealing_follows_the_hypergeometric_distribution() -> None:
    rows = np.array([[3, 1], [2, 2], [0, 1]])
    pool = Pool(np.array([0.1, 0.2]), rows, rows.sum(axis=1))
    dealt = np.array([deal_groups(pool, stream) for stream in np.random.default_rng(1).spawn(3000)])
    for group, size in enumerate((4, 4, 1)):
        expected = hypergeom(9, 5, size)
        assert dealt[:, group, 0].mean() == pytest.approx(expected.mean(), abs=0.06)
        assert dealt[:, group, 0].var() == pytest.approx(expected.var(), abs=0.06)


def test_the_data_counts_as_one_permutation_and_ties_count_against_it() -> None:
    null = np.array([0.1, 0.2, 0.3, 0.3, 0.4, 0.5, 0.5, 0.6, 0.7])
    found = summarise_null(0.45, 0.3, null)
    assert (found.statistic, found.p_value) == (0.45, 0.8)
    # A value that rounding has put just below is as large; one that is below is not.
    assert summarise_null(0.3, 0.3 + 1e-13, null).p_value == 0.8
    assert summarise_null(0.3, 0.3 + 1e-11, null).p_value == 0.6
    assert found.null_mean == pytest.approx(0.4)
    assert found.null_quantiles == pytest.approx({0.5: 0.4, 0.9: 0.62, 0.95: 0.66, 0.99: 0.692})


def test_another_score_range_is_the_same_test() -> None:
    rng = np.random.default_rng(5)
    scores, groups = rng.integers(0, 65, 60) / 64, rng.integers(0, 2, 60)
    options: dict[str, Any] = {"epsilon": 0.03, "n_resamples": 40, "random_state": 0}
    one = lp.permutation_test(None, scores, sensitive_features=groups, **options)
    two = lp.permutation_test(
        None, 256 * scores - 128, sensitive_features=groups, score_range=(-128, 128), **options
    )
    assert one == two


def test_every_resample_is_told_of() -> None:
    told: list[int] = []
    resample(
        [Pool(np.array([0.1, 0.2]), np.array([[1, 0], [0, 1]]), np.array([1, 1]))],
        deal_groups,
        Draws(7, random_state=0, on_resample=lambda: told.append(1)),
        compare="between_groups",
        epsilons=np.array([0.0]),
    )
    assert len(told) == 7


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="n_resamples is 0 where a whole number >= 1 is expected"):
        lp.permutation_test(None, [0.1, 0.2], sensitive_features=[0, 1], n_resamples=0)


def test_a_coarser_pool_has_the_same_distributions_at_fewer_thresholds() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, (3, 1000))
    rows[:, 500] = 900  # a score that many people share stays one threshold
    pool = Pool(np.sort(rng.random(1000)), rows, rows.sum(axis=1))
    coarse = pool.coarsened(64)
    assert 32 < coarse.unit_knots.size <= 64
    assert pool.coarsened(1000) is pool
    kept = np.isin(pool.unit_knots, coarse.unit_knots)
    for compare in ("between_groups", "to_overall"):
        fine, seen = (each.distributions(each.weights, compare) for each in (pool, coarse))
        np.testing.assert_array_equal(fine[:, kept], seen)
    shares = coarse.weights / coarse.sizes[:, None]
    heavy = shares.mean(axis=0) > 1.5 / 64
    assert heavy.sum() == 1


@pytest.mark.compiled
def test_dealing_from_a_coarser_pool_is_dealing_from_all_seen_at_fewer_thresholds() -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 3, (2, 400))
    pool = Pool(np.sort(rng.random(400)), rows, rows.sum(axis=1))
    coarse = pool.coarsened(40)
    kept = np.isin(pool.unit_knots, coarse.unit_knots)

    def dealt(each: Pool, chosen: Any, seed: int) -> Any:
        streams = np.random.default_rng(seed).spawn(2000)
        found = [each.distributions(deal_groups(each, stream), "between_groups")[0] for stream in streams]
        return np.array(found)[:, chosen]

    fine, seen = dealt(pool, kept, 0), dealt(coarse, slice(None), 1)
    error = fine.std(axis=0) * np.sqrt(2 / 2000) + 1e-12
    assert (np.abs(fine.mean(axis=0) - seen.mean(axis=0)) < 5 * error).all()
    np.testing.assert_allclose(np.cov(fine.T), np.cov(seen.T), atol=0.15 * fine.var(axis=0).max())
    most = [np.abs(each - each.mean(axis=0)).max(axis=1) for each in (fine, seen)]
    assert ks_2samp(*most).pvalue > 1e-4


@pytest.mark.compiled
def test_the_test_is_valid_where_scores_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under parity a p-value is at most alpha in no more than alpha of the cases; here in just as many."""
    monkeypatch.setattr(_resampling, "MOST_KNOTS", 16)
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
def test_what_parity_measures_is_nearly_that_of_all_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    scores, groups = rng.random(20_000), rng.integers(0, 2, 20_000)
    options: dict[str, Any] = {"sensitive_features": groups, "n_resamples": 300, "random_state": 0}
    fine = lp.permutation_test(None, scores, **options)
    monkeypatch.setattr(_resampling, "MOST_KNOTS", 1000)
    coarse = lp.permutation_test(None, scores, **options)
    assert coarse.statistic == fine.statistic
    assert coarse.null_mean == pytest.approx(fine.null_mean, rel=0.1)
    assert coarse.p_value == pytest.approx(fine.p_value, abs=0.12)
