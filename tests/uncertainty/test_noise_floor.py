"""The noise floor against the limit that is known for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstwobign

import localparity as lp


@pytest.mark.compiled
@pytest.mark.parametrize("sizes", [(400, 400), (321, 12_036), (3_000_000, 5_000_000)])
def test_two_groups_at_epsilon_zero_follow_kolmogorov(sizes: tuple[int, int]) -> None:
    scale = np.sqrt(sum(1 / size for size in sizes))
    found = lp.noise_floor(sizes, n_resamples=800, random_state=0)
    # The finite sample lies a little below the limit, of the order 1 / sqrt(n).
    assert found.mean == pytest.approx(kstwobign.mean() * scale, rel=0.08)
    assert float(found) == found.mean
    assert found.quantiles[0.95] == pytest.approx(kstwobign.ppf(0.95) * scale, rel=0.1)


@pytest.mark.compiled
def test_more_groups_measure_more_and_wider_windows_less() -> None:
    options: dict[str, Any] = {"n_resamples": 300, "random_state": 0}
    two = lp.noise_floor([200, 200], **options)
    assert lp.noise_floor([200] * 4, **options).mean > two.mean
    assert lp.noise_floor([200, 200], 0.1, **options).mean < two.mean


@pytest.mark.compiled
def test_large_groups_measure_what_drawing_them_measures() -> None:
    sizes = (2000, 2000, 60_000)
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(3), sizes)
    drawn = [lp.mcdp(None, rng.random(groups.size), sensitive_features=groups) for _ in range(60)]
    floor = lp.noise_floor(sizes, n_resamples=400, random_state=0)
    assert floor.mean == pytest.approx(np.mean(drawn), rel=0.1)


def test_scores_that_tie_measure_less() -> None:
    options: dict[str, Any] = {"n_resamples": 300, "random_state": 0}
    ties = np.random.default_rng(0).integers(0, 3, 1000) / 2
    tied = lp.noise_floor([500, 500], scores=ties, **options)
    assert float(tied) < float(lp.noise_floor([500, 500], **options))


@pytest.mark.parametrize(("epsilon", "expected"), [(0.0, 0.5), (0.24, 0.5), (0.26, 0.0)])
def test_groups_of_one_differ_where_they_are_drawn_apart(epsilon: float, expected: float) -> None:
    found = lp.noise_floor([1, 1], epsilon, scores=[0.25, 0.75], n_resamples=1000, random_state=0)
    assert found.mean == pytest.approx(expected, abs=0.06)


@pytest.mark.compiled
def test_without_scores_people_are_spread_evenly() -> None:
    # Two people u apart: MCDP(epsilon) is 1 where u > 2 epsilon, of which the probability is (1 - 2 epsilon)^2; the
    # bottom of the range adds nothing, since nobody stands on it.
    found = lp.noise_floor([1, 1], 0.2, n_resamples=2000, random_state=0)
    assert found.mean == pytest.approx(0.6**2, abs=0.045)
    assert set(found.quantiles.values()) <= {0.0, 1.0}
    assert lp.noise_floor([1, 1], 0.499, n_resamples=200, random_state=0).mean < 0.02


def test_many_people_at_few_scores_and_few_at_many_are_drawn_alike() -> None:
    """Row by row or knot by knot, a share p of n people has the variance p (1 - p) / n."""
    found = lp.noise_floor([50, 70_000], scores=[0.0, 0.0, 0.0, 1.0], n_resamples=800, random_state=0)
    deviation = np.sqrt(0.75 * 0.25 / 50)
    assert found.mean == pytest.approx(np.sqrt(2 / np.pi) * deviation, rel=0.1)


@pytest.mark.compiled
def test_what_parity_measures_in_the_test_is_the_floor() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(1000), np.repeat([0, 1], [300, 700])
    null = lp.permutation_test(
        None, scores, sensitive_features=groups, epsilon=0.02, n_resamples=400, random_state=0
    )
    floor = lp.noise_floor([300, 700], 0.02, scores=scores, n_resamples=400, random_state=1)
    assert floor.mean == pytest.approx(null.null_mean, rel=0.08)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5,), "group_sizes .*got 1"),
        (([5],), "group_sizes .*got 1"),
        (([5, 0],), "group_sizes .*got 0"),
        (([5, 2.5],), "group_sizes .*got 2.5"),
        (([5, 5], -1.0), r"epsilon must be .* got -1"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.noise_floor(*arguments)
    with pytest.raises(ValueError, match=r"scores .*got 0 to 2"):
        lp.noise_floor([2, 2], scores=[0, 2])
    with pytest.raises(ValueError, match=r"scores .*got -0.5 to 1"):
        lp.noise_floor([2, 2], scores=[-0.5, 1])
