"""MCDP of tensors is that of arrays, to the last bit, however few parts and cells it is searched with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import localparity as lp
from localparity.engines import _torch as _torch_search
from localparity.engines._torch import Search, TorchScores
from scale_rows import CRITERIA, EPSILONS, FAR_RANGES, FINE_EPSILONS, NARROW_RANGES, far_scores, narrow_scores

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
DTYPES = [np.float16, np.float32, np.float64]


def assert_found(
    scores: NDArray[Any],
    groups: NDArray[Any],
    labels: NDArray[Any] | None = None,
    *,
    device: str = "cpu",
    epsilons: tuple[float, ...] = EPSILONS,
    score_range: tuple[float, float] = (0.0, 1.0),
    **asked: Any,
) -> None:
    """The search on a device finds what arrays have."""
    comparison = lp.Comparison(**asked)
    source = TorchScores(
        torch.tensor(scores, device=device),
        torch.tensor(groups, device=device),
        y_true=None if labels is None else torch.tensor(labels, device=device),
        score_range=score_range,
    )
    found = Search(source, comparison, np.array(epsilons)).mcdp()
    options: dict[str, Any] = {"sensitive_features": groups, "score_range": score_range, **asked}
    np.testing.assert_array_equal(found, lp.mcdp(labels, scores, epsilon=epsilons, **options))


@pytest.fixture(params=["usual", "few"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many cells, parts and blocks as usual, or so few that all of them are looked into again."""
    if request.param == "few":
        few = {"_LEVEL": 6, "_PARTS": 2**12, "_BLOCKS": 2**6, "_WIDTH": 2, "_FEW_ROWS": 10}
        for name, value in few.items():
            monkeypatch.setattr(_torch_search, name, value)


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_groups", [2, 5])
def test_it_is_that_of_arrays(device: str, dtype: Any, n_groups: int) -> None:
    rng = np.random.default_rng(n_groups)
    groups = rng.integers(0, n_groups, 50_001)
    scores, labels = rng.beta(2, 3 + 0.3 * groups).astype(dtype), rng.integers(0, 2, groups.size)
    for criterion in CRITERIA:
        for compare in ("between_groups", "to_overall"):
            of = None if criterion == "demographic_parity" else labels
            assert_found(scores, groups, of, device=device, criterion=criterion, compare=compare)


SKEWED = {
    "all equal": lambda scores: np.full_like(scores, 0.3),
    "half equal": lambda scores: np.where(np.arange(scores.size) % 2, scores, 0.3),
    "tiny": lambda scores: scores * 1e-30,
    "one cell": lambda scores: 0.5 + scores / 2**14,
    "decimals": lambda scores: scores.round(2),
    "minus zero": lambda scores: np.where(scores < 0.4, -0.0, scores),
    "ends": lambda scores: scores.round(),
}


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("skew", SKEWED)
def test_scores_that_crowd_in_few_cells(device: str, dtype: Any, skew: str) -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, 20_001).astype(np.int8)
    scores = SKEWED[skew](rng.beta(2, 3 + groups)).astype(dtype)
    assert_found(scores, groups, device=device, epsilons=FINE_EPSILONS)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("score_range", [*NARROW_RANGES, *FAR_RANGES])
def test_scores_of_any_range(device: str, score_range: tuple[float, float]) -> None:
    near = score_range in NARROW_RANGES
    scores = narrow_scores(score_range) if near else far_scores(score_range)
    assert_found(scores, np.tile([0, 1], 1000), device=device, score_range=score_range)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 3000), st.sampled_from(DTYPES), st.integers(1, 6))
def test_any_rows(seed: int, size: int, dtype: Any, decimals: int) -> None:
    rng = np.random.default_rng(seed)
    groups = np.append([0, 1], rng.integers(0, 3, size))
    scores = rng.beta(2, 3 + groups).round(decimals).astype(dtype)
    assert_found(scores, groups, epsilons=(0.1, 0.0, 0.03, 0.03))


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_wherever_they_are(device: str) -> None:
    rng = np.random.default_rng(0)
    scores, groups, weights = rng.random(5000), rng.integers(0, 2, 5000), rng.random(5000)
    on = [torch.tensor(part, device=device) for part in (scores, groups, weights)]
    expected = lp.mcdp(None, scores, sensitive_features=groups, epsilon=0.01)
    assert lp.engines.mcdp_from_torch(*on[:2], epsilon=0.01) == expected
    expected = lp.mcdp(None, scores, sensitive_features=groups, sample_weight=weights, epsilon=[0.0, 0.01])
    found = lp.engines.mcdp_from_torch(*on[:2], sample_weight=on[2], epsilon=[0.0, 0.01])
    np.testing.assert_array_equal(found, expected)
    many = torch.arange(5000, device=device) % 400
    expected = lp.mcdp(None, scores, sensitive_features=many.cpu().numpy(), epsilon=0.01)
    assert lp.engines.mcdp_from_torch(on[0], many, epsilon=0.01) == expected


@pytest.mark.parametrize("device", DEVICES)
def test_what_does_not_fit_is_named(device: str) -> None:
    scores, groups = torch.linspace(0.0, 1.0, 50_000, device=device), torch.arange(50_000, device=device) % 2
    with pytest.raises(ValueError, match=r"y_true, got None"):
        lp.engines.mcdp_from_torch(scores, groups, criterion="equal_opportunity")
    source = TorchScores(scores, groups, y_true=1 - groups)
    with pytest.raises(ValueError, match=r"group 1 .*y_true = 1"):
        Search(source, lp.Comparison("equal_opportunity"), np.zeros(1)).mcdp()
    scores[40_001] = 1.5
    with pytest.raises(ValueError, match=r"y_score .*1.5 at row 40001"):
        Search(TorchScores(scores, groups), lp.Comparison(), np.zeros(1)).mcdp()
