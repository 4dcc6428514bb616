"""Counts of tensors equal those of numpy, exactly, without all scores on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
from localparity.counts._coarsen import cell_edges, cell_numbers
from localparity.engines import _torch
from localparity.engines._torch import TorchScores
from localparity.engines.protocol import CellSelection
from scale_rows import (
    CRITERIA,
    EPSILONS,
    FAR_RANGES,
    FINE_EPSILONS,
    NARROW_RANGES,
    Rows,
    assert_exact,
    assert_same_counts,
    far_scores,
    make_rows,
    narrow_counts,
    narrow_scores,
)

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(scope="module")
def rows() -> Rows:
    found = make_rows(4000)
    return Rows(found.scores, np.unique(found.groups, return_inverse=True)[1], found.labels, found.weights)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_counts_are_those_of_numpy_bit_for_bit(rows: Rows, device: str, dtype: torch.dtype) -> None:
    scores = torch.tensor(rows.scores, dtype=dtype, device=device)
    groups, labels, weights = (
        torch.tensor(values, device=device) for values in (rows.groups, rows.labels, rows.weights)
    )
    exact = Rows(scores.cpu().numpy(), rows.groups, rows.labels, rows.weights)
    found = lp.engines.from_torch(scores, groups, y_true=labels, sample_weight=weights)
    assert_same_counts(found, exact.counts())
    plain = lp.engines.from_torch(scores, groups.to(torch.int8))
    assert_same_counts(plain, exact.counts(labelled=False, weighted=False))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("weighted", [False, True])
def test_on_a_grid_it_is_exact_where_it_was_asked(
    rows: Rows, device: str, criterion: Any, compare: Any, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TorchScores, "max_refined", 100)
    single = rows.scores.astype(np.float32)
    found = lp.engines.from_torch(
        torch.tensor(single, device=device),
        torch.tensor(rows.groups, device=device),
        y_true=torch.tensor(rows.labels, device=device),
        sample_weight=torch.tensor(rows.weights, device=device) if weighted else None,
        epsilons=EPSILONS,
        criterion=criterion,
        compare=compare,
        max_scores=200,
        level=5,
    )
    assert found.cells is not None
    exact = Rows(single, rows.groups, rows.labels, rows.weights).counts(weighted=weighted)
    for epsilon in EPSILONS:
        assert_exact(found, exact, epsilon=epsilon, criterion=criterion, compare=compare)


@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([(0.0, 1.0), (300.0, 850.0), (-1.0, 1.0)]))
def test_any_range_and_grid(seed: int, level: int, score_range: tuple[float, float]) -> None:
    rng = np.random.default_rng(seed)
    low, high = score_range
    scores = (low + (high - low) * rng.beta(2, 3, 3000)).astype(np.float32).clip(low, high)
    groups = rng.integers(0, 2, 3000)
    found = lp.engines.from_torch(
        torch.tensor(scores),
        torch.tensor(groups),
        score_range=score_range,
        max_scores=50,
        level=level,
    )
    for epsilon in EPSILONS:
        value = lp.mcdp(None, scores, sensitive_features=groups, epsilon=epsilon, score_range=score_range)
        assert lp.mcdp_bounds(found, epsilon=epsilon) == lp.results.Interval(value, value, value)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("score_range", NARROW_RANGES)
def test_ends_of_the_range_that_few_bits_cannot_hold(device: str, score_range: tuple[float, float]) -> None:
    scores, groups = narrow_scores(score_range), np.tile([0, 1], 1000)
    exact = narrow_counts(scores, groups, score_range)
    tensors = torch.tensor(scores, device=device), torch.tensor(groups, device=device)
    assert_same_counts(lp.engines.from_torch(*tensors, score_range=score_range), exact)
    found = lp.engines.from_torch(*tensors, score_range=score_range, max_scores=100, level=5)
    for epsilon in EPSILONS:
        assert_exact(found, exact, epsilon=epsilon)
    for level in (None, 8):
        metric = lp.monitoring.LocalDisparity(epsilon=0.01, level=level, score_range=score_range)
        metric.update(*tensors)
        bounds = metric.bounds()
        assert bounds.low <= lp.mcdp(exact, epsilon=0.01) <= bounds.high
    tensors[0][7] = float(np.nextafter(scores.max(), np.float32(2)))
    with pytest.raises(ValueError, match=r"y_score .*score_range.* at row 7"):
        lp.engines.from_torch(*tensors, score_range=score_range)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("score_range", [(0.0, 1.0), (300.0, 850.0), (-1.0, 1.0), (0.1, 0.7), (0.0, 3.0)])
def test_the_cells_of_the_metric_are_those_of_numpy(device: str, score_range: tuple[float, float]) -> None:
    """Also of the scores at the cells' edges, where one rounding more would put them into the next cell."""
    edges = cell_edges(np.arange(2**8 + 1), 8, score_range)
    scores = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    scores = scores.clip(*score_range)
    groups = np.arange(scores.size) % 2
    metric = lp.monitoring.LocalDisparity(level=8, score_range=score_range)
    metric.update(torch.tensor(scores, device=device), torch.tensor(groups, device=device))
    numbers = cell_numbers(scores, 8, score_range)
    expected = np.bincount(groups * (2**8 + 1) + numbers, minlength=2 * (2**8 + 1))
    np.testing.assert_array_equal(metric._cells.cpu().numpy(), expected)


