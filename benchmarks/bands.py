r"""How much wider the joint band is than it would have to be; writes results/bands.md.

The band of `localparity.uncertainty._bands` holds for the gap at every threshold, whatever the distributions.
At parity the largest gap has the distribution of Kolmogorov and Smirnov, whose quantile is less. A lower end
for MCDP(epsilon) at one epsilon needs less than a band. Let d be the true MCDP, and S the thresholds at which
the true gap is at most d in size. A measured MCDP above d + r needs a measured gap above d + r on S, for each
window has a threshold in S. Draw each person's score from a uniform number. On S the first group's true share
is at most G = min(F_b + d, 1), so its measured share is at most that of a group with G, person by person. So

    P(measured MCDP > d + r) <= 2 P(sup over t in [0, 1 - d] of H_n(t + d) - E_m(t) > d + r)

with the empirical distributions H_n and E_m of two independent uniform samples. In large samples the process
inside is a Brownian bridge of rate s^2 = 1 / n + 1 / m and length 1 - d between two independent normal
values, X with variance d (1 - d) / n and Y with variance d (1 - d) / m, and the probability is the mean of

    exp(-2 (r - X)^+ (r - Y)^+ / (s^2 (1 - d))),

which is exp(-2 r^2 / s^2), that of Kolmogorov and Smirnov, where d is 0. It is no larger elsewhere, as a grid
of sizes, d and r shows (tests/uncertainty/test_bands.py): in large samples, the quantile at parity is enough
for a lower end, whatever the truth. It is not used: the inequalities of Wei and Dudley (2012) are for samples
of one size from one distribution, and for two sizes, or d > 0, none is proven with these constants. And lower
ends at several epsilons hold together by the band, not by this.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks._commit import current_commit
from benchmarks._designs import Floats, Rng
from localparity.uncertainty._bands import band_radius

RESULTS = Path(__file__).parents[1] / "results" / "bands.md"
DRAWS, ERROR = 20_000, 0.05
SIZES = [(30, 30), (200, 200), (1000, 1000), (30, 3000), (100, 10_000)]
TRUTHS = (0.0, 0.02, 0.033, 0.1, 0.3)


def excess(sizes: tuple[int, int], mcdp: float, rng: Rng) -> float:
    """How much the measured MCDP of groups that are hardest to bound from below is above the true one."""
    first, second = np.sort(np.maximum(rng.random(sizes[0]) - mcdp, 0.0)), np.sort(rng.random(sizes[1]))
    knots = np.append(first, second)
    below = (np.searchsorted(some, knots, side="right") / some.size for some in (first, second))
    return float(np.abs(next(below) - next(below)).max()) - mcdp


def in_large_samples(sizes: tuple[int, int], mcdp: float, rng: Rng) -> float:
    """How likely the excess is above Kolmogorov's quantile of 95%, by the mean above, on either side."""
    first, second = sizes
    square = 1.0 / first + 1.0 / second
    radius = np.sqrt(0.5 * np.log(2.0 / ERROR) * square)
    spread = mcdp * (1.0 - mcdp) / np.array([[first], [second]])
    left: Floats = np.maximum(radius - np.sqrt(spread) * rng.standard_normal((2, 10**6)), 0.0)
    return float(2.0 * np.exp(-2.0 * left[0] * left[1] / (square * (1.0 - mcdp))).mean())


HEADING = """\
# The joint band beside what a lower end needs

`python -m benchmarks.bands` at {commit}: {draws:,} draws a cell, at a confidence of 95%. The band holds for
the gap at every threshold, whatever the distributions. The quantile is that of the largest gap at parity. The
other columns say how often the measured MCDP exceeds a true one by more than that quantile, where groups are
of the kind that is hardest to bound from below (the docstring has the proof): drawn, and in large samples. If
lower ends used the quantile, they would fail as often. They may fail in 5% of cases. Gaps of 30 and 30 people
go in steps of 1/30, so that a true MCDP just below a step exceeds the quantile more often than parity does.

| sizes | band | quantile | ratio | {truths} |
|---|---|---|---|{columns}
"""


def main() -> None:
    """Draw and write the table."""
    truths = " | ".join(f"at {truth:g}: drawn, large" for truth in TRUTHS)
    columns = "---|" * len(TRUTHS)
    lines = [HEADING.format(commit=current_commit(), draws=DRAWS, truths=truths, columns=columns)]
    for place, sizes in enumerate(SIZES):
        rng = np.random.default_rng([37, place])
        band = float(band_radius((float(sizes[0]), float(sizes[1])), ERROR))
        drawn = {truth: np.array([excess(sizes, truth, rng) for _ in range(DRAWS)]) for truth in TRUTHS}
        quantile = float(np.quantile(drawn[0.0], 1.0 - ERROR, method="higher"))
        cells = [
            f"{np.mean(drawn[truth] > quantile + 1e-12):.4f}, {in_large_samples(sizes, truth, rng):.4f}"
            for truth in TRUTHS
        ]
        name = " and ".join(f"{size:,}" for size in sizes)
        values = " | ".join([f"{band:.4f}", f"{quantile:.4f}", f"{band / quantile:.2f}", *cells])
        lines.append(f"| {name} | {values} |\n")
        print(lines[-1], end="", flush=True)
    RESULTS.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
