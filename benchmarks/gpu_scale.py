"""MCDP of a billion scores on a GPU, against one sort of the same scores.

Run from the root of the repository: ``PYTHONPATH=src python benchmarks/gpu_scale.py --rows 1000000000``
(on a machine without a GPU it runs on the CPU, where only the agreement means something).

It prints the time of ``torch.sort``, of MCDP at four epsilons (``from_torch`` with ``worst_only``) and of
counts with bounds for every pair as an audit has them, their ratios, the peak of the device's memory over the
bytes of the scores, whether the values are exact, and where the time of MCDP alone goes: each pass over the
rows on the device, and what the search takes between them on the host. The same follows for a tenth of the
rows, for five groups, for labels and for scores that are hard to count: all or half of them equal, sorted,
and of three and five decimals. The first 10 million rows of each are counted again on the CPU, and the values
must be the same to the last bit.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch

import localparity as lp
from localparity.engines._torch import LEVEL, PartsOpener, TorchScores, count_worst
from localparity.engines.protocol import CellTable, CountOptions
from localparity.metrics._exact import Search
from localparity.metrics._gap_curve import gap_curves

EPSILONS = (0.0, 0.01, 0.05, 0.1)
COMPARED_WITH_CPU = 10_000_000
PART = 50_000_000
TIMED = {
    TorchScores: ("count_cells", "count_parts", "count_scores"),
    PartsOpener: ("_bound",),
    Search: ("decide",),
    CellTable: ("with_finer", "to_counts"),
}
DECIMALS = {"three_decimals": 3, "five_decimals": 5}

Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]


def make_rows(case: str, rows: int, device: str) -> Tensors:
    """Uniform scores to a power that the group decides, made in parts so that this does not set the peak."""
    generator = torch.Generator(device).manual_seed(0)
    scores = torch.empty(rows, device=device)
    groups = torch.empty(rows, dtype=torch.int8, device=device)
    labels = torch.empty(rows, dtype=torch.bool, device=device) if case == "labels" else None
    for start in range(0, rows, PART):
        part = slice(start, min(start + PART, rows))
        drawn = torch.rand((2, part.stop - start), generator=generator, device=device)
        groups[part] = (5 * drawn[0]).floor() if case == "five_groups" else drawn[0] < 0.4
        made = drawn[1] ** (1.1 + 0.2 * groups[part])
        if case == "half_equal":
            made = made.where(torch.rand(made.shape, generator=generator, device=device) < 0.5, 0.5)
        scores[part] = _changed(case, made)
        if labels is not None:
            labels[part] = torch.rand(made.shape, generator=generator, device=device) < scores[part]
    if case == "sorted":
        scores, order = torch.sort(scores)
        groups = groups[order]
    return scores, groups, labels


def _changed(case: str, scores: torch.Tensor) -> torch.Tensor:
    """Scores that are hard to count."""
    if case == "all_equal":
        return torch.full_like(scores, 0.5)
    if case in DECIMALS:
        return scores.round(decimals=DECIMALS[case])
    return scores


def best_of(repeats: int, device: str, work: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest time of several runs, and what the last one returned."""
    times, found = [], None
    for _ in range(repeats):
        found = None
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        found = work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times), found


def comparison_of(rows: Tensors) -> lp.Comparison:
    return lp.Comparison("demographic_parity" if rows[2] is None else "equalized_odds")


def count(rows: Tensors, *, worst_only: bool) -> lp.ScoreCounts:
    scores, groups, labels = rows
    return lp.engines.from_torch(
        scores,
        groups,
        y_true=labels,
        epsilons=EPSILONS,
        criterion=comparison_of(rows).criterion,
        worst_only=worst_only,
    )


def audit(rows: Tensors) -> list[tuple[float, float, float]]:
    return evaluate(count(rows, worst_only=False), comparison_of(rows))


def values_alone(rows: Tensors) -> list[float]:
    """MCDP of the worst pair at each epsilon."""
    counts = count(rows, worst_only=True)
    return list(lp.mcdp(counts, epsilon=EPSILONS, criterion=comparison_of(rows).criterion))


def evaluate(counts: lp.ScoreCounts, comparison: lp.Comparison) -> list[tuple[float, float, float]]:
    """MCDP of the worst pair at each epsilon, and its bounds."""
    sides = [(curve, *curve.bounds()) for curve in gap_curves(counts, comparison)]
    found = np.array([[side.mcdp_at(np.array(EPSILONS)) for side in curves] for curves in sides])
    return [(value, low, high) for value, low, high in found.max(axis=0).T.tolist()]


