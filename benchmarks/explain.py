"""How often the intervals of `lp.explain` hold the truth; results/explain.md.

People have two features, z1 and z2, a group that depends on them, and a score that depends on both and, in
some designs, on the group. What remains in the population is computed from three million people, with the
scores that everyone would have in either group.

Run ``python -m benchmarks.explain [DRAWS]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import localparity as lp
from benchmarks._commit import current_commit

DESIGNS = {
    "one feature carries it": (lambda a, b: a, lambda a, b: 1.2 * a + 0.3 * b, 0.0),
    "two features carry it": (lambda a, b: 0.8 * (a + b), lambda a, b: 0.9 * (a + b), 0.0),
    "an interaction carries it": (lambda a, b: 1.2 * a * np.sign(b), lambda a, b: 1.2 * a * np.sign(b), 0.0),
    "a part is left": (lambda a, b: 0.8 * a, lambda a, b: 0.9 * a + 0.5 * b, 0.5),
    "nothing is carried": (lambda a, b: 0.0 * a, lambda a, b: a + b, 0.6),
}
SIZES = (1_000, 10_000)
TRUTH_ROWS = 3_000_000


def sigmoid(values):
    """The logistic function."""
    return 1.0 / (1.0 + np.exp(-values))


def draw(design: str, rows: int, rng: np.random.Generator, group: int | None = None):
    """Features, groups and scores; with a group, everyone's score as if in it."""
    of_group, of_score, direct = DESIGNS[design]
    z1, z2 = rng.standard_normal((2, rows))
    groups = (rng.random(rows) < sigmoid(of_group(z1, z2) - 0.4)).astype(int)
    shown = groups if group is None else group
    scores = sigmoid(of_score(z1, z2) + direct * shown + 0.5 * rng.standard_normal(rows))
    return pd.DataFrame({"z1": z1, "z2": z2}), groups, scores


def truth(design: str) -> tuple[float, float]:
    """MCDP(0) of the population, and what remains of it among people alike in both features."""
    rng = np.random.default_rng(1)
    _, groups, scores = draw(design, TRUTH_ROWS, rng)
    total = lp.mcdp(None, scores, sensitive_features=groups)
    both = [draw(design, TRUTH_ROWS, rng, group)[2] for group in (0, 1)]
    remaining = lp.mcdp(None, np.concatenate(both), sensitive_features=np.repeat([0, 1], TRUTH_ROWS))
    return float(total), float(remaining)


def coverage(design: str, rows: int, draws: int, known: tuple[float, float]) -> dict[str, float]:
    """How often the intervals hold what remains and what is explained, and how wide they are."""
    total, remaining = known
    holds, widths = [], []
    for seed in range(draws):
        features, groups, scores = draw(design, rows, np.random.default_rng((rows, seed)))
        (gap,) = lp.explain(scores, features, sensitive_features=groups, random_state=seed).sets
        if gap.remaining is None or gap.explained is None:
            continue
        ends = gap.remaining.low <= remaining <= gap.remaining.high
        holds.append((ends, gap.explained.low <= total - remaining <= gap.explained.high))
        widths.append((gap.remaining.high - gap.remaining.low, gap.explained.high - gap.explained.low))
    return {
        "n": len(holds),
        "remaining": float(np.mean([first for first, _ in holds])),
        "explained": float(np.mean([second for _, second in holds])),
        "width": float(np.mean(widths, axis=0)[0]),
        "explained width": float(np.mean(widths, axis=0)[1]),
    }


def main(draws: int) -> None:
    """Write the table."""
    lines = [
        "# How often the intervals of `lp.explain` hold the truth",
        "",
        "Both features together, confidence 0.95; coverage ± one Monte Carlo error, mean widths in points.",
        f"Made by `python -m benchmarks.explain {draws}` at commit {current_commit()}.",
        "",
        "| design | total | remaining | people | draws | remaining held | width | explained held | width |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for design in DESIGNS:
        known = truth(design)
        for rows in SIZES:
            row = coverage(design, rows, draws, known)
            shares = [
                f"{row[name]:.3f} ± {np.sqrt(row[name] * (1 - row[name]) / row['n']):.3f}"
                for name in ("remaining", "explained")
            ]
            widths = [f"{100 * row[name]:.1f}" for name in ("width", "explained width")]
            cells = (design, f"{known[0]:.3f}", f"{known[1]:.3f}", f"{rows:,}", f"{row['n']:.0f}")
            lines.append(f"| {' | '.join((*cells, shares[0], widths[0], shares[1], widths[1]))} |")
            print(lines[-1], flush=True)
    Path(__file__).parents[1].joinpath("results", "explain.md").write_text(
        "\n".join(lines) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
