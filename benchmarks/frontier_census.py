"""`python -m benchmarks.frontier_census`: how near a fitted group-blind model comes to the best there can be.

The census is drawn from a known model, so the best average precision under a bound is known by quadrature.
Models are fitted to ever more people and measured in the population: on fresh people, who each count as a
positive and as a member of each group by their true probabilities. Finished runs are read back from
results/frontier_census.csv, so that an interrupted sweep resumes; the table and the figure are written at the
end.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import localparity as lp
from benchmarks._commit import current_commit
from benchmarks._labels import label_ends
from census_frontier import census_frontier, census_probabilities
from localparity.report.displays._base import COLOURS, QUIET, finish, use_style

RESULTS = Path(__file__).parent.parent / "results"
RUNS, TABLE, FIGURE = (RESULTS / f"frontier_census.{kind}" for kind in ("csv", "md", "png"))
BOUNDS = (0.02, 0.05, 0.1)
SEEDS = {1_000: 6, 3_000: 6, 10_000: 4, 30_000: 3, 100_000: 2}
TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_NOISE = 0.3
EXACT = (100_000, 1_000_000)
MEASURED_ON, MEASURED_SEED = 100_000, 1_000_003
MODELS = {
    "logistic": "logistic regressions, which have the form of the truth",
    "trees": "the default models",
}


class Run(NamedTuple):
    """A model fitted to people of one seed; what it is in the population, and the frontier at its MCDP.

    The last three are empty where the bound is out of reach of the people fitted on.
    """

    model: str
    rows: int
    seed: int
    max_mcdp: float
    average_precision: float | None
    mcdp: float | None
    frontier: float | None


class Population:
    """Fresh people who each count by their true probabilities: all noise but that of the features is gone."""

    def __init__(self) -> None:
        self.people = lp.datasets.make_census(MEASURED_ON, random_state=MEASURED_SEED).data
        self.chance, self.groups = census_probabilities(self.people)
        knots = np.concatenate([np.linspace(0.0, 0.1, 21), np.linspace(0.11, 0.3, 20)])
        self.bounds, self.best = knots, np.array([census_frontier(knot) for knot in knots])
        # What these people happen to add to the average precision of the best scores, they add to all.
        self.luck = self._average_precision(self.chance) - census_frontier()

    def measure(self, scores: np.ndarray) -> tuple[float, float, float]:
        """Average precision and MCDP(0) of scores, and the frontier at that MCDP."""
        codes = np.repeat([0, 1], MEASURED_ON)
        twice, weights = np.tile(scores, 2), self.groups.T.ravel()
        disparity = lp.mcdp(None, twice, sensitive_features=codes, sample_weight=weights)
        found = self._average_precision(scores) - self.luck
        return found, disparity, float(np.interp(disparity, self.bounds, self.best))

    def _average_precision(self, scores: np.ndarray) -> float:
        labels = np.repeat([1, 0], MEASURED_ON)
        weights = np.concatenate([self.chance, 1.0 - self.chance])
        return float(average_precision_score(labels, np.tile(scores, 2), sample_weight=weights))


def estimators(model: str) -> tuple[Any, Any]:
    """The classifiers of income and of sex."""
    if model == "trees":
        return None, None
    numbers = ["age", "education_years", "hours_per_week"]
    columns = make_column_transformer((OneHotEncoder(), ["occupation"]), (StandardScaler(), numbers))
    pipeline = make_pipeline(columns, LogisticRegression(C=100.0, max_iter=1000))
    return pipeline, pipeline


def runs_of(model: str, rows: int, seed: int, population: Population) -> Iterator[Run]:
    """A run at each bound."""
    census = lp.datasets.make_census(rows, random_state=seed)
    for bound in BOUNDS:
        classifier = lp.models.GroupBlindClassifier(*estimators(model), max_mcdp=bound, random_state=seed)
        try:
            classifier.fit(census.data, census.target, sensitive_features=census.sensitive_features)
        except ValueError:
            yield Run(model, rows, seed, bound, None, None, None)
            continue
        scores = classifier.predict_proba(population.people)[:, 1]
        yield Run(model, rows, seed, bound, *population.measure(scores))


def exact_runs(rows: int, population: Population) -> Iterator[Run]:
    """A run at each bound with the true probabilities in place of fitted models."""
    census = lp.datasets.make_census(rows, random_state=0)
    chance, groups = census_probabilities(census.data)
    for bound in BOUNDS:
        repair = lp.models.GroupBlindRepair(bound).fit(
            chance, sensitive_features=census.sensitive_features, group_probabilities=groups
        )
        scores = repair.transform(population.chance, group_probabilities=population.groups)
        yield Run("exact", rows, 0, bound, *population.measure(scores))


def read() -> list[Run]:
    if not RUNS.exists():
        return []
    with RUNS.open() as stream:
        return [
            Run(model, int(rows), int(seed), *(float(value) if value else None for value in values))  # type: ignore[arg-type]
            for model, rows, seed, *values in list(csv.reader(stream))[1:]
        ]


def append(runs: list[Run]) -> None:
    is_new = not RUNS.exists()
    with RUNS.open("a", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if is_new:
            writer.writerow(Run._fields)
        for run in runs:
            writer.writerow(f"{value:.6g}" if isinstance(value, float) else value for value in run)


def points(runs: list[Run]) -> tuple[list[float], list[float]]:
    """Points of AP below the frontier at a run's own MCDP, and points of MCDP above its bound."""
    reached = [run for run in runs if run.mcdp is not None]
    return (
        [100.0 * (run.frontier - run.average_precision) for run in reached],
        [100.0 * (run.mcdp - run.max_mcdp) for run in reached],
    )