def breakdown(repeats: int, device: str, rows: Tensors) -> list[dict[str, Any]]:
    """Where the time of MCDP alone goes in the quickest run, step by step."""
    options = CountOptions(EPSILONS, comparison_of(rows), level=LEVEL)
    steps: list[dict[str, Any]] = []

    def timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            taken, answer = best_of(1, device, lambda: work(*arguments))
            steps.append({"step": name, "seconds": taken})
            return answer

        return call

    def run() -> list[dict[str, Any]]:
        steps.clear()
        source = timed("check", partial(TorchScores, *rows[:2], y_true=rows[2]))()
        counts = timed("all of these", count_worst)(source, options)
        timed("value", partial(lp.mcdp, epsilon=EPSILONS, criterion=options.comparison.criterion))(counts)
        return list(steps)

    with ExitStack() as patches:
        for owner, names in TIMED.items():
            for name in names:
                patches.enter_context(mock.patch.object(owner, name, timed(name, getattr(owner, name))))
        return min((run() for _ in range(repeats)), key=lambda run: sum(step["seconds"] for step in run))


def by_brute_force(scores: torch.Tensor, groups: torch.Tensor) -> float:
    """MCDP(0) from all rows at once, another way: the largest gap at the end of a run of equal scores."""
    ordered, order = torch.sort(scores)
    second = torch.cumsum(groups[order] == 1, 0, dtype=torch.int64)
    del order
    place = torch.arange(1, scores.numel() + 1, device=scores.device)
    last = torch.ones_like(place, dtype=torch.bool)
    last[:-1] = ordered[1:] != ordered[:-1]
    total_second = int(second[-1])
    total_first = scores.numel() - total_second
    numerator = (place - second) * total_second - second * total_first
    return float(numerator.abs()[last].max()) / (float(total_first) * float(total_second))


def agrees_with_cpu(rows: Tensors) -> bool:
    """Whether the first rows give the same values as arrays do."""
    few: Any = tuple(None if part is None else part[:COMPARED_WITH_CPU] for part in rows)
    scores, groups, labels = (None if part is None else part.cpu().numpy() for part in few)
    options: dict[str, Any] = {"sensitive_features": groups, "criterion": comparison_of(rows).criterion}
    expected = [lp.mcdp(labels, scores, epsilon=epsilon, **options) for epsilon in EPSILONS]
    return [value for value, _, _ in audit(few)] == expected == values_alone(few)


def measure(case: str, rows: int, repeats: int, device: str) -> dict[str, Any]:
    """One case: how long, how much memory, and whether it is right."""
    made = make_rows(case, rows, device)
    sort_time = best_of(min(repeats, 3), device, lambda: torch.sort(made[0]))[0]
    few: Any = tuple(None if part is None else part[:1_000_000] for part in made)
    found: dict[str, Any] = {"rows": rows, "sort_s": sort_time}
    answers = []
    # What takes 20 milliseconds is measured often: much of it is the host's, which others may use.
    for name, work, times in (("mcdp", values_alone, 6 * repeats), ("audit", audit, repeats)):
        work(few)
        if device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        taken, answer = best_of(times, device, lambda work=work: work(made))
        peak = torch.cuda.max_memory_allocated() if device == "cuda" else 0
        found[f"{name}_s"], found[f"{name}_over_sort"] = taken, taken / sort_time
        found[f"{name}_peak_over_scores"] = peak / (made[0].numel() * made[0].element_size())
        answers.append(answer)
    if device == "cuda":
        torch.cuda.empty_cache()
    alone, values = answers
    found |= {
        "mcdp": {str(epsilon): value for epsilon, value in zip(EPSILONS, alone, strict=True)},
        "exact": all(value == low == high for value, low, high in values),
        "same_alone": alone == [value for value, _, _ in values],
        "agrees_with_cpu": agrees_with_cpu(made),
        "breakdown": breakdown(repeats, device, made),
    }
    if case == "two_groups":
        found["mcdp_0_by_brute_force"] = by_brute_force(*made[:2])
    return found


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    measure("two_groups", 1_000_000, 1, device)  # compiles the kernels
    found = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        **measure("two_groups", options.rows, options.repeats, device),
        "a_tenth_of_the_rows": measure("two_groups", options.rows // 10, options.repeats, device),
    }
    cases = ["five_groups", "labels", "all_equal", "half_equal", "sorted", *DECIMALS]
    found["cases"] = {case: measure(case, options.rows, min(2, options.repeats), device) for case in cases}
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
