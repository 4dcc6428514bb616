"""The max-min point against scans that share no code with it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity.models.trees._kernels import bin_moments
from localparity.models.trees._smoothed_gap import Smoother, Spline, largest, soft_maximum
from training_oracles import scanned_gaps, scanned_mcdp, smoothed_gap

score = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.5, 1.0]))


@st.composite
def people(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, float]:
    sizes = draw(st.tuples(st.integers(1, 30), st.integers(1, 30)))
    scores = draw(st.lists(score, min_size=sum(sizes), max_size=sum(sizes)))
    temperature = draw(st.sampled_from([0.5, 5.0, 20.0, 100.0, 400.0]))
    return np.asarray(scores), np.repeat([0, 1], sizes), temperature


def gap_of(scores: np.ndarray, groups: np.ndarray, temperature: float) -> tuple[Spline, Smoother]:
    smoother = Smoother(temperature)
    counts = np.bincount(groups)
    weights = 1.0 / counts[groups]
    moments = bin_moments(scores, weights, groups.astype(np.int32), 2, smoother.bins, temperature)
    return smoother.distributions(moments).difference(0, 1), smoother


@given(drawn=people(), epsilon=st.sampled_from([1e-9, 0.0001, 0.01, 0.05, 0.1, 0.3, 0.7, 1.0, 3.0]))
def test_no_window_of_a_scan_is_better(drawn: tuple[np.ndarray, np.ndarray, float], epsilon: float) -> None:
    scores, groups, temperature = drawn
    gap, _ = gap_of(scores, groups, temperature)
    found = largest(gap, epsilon)
    points = 4001
    scan = scanned_mcdp(scanned_gaps(scores, groups, 0, 1, temperature, points), min(epsilon, 1.0))
    assert found.value == pytest.approx(scan, abs=temperature / (points - 1) + 1e-9)
    if found.value > 1e-6:
        assert abs(found.shares).sum() == pytest.approx(1.0)
        ends = [smoothed_gap(scores, groups, 0, 1, float(t), temperature) for t in found.thresholds]
        np.testing.assert_allclose(np.abs(ends), found.value, atol=1e-8)
        assert (np.sign(ends) == np.sign(found.shares)).all()


@pytest.mark.parametrize(
    ("curve", "epsilon", "value", "thresholds"),
    [
        (lambda t: 0.5 - (t - 0.5) ** 2, 0.1, 0.49, [0.4, 0.6]),
        (lambda t: (t - 0.5) ** 2 - 0.5, 0.6, 0.25, [0.0]),  # cut at both ends: the least gap is at 0 or 1
        (lambda t: 0.1 + 0.2 * t, 0.25, 0.25, [0.75]),  # cut at the top
        (lambda t: 0.3 - 0.2 * t, 0.25, 0.25, [0.25]),  # cut at the bottom
        (lambda t: 0.2 + (t - 0.5) ** 2, 0.8, 0.2, [0.5]),  # a valley inside
        (lambda t: 0.5 - t, 0.6, 0.0, [0.0]),  # every window holds a zero
    ],
)
def test_each_kind_of_window(curve: object, epsilon: float, value: float, thresholds: list[float]) -> None:
    grid = np.linspace(0.0, 1.0, 129)
    step = 1e-6
    slopes = (curve(grid + step) - curve(grid - step)) / (2.0 * step)
    found = largest(Spline(curve(grid), slopes), epsilon)
    assert found.value == pytest.approx(value, abs=1e-8)
    if value:
        distance = np.minimum(
            np.abs(found.thresholds - thresholds), np.abs(1.0 - found.thresholds - thresholds)
        )
        np.testing.assert_allclose(distance, 0.0, atol=1e-4)
    else:
        assert not found.shares.any()


@given(drawn=people(), sharpness=st.sampled_from([1.0, 2.0, 8.0, 64.0]))
def test_the_soft_maximum_is_the_norm(drawn: tuple[np.ndarray, np.ndarray, float], sharpness: float) -> None:
    scores, groups, temperature = drawn
    gap, smoother = gap_of(scores, groups, temperature)
    found = soft_maximum(gap, smoother.grid, sharpness)
    scan = np.abs(scanned_gaps(scores, groups, 0, 1, temperature, 20_001))
    norm = np.trapezoid(scan**sharpness, dx=1.0 / 20_000) ** (1.0 / sharpness)
    assert found.value == pytest.approx(norm, rel=2e-3, abs=1e-7)
    assert found.value <= scan.max() + 1e-6
    assert float(found.shares @ gap.values) == pytest.approx(found.value, abs=1e-12)


def test_no_gap_has_no_direction() -> None:
    flat = Spline(np.zeros(65), np.zeros(65))
    for found in (largest(flat, 0.1), soft_maximum(flat, np.linspace(0, 1, 65), 8.0)):
        assert found.value == 0.0
        assert not found.shares.any()
