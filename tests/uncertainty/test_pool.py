"""The pool that resamples are drawn from: dealt under parity, deviated around what was measured."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom, ks_2samp, norm, t

import localparity as lp
from localparity._types import Compare
from localparity.counts import Comparison
from localparity.uncertainty import _pool
from localparity.uncertainty._pool import Pool, pools_of
from strategies import People, people


def counts_of(drawn: People, **options: Any) -> lp.ScoreCounts:
    predictions = lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups, **options)
    return lp.ScoreCounts.from_predictions(predictions)


def pool_of(drawn: People, compare: Compare = "between_groups", **options: Any) -> Pool:
    (pool,) = pools_of(counts_of(drawn, **options), Comparison(compare=compare))
    return pool


@given(people(n_groups=2))
def test_a_pool_lies_on_the_unit_interval(drawn: People) -> None:
    predictions = lp.Predictions.from_arrays(
        None,
        64.0 + 128.0 * drawn.scores,
        sensitive_features=drawn.groups,
        sample_weight=drawn.weights,
        score_range=(64, 192),
    )
    counts = lp.ScoreCounts.from_predictions(predictions)
    (pool,) = pools_of(counts, Comparison())
    np.testing.assert_allclose(pool.unit_knots, np.unique(drawn.scores), rtol=0, atol=1e-12)
    for group, sample in enumerate(drawn.samples(weighted=True)):
        total = sum(weight for _, weight in sample)
        squares = sum(weight**2 for _, weight in sample)
        assert pool.sizes[group] == len(sample)
        assert pool.totals[group] == pytest.approx(float(total))
        assert pool.squares[group].sum() == pytest.approx(float(squares))
        assert pool.effective_sizes[group] == pytest.approx(float(total**2 / squares))


@pytest.mark.parametrize("kind", ["plain", "weights", "clusters"])
def test_only_independent_rows_of_one_weight_are_exchangeable(kind: str) -> None:
    options: dict[str, Any] = {
        "weights": {"sample_weight": [1.0, 1.0, 1.0, 1.0]},
        "clusters": {"cluster": [0, 1, 2, 3]},
    }.get(kind, {})
    predictions = lp.Predictions.from_arrays(
        None, [0.1, 0.2, 0.3, 0.4], sensitive_features=["a", "a", "b", "b"], **options
    )
    counts = lp.ScoreCounts.from_predictions(predictions)
    (pool,) = pools_of(counts, Comparison())
    assert counts.exchangeable == pool.exchangeable == (kind == "plain")
    assert pool.coarsened(2).exchangeable == pool.exchangeable


def test_a_pool_is_coarse_from_32769_scores_on_and_sooner_for_many_pairs() -> None:
    scores = (np.arange(2**15) + 0.5) / 2**15
    rows = np.ones((2, 2**15), dtype=np.int64)
    pool = Pool.of_rows(scores, rows)
    assert pool.coarsened(2**15) is pool
    finer = Pool.of_rows(np.append(scores, 1.0), np.hstack([rows, rows[:, :1]]))
    coarse = finer.coarsened(2**15)
    assert coarse.unit_knots.size == 2**15
    np.testing.assert_array_equal(coarse.weights.sum(axis=1), finer.weights.sum(axis=1))

    def knots(groups: int, rows: int) -> int:
        places = (np.arange(rows) + 0.5) / rows
        predictions = lp.Predictions.from_arrays(None, places, sensitive_features=np.arange(rows) % groups)
        counts = lp.ScoreCounts.from_predictions(predictions)
        (found,) = pools_of(counts, Comparison())
        return found.unit_knots.size

    assert knots(2, 40_000) == 2**15
    assert knots(100, 40_000) <= 2**24 // 4950 < knots(50, 40_000) <= 2**15


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_a_coarser_pool_keeps_the_last_knot_of_each_part(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 4, (2, 30))
    rows[:, 0] += 1
    coarse = Pool.of_rows(np.arange(30) / 30, rows).coarsened(parts)
    shares = [[Fraction(int(n), int(group.sum())) for n in group] for group in rows]
    below = [sum(sum(share[: knot + 1]) for share in shares) / 2 for knot in range(30)]
    part = [-(-share * parts // 1) for share in below]
    kept = [knot for knot in range(30) if knot == 29 or part[knot + 1] > part[knot]]
    assert coarse.unit_knots.tolist() == [knot / 30 for knot in kept]
    for group, fine in zip(coarse.weights, rows, strict=True):
        np.testing.assert_array_equal(np.cumsum(group), np.cumsum(fine)[kept])


def test_a_coarser_pool_has_the_same_distributions_at_fewer_thresholds() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, (3, 1000))
    rows[:, 500] = 900  # a score that many people share stays one threshold
    pool = Pool.of_rows(np.sort(rng.random(1000)), rows)
    coarse = pool.coarsened(64)
    assert 32 < coarse.unit_knots.size <= 64
    kept = np.isin(pool.unit_knots, coarse.unit_knots)
    for compare in ("between_groups", "to_overall"):
        fine, seen = (
            each.distributions(each.weights, Comparison(compare=compare)) for each in (pool, coarse)
        )
        np.testing.assert_array_equal(fine[:, kept], seen)
    shares = coarse.weights / coarse.sizes[:, None]
    assert (shares.mean(axis=0) > 1.5 / 64).sum() == 1


@given(people(n_groups=3), st.integers(0, 2**32))
def test_a_deal_keeps_the_sizes_and_the_people(drawn: People, seed: int) -> None:
    pool = pool_of(drawn)
    for rows in (pool.rows, 40 * pool.rows):  # row by row where they are few to a cell, else knot by knot
        dealt = Pool.of_rows(pool.unit_knots, rows).deal(np.random.default_rng(seed))
        np.testing.assert_array_equal(dealt.sum(axis=1), rows.sum(axis=1))
        np.testing.assert_array_equal(dealt.sum(axis=0), rows.sum(axis=0))


@pytest.mark.parametrize("times", [1, 30])
def test_dealing_follows_the_hypergeometric_distribution(times: int) -> None:
    rows = times * np.array([[3, 1], [2, 2], [0, 1]])
    pool = Pool.of_rows(np.array([0.1, 0.2]), rows)
    dealt = np.array([pool.deal(stream) for stream in np.random.default_rng(1).spawn(3000)])
    for group, size in enumerate((4, 4, 1)):
        expected = hypergeom(9 * times, 5 * times, size * times)
        assert dealt[:, group, 0].mean() == pytest.approx(expected.mean(), abs=0.06 * times**0.5)
        assert dealt[:, group, 0].var() == pytest.approx(expected.var(), rel=0.12)


@pytest.mark.parametrize("people", [10**9 - 1, 10**9])
def test_people_are_dealt_up_to_where_numpy_deals_and_drawn_from_there_on(people: int) -> None:
    rows = np.array([[people // 2, 0], [0, people - people // 2]])
    dealt = Pool.of_rows(np.array([0.1, 0.2]), rows).deal(np.random.default_rng(0))
    np.testing.assert_array_equal(dealt.sum(axis=1), rows.sum(axis=1))
    # Dealing hands everybody out; of as many drawn, some come twice.
    assert (dealt.sum(axis=0) == rows.sum(axis=0)).all() == (people < 10**9)
    np.testing.assert_allclose(dealt / people, 0.25, atol=1e-4)


def test_dealing_from_a_coarser_pool_is_dealing_from_all_seen_at_fewer_thresholds() -> None:
    rng = np.random.default_rng(1)
    pool = Pool.of_rows(np.sort(rng.random(400)), rng.integers(0, 3, (2, 400)))
    coarse = pool.coarsened(40)
    kept = np.isin(pool.unit_knots, coarse.unit_knots)

    def dealt(each: Pool, chosen: Any, seed: int) -> Any:
        streams = np.random.default_rng(seed).spawn(2000)
        return np.array([each.dealt(Comparison(), stream)[0] for stream in streams])[:, chosen]

    fine, seen = dealt(pool, kept, 0), dealt(coarse, slice(None), 1)
    error = fine.std(axis=0) * np.sqrt(2 / 2000) + 1e-12
    assert (np.abs(fine.mean(axis=0) - seen.mean(axis=0)) < 5 * error).all()
    np.testing.assert_allclose(np.cov(fine.T), np.cov(seen.T), atol=0.15 * fine.var(axis=0).max())
    most = [np.abs(each - each.mean(axis=0)).max(axis=1) for each in (fine, seen)]
    assert ks_2samp(*most).pvalue > 1e-4


def deviation_of(values: Any, weights: Any, clusters: Any, thresholds: Any) -> Any:
    """The standard deviation of a weighted share at each threshold by its definition, pseudo-rows included."""
    totals = np.bincount(clusters, weights)
    supposed = 2.0 * totals[totals > 0].max()
    all_weight = weights.sum() + 2 * supposed
    found = []
    for y in thresholds:
        below = (values <= y).astype(float)
        share = ((weights * below).sum() + supposed) / all_weight
        each = np.bincount(clusters, weights * (below - share))
        degrees = (totals**2).sum() ** 2 / (totals**4).sum()
        inflation = t.ppf(0.975, degrees) / norm.ppf(0.975)
        ends = 2 * (supposed / 2) ** 2 * ((1 - share) ** 2 + share**2)
        found.append(np.sqrt(inflation**2 * (each**2).sum() + ends) / weights.sum())
    return np.array(found)


@pytest.mark.parametrize("kind", ["plain", "weights", "clusters", "weights and clusters"])
def test_deviations_are_as_large_as_the_rows_contributions(kind: str) -> None:
    rng = np.random.default_rng(3)
    scores, groups = rng.random(60).round(2), np.repeat([0, 1], [40, 20])
    weights = rng.lognormal(0, 0.7, 60) if "weights" in kind else np.ones(60)
    clusters = np.arange(60) // 3 if "clusters" in kind else np.arange(60)
    predictions = lp.Predictions.from_arrays(
        None,
        scores,
        sensitive_features=groups,
        sample_weight=weights if "weights" in kind else None,
        cluster=clusters if "clusters" in kind else None,
    )
    (pool,) = pools_of(lp.ScoreCounts.from_predictions(predictions), Comparison())
    drawn = np.array([pool.deviated(Comparison(), rng) for _ in range(6000)])
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=0.01)
    for group in (0, 1):
        among = groups == group
        expected = deviation_of(scores[among], weights[among], clusters[among], pool.unit_knots)
        np.testing.assert_allclose(drawn[:, group].std(axis=0), expected, rtol=0.08)


def test_a_cluster_in_two_groups_moves_both() -> None:
    rng = np.random.default_rng(0)
    couples, scores = np.repeat(np.arange(200), 2), np.repeat(rng.random(200), 2)
    options: dict[str, Any] = {"sensitive_features": np.tile([0, 1], 200)}

    def gap(**more: Any) -> float:
        rows = lp.Predictions.from_arrays(None, scores, **options, **more)
        (pool,) = pools_of(lp.ScoreCounts.from_predictions(rows), Comparison())
        drawn = np.array([pool.deviated(Comparison(), rng) for _ in range(500)])
        return float(np.abs(drawn[:, 0] - drawn[:, 1]).max(axis=1).mean())

    # The partners always have one score, so the groups cannot differ but at the ends that are supposed.
    assert gap(cluster=couples) < 0.35 * gap()


@given(people(n_groups=3))
def test_pairs_are_scaled_by_what_chance_does_to_them(drawn: People) -> None:
    pool = pool_of(drawn)
    sizes = pool.sizes.astype(float)
    between = pool.pairs(Comparison())
    np.testing.assert_array_equal([between.first, between.second], [[0, 0, 1], [1, 2, 2]])
    expected = [np.sqrt(sizes[a] * sizes[b] / (sizes[a] + sizes[b])) for a, b in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(between.scale, expected)
    overall = pool.pairs(Comparison(compare="to_overall"))
    np.testing.assert_array_equal([overall.first, overall.second], [[0, 1, 2], [3, 3, 3]])
    everyone = sizes.sum()
    np.testing.assert_allclose(overall.scale, np.sqrt(sizes * everyone / (everyone - sizes)))


def test_a_deviation_from_everyone_counts_ones_own_share() -> None:
    rng = np.random.default_rng(5)
    rows = lp.Predictions.from_arrays(
        None, rng.random(300), sensitive_features=rng.integers(0, 3, 300), sample_weight=np.full(300, 2.0)
    )
    (pool,) = pools_of(lp.ScoreCounts.from_predictions(rows), Comparison(compare="to_overall"))
    drawn = np.array([pool.deviated(Comparison(compare="to_overall"), rng) for _ in range(3000)])
    shares = pool.totals / pool.totals.sum()
    middle = pool.unit_knots.size // 2
    combined = np.einsum("g,dgk->dk", shares, drawn[:, :3])
    np.testing.assert_allclose(drawn[:, 3, middle].std(), combined[:, middle].std(), rtol=0.1)


def test_a_pool_is_frozen_and_equal_to_itself_alone() -> None:
    rows = np.array([[1, 0], [0, 1]])
    pool = Pool.of_rows(np.array([0.1, 0.2]), rows)
    assert pool.coarsened(2) == pool != Pool.of_rows(np.array([0.1, 0.2]), rows)
    with pytest.raises(FrozenInstanceError):
        pool.rows = rows  # type: ignore[misc]
    assert _pool.MOST_KNOTS == 2**15
