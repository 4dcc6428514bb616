"""How often the intervals of `lp.explain` hold the truth; results/explain.md.

People have two features, z1 and z2, a group that depends on them, and a score that depends on both and, in
some designs, on the group. What remains in the population is computed from two million people, with the
scores that everyone would have in every group.

Run ``python -m benchmarks.explain --jobs 16``. Draws that are in the file ``--draws`` are not made again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import localparity as lp
from benchmarks._commit import current_commit

Index = Callable[[Any, Any], Any]
SIZES = {1_000: 400, 10_000: 400, 100_000: 40}
"""How often people of each number are drawn."""
TRUTH_ROWS = 2_000_000
BLOCKS = 20


@dataclass(frozen=True)
class Design:
    """How group and score depend on the features, and how people are drawn."""

    group: Index
    score: Index
    direct: float = 0.0
    start: float = -0.4
    groups: int = 2
    decimals: int | None = None
    weighted: bool = False
    clustered: bool = False
    ignores_z2: bool = False


def _interaction(a, b):
    return 1.2 * a * np.sign(b)


def _mostly_first(a, b):
    return 0.9 * a + 0.5 * b


def _both(a, b):
    return 0.9 * (a + b)


DESIGNS = {
    "one feature carries it": Design(lambda a, b: a, lambda a, b: 1.2 * a + 0.3 * b, ignores_z2=True),
    "two features carry it": Design(lambda a, b: 0.8 * (a + b), _both),
    "an interaction carries it": Design(_interaction, _interaction),
    "a part is left": Design(lambda a, b: 0.8 * a, _mostly_first, 0.5, ignores_z2=True),
    "nothing is carried": Design(lambda a, b: 0.0 * a, lambda a, b: a + b, 0.6, ignores_z2=True),
    "three groups": Design(lambda a, b: 0.6 * a, _mostly_first, 0.3, groups=3, ignores_z2=True),
    "ten to one": Design(lambda a, b: 0.6 * a, _mostly_first, 0.5, start=-2.45, ignores_z2=True),
    "ties": Design(lambda a, b: 0.8 * (a + b), _both, 0.4, decimals=1),
    "weights": Design(lambda a, b: 0.8 * a, _mostly_first, 0.5, weighted=True, ignores_z2=True),
    "clusters": Design(lambda a, b: 0.8 * a, _mostly_first, 0.5, clustered=True, ignores_z2=True),
    "no overlap": Design(lambda a, b: 8.0 * (a + b), _both),
}


def sigmoid(values):
    """The logistic function."""
    return 1.0 / (1.0 + np.exp(-values))


def draw(design: Design, rows: int, rng: np.random.Generator, group: int | None = None) -> dict[str, Any]:
    """The arguments of `lp.explain`; with a group, everyone's score as if in it."""
    sampled = design.weighted and group is None
    drawn, unit = 5 * rows if sampled else rows, np.arange(rows)
    z1, z2, noise = rng.standard_normal((3, drawn))
    chance = rng.random(drawn)
    if design.clustered and group is None:  # two people a household, alike in all but a part of the score
        unit = unit // 2
        noise = np.sqrt(0.5) * (noise + rng.standard_normal(rows)[unit])
        z1, z2, chance = z1[unit], z2[unit], chance[unit]
    starts = design.start - 1.2 * np.arange(design.groups - 1)
    codes = (chance[:, None] < sigmoid(design.group(z1, z2)[:, None] + starts)).sum(axis=1)
    weights = None
    if sampled:  # by the first feature and by the group
        kept = np.where(z1 > 0.0, 0.9, 0.45) * np.where(codes == 1, 1.0, 0.6)
        chosen = np.flatnonzero(rng.random(drawn) < kept)[:rows]
        z1, z2, noise, codes, weights = (part[chosen] for part in (z1, z2, noise, codes, 1.0 / kept))
    shown = codes if group is None else group
    scores = sigmoid(design.score(z1, z2) + design.direct * shown + 0.5 * noise)
    if design.decimals is not None:
        scores = scores.round(design.decimals)
    arguments = {"y_score": scores, "X": pd.DataFrame({"z1": z1, "z2": z2}), "sensitive_features": codes}
    return arguments | {"sample_weight": weights, "cluster": unit if design.clustered else None}


def truth(name: str) -> tuple[float, float]:
    """MCDP(0) of the population, and what remains of it among people alike in both features."""
    design, rng = DESIGNS[name], np.random.default_rng(1)
    people = draw(design, TRUTH_ROWS, rng)
    total = lp.mcdp(
        None,
        people["y_score"],
        sensitive_features=people["sensitive_features"],
        sample_weight=people["sample_weight"],
    )
    if design.direct == 0.0:
        return float(total), 0.0
    states = [np.random.default_rng(2) for _ in range(design.groups)]  # the same people in every group
    scores = [draw(design, TRUTH_ROWS, rng, code)["y_score"] for code, rng in enumerate(states)]
    codes = np.repeat(np.arange(design.groups), TRUTH_ROWS)
    return float(total), float(lp.mcdp(None, np.concatenate(scores), sensitive_features=codes))


