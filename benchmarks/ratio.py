"""Group-blind repair where decisions are made: Adult at `min_ratio`, in the top 5%, and at every cutoff.

Run it with ``LOCALPARITY_DATA=FOLDER python -m benchmarks.ratio``; it writes results/ratio.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

import localparity as lp
from benchmarks._commit import current_commit
from benchmarks.boosting import Fold
from benchmarks.frontier import SEEDS, Predicted, cross_fitted, load
from localparity.paper._data import paper_split

RESULTS = Path(__file__).parent.parent / "results" / "ratio.md"
SETTINGS: dict[str, dict[str, Any]] = {
    "unrepaired": {"max_mcdp": 1.0},
    "min_ratio 0.8": {"min_ratio": 0.8},
    "MCDP 0.01 in the top 5%": {"max_mcdp": 0.01, "selection_rates": (0.0, 0.05)},
    "MCDP 0.015": {"max_mcdp": 0.015},
    "MCDP 0.02": {"max_mcdp": 0.02},
    "MCDP 0.05": {"max_mcdp": 0.05},
}
HEAD = (
    "| repair | AP | right at 0.5 | MCDP(0) | gap in the top 5% | lowest ratio, selecting 5% to 100% | "
    "seeds whose upper end is 0.8 or more at all of these |\n|---|---|---|---|---|---|---|\n"
)


def measure(options: dict[str, Any], fitted: Predicted, test: Predicted) -> list[float]:
    """What a repair of the training part does on the test part."""
    repair = lp.models.GroupBlindRepair(**options).fit(
        fitted.scores, fitted.labels, sensitive_features=fitted.groups, group_probabilities=fitted.chances
    )
    scores = repair.transform(test.scores, group_probabilities=test.chances)
    people = lp.Predictions.from_arrays(test.labels, scores, sensitive_features=test.groups)
    curve = lp.impact_ratio_curve(people)
    above = 1.0 - np.searchsorted(np.sort(scores), curve.cutoffs, side="right") / scores.size
    many, few = above >= 0.05, above <= 0.05
    return [
        100.0 * average_precision_score(test.labels, scores),
        100.0 * np.mean((scores > 0.5) == (test.labels == 1)),
        100.0 * lp.mcdp(people),
        100.0 * float(np.ptp(curve.rates[:, few], axis=0).max()),
        float(curve.ratios[:, many].min()),
        float(curve.ratio_bands[1][:, many].min()),
    ]


def main() -> None:
    X, y, groups = load("adult")
    found: dict[str, list[list[float]]] = {name: [] for name in SETTINGS}
    for seed in SEEDS:
        split = paper_split(y, seed)
        train, test = (
            Fold(X.iloc[part].reset_index(drop=True), y[part], groups[part])
            for part in (split.train, split.test)
        )
        _, (fitted, tested) = cross_fitted(seed, train, [test])
        for name, options in SETTINGS.items():
            found[name].append(measure(options, fitted, tested))
    lines = []
    for name, rows in found.items():
        values = np.array(rows)
        cells = [f"{m:.2f} ± {s:.2f}" for m, s in zip(values.mean(0), values.std(0, ddof=1), strict=True)][:5]
        held = int((values[:, 5] >= 0.8).sum())
        lines.append(f"| {name} | {' | '.join(cells)} | {held} of {len(rows)} |")
    title = "# Repair where decisions are made: Adult by sex\n\n"
    about = (
        f"Means and deviations over the paper's {len(SEEDS)} splits, in percent but for ratios, at commit "
        f"{current_commit()}. Repairs are fitted on the training part and measured on the test part. Upper "
        "ends are those of `impact_ratio_curve`, which hold at all cutoffs together in 95%.\n\n"
    )
    RESULTS.write_text(f"{title}{about}{HEAD}" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
