"""The best sets under a bound against a linear programme, and what nesting them costs."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
from blind_designs import BlindDesign, BlindPeople, census, mixed
from localparity.counts import Comparison
from localparity.models.repair._dual import RATES, BlindRows, Dual, GroupFeatures

DESIGNS = {
    "two": census,
    "four": mixed((0.4, 0.3, 0.2, 0.1)),
    "two, tied": mixed((0.8, 0.2), decimals=0),
    "four, tied": mixed((0.4, 0.3, 0.2, 0.1), decimals=0),
}
CRITERIA = ["demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds"]


def as_predicted(people: BlindPeople, labels: tuple[int | None, ...], weights: np.ndarray) -> BlindRows:
    """Each person once for each group and label, by its probability: what is counted is what is predicted."""
    cells = [(label, group) for label in (0, 1) for group in range(people.chances.shape[1])]
    chances = np.stack([1.0 - people.scores, people.scores])
    given = people.chances[None] if labels == (None,) else people.probabilities[list(labels)]
    return BlindRows(
        np.tile(people.scores, len(cells)),
        np.tile(given, (1, len(cells), 1)),
        np.repeat([label for label, _ in cells], weights.size),
        np.repeat([group for _, group in cells], weights.size),
        np.concatenate(
            [weights * chances[label] * people.probabilities[label][:, group] for label, group in cells]
        ),
    )


def dual_of(rows: BlindRows, criterion: str) -> Dual:
    features = GroupFeatures.learn(rows, Comparison(criterion).labels, tuple(range(rows.groups.max() + 1)))
    return Dual.of(rows, features)


def dual_value(dual: Dual, multipliers: np.ndarray, rate: float, bound: float) -> float:
    """What no selection within the bound exceeds, at the best threshold."""
    values, parts = dual.scores - dual.features @ multipliers, dual.weights / dual.weights.sum()
    order = np.argsort(-values)
    threshold = values[order][np.searchsorted(np.cumsum(parts[order]), rate)]
    excess = parts @ np.maximum(values - threshold, 0.0) + rate * threshold
    return float(excess + bound * np.maximum(multipliers, 0.0).sum())


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_each_rate_reaches_the_optimum_of_the_linear_programme(name: str, criterion: str) -> None:
    """The multipliers' dual bounds the optimum from above, and meets it only if they are the best ones."""
    rng = np.random.default_rng(1)
    people, weights = DESIGNS[name](rng, 250), rng.integers(1, 4, 250).astype(float)
    dual = dual_of(as_predicted(people, Comparison(criterion).labels, weights), criterion)
    shares = dual.features * (dual.weights / dual.weights.sum())[:, None]
    lost = []
    for bound in (0.0, 0.1):
        multipliers = dual.solve_rates(bound)
        for place in np.searchsorted(RATES, [0.05, 0.3, 0.8]):
            rate = float(RATES[place])
            best, _ = oracles.best_selection(
                dual.scores, shares, dual.strata, weights=dual.weights, rate=rate, bound=bound
            )
            value = dual_value(dual, multipliers[place], rate, bound)
            assert value >= best - 1e-9
            lost.append(value / best - 1.0)
    assert max(lost) < (0.15 if name == "four, tied" else 0.01)
    assert np.mean(lost) < (0.03 if name == "four, tied" else 0.002)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("design", [census, mixed((0.5, 0.3, 0.2))])
def test_groups_differ_by_no_more_than_the_bound_at_any_rate(design: BlindDesign, criterion: str) -> None:
    """By the mean of what is counted and what is predicted, up to a few rows."""
    people = design(np.random.default_rng(0), 3000)
    labels = Comparison(criterion).labels
    given = people.chances[None] if labels == (None,) else people.probabilities[list(labels)]
    rows = BlindRows(people.scores, given, people.labels, people.groups, np.ones(3000))
    dual = dual_of(rows, criterion)
    predicted = dual.features / dual.features.sum(axis=0)
    counted = dual.shares[:, None] * (dual.places[:, None] == np.arange(dual.strata.size))
    least = min(np.bincount(dual.places[dual.places >= 0]))
    for bound in (0.02, 0.1):
        for multipliers, rate in zip(dual.solve_rates(bound)[::8], RATES[::8], strict=True):
            values = dual.scores - dual.features @ multipliers
            selected = values > np.quantile(values, 1.0 - rate)
            shares = 0.5 * (predicted + counted)[selected].sum(axis=0)
            for one in np.unique(dual.strata):
                assert np.ptp(shares[dual.strata == one]) <= bound + 5.0 / least


def test_with_known_groups_the_mean_of_both_shares_is_either() -> None:
    """Where the features tell the group, counted and predicted agree, and the optimum is that of the programme."""
    people = census(np.random.default_rng(2), 300)
    known = np.eye(2)[people.groups][None]
    rows = BlindRows(people.scores, known, people.labels, people.groups, np.ones(300))
    dual = dual_of(rows, "demographic_parity")
    multipliers = dual.solve_rates(0.05)
    for place in (30, 60, 90):
        rate = float(RATES[place])
        best, gap = oracles.best_selection(
            dual.scores, dual.features / 300, dual.strata, weights=dual.weights, rate=rate, bound=0.05
        )
        assert gap <= 0.05 + 1e-9
        assert best - 1e-9 <= dual_value(dual, multipliers[place], rate, 0.05) <= 1.002 * best


@pytest.mark.parametrize("bound", [0.02, 0.08])
@pytest.mark.parametrize(
    ("design", "everywhere"), [(census, 0.99), (mixed((0.5, 0.2, 0.15, 0.1, 0.05)), 0.8)]
)
def test_little_is_lost_by_nesting_the_sets(design: BlindDesign, everywhere: float, bound: float) -> None:
    """The small group that leads the five is wholly in the best sets of rates below the bound, and not later."""
    people = design(np.random.default_rng(0), 20_000)
    rows = BlindRows(people.scores, people.chances[None], people.labels, people.groups, np.ones(20_000))
    dual = dual_of(rows, "demographic_parity")
    score = dual.solve(bound)
    ranks = score(dual.scores, dual.features)
    assert 0.0 <= ranks.min() < ranks.max() <= 1.0
    for place in np.linspace(5, RATES.size - 5, 20).astype(int):
        size = int(RATES[place] * 20_000)
        own = dual.scores - dual.features @ score.multipliers[place + 1]
        best = people.scores[np.argsort(-own)[:size]].sum()
        kept = people.scores[np.argsort(-ranks)[:size]].sum() / best
        assert kept >= (0.99 if RATES[place] >= 0.1 else everywhere)
