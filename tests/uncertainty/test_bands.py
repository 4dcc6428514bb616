"""The one band: what it is, over what it holds, and when it cannot be had."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity._types import Compare, Criterion
from localparity.counts import Comparison
from localparity.metrics._gap_curves import gap_curves
from localparity.uncertainty._bands import (
    as_interval_method,
    band_radii,
    bootstrap_radii,
    distributions_of,
    dkw_radii,
    dkw_radius,
)
from localparity.uncertainty._resampling import Draws, critical_value, deviation_resamples


def counts_of(groups: int, rows: int = 400, **options: Any) -> lp.ScoreCounts:
    rng = np.random.default_rng(0)
    predictions = lp.Predictions.from_arrays(
        rng.integers(0, 2, rows), rng.random(rows), sensitive_features=np.arange(rows) % groups, **options
    )
    return lp.ScoreCounts.from_predictions(predictions)


@pytest.mark.parametrize(("size", "level"), [(1, 0.5), (10, 0.9), (1000, 0.95), (250.5, 0.999)])
def test_a_radius_turns_the_inequality_round(size: float, level: float) -> None:
    """Massart: the distance exceeds r with a probability of at most 2 exp(-2 n r^2)."""
    for family in (1, 7):
        radius = dkw_radius(size, level, family)
        assert 2 * math.exp(-2 * size * radius**2) == pytest.approx((1 - level) / family)


@pytest.mark.parametrize(
    ("criterion", "compare", "family"),
    [
        ("demographic_parity", "between_groups", 5),
        ("demographic_parity", "to_overall", 6),
        ("equalized_odds", "between_groups", 10),
        ("equalized_odds", "to_overall", 12),
    ],
)
def test_the_error_is_shared_by_all_distributions(
    criterion: Criterion, compare: Compare, family: int
) -> None:
    curves = gap_curves(counts_of(5), Comparison(criterion, compare))
    assert distributions_of(curves) == family
    for curve, radius in zip(curves, dkw_radii(curves, 0.9), strict=True):
        assert radius == pytest.approx(sum(dkw_radius(size, 0.9, family) for size in curve.sizes))


@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
def test_the_bootstraps_radius_is_what_resamples_stay_within(compare: Compare) -> None:
    counts = counts_of(3)
    comparison = Comparison("equalized_odds", compare)
    found = deviation_resamples(counts, comparison, np.zeros(1), Draws(200, 1))
    radii = bootstrap_radii(found, 0.9)
    assert np.count_nonzero(found.supremum > (radii * found.scale).max() + 1e-12) <= 0.1 * 201
    curves = gap_curves(counts, comparison)
    same = band_radii(counts, comparison, curves, confidence=0.9, method="bootstrap", draws=Draws(200, 1))
    np.testing.assert_array_equal(radii, same)
    assert radii.size == len(curves)
    # Shorter than the band that holds at any size.
    assert (radii < dkw_radii(curves, 0.9)).all()


def test_smaller_groups_have_wider_bands_and_do_not_widen_the_others() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "tiny"], [2000, 2000, 12])

    def radii(*kept: str) -> dict[tuple[Any, ...], float]:
        among = np.isin(groups, kept)
        rows = lp.Predictions.from_arrays(None, rng.random(among.sum()), sensitive_features=groups[among])
        counts = lp.ScoreCounts.from_predictions(rows)
        curves = gap_curves(counts, Comparison())
        found = band_radii(
            counts, Comparison(), curves, confidence=0.95, method="bootstrap", draws=Draws(999, 0)
        )
        return {curve.groups: radius for curve, radius in zip(curves, found, strict=True)}

    alone, beside = radii("a", "b"), radii("a", "b", "tiny")
    assert alone["a", "b"] < beside["a", "b"] < 1.3 * alone["a", "b"]
    assert beside["a", "tiny"] > 5 * beside["a", "b"]


def test_the_method_follows_the_rows() -> None:
    plain, weighted = counts_of(2), counts_of(2, sample_weight=np.ones(400))
    clustered = counts_of(2, cluster=np.arange(400) // 2)
    assert as_interval_method(None, plain) == "dkw"
    assert as_interval_method("bootstrap", plain) == "bootstrap"
    for counts, why in ((weighted, "weights"), (clustered, "clusters")):
        assert as_interval_method(None, counts) == "bootstrap"
        with pytest.raises(ValueError, match=f"method='dkw' does not hold with {why}"):
            as_interval_method("dkw", counts)
    with pytest.raises(ValueError, match=r"method .*got 'exact'"):
        as_interval_method("exact", plain)


def test_a_band_takes_as_many_resamples_as_its_level_needs() -> None:
    assert critical_value(np.arange(1.0, 1000.0), 0.95) == 950.0
    counts = counts_of(2)
    curves = gap_curves(counts, Comparison())
    with pytest.raises(ValueError, match=r"n_resamples must be >= 99 .*0.99, got 98"):
        band_radii(counts, Comparison(), curves, confidence=0.99, method="bootstrap", draws=Draws(98))
    with pytest.raises(ValueError, match=r"confidence .*got 95"):
        band_radii(counts, Comparison(), curves, confidence=95, method="dkw", draws=Draws(0))
