"""Whether audits find what they were planned to; `python -m benchmarks.power` writes results/power.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

import localparity as lp
from benchmarks._commit import current_commit
from localparity.metrics._kernels import largest_gaps
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.uncertainty._permutation import p_value_of, parity_resamples
from localparity.uncertainty._power import Threshold, needed_to_reject
from localparity.uncertainty._resampling import Draws, studentised_pairs

RESULTS = Path(__file__).parents[1] / "results" / "power.md"
DRAWS = 10_000
RESAMPLES = 10_000
AUDIT_DRAWS, AUDIT_RESAMPLES = 1000, 199
WITHIN = 0.02

Floats = NDArray[np.float64]
Rng = np.random.Generator
Draw = Callable[[Floats, NDArray[np.int64], Rng], Floats]


class Plan(NamedTuple):
    """Groups, of which the two smallest differ, and the power with which that is to be found."""

    group_sizes: Sequence[int]
    power: float = 0.8
    confidence: float = 0.95
    epsilons: Sequence[float] = (0.0,)


PLANS = [
    Plan((100, 100)),
    Plan((300, 500)),
    Plan((300, 500), power=0.5),
    Plan((300, 500), confidence=0.99),
    Plan((2000, 2000)),
    Plan((30, 3000)),
]
AUDITS = [
    Plan(sizes, epsilons=PAPER_EPSILONS)
    for sizes in ((15, 15, 300), (150, 150, 150), (300, 500), (30, 3000), (100,) * 6)
]


def around_one_threshold(below: Floats, groups: NDArray[np.int64], rng: Rng) -> Floats:
    """Groups that differ around a threshold alone, and so many of each of which are below it."""
    low, high = below.min(), below.max()
    middle = 0.5 * (low + high)
    scores, place = rng.random((2, groups.size))
    inside = (scores > low) & (scores < high)
    near = np.where(scores < below[groups], low + (middle - low) * place, middle + (high - middle) * place)
    return np.where(inside, near, scores)


def close_to_one_threshold(below: Floats, groups: NDArray[np.int64], rng: Rng) -> Floats:
    """The same, the people who make the difference so close to the threshold that no window sees it."""
    low, high = below.min(), below.max()
    share, place, close = rng.random((3, groups.size))
    near = np.where(share < below[groups], 0.4999 - 1e-4 * close, 0.5001 + 1e-4 * close)
    return np.where(share < low, 0.49 * place, np.where(share < high, near, 0.51 + 0.49 * place))


def shifted(below: Floats, groups: NDArray[np.int64], rng: Rng) -> Floats:
    """Groups whose scores are normal and shifted, so that they differ by as much in the middle."""
    apart = 2.0 * norm.ppf(0.5 + 0.5 * (below.max() - below.min()))
    places = (below.max() - below) / (below.max() - below.min())
    return np.asarray(norm.cdf(rng.standard_normal(groups.size) + apart * (places[groups] - 0.5)))


def hardest(plan: Plan, mcdp: float) -> Floats:
    """The shares of the groups below a threshold with which the plan's MCDP is hardest to find."""
    sizes = np.array(plan.group_sizes)
    rng = np.random.default_rng(0)
    critical = needed_to_reject(sizes, mcdp, np.array(plan.epsilons), plan.confidence, Draws(2000, rng))
    smallest = np.argsort(sizes, kind="stable")[:2].tolist()
    return Threshold(critical, rng.random((sizes.size, 20_000))).hardest(sizes, tuple(smallest), mcdp)


def drawn(plan: Plan, draw: Draw, draws: int) -> Iterator[tuple[Floats, NDArray[np.int64], Rng]]:
    """Scores and groups of people who differ by the plan's MCDP, again and again."""
    below = hardest(plan, planned(plan))
    groups = np.repeat(np.arange(len(plan.group_sizes)), plan.group_sizes)
    for seed in np.random.SeedSequence([2026, *plan.group_sizes]).spawn(draws):
        rng = np.random.default_rng(seed)
        yield draw(below, groups, rng), groups, rng


def planned(plan: Plan) -> float:
    """The least MCDP that is found as the plan wants it."""
    options = {"power": plan.power, "confidence": plan.confidence, "epsilons": plan.epsilons}
    found = lp.minimum_detectable(plan.group_sizes, **options, random_state=0).mcdp
    assert found is not None
    return found


