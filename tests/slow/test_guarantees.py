"""Statistical guarantees, simulated against distributions whose MCDP is known in closed form.

One group's scores have the distribution function y, the other's y squared. The gap y - y^2 has its hump at one
half, and its least value in a window of half-width epsilon around it is 1/4 - epsilon^2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import localparity as lp

pytestmark = pytest.mark.slow

EPSILONS = (0.0, 0.05, 0.2)


def truth(epsilon: float) -> float:
    return 0.25 - epsilon**2


def draw(rng: np.random.Generator, sizes: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    groups = np.repeat([0, 1], sizes)
    return rng.random(groups.size) ** np.where(groups, 0.5, 1.0), groups


def coverage(epsilon: float, sizes: tuple[int, int], n_draws: int, **options: Any) -> float:
    rng = np.random.default_rng([int(1000 * epsilon), *sizes])
    held = 0
    for seed in range(n_draws):
        scores, groups = draw(rng, sizes)
        found = lp.mcdp_interval(
            None, scores, sensitive_features=groups, epsilon=epsilon, random_state=seed, **options
        )
        held += found.low <= truth(epsilon) <= found.high
    return held / n_draws


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sizes", [(50, 50), (60, 2000)])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_cover_at_their_level_or_above(
    epsilon: float, sizes: tuple[int, int], level: float
) -> None:
    assert coverage(epsilon, sizes, 1000, confidence=level) >= level


@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_intervals_cover_for_many_groups_and_labels_too(compare: str, criterion: str) -> None:
    """Two groups as above and a third between them, for either label alike."""
    rng = np.random.default_rng(0)
    fine = np.linspace(0, 1, 10_001)
    distributions = [fine, fine**2, fine**1.5]
    everyone = np.mean(distributions, axis=0)
    pairs = (
        [(a, b) for a in distributions for b in distributions]
        if compare == "between_groups"
        else [(a, everyone) for a in distributions]
    )
    true_mcdp = max(np.abs(a - b).max() for a, b in pairs)
    groups = np.repeat([0, 1, 2], 80)
    labels = np.tile([0, 1], 120)
    held = 0
    for _ in range(400):
        scores = rng.random(240) ** np.array([1.0, 1 / 2, 1 / 1.5])[groups]
        found = lp.mcdp_interval(
            labels, scores, sensitive_features=groups, criterion=criterion, compare=compare, confidence=0.6
        )
        held += found.low <= true_mcdp <= found.high
    assert held >= 0.6 * 400


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_bootstrap_covers_and_its_lower_end_is_closer(epsilon: float) -> None:
    options: dict[str, Any] = {"confidence": 0.9, "n_resamples": 199, "method": "bootstrap"}
    assert coverage(epsilon, (400, 400), 1000, **options) >= 0.9
    scores, groups = draw(np.random.default_rng(0), (400, 400))
    given = {"sensitive_features": groups, "epsilon": epsilon, "confidence": 0.9, "random_state": 0}
    short, wide = (
        lp.mcdp_interval(None, scores, method=each, **given) for each in ("bootstrap", "finite_sample")
    )
    assert short.estimate - short.low < 0.85 * (wide.estimate - wide.low)


def test_what_is_expected_under_parity_is_what_parity_measures() -> None:
    """Of both labels, at windows, with scores that are not spread evenly: 13% too low before."""
    rng = np.random.default_rng(7)
    groups, labels = np.tile(np.repeat([0, 1], 200), 2), np.repeat([0, 1], 400)
    for criterion, epsilon in (
        ("equalized_odds", 0.0),
        ("equalized_odds", 0.05),
        ("demographic_parity", 0.05),
    ):
        options: dict[str, Any] = {"criterion": criterion, "epsilon": epsilon, "sensitive_features": groups}
        real = np.mean([lp.mcdp(labels, rng.beta(1, 9, 800), **options) for _ in range(400)])
        said = lp.permutation_test(labels, rng.beta(1, 9, 800), random_state=0, **options).null_mean
        assert said == pytest.approx(real, rel=0.06)


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize(
    "kind", ["plain", "ties", "weights", "weights and ties", "four groups", "to overall"]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_the_permutation_test_keeps_its_level_under_parity(criterion: str, kind: str, epsilon: float) -> None:
    rng = np.random.default_rng(7)
    n_draws = 400
    p_values = []
    for seed in range(n_draws):
        labels = rng.integers(0, 2, 160)
        scores = rng.beta(1 + labels, 2)
        options: dict[str, Any] = {
            "sensitive_features": rng.choice(4 if kind == "four groups" else 2, 160),
            "compare": "to_overall" if kind == "to overall" else "between_groups",
            "sample_weight": rng.lognormal(0, 1, size=160) if "weights" in kind else None,
        }
        if "ties" in kind:
            scores = scores.round(1)
        found = lp.permutation_test(
            labels, scores, criterion=criterion, epsilon=epsilon, n_resamples=99, random_state=seed, **options
        )
        p_values.append(found.p_value)
    for level in (0.05, 0.1) if "weights" in kind else (0.05, 0.1, 0.5):
        rejected = np.mean(np.array(p_values) <= level)
        # With weights the test is approximate.
        slack = 0.1 * level if "weights" in kind else 0.0
        assert rejected <= level + slack + 3.5 * np.sqrt(level * (1 - level) / n_draws)
    if "ties" not in kind and "weights" not in kind:
        # With heavy weights on 80 people a group, the bootstrap's test is conservative.
        assert np.mean(np.array(p_values) <= 0.5) >= 0.5 - 3.5 * np.sqrt(0.25 / n_draws)


def test_the_permutation_test_has_power() -> None:
    rng = np.random.default_rng(0)
    rejected = 0
    for seed in range(100):
        scores, groups = draw(rng, (200, 200))
        found = lp.permutation_test(
            None, scores, sensitive_features=groups, n_resamples=99, random_state=seed
        )
        rejected += found.p_value <= 0.05
    assert rejected >= 95