def test_groups_of_any_whole_numbers() -> None:
    scores = torch.tensor([0.1, 0.5, 0.9])
    assert lp.engines.from_torch(scores, torch.tensor([True, False, True])).groups == (False, True)
    assert lp.engines.from_torch(scores, torch.tensor([-5, 10**12, 7])).groups == (-5, 7, 10**12)
    assert lp.engines.from_torch(scores, torch.tensor([3, 9, 3], dtype=torch.uint8)).groups == (3, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_score": torch.tensor([0.1, 1.5])}, r"y_score .*score_range \(0.0, 1.0\), got 1.5 at row 1"),
        ({"y_score": torch.tensor([float("nan"), 0.5])}, "y_score .*score_range.* got nan at row 0"),
        ({"y_score": torch.tensor([0, 1])}, "y_score .* torch.float16, .* got torch.int64"),
        ({"y_score": torch.empty(0)}, "y_score is empty"),
        ({"sensitive_features": torch.tensor([0])}, "sensitive_features has 1 rows, y_score has 2"),
        ({"sensitive_features": torch.tensor([0.0, 1.0])}, "sensitive_features .* got torch.float32"),
        ({"sensitive_features": torch.tensor([1, 1])}, "sensitive_features .* got 1 only"),
        ({"y_true": torch.tensor([0, 2])}, "y_true .* got 2 at row 1"),
        ({"y_true": torch.tensor([0, 1, 0])}, "y_true has 3 rows, y_score has 2"),
        ({"sample_weight": torch.tensor([1.0, -2.0])}, "sample_weight .*3.6e-15.* got -2 at row 1"),
        ({"sample_weight": torch.tensor([0.0, 2.0])}, "sample_weight .* group 0, got 0"),
        ({"score_range": (1, 0)}, r"score_range .* got \(1.0, 0.0\)"),
    ],
)
def test_what_does_not_fit_is_named(options: dict[str, Any], message: str) -> None:
    given_options = {
        "y_score": torch.tensor([0.1, 0.2]),
        "sensitive_features": torch.tensor([0, 1]),
        **options,
    }
    with pytest.raises(ValueError, match=message):
        lp.engines.from_torch(**given_options)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("score_range", FAR_RANGES)
