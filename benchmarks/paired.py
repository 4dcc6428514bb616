"""Level, coverage and power of paired comparisons; `python -m benchmarks.paired` writes results/paired.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

import localparity as lp
from benchmarks._commit import current_commit
from benchmarks.promises import most_failures

RESULTS = Path(__file__).parents[1] / "results" / "paired.md"
DRAWS = 1000
POWER_DRAWS = 500
CORRELATION = 0.9

Floats = NDArray[np.float64]
Rng = np.random.Generator


class Drawn(NamedTuple):
    """The same people under two models, what else the comparison takes, and the true difference."""

    first: Floats
    second: Floats
    groups: NDArray[Any]
    options: dict[str, Any]
    labels: NDArray[Any] | None = None
    truth: float = 0.0


Design = Callable[[Rng], Drawn]


def ks_of_shift(shift: float) -> float:
    """MCDP(0) between two normal distributions."""
    return float(2.0 * norm.cdf(abs(shift) / 2.0) - 1.0)


def scores_of(latent: Floats, decimals: int | None) -> Floats:
    scores = norm.cdf(latent)
    return np.asarray(scores if decimals is None else scores.round(decimals))


def normal(
    sizes: Sequence[int],
    shifts: tuple[float, float] = (0.0, 0.0),
    *,
    correlation: float = CORRELATION,
    decimals: int | None = None,
    **options: Any,
) -> Design:
    """Normal scores; under each model the last group is shifted."""

    def draw(rng: Rng) -> Drawn:
        groups = np.repeat(np.arange(len(sizes)), sizes)
        shared, *own = rng.standard_normal((3, groups.size))
        last = groups == len(sizes) - 1
        models = [
            scores_of(sqrt(correlation) * shared + sqrt(1.0 - correlation) * each + shift * last, decimals)
            for each, shift in zip(own, shifts, strict=True)
        ]
        truth = ks_of_shift(shifts[1]) - ks_of_shift(shifts[0])
        return Drawn(*models, groups, options, truth=truth)

    return draw


def labelled(size: int) -> Design:
    """Base rates and scores differ between groups, alike under both models."""

    def draw(rng: Rng) -> Drawn:
        drawn = normal((size, size), (0.5, 0.5))(rng)
        labels = (rng.random(drawn.groups.size) < 0.3 + 0.4 * drawn.groups).astype(int)
        return drawn._replace(labels=labels, options={"criterion": "equalized_odds"})

    return draw


def weighted(size: int) -> Design:
    """Weights that depend on the scores, alike under both models."""

    def draw(rng: Rng) -> Drawn:
        drawn = normal((size, size), (0.5, 0.5))(rng)
        return drawn._replace(options={"sample_weight": 0.2 + drawn.first + drawn.second})

    return draw


def clustered(people: int, rows: int, shifts: tuple[float, float] = (0.0, 0.0)) -> Design:
    """People with several rows that are all but alike."""

    def draw(rng: Rng) -> Drawn:
        drawn = normal((people, people), shifts)(rng)
        owner = np.repeat(np.arange(2 * people), rows)
        noise = 0.01 * rng.standard_normal((2, owner.size))
        first, second = np.clip(np.stack([drawn.first, drawn.second])[:, owner] + noise, 0.0, 1.0)
        return Drawn(first, second, drawn.groups[owner], {"cluster": owner}, truth=drawn.truth)

    return draw


def moved(size: int, by: float) -> Design:
    """Either model moves some people of a group down, at different thresholds: MCDP is the same."""

    def draw(rng: Rng) -> Drawn:
        drawn = normal((size, size))(rng)
        models = [
            np.where((drawn.groups == 0) & (scores > at) & (scores < at + by), scores - by, scores)
            for scores, at in ((drawn.first, 0.2), (drawn.second, 0.6))
        ]
        return drawn._replace(first=models[0], second=models[1])

    return draw


class Chances(NamedTuple):
    """How likely each of a few scores is: of the first and the second group, under either model."""

    first: tuple[Sequence[float], Sequence[float]]
    second: tuple[Sequence[float], Sequence[float]]

    @property
    def truth(self) -> float:
        """The true difference of the two MCDPs."""
        first, second = (np.abs(np.diff(np.cumsum(each, axis=1), axis=0)).max() for each in self)
        return float(second - first)


def few_scores(sizes: tuple[int, int], chances: Chances, *, spread: float = 0.0) -> Design:
    """Few distinct scores, or people spread around each; four in five keep their rank under both models."""

    def draw(rng: Rng) -> Drawn:
        groups = np.repeat([0, 1], sizes)
        rank, other, same, around = rng.random((4, groups.size))
        models = []
        for each, place in zip(chances, (rank, np.where(same < 0.8, rank, other)), strict=True):
            scores = np.linspace(0.1, 0.9, len(each[0]))
            below = np.cumsum(each, axis=1)[groups, :-1]
            models.append(scores[(place[:, None] > below).sum(axis=1)] + spread * (around - 0.5))
        return Drawn(*models, groups, {}, truth=chances.truth)

    return draw


COMPETING = Chances(([0.2, 0.5, 0.3], [0.4, 0.3, 0.3]), ([0.3, 0.4, 0.3], [0.3, 0.3, 0.4]))
RARE_ENDS = Chances(([0.05, 0.9, 0.05], [0.05, 0.9, 0.05]), ([0.05, 0.9, 0.05], [0.05, 0.85, 0.1]))
NEARLY_TIED = Chances(
    ([0.1, 0.4, 0.3, 0.2], [0.3, 0.2, 0.15, 0.35]), ([0.2, 0.3, 0.3, 0.2], [0.2, 0.25, 0.2, 0.35])
)
TO_PARITY = Chances(([1.0, 0.0, 0.0], [0.0, 0.5, 0.5]), ([0.3, 0.4, 0.3], [0.3, 0.4, 0.3]))
APART = (0.5, 0.5)
EXCHANGEABLE = {
    "200 and 200": normal((200, 200)),
    "200 and 200 that differ alike": normal((200, 200), APART),
    "5 and 5": normal((5, 5)),
    "10 and 1,000": normal((10, 1000), APART),
    "100 and 100, one decimal": normal((100, 100), APART, decimals=1),
    "100 and 100, two scores": normal((100, 100), APART, decimals=0),
    "six groups of 30": normal([30] * 6, APART),
    "six groups of 30, each with everyone": normal([30] * 6, APART, compare="to_overall"),
    "300, 300 and 4": normal((300, 300, 4)),
    "equalized odds, 150 and 150": labelled(150),
    "100 and 100, epsilon 0.05": normal((100, 100), APART, epsilon=0.05),
    "weights that depend on the scores, 100 and 100": weighted(100),
    "5 rows a person, 50 and 50 people": clustered(50, 5),
}
COVERED = {
    "parity, 200 and 200": normal((200, 200)),
    "both 0.20, 200 and 200": normal((200, 200), APART),
    "0.20 and 0.08, 200 and 200": normal((200, 200), (0.5, 0.2)),
    "0.20 and 0, 200 and 200": normal((200, 200), (0.5, 0.0)),
    "0.38 and 0, 500 and 500": normal((500, 500), (1.0, 0.0)),
    "0.20 and 0.08, 30 and 30": normal((30, 30), (0.5, 0.2)),
    "0.20 and 0.08, 10 and 1,000": normal((10, 1000), (0.5, 0.2)),
    "six groups of 60, 0.27 and 0": normal([60] * 6, (0.7, 0.0)),
    "both 0.15, at different thresholds, 500 and 500": moved(500, 0.15),
    "5 rows a person, 0.20 and 0.08, 60 and 60 people": clustered(60, 5, (0.5, 0.2)),
    "three scores, 0.20 and 0.10, 150 and 150": few_scores((150, 150), COMPETING),
    "three scores, 0.20 and 0.10, 600 and 600": few_scores((600, 600), COMPETING),
    "three scores, 0 and 0.05, rare ends, 40 and 40": few_scores((40, 40), RARE_ENDS),
    "three clumps of scores, 0.20 and 0.10, 150 and 150": few_scores((150, 150), COMPETING, spread=0.1),
    "four scores, 0.20 and 0.15, nearly tied, 200 and 200": few_scores((200, 200), NEARLY_TIED),
    "three scores, 1 and 0, 100 and 100": few_scores((100, 100), TO_PARITY),
}
COMPARED = {
    "100 and 100, 0.20 and 0.06": ((100, 100), (0.5, 0.15)),
    "200 and 200, 0.20 and 0.10": ((200, 200), (0.5, 0.25)),
    "50 and 1,000, 0.27 and 0.12": ((50, 1000), (0.7, 0.3)),
    "four groups of 100, 0.27 and 0.12": ([100] * 4, (0.7, 0.3)),
}


def compared(drawn: Drawn, rng: Rng, n_resamples: int = 99) -> lp.results.PairedComparison:
    return lp.compare_scores(
        drawn.labels,
        drawn.first,
        drawn.second,
        sensitive_features=drawn.groups,
        n_resamples=n_resamples,
        random_state=rng,
        **drawn.options,
    )


def rejects(drawn: Drawn, rng: Rng) -> bool:
    return compared(drawn, rng).p_value <= 0.05


def misses(drawn: Drawn, rng: Rng) -> bool:
    found = compared(drawn, rng).difference
    return not found.low - 1e-9 <= drawn.truth <= found.high + 1e-9


def unpaired(drawn: Drawn, rng: Rng) -> Drawn:
    """The same scores, nobody knowing whose they are: matched at random within each group."""
    second = drawn.second.copy()
    for group in np.unique(drawn.groups):
        of_group = np.flatnonzero(drawn.groups == group)
        second[of_group] = second[rng.permutation(of_group)]
    return drawn._replace(second=second)


def share(design: Design, happens: Callable[[Drawn, Rng], bool], draws: int = DRAWS) -> float:
    """How often something happens to people who are drawn again and again."""
    streams = map(np.random.default_rng, np.random.SeedSequence(2026).spawn(draws))
    return sum(happens(design(rng), rng) for rng in streams) / draws


def powers(sizes: Sequence[int], shifts: tuple[float, float], draws: int = POWER_DRAWS) -> list[float]:
    """How often a difference is found: paired, unpaired on the same people, and on other people."""
    same, others = normal(sizes, shifts), normal(sizes, shifts, correlation=0.0)
    return [
        share(same, rejects, draws),
        share(same, lambda drawn, rng: rejects(unpaired(drawn, rng), rng), draws),
        share(others, rejects, draws),
    ]


HEADING = """\
# Two models on the same people

