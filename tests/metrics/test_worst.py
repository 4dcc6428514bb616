"""The worst pair's MCDP from a table of cells is that of all rows sorted, also where cells are cut again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.counts import Comparison
from localparity.counts import _cells as _cell_counts
from localparity.metrics import _exact, _worst
from localparity.metrics._gap_curve import gap_between, gap_curves
from localparity.metrics._kernels import with_finer

EPSILONS = np.array([0.0, 0.01, 0.05])


def sample(rows: int, **options: Any) -> lp.Predictions:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, rows)
    labels, scores = rng.integers(0, 2, rows), rng.beta(2 + groups, 3)
    return lp.Predictions.from_arrays(labels, scores, sensitive_features=groups, **options)


def expected(predictions: lp.Predictions, comparison: Comparison) -> list[float]:
    counts = lp.ScoreCounts.from_predictions(predictions)
    return np.max([curve.mcdp_at(EPSILONS) for curve in gap_curves(counts, comparison)], axis=0).tolist()


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_cells_that_are_cut_again_and_threads(
    monkeypatch: pytest.MonkeyPatch, criterion: Any, compare: Any, weighted: bool, n_jobs: int
) -> None:
    monkeypatch.setattr(_worst, "_MANY_ROWS", 0)
    monkeypatch.setattr(_cell_counts, "_MANY_ROWS", 0)
    weights = np.random.default_rng(1).exponential(size=3000) if weighted else None
    predictions, comparison = sample(3000, sample_weight=weights), Comparison(criterion, compare)
    found = _worst.worst_in_cells(predictions, comparison, EPSILONS, n_jobs)
    assert found.tolist() == expected(predictions, comparison)


def test_a_range_as_wide_as_floats_go() -> None:
    rng = np.random.default_rng(2)
    groups = np.arange(3000) % 2
    scores = 10.0 ** rng.uniform(-300, 308, 3000) * (1 - 0.5 * groups)
    ends = 0.0, float(np.finfo(np.float64).max)
    predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=groups, score_range=ends)
    found = _worst.worst_in_cells(predictions, Comparison(), EPSILONS, 1)
    assert found.tolist() == expected(predictions, Comparison())


def apart(rows: int) -> lp.Predictions:
    """Groups so far apart that few rows decide."""
    rng = np.random.default_rng(3)
    groups = np.arange(rows) % 2
    return lp.Predictions.from_arrays(None, rng.beta(2, 2 + 4 * groups), sensitive_features=groups)


@pytest.mark.parametrize(("few", "places"), [(0, 2**26), (8000, 2**26), (0, 1)])
def test_counts_of_all_pairs(monkeypatch: pytest.MonkeyPatch, few: int, places: int) -> None:
    monkeypatch.setattr(_exact, "_FEW_ROWS", few)
    monkeypatch.setattr(_exact, "_MOST_PLACES", places)
    predictions = apart(10_000)
    counts = _exact.count_for(predictions, Comparison(), EPSILONS)
    assert (counts.cells is None) == (places == 1)
    assert lp.mcdp(counts, epsilon=EPSILONS).tolist() == expected(predictions, Comparison())


def test_counts_of_one_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_exact, "_FEW_ROWS", 0)
    predictions, comparison = sample(3000), Comparison("equal_opportunity")
    counts = _exact.count_for(predictions, comparison, EPSILONS)
    found = lp.mcdp(counts, epsilon=EPSILONS, criterion="equal_opportunity")
    assert found.tolist() == expected(predictions, comparison)


@pytest.mark.parametrize("distinct", [1, 2, 300, 10_000])
def test_rows_that_share_a_score_are_counted_together(distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    scores, groups = rng.integers(0, distinct, 20_000) / 10_000, rng.integers(0, 3, 20_000)
    counts = lp.ScoreCounts.from_predictions(
        lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    )
    epsilons = [0.0, 0.001, 0.05]
    found = lp.mcdp(None, scores, sensitive_features=groups, epsilon=epsilons)
    np.testing.assert_array_equal(found, [lp.mcdp(counts, epsilon=epsilon) for epsilon in epsilons])


def crowded(rows: int) -> tuple[Any, Any]:
    """Every sampled score within fewer floats than there are cells, and half of the rows far below them."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, rows)
    scores = 0.5 + rng.integers(0, 4000, rows) * 2.0**-53
    low = rng.random(rows) < 0.5
    low[:: rows // _worst._SAMPLED] = False
    scores[low] = 0.5 * rng.random(low.sum())
    scores[low & (groups == 1)] **= 1.5
    return scores, groups


def test_a_sample_within_fewer_floats_than_cells() -> None:
    scores, groups = crowded(2**17)
    profile = lp.mcdp_profile(None, scores, sensitive_features=groups)
    found = [lp.mcdp(None, scores, sensitive_features=groups) for _ in range(4)]
    assert found == [profile(0.0)] * 4


def test_a_range_of_few_floats() -> None:
    rng = np.random.default_rng(0)
    rows, last = 2**17, 2.0**-52
    groups, places = rng.integers(0, 2, rows), rng.integers(0, 2**16, rows)
    places[groups == 1] = np.minimum(2**16 - 1, places[groups == 1] + 20_000)
    places[::512] = np.arange(256)
    people: dict[str, Any] = {"sensitive_features": groups, "score_range": (1.0, 1.0 + 2**16 * last)}
    scores = 1.0 + places * last
    assert lp.mcdp(None, scores, epsilon=0.1, **people) == lp.mcdp_profile(None, scores, **people)(0.1)


@pytest.mark.parametrize("kernel", ["plain", "dispatcher"])
def test_finer_steps_that_are_not_those_opened(kernel: str) -> None:
    # What was not written must not be read: steps of other rows are an error, not a number.
    ends, entries = np.array([0.25, 0.5]), np.ones((2, 1, 1), dtype=np.int64)
    steps = np.arange(2), ends, ends, entries
    opened, finer = np.array([True, False]), (np.arange(2), ends, np.array([0.2, 0.9]), entries)
    with pytest.raises(AssertionError, match="finer"):
        getattr(with_finer, kernel)(steps, opened, finer)


def test_a_gap_above_one() -> None:
    with pytest.raises(AssertionError, match=r"got 2\.0"):
        gap_between(np.array([0, 2]), np.array([0, 0]), np.int64(1), np.int64(1))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_are_cut_until_their_rows_can_be_sorted(
    monkeypatch: pytest.MonkeyPatch, weighted: bool, n_jobs: int
) -> None:
    monkeypatch.setattr(_worst, "_MANY_ROWS", 0)
    monkeypatch.setattr(_worst, "_MOST_CELLS", 16)
    monkeypatch.setattr(_worst, "_MOST_PARTS", 16)
    weights = np.random.default_rng(1).exponential(size=3000) if weighted else None
    predictions = sample(3000, sample_weight=weights)
    for places, found in ((2**12, expected(predictions, Comparison())), (100, None)):
        monkeypatch.setattr(_worst, "_MOST_PLACES", places)
        monkeypatch.setattr(_worst, "_MOST_CUT", 2**20 if found else 2**5)
        worst = _worst.worst_in_cells(predictions, Comparison(), EPSILONS, n_jobs)
        assert (None if worst is None else worst.tolist()) == found
        by_mcdp = lp.mcdp(predictions, epsilon=EPSILONS)
        assert by_mcdp.tolist() == expected(predictions, Comparison())