def test_scores_of_any_size_are_counted_as_in_memory(device: str, score_range: tuple[float, float]) -> None:
    scores, groups = far_scores(score_range), np.tile([0, 1], 1000)
    exact = narrow_counts(scores, groups, score_range)
    tensors = torch.tensor(scores, device=device), torch.tensor(groups, device=device)
    assert_same_counts(lp.engines.from_torch(*tensors, score_range=score_range), exact)
    options: dict[str, Any] = {"max_scores": 100, "level": 5, "epsilons": FINE_EPSILONS}
    found = lp.engines.from_torch(*tensors, score_range=score_range, **options)
    for epsilon in FINE_EPSILONS:
        assert_exact(found, exact, epsilon=epsilon)
    metric = lp.monitoring.LocalDisparity(level=8, score_range=score_range)
    metric.update(*tensors)
    bounds = metric.bounds()
    assert bounds.low <= lp.mcdp(exact) <= bounds.high


SKEWED = {
    "all equal": lambda scores: np.full_like(scores, 0.3),
    "half equal": lambda scores: np.where(np.arange(scores.size) % 2, scores, np.float32(0.3)),
    "tiny": lambda scores: scores * np.float32(1e-30),
    "one cell": lambda scores: 0.5 + scores / 4096,
    "decimals": lambda scores: scores.round(2),
    "minus zero": lambda scores: np.where(scores < 0.4, np.float32(-0.0), scores),
}


