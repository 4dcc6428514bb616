"""Promises in designs that are made to break them; writes results/attacks.md.

`python -m benchmarks.attacks --jobs 2` draws each promise 1,000 times from a truth that is known. Where
"nothing" is promised, its condition is broken, and the table shows what happens then.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import localparity as lp
from benchmarks import _designs as designs
from benchmarks._commit import current_commit
from benchmarks._designs import Design, Floats, Rng
from localparity.models._bound import Bound, OutOfReachError
from localparity.models._compare import Candidate, CompareSettings, ComparisonRows, _Candidates
from localparity.models._rows import TrainingRows

RESULTS = Path(__file__).parents[1] / "results" / "attacks.md"
DRAWS = 1000
Fails = Callable[[Rng], bool]


def misses(design: Design, truth: float, **options: Any) -> Fails:
    """Whether the interval misses the truth."""

    def fails(rng: Rng) -> bool:
        drawn = design(rng)
        given = {"n_resamples": 199, "random_state": rng, **drawn.options, **options}
        found = lp.mcdp_interval(drawn.labels, drawn.scores, sensitive_features=drawn.groups, **given)
        return not found.low - 1e-9 <= truth <= found.high + 1e-9

    return fails


def soft(size: int, chances: tuple[float, float], shares: tuple[float, float], lean: float) -> Fails:
    """Two kinds of people, each with a probability of the first group, which is told with an error.

    The log odds that are told are `lean` times the true ones, so that the groups look closer, or farther
    apart, than they are. The scores depend on the kind alone.
    """
    kinds, high = np.asarray(chances), np.asarray(shares)
    first, second = kinds / kinds.sum(), (1.0 - kinds) / (1.0 - kinds).sum()
    truth = abs(float((first - second) @ high))
    odds = (kinds / (1.0 - kinds)) ** lean

    def fails(rng: Rng) -> bool:
        kind = rng.integers(0, 2, size)
        scores = np.where(rng.random(size) < high[kind], 0.9, 0.1)
        likely = (odds / (1.0 + odds))[kind]
        table = np.column_stack([likely, 1.0 - likely])
        found = lp.soft_groups(scores, group_probabilities=table, n_resamples=199, random_state=rng)
        interval = found.bounds[0].interval
        return not interval.low - 1e-9 <= truth <= interval.high + 1e-9

    return fails


@cache
def _needed(shares: tuple[int, ...], mcdp: float) -> tuple[int, ...]:
    return lp.rows_needed(shares, mcdp=mcdp, n_resamples=2000, random_state=0)


def not_found(shares: tuple[int, ...], mcdp: float, middle: float) -> Fails:
    """Whether an audit of as many rows as are needed does not find what it was planned for.

    The two smallest groups differ around one threshold, below which one has a share `middle` of its people;
    the other groups are like the other one.
    """

    def fails(rng: Rng) -> bool:
        sizes = _needed(shares, mcdp)
        differs = int(np.argsort(shares, kind="stable")[1])
        groups = np.repeat(np.arange(len(sizes)), sizes)
        ranks = rng.random(groups.size)
        close = 0.5 + 1e-5 * rng.random(groups.size)
        # Below the threshold, close above or below it, and above it.
        inside = (ranks >= middle) & (ranks < middle + mcdp)
        scores = np.where(ranks < middle, 0.4 * ranks / max(middle, 1e-9), 0.6 + 0.4 * ranks)
        scores = np.where(inside, np.where(groups == differs, close, 0.5 - (close - 0.5)), scores)
        audit = lp.audit(None, scores, sensitive_features=groups, n_resamples=199, random_state=rng)
        return audit.answer.status != "disparity"

    return fails


def selected_with_weights(spread: float, above: float) -> Fails:
    """Whether weighted people accept the first of several settings, all of which are above the bound."""
    bound = Bound(0.2, confidence=0.9)

    def fails(rng: Rng) -> bool:
        groups = rng.integers(0, 2, 600)
        weights = rng.lognormal(0.0, spread, groups.size)
        chance = 0.5 + (bound.max_mcdp + above) * (groups - 0.5)
        scores = np.where(rng.random(groups.size) < chance, 0.8, 0.2)
        rows = lp.Predictions.from_arrays(None, scores, sensitive_features=groups, sample_weight=weights)
        return bound.upper(rows).high <= bound.max_mcdp

    return fails


def weighted_by_score(above: float) -> Fails:
    """Whether people whose weights depend on their scores accept a setting that is above the bound."""
    bound = Bound(0.2, confidence=0.9)

    def fails(rng: Rng) -> bool:
        groups = rng.integers(0, 2, 4000)
        chance = 0.5 + (bound.max_mcdp + above) * (groups - 0.5)
        high = rng.random(groups.size) < chance
        kept = rng.random(groups.size) < np.where(high, 0.1, 0.5)
        rows = lp.Predictions.from_arrays(
            None,
            np.where(high, 0.8, 0.2)[kept],
            sensitive_features=groups[kept],
            sample_weight=1.0 / np.where(high, 0.1, 0.5)[kept],
        )
        return bound.upper(rows).high <= bound.max_mcdp

    return fails


def prefit(neighbours: int | None, *, own_rows: bool) -> Fails:
    """Whether a repair around a fitted classifier, with a confidence of 0.9, breaks its bound of 0.15.

    A model that remembers its rows is repaired on them, or on others.
    """
    people = 20_000

    def draw(rng: Rng, rows: int) -> tuple[Floats, Any, Any]:
        groups = rng.integers(0, 2, rows)
        features = rng.normal(size=(rows, 3)) + 0.6 * groups[:, None]
        labels = rng.random(rows) < 1.0 / (1.0 + np.exp(-features.sum(axis=1)))
        return features, labels.astype(int), groups

    population = draw(np.random.default_rng(0), people)

    def fails(rng: Rng) -> bool:
        features, labels, groups = draw(rng, 1200)
        model = LogisticRegression() if neighbours is None else KNeighborsClassifier(neighbours)
        model.fit(features[:600], labels[:600])
        part = slice(0, 600) if own_rows else slice(600, None)
        repair = lp.models.RepairedClassifier(
            model, prefit=True, max_mcdp=0.15, confidence=0.9, random_state=0
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                repair.fit(features[part], labels[part], sensitive_features=groups[part])
        except OutOfReachError:
            return False
        scores = repair.predict_proba(population[0], sensitive_features=population[2])[:, 1]
        return lp.mcdp(None, scores, sensitive_features=population[2]) > 0.15 + 2e-3

    return fails


def compared(methods: int, above: float) -> Fails:
    """Whether `compare` promises a bound of a method whose settings are all just above it."""
    bound = Bound(0.1)

    def fails(rng: Rng) -> bool:
        parts = []
        for size in (10, 1000, 1000):
            groups = rng.integers(0, 2, size)
            labels = rng.integers(0, 2, size).astype(float)
            parts.append(
                TrainingRows(np.zeros((size, 1)), labels, groups, np.ones(size), np.array([0, 1]), (0, 1))
            )
        rows = ComparisonRows(*parts)
        candidates = _Candidates(rows, CompareSettings(bound, 0, "lightgbm", None, 0.9, 19))
        candidates.tested = bound._replace(confidence=1.0 - 0.1 / methods)
        for method in range(methods):
            made = []
            for place in range(3):
                scores = [
                    np.where(
                        rng.random(part.size) < 0.5 + (bound.max_mcdp + above) * (part.groups - 0.5), 0.8, 0.2
                    )
                    for part in (rows.validation, rows.test)
                ]
                made.append(Candidate(str(place), None, *scores))
            candidates._choose(str(method), made)
        return any(outcome.promise for outcome in candidates.outcomes)

    return fails


class Attack(NamedTuple):
    """Something that may fail with no more than a stated probability; None where nothing is promised."""

    what: str
    design: str
    stated: float | None
    fails: Fails


def whole_numbers(sizes: tuple[int, int], top: int) -> tuple[Design, float]:
    """Whole scores from 0 to `top`: one group has each alike, the other the higher the more often."""
    shares = np.array([np.full(top + 1, 1.0), np.arange(top + 1) + 1.0])
    shares /= shares.sum(axis=1, keepdims=True)

    def draw(rng: Rng) -> designs.Drawn:
        groups = np.repeat([0, 1], sizes)
        scores = [rng.choice(top + 1, n, p=p) for n, p in zip(sizes, shares, strict=True)]
        return designs.Drawn(np.concatenate(scores).astype(np.int64), groups, {"score_range": (0, top)})

    return draw, float(np.abs(np.diff(shares.cumsum(axis=1), axis=0)).max())


FIFTEEN = designs.powers([40] * 15, [1.0] * 13 + [1.5, 2.0])
UNEQUAL = designs.powers([5] * 7 + [400] * 8, [1.0] * 14 + [2.0])
ALIKE = designs.powers([40] * 15, [1.0] * 15)
STARS, SCALE = whole_numbers((60, 600), 4), whole_numbers((200, 200), 100)
INTERVAL, BOOTSTRAP = "interval", {"method": "bootstrap"}
SOFT, ROWS, WEIGHTS = "interval of soft groups", "rows_needed: not found", "bound with weights: accepted"
ATTACKS = [
    Attack(SOFT, "calibrated, 0.9 and 0.2, 400 people", 0.05, soft(400, (0.9, 0.2), (0.3, 0.6), 1.0)),
    Attack(SOFT, "calibrated, 0.6 and 0.05, 100 people", 0.05, soft(100, (0.6, 0.05), (0.1, 0.5), 1.0)),
    Attack(SOFT, "log odds told at 0.7 times the truth, 400", None, soft(400, (0.9, 0.2), (0.3, 0.6), 0.7)),
    Attack(
        SOFT, "log odds told at 0.5 times the truth, 4,000", None, soft(4000, (0.9, 0.2), (0.3, 0.6), 0.5)
    ),
    Attack(
        SOFT, "log odds told at 1.5 times the truth, 4,000", None, soft(4000, (0.9, 0.2), (0.3, 0.6), 1.5)
    ),
    Attack(ROWS, "0.3 between equal groups, a gap at the median", 0.2, not_found((1, 1), 0.3, 0.35)),
    Attack(ROWS, "0.3, 1 to 9, a gap at the lowest scores", 0.2, not_found((1, 9), 0.3, 0.0)),
    Attack(ROWS, "0.4, 1 to 1 to 8, a gap at the median", 0.2, not_found((1, 1, 8), 0.4, 0.3)),
    Attack(ROWS, "0.15, 2 to 3, a gap at the highest scores", 0.2, not_found((2, 3), 0.15, 0.85)),
    Attack(WEIGHTS, "lognormal 0.5, all settings just above", 0.1, selected_with_weights(0.5, 1e-4)),
    Attack(WEIGHTS, "lognormal 1, all settings just above", 0.1, selected_with_weights(1.0, 1e-4)),
    Attack(WEIGHTS, "people sampled by their scores, just above", 0.1, weighted_by_score(1e-4)),
    Attack(INTERVAL, "15 groups of 40, two differ", 0.05, misses(FIFTEEN, 0.25)),
    Attack(INTERVAL, "15 groups of 40, two differ, bootstrap", 0.05, misses(FIFTEEN, 0.25, **BOOTSTRAP)),
    Attack(INTERVAL, "15 groups of 40, alike, bootstrap", 0.05, misses(ALIKE, 0.0, **BOOTSTRAP)),
    Attack(INTERVAL, "7 groups of 5 and 8 of 400, one differs", 0.05, misses(UNEQUAL, 0.25)),
    Attack(INTERVAL, "the same, bootstrap", 0.05, misses(UNEQUAL, 0.25, **BOOTSTRAP)),
    Attack(
        INTERVAL, "curves that cross, 0.15, 100 and 100", 0.05, misses(designs.waves((100, 100), 0.15), 0.15)
    ),
    Attack(
        INTERVAL,
        "the same, bootstrap",
        0.05,
        misses(designs.waves((100, 100), 0.15), 0.15, **BOOTSTRAP),
    ),
    Attack(
        INTERVAL,
        "two peaks of 0.05 of either sign, 400 and 400, bootstrap",
        0.05,
        misses(designs.waves((400, 400), 0.05), 0.05, **BOOTSTRAP),
    ),
    Attack(
        INTERVAL,
        "a gap of 0.15 whose sign turns at a score, epsilon 0.2, 100 and 100",
        0.05,
        misses(designs.crossing((100, 100), 0.15), 0.15, epsilon=0.2),
    ),
    Attack(INTERVAL, "whole scores from 0 to 4, 60 and 600", 0.05, misses(*STARS)),
    Attack(INTERVAL, "the same, epsilon 0.1", 0.05, misses(*STARS, epsilon=0.1)),
    Attack(INTERVAL, "the same, bootstrap", 0.05, misses(*STARS, **BOOTSTRAP)),
    Attack(INTERVAL, "whole scores from 0 to 100, 200 and 200", 0.05, misses(*SCALE)),
    Attack(INTERVAL, "the same, bootstrap", 0.05, misses(*SCALE, **BOOTSTRAP)),
    Attack("repair around a fitted model", "linear, other rows, 0.15", 0.1, prefit(None, own_rows=False)),
    Attack("repair around a fitted model", "linear, its own rows, 0.15", None, prefit(None, own_rows=True)),
    Attack("repair around a fitted model", "5 neighbours, other rows", 0.1, prefit(5, own_rows=False)),
    Attack("repair around a fitted model", "5 neighbours, its own rows", None, prefit(5, own_rows=True)),
    Attack("compare: a promise", "4 methods, 3 settings each, all just above", 0.1, compared(4, 1e-4)),
    Attack("compare: a promise", "12 methods, 3 settings each, all just above", 0.1, compared(12, 1e-4)),
]


def _failures(place: int, number: int, of: int, draws: int) -> int:
    seeds = np.random.SeedSequence([37, place]).spawn(draws)[number::of]
    return sum(bool(ATTACKS[place].fails(np.random.default_rng(seed))) for seed in seeds)


def row(attack: Attack, failed: int, draws: int) -> str:
    """A line of the table."""
    share = failed / draws
    error = sqrt(max(share * (1.0 - share), 1.0 / draws) / draws)
    stated = "nothing" if attack.stated is None else f"{attack.stated:g}"
    broken = attack.stated is not None and share > attack.stated + 2.5 * error
    verdict = " **does not hold**" if broken else ""
    return (
        f"| {attack.what} | {attack.design} | {stated} | {share:.4f} ± {error:.4f}{verdict} | {draws:,} |\n"
    )


HEADING = """\
# Promises under attack

`python -m benchmarks.attacks` at {commit}. A failure is an interval that misses the truth, an audit of as
many rows as were planned that does not find what it was planned for, or a bound that is promised and does not
hold in the population. Where "nothing" is promised, its condition is broken on purpose.

| promise | design | may fail | failed, with its Monte Carlo error | draws |
|---|---|---|---|---|
"""


def main() -> None:
    """Simulate and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--commit", default=None, help="where git is not there to ask")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    lines, parts = [HEADING.format(commit=options.commit or current_commit())], 16
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("fork")) as pool:
        work = [
            [pool.submit(_failures, place, number, parts, options.draws) for number in range(parts)]
            for place in range(len(ATTACKS))
        ]
        for attack, counted in zip(ATTACKS, work, strict=True):
            lines.append(row(attack, sum(part.result() for part in counted), options.draws))
            print(lines[-1], end="", flush=True)
    options.out.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
