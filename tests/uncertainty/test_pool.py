"""The pool under parity: what is measured of its resamples is what dealing everybody one by one would give."""

from __future__ import annotations

from collections import Counter
from dataclasses import FrozenInstanceError
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import chisquare, ks_2samp

import localparity as lp
import oracles
from localparity.counts import Comparison
from localparity.uncertainty import _permutation as _pool
from localparity.uncertainty._permutation import Pool, equal_cells, pools_of
from strategies import People, people


def pool_of(scores: Any, groups: Any, **options: Any) -> Pool:
    predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    (pool,) = pools_of(lp.ScoreCounts.from_predictions(predictions), Comparison(**options))
    return pool


def test_few_scores_are_cells_of_their_own_and_many_share_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, groups = (np.arange(10_000) + 0.5) / 10_000, np.arange(10_000) % 2
    assert pool_of(scores, groups).ends.size == 10_000
    monkeypatch.setattr(_pool, "MOST_MEASURED", 9999)
    pool = pool_of(scores, groups)
    assert pool.ends.size == 500
    assert set(pool.dealer.people.tolist()) == {20}


def test_a_score_that_many_share_is_a_cell_of_its_own() -> None:
    rows = np.ones(1000, dtype=np.int64)
    rows[[0, 500, 999]] = 900
    ends = equal_cells(rows, 100)
    people = np.add.reduceat(rows, np.append(0, ends[:-1] + 1))
    assert {0, 499, 500, 998, 999} <= set(ends.tolist())
    assert sorted(people.tolist())[-3:] == [900, 900, 900]
    assert people.sum() == rows.sum()
    assert np.delete(people, np.flatnonzero(people == 900)).max() <= 37


@given(people(n_groups=3))
def test_a_pool_counts_all_groups_together(drawn: People) -> None:
    pool = pool_of(drawn.scores, drawn.groups)
    scores, rows = np.unique(drawn.scores, return_counts=True)
    np.testing.assert_allclose(pool.scores, scores, atol=1e-12)
    np.testing.assert_array_equal(pool.people, rows)
    np.testing.assert_array_equal(pool.sizes, np.bincount(drawn.groups))


@given(people(n_groups=3))
def test_pairs_are_scaled_by_what_chance_does_to_them(drawn: People) -> None:
    pool = pool_of(drawn.scores, drawn.groups)
    sizes = pool.sizes.astype(float)
    between = pool.pairs(Comparison())
    np.testing.assert_array_equal([between.first, between.second], [[0, 0, 1], [1, 2, 2]])
    expected = [np.sqrt(sizes[a] * sizes[b] / (sizes[a] + sizes[b])) for a, b in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(between.scale, expected)
    overall = pool.pairs(Comparison(compare="to_overall"))
    np.testing.assert_array_equal([overall.first, overall.second], [[0, 1, 2], [3, 3, 3]])
    everyone = sizes.sum()
    np.testing.assert_allclose(overall.scale, np.sqrt(sizes * everyone / (everyone - sizes)))


PLACES = (0, 6, 13, 20, 21, 30, 47, 60, 90)
CELLS = {"scores": range(9), "cells": (0, 4, 8), "one cell": (8,)}


@cache
def mcdp_of_every_deal(rows: tuple[int, ...], sizes: tuple[int, ...], compare: str) -> Counter[float]:
    """How often each MCDP(0.03) is that of a deal, by rational arithmetic."""
    scores = [Fraction(place, 100) for place, times in zip(PLACES, rows, strict=True) for _ in range(times)]
    worst = oracles.worst_pair if compare == "between_groups" else oracles.worst_to_overall
    return Counter(
        round(float(worst(deal, lambda a, b: oracles.mcdp(a, b, Fraction(3, 100)))), 9)
        for deal in oracles.every_deal(scores, sizes)
    )


@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize(
    ("rows", "sizes"),
    [((1,) * 9, (3, 6)), ((1,) * 9, (1, 8)), ((1, 0, 0, 2, 1, 1, 0, 1, 1), (2, 2, 3))],
)
def test_resamples_measure_what_every_deal_does(cells: str, compare: Any, rows: Any, sizes: Any) -> None:
    expected = mcdp_of_every_deal(rows, sizes, compare)
    kept = np.flatnonzero(rows)
    ends = np.unique(np.searchsorted(kept, CELLS[cells], side="right") - 1)
    pool = Pool(np.array(sizes), np.array(PLACES)[kept] / 100, np.array(rows)[kept], ends)
    measure = pool.measuring(Comparison(compare=compare), np.array([0.03 + 1e-15])).measure
    found = Counter(measure(np.random.default_rng(0).spawn(1000))[:, 0].round(9).tolist())
    assert set(found) <= set(expected)
    values = sorted(expected, key=expected.__getitem__)
    wanted = 1000 * np.array([expected[value] for value in values]) / expected.total()
    observed = np.array([found[value] for value in values])
    # The rarest together, so that at least five of them are expected.
    rare = np.searchsorted(np.cumsum(wanted), 5)
    wanted, observed = (np.append(each[: rare + 1].sum(), each[rare + 1 :]) for each in (wanted, observed))
    assert wanted.size == 1 or chisquare(observed, wanted).pvalue > 1e-3


def scores_of(kind: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    if kind == "ties":
        scores = np.concatenate([rng.random(3000).round(3), np.zeros(500), np.full(1500, 0.4)])
        return scores, np.repeat([0, 1], [1500, 3500])
    sizes = {"halves": [2000, 2000], "100:1": [40, 4000], "five": [60, 440, 1000, 1200, 1300]}[kind]
    return rng.beta(2, 5, sum(sizes)), np.repeat(np.arange(len(sizes)), sizes)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["halves", "100:1", "ties", "five"])
def test_resamples_measure_what_shuffled_groups_do(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, groups = scores_of(kind)
    rng = np.random.default_rng(5)
    epsilons = np.array([0.0, 0.01, 0.1])
    shuffled = np.array(
        [
            lp.mcdp_profile(None, scores, sensitive_features=rng.permutation(groups))(epsilons)
            for _ in range(400)
        ]
    )
    for most in (0, 10**6):
        monkeypatch.setattr(_pool, "MOST_MEASURED", most)
        pool = pool_of(scores, groups)
        assert (pool.ends.size < 400) == (most == 0)
        dealt = pool.measuring(Comparison(), epsilons).measure(np.random.default_rng(2).spawn(800))
        # What is negligible is rounded up.
        least = 1.001e-3 / pool.pairs(Comparison()).scale.min()
        for column in range(3):
            both = (np.maximum(each[:, column], least) for each in (dealt, shuffled))
            assert ks_2samp(*both).pvalue > 1e-3
        np.testing.assert_allclose(np.corrcoef(dealt[:, :3].T), np.corrcoef(shuffled.T), atol=0.15)


def test_a_pool_is_frozen_and_equal_to_itself_alone() -> None:
    numbers = np.array([1, 1])
    pool = Pool.of_people(numbers, np.array([0.1, 0.2]), numbers, 1)
    assert pool != Pool.of_people(numbers, np.array([0.1, 0.2]), numbers, 1)
    with pytest.raises(FrozenInstanceError):
        pool.people = numbers  # type: ignore[misc]
