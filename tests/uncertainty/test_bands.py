"""The one band: what it is, over what it holds, and when it cannot be had."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats

import localparity as lp
from localparity._types import Compare, Criterion
from localparity.counts import Comparison
from localparity.counts._comparison import EVERYONE
from localparity.metrics._gap_curve import GapCurve, gap_curves
from localparity.uncertainty._bands import (
    IndependentSamples,
    as_interval_method,
    band_ends,
    band_radii,
    band_radius,
    bootstrap_radii,
    deviation_tail,
    finite_sample_radii,
    repair_radii,
)
from localparity.uncertainty._deviations import deviation_resamples
from localparity.uncertainty._resampling import Draws, critical_value


def counts_of(groups: int, rows: int = 400, **options: Any) -> lp.ScoreCounts:
    rng = np.random.default_rng(0)
    predictions = lp.Predictions.from_arrays(
        rng.integers(0, 2, rows), rng.random(rows), sensitive_features=np.arange(rows) % groups, **options
    )
    return lp.ScoreCounts.from_predictions(predictions)


@pytest.mark.parametrize("sizes", [(1, 1), (30, 30), (1000, 8), (250.5, 4000)])
def test_the_tail_is_that_of_a_sum_of_rayleigh_variables(sizes: tuple[float, float]) -> None:
    """By numerical integration: one exceeds r, or it is x and the other exceeds r - x."""
    first, second = (2.0 * size for size in sizes)
    for radius in np.array([0.3, 1.0, 1.7]) * math.sqrt(sum(1.0 / size for size in sizes)):
        inner = integrate.quad(
            lambda x, r: 2 * first * x * math.exp(-first * x * x - second * (r - x) ** 2),
            0,
            radius,
            (radius,),
        )[0]
        assert deviation_tail(sizes, radius) == pytest.approx(2 * (math.exp(-first * radius**2) + inner))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 20, 300])
def test_one_sided_deviations_are_at_most_rayleigh(size: int) -> None:
    """Smirnov's exact distribution, also where Massart's inequality is not stated: below a half."""
    x = np.linspace(0.0, 1.0, 2001)
    assert (special.smirnov(size, x) <= np.exp(-2 * size * x * x) + 1e-15).all()


@pytest.mark.parametrize("sizes", [(1, 1), (50, 50), (1000, 8)])
@pytest.mark.parametrize("error", [0.5, 0.05, 1e-9])
def test_a_radius_turns_the_tail_round_and_is_shorter_than_two_of_one_sample(
    sizes: tuple[float, float], error: float
) -> None:
    radius = band_radius(sizes, error)
    assert deviation_tail(sizes, radius) == pytest.approx(error, rel=1e-6)
    assert radius < sum(math.sqrt(math.log(4 / error) / (2 * size)) for size in sizes)


@pytest.mark.parametrize("sizes", [(200, 200), (20, 400)])
def test_the_band_holds_for_distributions_that_differ(sizes: tuple[int, int]) -> None:
    """One group's distribution is a step where the other's is spread: the errors add up at many thresholds."""
    rng, draws, error = np.random.default_rng(0), 2000, 0.1
    radius = band_radius(sizes, error)
    fine = np.linspace(0.0, 1.0, 513)
    truth = np.where(fine >= 0.5, 0.5, 0.0) - fine
    missed = 0
    for _ in range(draws):
        step = rng.binomial(sizes[0], 0.5) / sizes[0]
        spread = np.searchsorted(np.sort(rng.random(sizes[1])), fine, side="right") / sizes[1]
        missed += np.abs(np.where(fine >= 0.5, step, 0.0) - spread - truth)[:-1].max() > radius
    assert missed <= error * draws


@pytest.mark.parametrize(
    ("criterion", "compare", "pairs"),
    [
        ("demographic_parity", "between_groups", 10),
        ("demographic_parity", "to_overall", 5),
        ("equalized_odds", "between_groups", 20),
        ("equalized_odds", "to_overall", 10),
    ],
)
def test_the_error_is_shared_by_all_pairs(criterion: Criterion, compare: Compare, pairs: int) -> None:
    counts, comparison = counts_of(5), Comparison(criterion, compare)
    curves = gap_curves(counts, comparison)
    assert len(curves) == pairs
    by_method = band_radii(counts, comparison, curves, confidence=0.9, method="finite_sample", draws=Draws(0))
    np.testing.assert_array_equal(by_method, finite_sample_radii(curves, 0.9))
    for curve, radius in zip(curves, finite_sample_radii(curves, 0.9), strict=True):
        first, second = curve.sizes
        if compare == "between_groups":
            assert radius == band_radius((first, second), 0.1 / pairs)
        else:
            assert radius == pytest.approx(
                (1 - first / second) * band_radius((first, second - first), 0.1 / pairs)
            )


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
    assert (radii < finite_sample_radii(curves, 0.9)).all()


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
    assert as_interval_method(None, plain) == "finite_sample"
    assert as_interval_method("bootstrap", plain) == "bootstrap"
    for counts, why in ((weighted, "weights"), (clustered, "clusters")):
        assert as_interval_method(None, counts) == "bootstrap"
        with pytest.raises(ValueError, match=f"method='finite_sample' does not hold with {why}"):
            as_interval_method("finite_sample", counts)
    with pytest.raises(ValueError, match=r"method .*got 'exact'"):
        as_interval_method("exact", plain)


def test_a_band_takes_as_many_resamples_as_its_level_needs() -> None:
    assert critical_value(np.arange(1.0, 1000.0), 0.95) == 950.0
    counts = counts_of(2)
    curves = gap_curves(counts, Comparison())
    with pytest.raises(ValueError, match=r"n_resamples must be >= 99 .*0.99, got 98"):
        band_radii(counts, Comparison(), curves, confidence=0.99, method="bootstrap", draws=Draws(98))
    with pytest.raises(ValueError, match=r"confidence .*got 95"):
        band_radii(counts, Comparison(), curves, confidence=95, method="finite_sample", draws=Draws(0))


@pytest.mark.parametrize("sizes", [(20, 180), (1, 9), (7, 3)])
def test_the_share_of_the_rest_has_the_ends_of_clopper_and_pearson(sizes: tuple[int, int]) -> None:
    everyone = sum(sizes)
    low, high = IndependentSamples(sizes[1] / everyone, sizes).scale_ends(0.03)
    assert stats.binom.sf(sizes[1] - 1, everyone, low) == pytest.approx(0.03)
    assert stats.binom.cdf(sizes[1], everyone, high) == pytest.approx(0.03)


def test_ends_to_everyone_allow_for_the_share_and_those_of_two_groups_need_not() -> None:
    knots, gap, measured = np.array([0.2, 0.8]), np.array([0.6, 0.0]), np.array([[0.6, 0.3]])
    between = GapCurve(knots, gap, ("a", "b"), (100, 300))
    radius = float(band_radius((100, 300), 0.1))
    assert band_ends([between], measured, 0.1, upper=False).tolist() == [[0.6 - radius, 0.3 - radius]]
    assert band_ends([between], measured, 0.1, upper=True).tolist() == [[0.6 + radius, 0.3 + radius]]
    overall = GapCurve(knots, gap, ("a", EVERYONE), (100, 400))
    low, high = IndependentSamples(0.75, (100, 300)).scale_ends(0.01)
    radius = float(band_radius((100, 300), 0.09))
    found = band_ends([overall], measured, 0.1, upper=False)
    np.testing.assert_allclose(found, [[low * (0.8 - radius), low * (0.4 - radius)]])
    found = band_ends([overall], measured, 0.1, upper=True)
    np.testing.assert_allclose(found, [[high * (0.8 + radius), high * (0.4 + radius)]])


def test_a_repair_compares_at_two_thresholds() -> None:
    """The finite-sample band holds for them; with weights it is wider than that of one threshold."""
    plain, comparison = counts_of(3), Comparison()
    curves = gap_curves(plain, comparison)
    found = repair_radii(plain, comparison, curves, confidence=0.9, draws=Draws(0))
    np.testing.assert_array_equal(found, finite_sample_radii(curves, 0.9))
    weighted = counts_of(3, sample_weight=np.linspace(0.5, 1.5, 400))
    given: dict[str, Any] = {"confidence": 0.9, "draws": Draws(199, 0)}
    found = repair_radii(weighted, comparison, curves, **given)
    one = band_radii(weighted, comparison, curves, method="bootstrap", **given)
    assert (found > 1.05 * one).all()
    assert (found < 2.0 * one).all()
    with pytest.raises(ValueError, match=r"n_resamples must be >= 9 .*got 5"):
        repair_radii(weighted, comparison, curves, confidence=0.9, draws=Draws(5, 0))


@pytest.mark.parametrize("error", [0.5, 0.1, 0.05, 0.001])
def test_no_gap_exceeds_the_quantile_at_parity_more_often_than_parity_in_large_samples(error: float) -> None:
    """The mean of benchmarks/bands.py over its two normal values, for samples of any shares of the variance."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = np.outer(weights, weights) / weights.sum() ** 2
    radius = math.sqrt(0.5 * math.log(2.0 / error))
    for share in np.linspace(0.0, 1.0, 11):
        for mcdp in (1e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95):
            spread = np.sqrt(np.array([share, 1.0 - share]) * mcdp * (1.0 - mcdp))
            left = np.maximum(radius - np.multiply.outer(spread, nodes), 0.0)
            exceeds = np.exp(-2.0 * np.outer(left[0], left[1]) / (1.0 - mcdp))
            assert (weights * exceeds).sum() <= 0.5 * error * (1.0 + 1e-9)