def cell(values: list[float]) -> str:
    if not values:
        return "-"
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


TEXT = """# The distance of fitted group-blind models to the frontier of the census

The census is drawn from a known model; `census_frontier` has the best average precision of any
group-blind score within a bound, by quadrature: {best}.
`GroupBlindClassifier` is fitted to some of its people, and measured on {measured_on:,} others who count by
their true probabilities. Below the frontier: points of average precision that the model is below the frontier
at its own MCDP. Above the bound: points by which its MCDP(0) in the population exceeds `max_mcdp`, which
holds for the people fitted on. Mean ± deviation over the seeds in which the bound is within their reach.

Made by `python -m benchmarks.frontier_census` at commit {commit}; the single runs are in
`frontier_census.csv`.

| models | people | bound | below the frontier | above the bound | seeds |
|---|---|---|---|---|---|
"""


def table(found: list[Run]) -> str:
    known = {f"within {100 * bound:g}%": bound for bound in BOUNDS} | {"without a bound": 1.0}
    best = ", ".join(f"{100 * census_frontier(bound):.2f}% {words}" for words, bound in known.items())
    lines = []
    cases = [*((model, rows) for model in MODELS for rows in SEEDS), *(("exact", rows) for rows in EXACT)]
    for model, rows in cases:
        for bound in BOUNDS:
            runs = [run for run in found if (run.model, run.rows, run.max_mcdp) == (model, rows, bound)]
            below, above = map(cell, points(runs))
            reached = sum(run.mcdp is not None for run in runs)
            line = f"| {model} | {rows:,} | {100 * bound:g}% | {below} | {above} | {reached} of {len(runs)} |"
            lines.append(line)
    lines += ["", *(f"- {name}: {words}." for name, words in MODELS.items())]
    lines += [
        "- exact: the true probabilities. What is left is nesting, the noise of the multipliers, and that of",
        "  the people measured, whose MCDP(0) is off by some 0.3 points; it is in every row.",
    ]
    return TEXT.format(best=best, measured_on=MEASURED_ON, commit=current_commit()) + "\n".join(lines) + "\n"


def draw(found: list[Run]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    use_style()
    summaries = (mean, lambda values: mean(value**2 for value in values) ** 0.5)
    figure, axes = pyplot.subplots(1, 2, figsize=(10.4, 4.2), layout="constrained")
    for (colour, bound), (model, look) in product(
        zip(COLOURS, BOUNDS, strict=False), (("trees", "o-"), ("logistic", "s--"))
    ):
        at = {
            rows: points([run for run in found if run[:2] == (model, rows) and run.max_mcdp == bound])
            for rows in SEEDS
        }
        for which, ax in enumerate(axes):
            shown = [(rows, summaries[which](both[which])) for rows, both in at.items() if len(both[0]) > 1]
            ax.plot(*zip(*shown, strict=True), look, color=colour, label=f"{model}, {100 * bound:g}%")
    labels = (
        "Points of AP below the frontier, by models and bound",
        "Points of MCDP(0) away from the bound (root mean square)",
    )
    # What the people measured add: their MCDP(0) is off by about so much.
    axes[1].axhspan(TICKS[0], _NOISE, color=QUIET, alpha=0.12, lw=0.0)
    axes[1].text(1000, 0.93 * _NOISE, "noise of the people measured", color=QUIET, fontsize="small", va="top")
    for ax, label in zip(axes, labels, strict=True):
        ax.set(
            xscale="log", yscale="log", xlabel="people fitted on", xlim=(800, 700_000), ylim=(TICKS[0], 11)
        )
        ax.set_xticks(list(SEEDS), map("{:,}".format, SEEDS))
        ax.set_yticks(TICKS, map("{:g}".format, TICKS))
        ax.minorticks_off()
        finish(ax, label)
    figure.canvas.draw()
    for ax in axes:
        label_ends(ax)
    figure.savefig(FIGURE, dpi=150)


def main() -> None:
    found = read()
    done = {(run.model, run.rows, run.seed) for run in found}
    population = Population()
    for rows in EXACT:
        if ("exact", rows, 0) not in done:
            found += (runs := list(exact_runs(rows, population)))
            append(runs)
    for rows, seeds in SEEDS.items():
        for model in MODELS:
            for seed in range(seeds):
                if (model, rows, seed) not in done:
                    found += (runs := list(runs_of(model, rows, seed, population)))
                    append(runs)
    TABLE.write_text(table(found), encoding="utf-8")
    draw(found)


if __name__ == "__main__":
    main()
