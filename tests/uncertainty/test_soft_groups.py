"""Groups known as probabilities: soft counts, and bounds that linear programmes attain and assignments keep."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import localparity as lp


def largest_gap(scores: Any, chances: Any, threshold: float, sign: float) -> float:
    """The largest gap at a threshold over all joint distributions, by a linear programme."""
    cells, cell = np.unique(chances, axis=0, return_inverse=True)
    totals = chances.sum(axis=0)
    below = (scores <= threshold).astype(float)
    cost = np.concatenate([below / totals[0], -below / totals[1]]) * -sign
    n = scores.size
    equal, right = [], []
    for number, chance in enumerate(cells):
        inside = (cell.ravel() == number).astype(float)
        for group in (0, 1):
            equal.append(np.concatenate([inside, 0 * inside] if group == 0 else [0 * inside, inside]))
            right.append(inside.sum() * chance[group])
    both = np.hstack([np.eye(n), np.eye(n)])
    found = linprog(cost, A_ub=both, b_ub=np.ones(n), A_eq=equal, b_eq=right, bounds=(0, 1), method="highs")
    return -float(found.fun)


def made(seed: int, groups: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    kinds = rng.dirichlet(np.ones(groups), 3).round(2)
    kinds[:, -1] = 1.0 - kinds[:, :-1].sum(axis=1)
    scores = rng.integers(0, 8, 30) / 7
    return scores, kinds[np.repeat([0, 1, 2], 10)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("groups", [2, 3])
def test_the_largest_is_that_of_linear_programmes(seed: int, groups: int) -> None:
    scores, chances = made(seed, groups)
    found = lp.soft_groups(scores, group_probabilities=chances, n_resamples=19, random_state=0).bounds[0]
    largest = 0.0
    for a, b in combinations(range(groups), 2):
        pair = chances[:, [a, b]]
        largest = max(
            largest, *(largest_gap(scores, pair, y, sign) for y in np.unique(scores) for sign in (-1.0, 1.0))
        )
    assert found.high == pytest.approx(largest, abs=1e-9)
    assert found.low <= found.interval.estimate <= found.high


@pytest.mark.parametrize("seed", range(6))
def test_every_assignment_with_these_shares_is_within_the_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, 40) / 5
    chances = np.repeat([[0.25, 0.75], [0.5, 0.5]], 20, axis=0)
    at = [0.0, 0.06, 0.12]
    found = lp.soft_groups(scores, group_probabilities=chances, epsilon=at, n_resamples=19, random_state=0)
    for way in range(40):
        if way % 2:  # the lowest scores of each set, or some of them
            first = np.concatenate(
                [np.argsort(scores[:20])[:5], 20 + np.argsort(scores[20:])[way % 4 * 3 :][:10]]
            )
        else:
            first = np.concatenate([rng.choice(20, 5, replace=False), 20 + rng.choice(20, 10, replace=False)])
        groups = np.isin(np.arange(40), first)
        mcdp = lp.mcdp(None, scores, sensitive_features=groups, epsilon=at)
        for bounds, value in zip(found.bounds, mcdp, strict=True):
            assert bounds.low - 1e-12 <= value <= bounds.high + 1e-12


def test_certain_probabilities_are_groups() -> None:
    census = lp.datasets.make_census(500, random_state=0)
    sex = np.asarray(census.sensitive_features)
    chances = pd.DataFrame({name: (sex == name).astype(float) for name in np.unique(sex)})
    found = lp.soft_groups(census.score, group_probabilities=chances, epsilon=[0, 0.05], random_state=0)
    for bounds in found.bounds:
        mcdp = lp.mcdp(None, census.score, sensitive_features=sex, epsilon=bounds.epsilon)
        assert (bounds.low, bounds.interval.estimate, bounds.high) == pytest.approx((mcdp, mcdp, mcdp))
    assert (found.groups, found.alike) == (("Female", "Male"), 2)
    assert sum(found.shares) == pytest.approx(1.0)
    assert found.bounds[0].interval.low < found.bounds[0].interval.high


def test_proxies_say_who_is_alike() -> None:
    rng = np.random.default_rng(0)
    chance = rng.random(200)
    chances = np.column_stack([chance, 1.0 - chance])
    options: dict[str, Any] = {"group_probabilities": chances, "n_resamples": 19, "random_state": 0}
    with pytest.raises(ValueError, match=r"200 different rows among 200, too many .* pass proxies"):
        lp.soft_groups(rng.random(200), **options)
    found = lp.soft_groups(rng.random(200), proxies=chance > 0.5, **options)
    assert found.alike == 2
    assert re.search(
        r"between 0\.00% and .* if the probabilities are the groups' shares", found.bounds[0].sentence
    )


@pytest.mark.parametrize(
    ("chances", "message"),
    [
        ([0.5, 0.5], "must have a column for each of two groups or more, got 1"),
        ([[1.0], [1.0]], "must have a column for each of two groups or more, got 1"),
        ([[0.5, 0.5]], r"group_probabilities\[0\] has 1 rows, y_score has 2"),
        ([[0.5, 0.5], [0.5, 0.6]], r"must be >= 0 and add up to 1, got \[0.5, 0.6\] at row 1"),
        ([[1.5, -0.5], [0.5, 0.5]], r"must be >= 0 and add up to 1, got \[1.5, -0.5\] at row 0"),
        ([[1.0, 0.0], [1.0, 0.0]], "must be > 0 in some row of group 1, got 0 in all of them"),
    ],
)
def test_what_are_no_probabilities(chances: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.soft_groups([0.1, 0.9], group_probabilities=chances)


def test_the_interval_is_that_of_an_audit_in_which_everyone_is_in_each_group() -> None:
    scores, chances = made(3, groups=3)
    options: dict[str, Any] = {"n_resamples": 39, "random_state": 0}
    found = lp.soft_groups(scores, group_probabilities=chances, epsilon=[0, 0.1], **options)
    for bounds in found.bounds:
        assert bounds.interval == lp.mcdp_interval(
            None,
            np.repeat(scores, 3),
            sensitive_features=np.tile([0, 1, 2], 30),
            sample_weight=chances.ravel(),
            cluster=np.repeat(np.arange(30), 3),
            epsilon=bounds.epsilon,
            **options,
        )


def test_few_people_of_one_score_are_not_known_for_sure() -> None:
    """Of 20 people nobody has the high score that 25 of 500 have: so it is in a third of samples at parity."""
    scores = np.repeat([0.1, 0.1, 0.9], [20, 475, 25])
    chances = np.column_stack([np.arange(520) < 20, np.arange(520) >= 20]).astype(float)
    found = lp.soft_groups(scores, group_probabilities=chances, random_state=0).bounds[0].interval
    assert found.estimate == pytest.approx(0.05)
    assert found.low == 0.0


def test_the_interval_holds_as_often_as_it_says() -> None:
    """Groups and scores independent among people alike: the interval has the population's MCDP."""
    held, runs = 0, 200
    kinds = np.array([[0.8, 0.2], [0.3, 0.7]])
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        kind = rng.integers(0, 2, 300)
        scores = np.where(kind, rng.random(300) ** 2, rng.random(300))
        options = {"group_probabilities": kinds[kind], "n_resamples": 99, "random_state": seed}
        found = lp.soft_groups(scores, **options).bounds[0].interval
        # F_a - F_b is (0.8/1.1 - 0.2/0.9) of the gap between the kinds, which is the square root less y.
        true = abs(0.8 / 1.1 - 0.2 / 0.9) * 0.25
        held += found.low <= true <= found.high
    assert held / runs >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)
