"""Repair's promise for new people, simulated against populations whose distributions are known.

A group's scores have the distribution function y to some power. A map takes the scores up to s to those up to y,
so the repaired distribution of the population at y is that of the scores that go to y or below, in closed form.
"""

from __future__ import annotations

import numpy as np
import pytest

import localparity as lp
from localparity.models import ScoreRepair
from localparity.models.repair._maps import ScoreMap

pytestmark = pytest.mark.slow

DRAWS = 1000


def last_scores(found: ScoreMap, thresholds: np.ndarray) -> np.ndarray:
    """The highest score that a map takes to each threshold or below, from its straight lines."""
    knots, values = np.append(found.knots, 1.0), np.append(found.values, 1.0)
    knots, values = np.append(0.0, knots), np.append(0.0, values)
    after = np.searchsorted(values, thresholds, side="right")
    after = np.minimum(after, values.size - 1)
    rise = values[after] - values[after - 1]
    share = np.where(rise > 0.0, (thresholds - values[after - 1]) / np.where(rise > 0.0, rise, 1.0), 1.0)
    return knots[after - 1] + np.clip(share, 0.0, 1.0) * (knots[after] - knots[after - 1])


def population_mcdp(repair: ScoreRepair, powers: dict[int, float], epsilon: float) -> float:
    """MCDP of the repaired population, from its distributions at many thresholds."""
    thresholds = np.linspace(0.0, 1.0, 4001)
    shares = {g: last_scores(repair.maps_[g], thresholds) ** power for g, power in powers.items()}
    worst = 0.0
    for a in powers:
        for b in powers:
            gap = np.abs(shares[a] - shares[b])
            reach = round(epsilon * 4000)
            padded = np.pad(gap, reach, constant_values=np.inf)  # windows are cut at the ends of the range
            windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1)
            worst = max(worst, windows.min(axis=1).max())
    return worst


def held(
    sizes: tuple[int, ...], bound: float, confidence: float | None, epsilon: float = 0.0, *, copies: int = 1
) -> float:
    """How often the bound holds in the population, where the table has each person so many times."""
    rng = np.random.default_rng([*sizes, int(1000 * bound)])
    powers = dict(enumerate([1.0, 2.0, 1.5][: len(sizes)]))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    exponents = np.array([1.0 / powers[g] for g in groups])
    within = 0
    for _ in range(DRAWS):
        scores = rng.random(groups.size) ** exponents
        repair = ScoreRepair(max_mcdp=bound, confidence=confidence, epsilon=epsilon)
        repair.fit(np.tile(scores, copies), sensitive_features=np.tile(groups, copies))
        within += population_mcdp(repair, powers, epsilon) <= bound
    return within / DRAWS


@pytest.mark.parametrize(
    ("sizes", "bound", "confidence"),
    [((400, 400), 0.2, 0.5), ((400, 400), 0.2, 0.9), ((300, 3000), 0.15, 0.9), ((500, 400, 600), 0.2, 0.8)],
)
@pytest.mark.parametrize("epsilon", [0.0, 0.02])
def test_the_bound_holds_in_the_population_at_the_confidence(
    sizes: tuple[int, ...], bound: float, confidence: float, epsilon: float
) -> None:
    assert held(sizes, bound, confidence, epsilon) >= confidence


@pytest.mark.filterwarnings("ignore:Nearly every row occurs")
@pytest.mark.parametrize(
    ("sizes", "bound", "copies"), [((400, 400), 0.2, 5), ((250, 900), 0.2, 10), ((600, 500, 700), 0.2, 4)]
)
def test_copies_of_people_are_no_people(sizes: tuple[int, ...], bound: float, copies: int) -> None:
    assert held(sizes, bound, 0.9, copies=copies) >= 0.9


def test_without_a_confidence_it_often_does_not() -> None:
    assert held((400, 400), 0.05, None) < 0.5


def test_the_worst_split_keeps_its_level_under_independence() -> None:
    rng, runs = np.random.default_rng(0), 1000
    p_values = {"plain": [], "ties": [], "equalized_odds": []}
    for seed in range(runs):
        labels, age = rng.integers(0, 2, 200), rng.integers(18, 80, 200)
        scores = rng.beta(1 + labels, 2)
        for kind, found in p_values.items():
            result = lp.worst_split(
                lp.Predictions.from_arrays(
                    labels, scores.round(1) if kind == "ties" else scores, sensitive_features=age
                ),
                criterion="equalized_odds" if kind == "equalized_odds" else "demographic_parity",
                n_resamples=99,
                random_state=seed,
            )
            clearest = result.clearest or result
            assert result.p_value >= clearest.p_value
            found.append(clearest.p_value)
    for found in p_values.values():
        for level in (0.05, 0.1, 0.5):
            assert np.mean(np.array(found) <= level) <= level + 3.5 * np.sqrt(level * (1 - level) / runs)
    assert np.mean(np.array(p_values["plain"]) <= 0.5) >= 0.5 - 3.5 * np.sqrt(0.25 / runs)


def test_the_worst_split_has_power_and_finds_the_place() -> None:
    rng = np.random.default_rng(0)
    rejected, near = 0, 0
    for seed in range(100):
        age = rng.uniform(18, 80, 1500)
        scores = np.clip(rng.beta(3, 3, 1500) + 0.15 * (age > 40), 0, 1)
        found = lp.worst_split(
            lp.Predictions.from_arrays(None, scores, sensitive_features=age),
            n_resamples=99,
            random_state=seed,
        )
        clearest = found.clearest or found
        rejected += clearest.p_value <= 0.05
        near += abs(clearest.split - 40) < 4
    assert rejected >= 95
    assert near >= 80
