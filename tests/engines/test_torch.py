"""Counts of tensors equal those of numpy, exactly, without all scores on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import localparity as lp
from localparity.engines._torch import TorchScores
from scale_rows import (
    CRITERIA,
    EPSILONS,
    FAR_RANGES,
    FINE_EPSILONS,
    NARROW_RANGES,
    Rows,
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
    found = lp.engines.from_torch(scores, groups, labels=labels, weights=weights)
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
    monkeypatch.setattr(TorchScores, "budget", 100)
    single = rows.scores.astype(np.float32)
    found = lp.engines.from_torch(
        torch.tensor(single, device=device),
        torch.tensor(rows.groups, device=device),
        labels=torch.tensor(rows.labels, device=device),
        weights=torch.tensor(rows.weights, device=device) if weighted else None,
        criterion=criterion,
        compare=compare,
        max_scores=200,
        level=5,
    )
    assert found.cells is not None
    exact = Rows(single, rows.groups, rows.labels, rows.weights).counts(weighted=weighted)
    for epsilon in EPSILONS:
        value = exact.mcdp(epsilon, criterion, compare)
        assert found.mcdp_bounds(epsilon, criterion, compare) == (value, value)
        assert found.mcdp(epsilon, criterion, compare) == value


@settings(max_examples=30)
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
        confidence=confidence,
    )
    for epsilon in EPSILONS:
        value = lp.mcdp(None, scores, sensitive_features=groups, epsilon=epsilon, score_range=score_range)
        assert found.mcdp_bounds(epsilon) == (value, value)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("score_range", NARROW_RANGES)
def test_ends_of_the_range_that_few_bits_cannot_hold(device: str, score_range: tuple[float, float]) -> None:
    scores, groups = narrow_scores(score_range), np.tile([0, 1], 1000)
    exact = narrow_counts(scores, groups, score_range)
    tensors = torch.tensor(scores, device=device), torch.tensor(groups, device=device)
    assert_same_counts(lp.engines.from_torch(*tensors, score_range=score_range), exact)
    found = lp.engines.from_torch(*tensors, score_range=score_range, max_scores=100, level=5)
    for epsilon in EPSILONS:
        assert found.mcdp_bounds(epsilon) == (exact.mcdp(epsilon),) * 2
    for level in (None, 8):
        metric = lp.monitoring.LocalDisparity(epsilon=0.01, confidence=confidence, score_range=score_range)
        metric.update(*tensors)
        low, high = metric.bounds()
        assert low <= exact.mcdp(0.01) <= high
    tensors[0][7] = float(np.nextafter(scores.max(), np.float32(2)))
    with pytest.raises(ValueError, match=r"scores has .* at row 7, outside score_range"):
        lp.engines.from_torch(*tensors, score_range=score_range)


def test_groups_of_any_whole_numbers() -> None:
    scores = torch.tensor([0.1, 0.5, 0.9])
    assert lp.engines.from_torch(scores, torch.tensor([True, False, True])).groups == (False, True)
    assert lp.engines.from_torch(scores, torch.tensor([-5, 10**12, 7])).groups == (-5, 7, 10**12)
    assert lp.engines.from_torch(scores, torch.tensor([3, 9, 3], dtype=torch.uint8)).groups == (3, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scores": torch.tensor([0.1, 1.5])}, r"scores has 1.5 at row 1, outside score_range \(0.0, 1.0\)"),
        ({"scores": torch.tensor([float("nan"), 0.5])}, "scores has nan at row 0, outside score_range"),
        ({"scores": torch.tensor([0, 1])}, "scores has dtype torch.int64 where one of torch.float16, "),
        ({"scores": torch.empty(0)}, "scores is empty"),
        ({"groups": torch.tensor([0])}, "groups has 1 rows where scores has 2"),
        ({"groups": torch.tensor([0.0, 1.0])}, "groups has dtype torch.float32 where whole numbers or truth"),
        ({"groups": torch.tensor([1, 1])}, "groups has one group only, 1, where two or more are expected"),
        ({"labels": torch.tensor([0, 2])}, "labels has 2 at row 1 where labels 0 and 1 are expected"),
        ({"labels": torch.tensor([0, 1, 0])}, "labels has 3 rows where scores has 2"),
        ({"weights": torch.tensor([1.0, -2.0])}, "weights has -2 at row 1 where 0 or a weight from 3.6e-15"),
        ({"weights": torch.tensor([0.0, 2.0])}, "weights is 0 in all rows of group 0"),
        ({"score_range": (1, 0)}, r"score_range is \(1.0, 0.0\)"),
    ],
)
def test_what_does_not_fit_is_named(options: dict[str, Any], message: str) -> None:
    given_options = {"scores": torch.tensor([0.1, 0.2]), "groups": torch.tensor([0, 1]), **options}
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
        assert found.mcdp_bounds(epsilon) == (exact.mcdp(epsilon),) * 2
    metric = lp.monitoring.LocalDisparity(level=8, score_range=score_range)
    metric.update(*tensors)
    low, high = metric.bounds()
    assert low <= exact.mcdp() <= high