`python -m benchmarks.paired` at {commit}. `lp.compare_scores` with 99 resamples, on people who were drawn
again and again; unless the design says otherwise, the two models' scores have a correlation of 0.9.

## The test and the interval

The swap test is drawn where the two models are exchangeable within people, and fails where its p-value is at
most 0.05. The 95% interval fails where it misses the true difference of the two MCDPs.

| promise | design | may fail | failed, with its Monte Carlo error | draws |
|---|---|---|---|---|
"""
POWER_HEADING = """
## Power

How often the difference of two models' MCDP(0) has a p-value of at most 0.05: paired, with the same scores
matched at random within groups, and with the scores of two models on different people. The paired test must
be at least twice as powerful as either.

| design | paired | unpaired, same people | unpaired, different people | draws |
|---|---|---|---|---|
"""


def with_error(found: float, draws: int) -> str:
    return f"{found:.4f} ± {sqrt(max(found * (1.0 - found), 1.0 / draws) / draws):.4f}"


def main() -> None:
    """Simulate everything and write the table."""
    failed = []
    text = HEADING.format(commit=current_commit())
    promises = [("test at 5%", name, rejects, design) for name, design in EXCHANGEABLE.items()]
    promises += [("95% interval", name, misses, design) for name, design in COVERED.items()]
    for what, name, happens, design in promises:
        found = share(design, happens)
        failed += [name] if found > most_failures(0.05, DRAWS) else []
        line = f"| {what} | {name} | 0.05 | {with_error(found, DRAWS)} | {DRAWS:,} |"
        print(line, flush=True)
        text += line + "\n"
    text += POWER_HEADING
    for name, design in COMPARED.items():
        found_powers = powers(*design)
        failed += [name] if found_powers[0] < 2.0 * max(found_powers[1:]) else []
        cells = [name, *(with_error(each, POWER_DRAWS) for each in found_powers), f"{POWER_DRAWS:,}"]
        line = f"| {' | '.join(cells)} |"
        print(line, flush=True)
        text += line + "\n"
    RESULTS.write_text(text, encoding="utf-8")
    if failed:
        sys.exit(f"does not hold: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
