"""The parts that cells are halved into, and MCDP where nothing is left to chance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, hypergeom

import localparity as lp
from localparity.counts import Comparison
from localparity.metrics._profile import runs_of
from localparity.uncertainty import _kernels as _part_kernels
from localparity.uncertainty import _permutation as _pool
from localparity.uncertainty._kernels import hypergeometric, worst_of_deal
from localparity.uncertainty._permutation import Pool, parity_resamples, window_arrays
from localparity.uncertainty._resampling import Draws


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("good", "bad", "sample"), [(1, 1, 1), (5, 3, 4), (120, 130, 125), (3, 240, 60), (0, 4, 2)]
)
def test_halves_are_hypergeometric(good: int, bad: int, sample: int) -> None:
    rng = np.random.default_rng(0)
    log_factorials = np.append(0.0, np.cumsum(np.log(np.arange(1, good + bad + 1))))
    found = np.array([hypergeometric(good, bad, sample, log_factorials, rng.random()) for _ in range(5000)])
    expected = 5000 * hypergeom(good + bad, good, sample).pmf(np.arange(good + 1))
    observed = np.bincount(found, minlength=good + 1)
    often = expected >= 8
    rare = [5000 - each[often].sum() for each in (observed, expected)]
    assert rare[0] < rare[1] + 5 * np.sqrt(rare[1] + 1)
    if np.count_nonzero(often) > 1:
        scaled = expected[often] * observed[often].sum() / expected[often].sum()
        assert chisquare(observed[often], scaled).pvalue > 1e-3


def test_no_half_has_more_than_there_are() -> None:
    log_factorials = np.append(0.0, np.cumsum(np.log(np.arange(1, 200))))
    rng = np.random.default_rng(0)
    found = {hypergeometric(3, 100, 20, log_factorials, rng.random()) for _ in range(300)}
    assert found == {0, 1, 2, 3}


def blocks(rng: np.random.Generator) -> Any:
    """People in blocks of one group each, a block a cell, with ties and with scores at 0 and 1."""
    groups = np.repeat(rng.integers(0, 3, 24), rng.integers(1, 9, 24))
    groups[:3] = [0, 1, 2]
    changes = np.flatnonzero(groups[1:] != groups[:-1])
    scores = np.unique(rng.integers(0, 400, groups.size))
    scores = np.append(scores, np.arange(400, 400 + groups.size - scores.size)) / (400 + groups.size)
    scores[0] = 0.0 if rng.random() < 0.5 else scores[0]
    return groups, np.append(changes, groups.size - 1), scores


@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("seed", range(12))
def test_where_a_cell_has_one_group_nothing_is_left_to_chance(compare: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups, ends, scores = blocks(rng)
    people = rng.integers(1, 4, groups.size)
    at = np.zeros((4, groups.size))
    at[groups, np.arange(groups.size)] = people
    at[3] = people
    pool = Pool(at[:3].sum(axis=1).astype(np.int64), scores, people, ends)
    counted = at if compare == "to_overall" else at[:3]
    dealt = np.add.reduceat(counted, np.append(0, ends[:-1] + 1), axis=1).astype(np.int64)
    pairs, reach = pool.pairs(Comparison(compare=compare)), np.array([0.0, 0.004, 0.03, 0.1])
    cells = pool._cell_arrays
    worst, scaled = worst_of_deal(dealt, tuple(pairs), cells, window_arrays(cells, reach), rng)
    shares = np.cumsum(at, axis=1) / at.sum(axis=1)[:, None]
    expected = np.zeros((len(pairs.first), reach.size))
    for row, (first, second) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        gap = shares[first] - shares[second]
        gap[-1] = 0.0
        half_widths, values, _ = runs_of(scores, gap)
        expected[row] = [values[(half_widths > each) | (each == 0.0)].max(initial=0.0) for each in reach]
    np.testing.assert_allclose(worst, expected.max(axis=0), atol=1e-12)
    np.testing.assert_allclose(scaled, (expected * pairs.scale[:, None]).max(axis=0), atol=1e-9)


def test_parts_find_room_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pool, "MOST_MEASURED", 0)
    scores = np.random.default_rng(0).random(3000)
    predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=np.arange(3000) % 2)
    counts = lp.ScoreCounts.from_predictions(predictions)
    given = counts, Comparison(), np.array([0.0, 0.01, 0.1]), Draws(3, 0)
    expected = parity_resamples(*given)
    monkeypatch.setattr(_part_kernels, "_ROOM", 0)
    assert parity_resamples(*given).worst.tolist() == expected.worst.tolist()