def simulate(plan: Plan, draw: Draw, draws: int = DRAWS) -> float:
    """How often the permutation test finds the plan's MCDP.

    No two scores are equal, so the test's resamples do not depend on the scores and are drawn once.
    """
    sizes = np.array(plan.group_sizes)
    groups = np.repeat(np.arange(sizes.size), sizes)
    order = np.arange(groups.size) / groups.size
    people = lp.Predictions.from_arrays(None, order, sensitive_features=groups)
    counts, comparison = lp.ScoreCounts.from_predictions(people), lp.Comparison()
    null = parity_resamples(counts, comparison, np.zeros(1), Draws(RESAMPLES, 1)).scaled[:, 0]
    first, second, scale = studentised_pairs(comparison, 1.0 / sizes, sizes)
    given = np.arange(sizes.size), np.append(sizes, groups.size), np.stack([first, second], axis=1)
    found = 0
    for scores, _, _ in drawn(plan, draw, draws):
        gaps = largest_gaps(order, groups[np.argsort(scores)], *given)
        found += p_value_of((scale * gaps).max(), null) <= 1.0 - plan.confidence + 1e-12
    return found / draws


def audited(plan: Plan, draw: Draw, draws: int = AUDIT_DRAWS) -> float:
    """How often an audit as people run it finds the plan's MCDP."""
    found = 0
    for scores, groups, rng in drawn(plan, draw, draws):
        audit = lp.audit(
            None,
            scores,
            sensitive_features=groups,
            epsilons=plan.epsilons,
            confidence=plan.confidence,
            n_resamples=AUDIT_RESAMPLES,
            random_state=rng,
        )
        found += audit.answer.status == "disparity"
    return found / draws


HEADING = """\
# Whether audits find what they were planned to find

`python -m benchmarks.power` at {commit}. For groups of some sizes, `lp.minimum_detectable` gives the least
MCDP(0) that an audit finds with the wanted power. People are drawn again and again in whom the two smallest
groups differ by it. In the reference design the groups differ around one threshold alone, which is the
hardest to find.

## The audit as people run it

`lp.audit` at its own epsilons, {audit_draws:,} draws. The people who make the difference are so close to the
threshold that only epsilon 0 sees it. To save time there are {audit_resamples} resamples, which cost some
points of power beside the 1,000 of an audit by default. The power found must not be below the wanted one by
more than 2 points and three Monte Carlo errors; with few people it may be above it.

| group sizes | MCDP | wanted power | found around one threshold |
|---|---|---|---|
"""
TEST_HEADING = """
## The permutation test

Two groups and epsilon 0 alone: the test of `lp.permutation_test`, with {resamples:,} resamples that were
drawn once, since without ties they do not depend on the scores, and {draws:,} draws. The power found must be
within 2 points of the wanted one. In the other design whole groups are shifted, which is found more often.

| group sizes | confidence | MCDP | wanted power | found around one threshold | found by a shift |
|---|---|---|---|---|---|
"""


def row(plan: Plan, cells: Sequence[str], powers: Sequence[float], draws: int) -> str:
    """A line of a table."""
    sizes = ", ".join(f"{size:,}" for size in plan.group_sizes)
    shown = [f"{share:.3f} ± {sqrt(share * (1.0 - share) / draws):.3f}" for share in powers]
    line = f"| {' | '.join([sizes, *cells, f'{planned(plan):.4f}', f'{plan.power:g}', *shown])} |\n"
    print(line, end="", flush=True)
    return line


def main() -> None:
    """Simulate every plan and write the tables."""
    options = {"audit_resamples": AUDIT_RESAMPLES, "audit_draws": AUDIT_DRAWS}
    text, holds = HEADING.format(commit=current_commit(), **options), True
    for plan in AUDITS:
        found = audited(plan, close_to_one_threshold)
        holds &= found >= plan.power - WITHIN - 3.0 * sqrt(0.16 / AUDIT_DRAWS)
        text += row(plan, [], [found], AUDIT_DRAWS)
    text += TEST_HEADING.format(resamples=RESAMPLES, draws=DRAWS)
    for plan in PLANS:
        powers = [simulate(plan, draw) for draw in (around_one_threshold, shifted)]
        holds &= abs(powers[0] - plan.power) <= WITHIN
        text += row(plan, [f"{plan.confidence:g}"], powers, DRAWS)
    RESULTS.write_text(text, encoding="utf-8")
    if not holds:
        sys.exit("a plan's power is off by more than it may be")


if __name__ == "__main__":
    main()