def one_draw(name: str, rows: int, seed: int) -> dict[str, Any]:
    """The intervals of both features together (r, e), and of each alone where the group ignores z2."""
    arguments = draw(DESIGNS[name], rows, np.random.default_rng((rows, seed)))
    why = lp.explain(**arguments, min_group_size=20, random_state=seed)
    alone = {gap.name: gap for gap in why.features}
    both = why.sets[0] if why.sets else None
    ends = {
        "r": None if both is None else both.remaining,
        "e": None if both is None else both.explained,
        "z1": alone["z1"].remaining,
        "z2": alone["z2"].explained,
    }
    known = {key: (gap.low, gap.estimate, gap.high) for key, gap in ends.items() if gap is not None}
    return {"design": name, "rows": rows, "seed": seed, **known}


def run_block(name: str, rows: int, seeds: Sequence[int], stop: float) -> list[dict[str, Any]]:
    """Some draws of a design, those that begin before it is time to stop."""
    return [one_draw(name, rows, seed) for seed in seeds if time.time() < stop]


def run(designs: Sequence[str], sizes: Mapping[int, int], draws: Path, jobs: int, stop: float) -> None:
    """Add the draws that a file does not have yet, a line each, until it is time to stop."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[variable] = "1"
    lines = draws.read_text(encoding="utf-8").splitlines() if draws.exists() else []
    done = {(draw["design"], draw["rows"], draw["seed"]) for draw in map(json.loads, lines)}
    blocks = [
        (name, rows, range(first, first + count // BLOCKS))
        for part in range(BLOCKS)
        for rows, count in sizes.items()
        for first in (part * (count // BLOCKS),)
        for name in designs
    ]
    left = [
        (name, rows, seeds)
        for name, rows, block in blocks
        if (seeds := [seed for seed in block if (name, rows, seed) not in done])
    ]
    with (
        ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool,
        draws.open("a", encoding="utf-8") as file,
    ):
        futures = [pool.submit(run_block, *block, stop) for block in left]
        for number, future in enumerate(as_completed(futures), 1):
            file.write("".join(json.dumps(draw) + "\n" for draw in future.result()))
            file.flush()
            print(f"{number} of {len(left)}", end="\r", flush=True)


def held(draws: Sequence[dict[str, Any]], key: str, value: float) -> tuple[str, str]:
    """How often the intervals hold a value, with the Monte Carlo error, and how wide they are."""
    ends = np.array([draw[key] for draw in draws if key in draw])
    if not ends.size:
        return "", ""
    share = np.mean((ends[:, 0] <= value + 1e-9) & (value - 1e-9 <= ends[:, 2]))
    error = np.sqrt(share * (1.0 - share) / len(ends))
    return f"{share:.3f} ± {error:.3f}", f"{100.0 * np.mean(ends[:, 2] - ends[:, 0]):.1f}"


def table(draws: Path) -> str:
    """The table of all draws in a file."""
    drawn = [json.loads(line) for line in draws.read_text(encoding="utf-8").splitlines()]
    lines = [
        "# How often the intervals of `lp.explain` hold the truth",
        "",
        "Two features together, confidence 0.95; coverage ± one Monte Carlo error, mean widths in points.",
        '"z1 held" and "z2 held": where the group does not depend on z2, what remains among people alike in',
        'z1 alone, and how often "explained" by z2 alone holds nothing. "No number": draws in which the',
        "groups were said not to overlap.",
        f"Made by `python -m benchmarks.explain` at commit {current_commit()}.",
        "",
        "| design | total | remaining | people | draws | no number | remaining held | width | explained held "
        "| width | z1 held | z2 held |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, design in DESIGNS.items():
        total, remaining = truth(name)
        for rows in SIZES:
            part = [draw for draw in drawn if (draw["design"], draw["rows"]) == (name, rows)]
            refused = sum("r" not in draw for draw in part)
            cells = [name, f"{total:.3f}", f"{remaining:.3f}", f"{rows:,}", f"{len(part)}", f"{refused}"]
            cells += [*held(part, "r", remaining), *held(part, "e", total - remaining)]
            alone = [held(part, "z1", remaining)[0], held(part, "z2", 0.0)[0]]
            lines.append(f"| {' | '.join(cells + (alone if design.ignores_z2 else ['', '']))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Draw, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--draws", type=Path, default=Path("explain.jsonl"), help="the file of the draws")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no draw after so many seconds")
    parser.add_argument("--no-table", action="store_true", help="do not write results/explain.md")
    options = parser.parse_args()
    run(list(DESIGNS), SIZES, options.draws, options.jobs, time.time() + options.seconds)
    if not options.no_table:
        path = Path(__file__).parents[1] / "results" / "explain.md"
        path.write_text(table(options.draws), encoding="utf-8")


if __name__ == "__main__":
    main()
