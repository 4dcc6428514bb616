"""`python -m benchmarks.repair`: what repair and the worst split cost, and the AP that repair keeps.

The numbers go to results/repair.csv.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score

import localparity as lp
from benchmarks._measure import Measurement, at_least, at_most, measure_all, seconds
from localparity.models import ScoreRepair
from localparity.uncertainty._splits import OrderedPeople

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


def bench_worst_split() -> Iterator[Measurement]:
    """One scan of all splits of an age against np.sort of the scores, and against MCDP split by split."""
    rng = np.random.default_rng(0)
    for rows in (10**4, 10**5, 10**6):
        age = rng.random(rows)
        for kind, scores in (
            ("independent", rng.random(rows)),
            ("planted", 0.9 * rng.random(rows) + 0.1 * (age > 0.6)),
        ):
            people = OrderedPeople(scores, age, rows // 10)
            scan, sort = seconds(people.worst_split, lambda scores=scores: np.sort(scores), repeats=3)
            what = f"scan of {people.splits.size} splits / np.sort, {kind}, {rows:.0e} rows"
            yield at_most(what, scan / sort, 60.0, f"{scan:.4f} s")
            if rows == 10**4:
                split = float(people.splits[0])
                (one,) = seconds(
                    lambda scores=scores, low=age <= split: lp.mcdp(None, scores, sensitive_features=low)
                )
                what = f"MCDP at each split from scratch / scan, {kind}, {rows:.0e} rows"
                yield at_least(what, people.splits.size * one / scan, 50.0)


def blend(scores: np.ndarray, groups: np.ndarray, t: float) -> np.ndarray:
    """A part t of the way from each score to the barycentre's at its rank, for all scores alike."""
    ranked = [np.sort(scores[groups == group]) for group in (0, 1)]
    blended = scores.copy()
    for group in (0, 1):
        members = scores[groups == group]
        ends = [np.searchsorted(ranked[group], members, side=side) for side in ("left", "right")]
        levels = 0.5 * (ends[0] + ends[1]) / members.size
        quantiles = [np.quantile(each, levels, method="inverted_cdf") for each in ranked]
        centre = sum(each.size * q for each, q in zip(ranked, quantiles, strict=True)) / scores.size
        blended[groups == group] = (1.0 - t) * members + t * centre
    return blended


def bench_average_precision() -> Iterator[Measurement]:
    """AP after repair, less that of the least linear blend that meets the same bound."""
    folder = Path(os.environ.get("LOCALPARITY_DATA", "nowhere")).parent / "reference" / "predictions"
    for path in sorted(folder.glob("*_erm_0_0.npz")):
        with np.load(path) as found:
            scores, labels = found["score"].astype(np.float64), found["y"]
            groups = found["group"].astype(np.int64)
        whole = lp.mcdp(None, scores, sensitive_features=groups)
        blends = [blend(scores, groups, t) for t in np.linspace(0.0, 1.0, 101)]
        for share in (0.02, 0.1, 0.25, 0.5, 0.75, 0.9):
            repair = ScoreRepair(max_mcdp=share * whole).fit(scores, sensitive_features=groups)
            kept = average_precision_score(labels, repair.transform(scores, sensitive_features=groups))
            met = (b for b in blends if lp.mcdp(None, b, sensitive_features=groups) <= share * whole)
            blended = average_precision_score(labels, next(met, blends[-1]))
            data = path.stem.split("_")[0]
            what = f"AP of repair less that of a blend, {data}, MCDP(0) <= {share * whole:.4f}"
            detail = (
                f"{kept:.4f} against {blended:.4f}; unrepaired {average_precision_score(labels, scores):.4f}"
            )
            yield Measurement(what, round(kept - blended, 5), ">= 0", bool(kept >= blended), detail)


def main() -> None:
    """Run all, write results/repair.csv, and fail when a bar is not met."""
    benches = (bench_repair, bench_worst_split, bench_average_precision)
    measure_all(benches, Path("results/repair.csv"), __doc__)


if __name__ == "__main__":
    main()
