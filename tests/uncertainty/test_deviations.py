"""The multiplier bootstrap: deviations as large as what the rows contribute, at common thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t

import localparity as lp
from localparity.counts import Comparison
from localparity.metrics._gap_curve import gap_curves
from localparity.uncertainty._deviations import Deviations, common_knots, deviations_of
from strategies import People, people


def counts_of(drawn: People, **options: Any) -> lp.ScoreCounts:
    predictions = lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups, **options)
    return lp.ScoreCounts.from_predictions(predictions)


@given(people(n_groups=2))
def test_groups_lie_on_the_unit_interval(drawn: People) -> None:
    predictions = lp.Predictions.from_arrays(
        None,
        64.0 + 128.0 * drawn.scores,
        sensitive_features=drawn.groups,
        sample_weight=drawn.weights,
        score_range=(64, 192),
    )
    (found,) = deviations_of(lp.ScoreCounts.from_predictions(predictions), Comparison())
    np.testing.assert_allclose(found.unit_knots, np.unique(drawn.scores), rtol=0, atol=1e-12)
    for group, sample in enumerate(drawn.samples(weighted=True)):
        total = sum(weight for _, weight in sample)
        squares = sum(weight**2 for _, weight in sample)
        assert found.totals[group] == pytest.approx(float(total))
        assert found.squares[group].sum() == pytest.approx(float(squares))
        assert found.effective_sizes[group] == pytest.approx(float(total**2 / squares))


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_at_fewer_thresholds_the_distributions_are_the_same(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = lp.Predictions.from_arrays(
        None, np.append(rng.integers(0, 31, 60) / 30, [0.5, 0.5]), sensitive_features=np.arange(62) % 2
    )
    counts = lp.ScoreCounts.from_predictions(drawn)
    stratum = {group: atoms for (group, _), atoms in counts.atoms.items()}
    knots = common_knots(stratum, parts)
    found = Deviations.of_stratum(stratum, parts)
    np.testing.assert_array_equal(found.unit_knots, knots)
    assert knots[-1] == drawn.scores.max()
    for weights, atoms in zip(found.weights, stratum.values(), strict=True):
        np.testing.assert_allclose(np.cumsum(weights) / 31, atoms.shares_at_or_below(knots))


def test_many_scores_are_seen_at_8192_thresholds_and_at_fewer_for_many_pairs() -> None:
    def knots(groups: int, rows: int) -> int:
        places = (np.arange(rows) + 0.5) / rows
        predictions = lp.Predictions.from_arrays(None, places, sensitive_features=np.arange(rows) % groups)
        (found,) = deviations_of(lp.ScoreCounts.from_predictions(predictions), Comparison())
        return found.unit_knots.size

    assert knots(2, 2**13) == knots(2, 20_000) == 2**13
    assert knots(100, 20_000) == 2**10 < knots(10, 20_000) <= 2**18 // 45


@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
def test_what_is_seen_is_what_the_people_measure(compare: Any) -> None:
    rng = np.random.default_rng(0)
    predictions = lp.Predictions.from_arrays(
        None, rng.random(300), sensitive_features=np.arange(300) % 3, sample_weight=rng.random(300) + 0.5
    )
    counts, comparison = lp.ScoreCounts.from_predictions(predictions), Comparison(compare=compare)
    (found,) = deviations_of(counts, comparison)
    expected = [curve.mcdp_at(np.array([0.0, 0.03])) for curve in gap_curves(counts, comparison)]
    np.testing.assert_allclose(found.seen(comparison, np.array([0.0, 0.03])), expected, atol=1e-12)


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
    (found,) = deviations_of(lp.ScoreCounts.from_predictions(predictions), Comparison())
    drawn = np.array([found.deviated(Comparison(), rng) for _ in range(6000)])
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=0.01)
    for group in (0, 1):
        among = groups == group
        expected = deviation_of(scores[among], weights[among], clusters[among], found.unit_knots)
        np.testing.assert_allclose(drawn[:, group].std(axis=0), expected, rtol=0.08)


def test_a_cluster_in_two_groups_moves_both() -> None:
    rng = np.random.default_rng(0)
    couples, scores = np.repeat(np.arange(200), 2), np.repeat(rng.random(200), 2)
    options: dict[str, Any] = {"sensitive_features": np.tile([0, 1], 200)}

    def gap(**more: Any) -> float:
        rows = lp.Predictions.from_arrays(None, scores, **options, **more)
        (found,) = deviations_of(lp.ScoreCounts.from_predictions(rows), Comparison())
        drawn = np.array([found.deviated(Comparison(), rng) for _ in range(500)])
        return float(np.abs(drawn[:, 0] - drawn[:, 1]).max(axis=1).mean())

    # The partners always have one score, so the groups cannot differ but at the ends that are supposed.
    assert gap(cluster=couples) < 0.35 * gap()


def test_a_deviation_from_everyone_counts_ones_own_share() -> None:
    rng = np.random.default_rng(5)
    rows = lp.Predictions.from_arrays(
        None, rng.random(300), sensitive_features=rng.integers(0, 3, 300), sample_weight=np.full(300, 2.0)
    )
    (found,) = deviations_of(lp.ScoreCounts.from_predictions(rows), Comparison(compare="to_overall"))
    drawn = np.array([found.deviated(Comparison(compare="to_overall"), rng) for _ in range(3000)])
    shares = found.totals / found.totals.sum()
    middle = found.unit_knots.size // 2
    combined = np.einsum("g,dgk->dk", shares, drawn[:, :3])
    np.testing.assert_allclose(drawn[:, 3, middle].std(), combined[:, middle].std(), rtol=0.1)


@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
def test_the_farthest_two_deviations_each_at_a_threshold_of_its_own(compare: str) -> None:
    rng = np.random.default_rng(4)
    rows = lp.Predictions.from_arrays(
        None, rng.random(60), sensitive_features=np.arange(60) % 3, sample_weight=rng.random(60)
    )
    comparison = Comparison(compare=compare)
    (found,) = deviations_of(lp.ScoreCounts.from_predictions(rows), comparison)
    drawn = found.deviated(comparison, np.random.default_rng(5))
    drawn = np.hstack([np.zeros((len(drawn), 1)), drawn])
    expected = max(
        scale * abs(one - other)
        for first, second, scale in zip(*found.pairs(comparison), strict=True)
        for one in drawn[first]
        for other in drawn[second]
    )
    assert found.farthest(comparison, np.random.default_rng(5)) == pytest.approx(expected)
