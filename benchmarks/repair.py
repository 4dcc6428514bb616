"""`python -m benchmarks.repair`: what score repair costs beside np.sort; the numbers go to results/repair.csv."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks._measure import Measurement, at_most, seconds, write_csv
from localparity.postprocessing import ScoreRepair

ROWS = 10**6


def bench_repair() -> Iterator[Measurement]:
    """Fit and transform of a million scores, checks included, against np.sort of the same scores."""
    rng = np.random.default_rng(0)
    for groups, bound, epsilon in ((2, 0.05, 0.0), (2, 0.0, 0.0), (2, 0.05, 0.05), (5, 0.05, 0.0)):
        codes = rng.integers(0, groups, ROWS)
        scores = rng.beta(2 + codes / groups, 3 - codes / groups)
        repair = ScoreRepair(max_mcdp=bound, epsilon=epsilon)

        def fit_and_transform(repair=repair, scores=scores, codes=codes) -> object:
            return repair.fit(scores, sensitive_features=codes).transform(scores, sensitive_features=codes)

        def transform(repair=repair, scores=scores, codes=codes) -> object:
            return repair.transform(scores, sensitive_features=codes)

        both, alone, sort = seconds(fit_and_transform, transform, lambda scores=scores: np.sort(scores))
        what = f"{groups} groups, max_mcdp {bound:g}, epsilon {epsilon:g}, {ROWS:.0e} rows"
        detail = f"{both:.3f} s; np.sort {sort:.3f} s; unrepaired MCDP {repair.unrepaired_mcdp_:.3f}"
        yield at_most(f"fit and transform / np.sort, {what}", both / sort, 10.0, detail)
        yield at_most(f"transform / np.sort, {what}", alone / sort, 10.0, f"{alone:.3f} s")


def main() -> None:
    """Run, print a line each, write results/repair.csv, and fail when a bar is not met."""
    measurements = []
    for measurement in bench_repair():
        measurements.append(measurement)
        verdict = "holds" if measurement.holds else "FAILS"
        print(f"{verdict}  {measurement.what}: {measurement.measured:g} ({measurement.bar}) {measurement.detail}")
    write_csv(Path("results/repair.csv"), measurements)
    sys.exit(0 if all(measurement.holds for measurement in measurements) else 1)


if __name__ == "__main__":
    main()
