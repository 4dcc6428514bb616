"""MCDP of a billion scores on a GPU, against one sort of the same scores.

Run from the root of the repository: ``PYTHONPATH=src python benchmarks/gpu_scale.py --rows 1000000000``
(on a machine without a GPU it runs on the CPU, where only the agreement means something).

It prints the time of ``torch.sort``, the time of ``from_torch`` and MCDP at four epsilons, their ratio, which
should be at most 3, the peak of the device's memory over the bytes of the scores, which should be at most 12,
and whether the values are exact.
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
    (curve,) = lp.scale.from_torch(scores, groups, epsilons=EPSILONS).gap_curves()
    lower, upper = curve.bounds()
    return list(zip(*(each.mcdp_at(np.array(EPSILONS)) for each in (curve, lower, upper)), strict=True))


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
        "exact": all(value == low == high for value, low, high in values),
        "mcdp_0_by_brute_force": by_brute_force(scores, groups),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
