"""The maximiser of the smoothed gap, against a scan of 10,000 points that shares no code with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from localparity.models.networks._smoothed_gap import contrasts, largest_gap, largest_window, soft_gap
from training_oracles import scanned_gaps, scanned_mcdp, smoothed_gap

score = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.5, 1.0]))


@st.composite
def batches(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor, float]:
    sizes = draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    scores = draw(st.lists(score, min_size=sum(sizes), max_size=sum(sizes)))
    temperature = draw(st.sampled_from([0.5, 5.0, 10.0, 20.0, 100.0, 400.0, 3000.0]))
    groups = torch.repeat_interleave(torch.arange(2), torch.tensor(sizes))
    return torch.tensor(scores, dtype=torch.float64), groups, temperature


@given(batch=batches())
def test_the_exact_search_is_never_below_a_scan(batch: tuple[torch.Tensor, torch.Tensor, float]) -> None:
    scores, groups, temperature = batch
    contrast = contrasts(groups, 2, dtype=torch.float64)
    threshold = largest_gap(scores, contrast, temperature)
    assert 0.0 <= float(threshold) <= 1.0
    found = float(soft_gap(scores, contrast, threshold, temperature).abs())
    scan = scanned_gaps(scores.numpy(), groups.numpy(), 0, 1, temperature, 10_000)
    assert found >= abs(scan).max() - 1e-12
    assert found == pytest.approx(
        abs(smoothed_gap(scores.numpy(), groups.numpy(), 0, 1, float(threshold), temperature)), abs=1e-12
    )


@given(batch=batches(), epsilon=st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.7]))
def test_the_window_is_that_of_a_scan(
    batch: tuple[torch.Tensor, torch.Tensor, float], epsilon: float
) -> None:
    scores, groups, temperature = batch
    contrast = contrasts(groups, 2, dtype=torch.float64)
    thresholds, shares = largest_window(scores, contrast, temperature, epsilon)
    assert float(shares.sum()) == pytest.approx(1.0) or float(shares.sum()) == 0.0
    assert 0.0 <= float(thresholds.min()) <= float(thresholds.max()) <= 1.0
    found = float((shares * soft_gap(scores, contrast, thresholds, temperature).abs()).sum())
    scan = scanned_mcdp(scanned_gaps(scores.numpy(), groups.numpy(), 0, 1, temperature, 1001), epsilon)
    tolerance = 1e-5 if temperature <= 100.0 else 0.02
    assert found >= scan - tolerance
    assert found <= scan + temperature / 1000.0 + 1e-9


@pytest.mark.parametrize("temperature", [10.0, 20.0])
def test_single_precision_is_as_good_as_it_can_be(temperature: float) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(1024, generator=generator) ** 2
    groups = (torch.rand(1024, generator=generator) < 0.3).long()
    contrast = contrasts(groups, 2)
    found = float(soft_gap(scores, contrast, largest_gap(scores, contrast, temperature), temperature).abs())
    scan = scanned_gaps(scores.double().numpy(), groups.numpy(), 0, 1, temperature, 10_000)
    assert found >= abs(scan).max() - 2e-6


def test_every_comparison_has_its_own_maximiser() -> None:
    scores = torch.tensor([0.1, 0.2, 0.3, 0.6, 0.8, 0.9], dtype=torch.float64)
    groups = torch.tensor([0, 0, 1, 1, 2, 2])
    contrast = contrasts(groups, 3, dtype=torch.float64)
    together = largest_gap(scores, contrast, 20.0)
    alone = [largest_gap(scores, contrast[place : place + 1], 20.0) for place in range(3)]
    np.testing.assert_allclose(together.numpy(), torch.cat(alone).numpy(), atol=1e-9)
