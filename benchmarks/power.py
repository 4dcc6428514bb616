"""Whether audits find what they were planned to; `python -m benchmarks.power` writes results/power.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

import localparity as lp
from benchmarks._commit import current_commit
from localparity.uncertainty._power import Threshold, needed_to_reject
from localparity.uncertainty._resampling import Draws

RESULTS = Path(__file__).parents[1] / "results" / "power.md"
DRAWS = 2000
RESAMPLES = 499
WITHIN = 0.02

Floats = NDArray[np.float64]
Rng = np.random.Generator
Draw = Callable[[Floats, NDArray[np.int64], Rng], Floats]


class Plan(NamedTuple):
    """Groups, of which the two smallest differ, and the power with which that is to be found."""

    group_sizes: Sequence[int]
    power: float = 0.8
    confidence: float = 0.95


PLANS = [
    Plan((100, 100)),
    Plan((300, 500)),
    Plan((300, 500), power=0.5),
    Plan((300, 500), confidence=0.99),
    Plan((2000, 2000)),
    Plan((30, 3000)),
    Plan((150, 150, 600)),
    Plan((100,) * 6),
]


def around_one_threshold(below: Floats, groups: NDArray[np.int64], rng: Rng) -> Floats:
    """Groups that differ around a threshold alone, and so many of each of which are below it."""
    low, high = below.min(), below.max()
    middle = 0.5 * (low + high)
    scores, place = rng.random((2, groups.size))
    inside = (scores > low) & (scores < high)
    near = np.where(scores < below[groups], low + (middle - low) * place, middle + (high - middle) * place)
    return np.where(inside, near, scores)


def shifted(below: Floats, groups: NDArray[np.int64], rng: Rng) -> Floats:
    """Groups whose scores are normal and shifted, so that they differ by as much in the middle."""
    apart = 2.0 * norm.ppf(0.5 + 0.5 * (below.max() - below.min()))
    places = (below.max() - below) / (below.max() - below.min())
    return np.asarray(norm.cdf(rng.standard_normal(groups.size) + apart * (places[groups] - 0.5)))


def hardest(plan: Plan, mcdp: float) -> Floats:
    """The shares of the groups below a threshold with which the plan's MCDP is hardest to find."""
    sizes = np.array(plan.group_sizes)
    rng = np.random.default_rng(0)
    critical = needed_to_reject(sizes, plan.confidence, Draws(10_000, rng))
    smallest = np.argsort(sizes, kind="stable")[:2].tolist()
    return Threshold(critical, rng.random((sizes.size, 20_000))).hardest(sizes, tuple(smallest), mcdp)


def simulate(plan: Plan, draw: Draw, draws: int = DRAWS, n_resamples: int = RESAMPLES) -> tuple[float, float]:
    """The MCDP of a plan, and how often the permutation test finds it."""
    options = {"power": plan.power, "confidence": plan.confidence}
    mcdp = lp.minimum_detectable(plan.group_sizes, **options, random_state=0).mcdp
    assert mcdp is not None
    groups, below = np.repeat(np.arange(len(plan.group_sizes)), plan.group_sizes), hardest(plan, mcdp)
    found = 0
    for seed in np.random.SeedSequence([2026, *plan.group_sizes]).spawn(draws):
        rng = np.random.default_rng(seed)
        test = lp.permutation_test(
            None,
            draw(below, groups, rng),
            sensitive_features=groups,
            n_resamples=n_resamples,
            random_state=rng,
        )
        found += test.p_value <= 1.0 - plan.confidence + 1e-12
    return mcdp, found / draws


HEADING = """\
# Whether audits find what they were planned to find

`python -m benchmarks.power` at {commit}. For groups of some sizes, `lp.minimum_detectable` gives the least
MCDP(0) that an audit finds with the wanted power. People of two groups that differ by it, the two smallest
ones, are drawn {draws:,} times, and `lp.permutation_test` with {resamples} resamples looks for it. In the
reference design the groups differ around one threshold alone, the hardest case, and the power found must be
within 2 points of the wanted one. In the other, whole groups are shifted, which is found more often.

| group sizes | confidence | MCDP | wanted power | found around one threshold | found by a shift |
|---|---|---|---|---|---|
"""


def main() -> None:
    """Simulate every plan and write the table."""
    rows, holds = [], True
    for plan in PLANS:
        mcdp, found = simulate(plan, around_one_threshold)
        _, of_shift = simulate(plan, shifted)
        holds &= abs(found - plan.power) <= WITHIN
        powers = [f"{share:.3f} ± {sqrt(share * (1.0 - share) / DRAWS):.3f}" for share in (found, of_shift)]
        sizes = ", ".join(f"{size:,}" for size in plan.group_sizes)
        cells = [sizes, f"{plan.confidence:g}", f"{mcdp:.4f}", f"{plan.power:g}", *powers]
        rows.append(f"| {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    heading = HEADING.format(commit=current_commit(), draws=DRAWS, resamples=RESAMPLES)
    RESULTS.write_text(heading + "\n".join(rows) + "\n", encoding="utf-8")
    if not holds:
        sys.exit("a plan's power is off by more than 2 points")


if __name__ == "__main__":
    main()