@pytest.fixture(params=[0, 2**9, 2**14])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many parts of cells as fit, also on a CPU."""
    monkeypatch.setattr(_torch, "_PARTS", {"cpu": request.param, "cuda": request.param})


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_parts_of_cells_are_counted_once(dtype: Any, criterion: Any) -> None:
    rng = np.random.default_rng(0)
    groups, labels = rng.integers(0, 3, 30_001), rng.integers(0, 2, 30_001)
    scores = rng.beta(2, 3 + 0.3 * groups).astype(dtype)
    scores[::3] = 0.25
    for device in DEVICES:
        tensors = [torch.tensor(part, device=device) for part in (scores, groups, labels)]
        found = lp.engines.from_torch(
            *tensors[:2], y_true=tensors[2], criterion=criterion, epsilons=EPSILONS, max_scores=20, level=4
        )
        exact = lp.Predictions.from_arrays(labels, scores, sensitive_features=groups)
        for epsilon in EPSILONS:
            assert_exact(found, lp.ScoreCounts.from_predictions(exact), epsilon=epsilon, criterion=criterion)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("skew", SKEWED)
def test_scores_that_crowd_in_few_cells(device: str, skew: str) -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, 20_001).astype(np.int8)
    scores = SKEWED[skew](rng.beta(2, 3 + groups).astype(np.float32)).astype(np.float32)
    # Views that begin in the middle of a tensor are not aligned.
    tensors = torch.tensor(scores, device=device)[1:], torch.tensor(groups, device=device)[1:]
    exact = lp.Predictions.from_arrays(None, scores[1:], sensitive_features=groups[1:])
    found = lp.engines.from_torch(*tensors, epsilons=FINE_EPSILONS, max_scores=20, level=4)
    for epsilon in FINE_EPSILONS:
        assert_exact(found, lp.ScoreCounts.from_predictions(exact), epsilon=epsilon)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("score_range", [(0.0, 1.0), (300.0, 850.0)])
@pytest.mark.parametrize("skew", SKEWED)
def test_of_the_worst_pair_alone_mcdp_is_that_of_arrays(
    skew: str, score_range: tuple[float, float], criterion: Any, compare: Any
) -> None:
    rng = np.random.default_rng(0)
    groups, labels = rng.integers(0, 3, 20_001), rng.integers(0, 2, 20_001)
    low, high = score_range
    scores = SKEWED[skew](rng.beta(2, 3 + 0.3 * groups).astype(np.float32))
    scores = (low + (high - low) * scores).astype(np.float32)
    options: dict[str, Any] = {"criterion": criterion, "compare": compare}
    people = {"sensitive_features": groups, "score_range": score_range, "epsilon": FINE_EPSILONS}
    exact = lp.mcdp(labels, scores, **people, **options)
    for device in DEVICES:
        tensors = [torch.tensor(part, device=device) for part in (scores, groups, labels)]
        asked = {"epsilons": FINE_EPSILONS, "level": 6, "score_range": score_range, "worst_only": True}
        counts = lp.engines.from_torch(*tensors[:2], y_true=tensors[2], **asked, **options)
        assert lp.mcdp(counts, epsilon=FINE_EPSILONS, **options).tolist() == exact.tolist()


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_worst_pair_of_many_groups(dtype: torch.dtype, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    groups = torch.tensor(rng.integers(0, 12, 30_000))
    scores = torch.tensor(rng.beta(2, 3, 30_000)).to(dtype)
    weights = torch.tensor(rng.random(30_000)) if weighted else None
    counts = lp.engines.from_torch(
        scores, groups, sample_weight=weights, epsilons=EPSILONS, level=6, worst_only=True
    )
    exact = lp.mcdp(None, scores, sensitive_features=groups, sample_weight=weights, epsilon=EPSILONS)
    assert lp.mcdp(counts, epsilon=EPSILONS).tolist() == exact.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_a_group_that_no_sample_shows(device: str) -> None:
    scores = torch.linspace(0.0, 1.0, 100_000, device=device)
    groups = (torch.arange(100_000, device=device) % 2).to(torch.int8)
    groups[1] = -100
    groups[70_001] = 90
    found = lp.engines.from_torch(scores, groups)
    assert found.groups == (-100, 0, 1, 90)
    assert sum(found.atoms[90, None].rows) == 1


@pytest.mark.parametrize("device", DEVICES)
def test_a_source_counts_any_selection_again(device: str) -> None:
    """Also one that does not lie in the selection whose rows it kept, and one of most rows."""
    rng = np.random.default_rng(0)
    scores, groups = rng.random(30_000).astype(np.float32), rng.integers(0, 2, 30_000)
    source = TorchScores(torch.tensor(scores, device=device), torch.tensor(groups, device=device))
    assert source.count_cells(4).rows.sum() == scores.size
    at = {level: cell_numbers(scores.astype(float), level, (0.0, 1.0)) for level in (5, 18, 30)}
    selections = [
        (5, [3, 4, 20]),
        (18, [90_000, 140_000]),
        (5, list(range(1, 33))),
        (30, at[30][:50].tolist()),
    ]
    for level, numbers in selections:
        within = CellSelection(level, np.unique(numbers))
        inside = np.isin(cell_numbers(scores.astype(float), level, (0.0, 1.0)), within.numbers)
        counts, table = source.count_scores(within), source.count_cells(level + 3, within)
        for place, key in enumerate(table.keys):
            chosen = scores[inside & (groups == key[0])].astype(float)
            numbers, rows = np.unique(cell_numbers(chosen, level + 3, (0.0, 1.0)), return_counts=True)
            occupied = table.rows[:, place] > 0
            np.testing.assert_array_equal(table.numbers[occupied], numbers)
            np.testing.assert_array_equal(table.rows[occupied, place], rows)
            distinct, rows = np.unique(chosen, return_counts=True)
            np.testing.assert_array_equal(counts.atoms[key].scores, distinct)
            np.testing.assert_array_equal(counts.atoms[key].rows, rows)


def test_distinct_scores_are_estimated() -> None:
    rng = np.random.default_rng(0)
    groups = torch.tensor(rng.integers(0, 2, 200_000))
    few = TorchScores(torch.tensor(rng.random(200_000).round(3)), groups)
    assert few.estimate_distinct() == pytest.approx(2 * 1001, rel=0.02)
    assert TorchScores(torch.tensor(rng.random(200_000)), groups).estimate_distinct() > 200_000


def test_tensors_on_two_devices_are_named() -> None:
    with pytest.raises(ValueError, match=r"sensitive_features .*cpu, got meta"):
        lp.engines.from_torch(torch.tensor([0.1, 0.2]), torch.tensor([0, 1], device="meta"))
