"""MCDP of a billion scores on a GPU, against one sort of the same scores.

Run from the root of the repository: ``PYTHONPATH=src python benchmarks/gpu_scale.py --rows 1000000000``
(on a machine without a GPU it runs on the CPU, where only the agreement means something).

It prints the time of ``torch.sort``, the time of ``from_torch`` and MCDP at four epsilons, their ratio, which
should be at most 3, the peak of the device's memory over the bytes of the scores, which should be at most 12,
whether the values are exact, and where the time goes: the check of the scores, the choice of each group's
rows, the sort of each group's scores into distinct ones, all of the reading, then what the rounds of counting
take on the device and on the host, and MCDP with its bounds from the counts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import localparity as lp
from localparity.engines import CountOptions, GroupCounts, count_source
from localparity.engines._torch import LEVEL, TorchScores, check_scores
from localparity.metrics._gap_curves import gap_curves

EPSILONS = (0.0, 0.01, 0.05, 0.1)


def make_scores(rows: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Uniform scores to a power that the group decides, made in parts so that this does not set the peak."""
    generator = torch.Generator(device).manual_seed(0)
    scores = torch.empty(rows, device=device)
    groups = torch.empty(rows, dtype=torch.int8, device=device)
    for part in torch.arange(rows).split(50_000_000):
        chosen = slice(int(part[0]), int(part[-1]) + 1)
        groups[chosen] = torch.rand(part.numel(), generator=generator, device=device) < 0.4
        power = 1.1 + 0.2 * groups[chosen]
        scores[chosen] = torch.rand(part.numel(), generator=generator, device=device) ** power
    return scores, groups


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


def audit(scores: torch.Tensor, groups: torch.Tensor) -> list[tuple[float, float, float]]:
    return evaluate(lp.engines.from_torch(scores, groups, epsilons=EPSILONS))


def evaluate(counts: lp.ScoreCounts) -> list[tuple[float, float, float]]:
    (curve,) = gap_curves(counts, lp.Comparison())
    lower, upper = curve.bounds()
    return list(zip(*(each.mcdp_at(np.array(EPSILONS)) for each in (curve, lower, upper)), strict=True))


class TimedScores(TorchScores):
    """A source that keeps how long each of its rounds took, and what came back."""

    def count_cells(self, *arguments: Any) -> list[GroupCounts]:
        """Count by cells."""
        return self._timed(super().count_cells, *arguments)

    def count_scores(self, *arguments: Any) -> list[GroupCounts]:
        """Count by scores."""
        return self._timed(super().count_scores, *arguments)

    def _timed(self, work: Callable[..., list[GroupCounts]], *arguments: Any) -> list[GroupCounts]:
        start = time.perf_counter()
        counted = work(*arguments)
        took = time.perf_counter() - start
        self.rounds = [*getattr(self, "rounds", []), (took, sum(each.at.size for each in counted))]
        return counted


def times_of_group(
    repeats: int, device: str, scores: torch.Tensor, groups: torch.Tensor, group: int
) -> dict[str, float]:
    """How long one group's part of the reading takes, and a sort of its scores with their order."""
    choice_time, chosen = best_of(repeats, device, lambda: scores[groups == group])
    unique_time, _ = best_of(repeats, device, lambda: torch.unique(chosen, return_counts=True))
    sort_time, _ = best_of(repeats, device, lambda: torch.sort(chosen))
    return {"choose_s": choice_time, "unique_s": unique_time, "sort_of_the_parts_s": sort_time}


def breakdown(repeats: int, device: str, scores: torch.Tensor, groups: torch.Tensor) -> dict[str, Any]:
    """The shortest time of each step; the steps of the rounds are of the quickest run."""
    check_time, _ = best_of(repeats, device, lambda: check_scores(scores, (0.0, 1.0)))
    parts = [times_of_group(repeats, device, scores, groups, group) for group in (0, 1)]
    read_time, source = best_of(repeats, device, lambda: TimedScores(scores, groups))
    runs = []
    for _ in range(repeats):
        source.rounds = []
        count_time, counts = best_of(1, device, lambda: count(source))
        runs.append((count_time, source.rounds))
    count_time, rounds = min(runs)
    on_device = sum(took for took, _ in rounds)
    value_time, _ = best_of(repeats, device, lambda: evaluate(counts))
    return {
        "check_s": check_time,
        **{step: sum(part[step] for part in parts) for step in parts[0]},
        "read_s": read_time,
        "rounds": len(rounds),
        "rounds_on_device_s": on_device,
        "rounds_on_host_s": count_time - on_device,
        "brought_by_rounds": [brought for _, brought in rounds],
        "value_s": value_time,
    }


def count(source: TorchScores) -> lp.ScoreCounts:
    return count_source(source, CountOptions(EPSILONS, level=LEVEL))


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


def main() -> None:
    """Measure and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    audit(*make_scores(1_000_000, device))  # compiles the kernels
    scores, groups = make_scores(options.rows, device)
    bytes_of_scores = scores.numel() * scores.element_size()
    sort_time, _ = best_of(options.repeats, device, lambda: torch.sort(scores))
    peak = 0
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    audit_time, values = best_of(options.repeats, device, lambda: audit(scores, groups))
    if device == "cuda":
        peak = torch.cuda.max_memory_allocated()
        torch.cuda.empty_cache()
    result = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "rows": options.rows,
        "sort_s": sort_time,
        "audit_s": audit_time,
        "audit_over_sort": audit_time / sort_time,
        "peak_memory_over_scores": peak / bytes_of_scores,
        "mcdp": {str(epsilon): value for epsilon, (value, _, _) in zip(EPSILONS, values, strict=True)},
        "breakdown": breakdown(options.repeats, device, scores, groups),
        "exact": all(value == low == high for value, low, high in values),
        "mcdp_0_by_brute_force": by_brute_force(scores, groups),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
