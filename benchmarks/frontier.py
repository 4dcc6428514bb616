"""Group-blind repair beside every other method here, fairlearn and EquiPy, on five data sets.

Run it with ``LOCALPARITY_DATA=FOLDER python -m benchmarks.frontier --jobs 2``: finished runs are read back
from results/frontier.csv, so that an interrupted sweep resumes. `benchmarks.frontier_faces` adds UTKFace, and
`benchmarks.frontier_table` writes results/frontier.md and the figure.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import average_precision_score

import localparity as lp
from benchmarks.boosting import Fold, gradient_scores, penalised_scores, plain_scores, threshold_scores
from localparity.models._encoding import with_categories
from localparity.models._rows import assign_folds, check_training_rows
from localparity.models.repair._group_blind import cross_fit
from localparity.models.trees._stock import StockModel
from localparity.paper._data import paper_split

RESULTS = Path(__file__).parent.parent / "results"
RUNS = RESULTS / "frontier.csv"
SEEDS = range(5)
DATA = ("adult", "bank", "compas", "hmda", "census")
NARROW = (0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05)
BOUNDS = (*NARROW, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3)
SLACKS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.15)
KEPT = tuple(np.linspace(0.0, 0.9, 10).round(1).tolist())
RACES = ("black", "asian", "white", "amind", "hipac")


class Run(NamedTuple):
    """A method at one setting on one split, in percent."""

    data: str
    seed: int
    method: str
    setting: str
    validation_ap: float
    validation_mcdp0: float
    validation_mcdp5: float
    test_ap: float
    test_mcdp0: float
    test_mcdp5: float


Scored = Iterator[tuple[str, list[np.ndarray]]]


class Predicted(NamedTuple):
    """P(y = 1 | x), P(group | x), the labels and the groups of some rows, no model having seen them."""

    scores: np.ndarray
    chances: np.ndarray
    labels: np.ndarray
    groups: np.ndarray


def cross_fitted(seed: int, train: Fold, parts: list[Fold]) -> tuple[Any, list[Predicted]]:
    """The rows and folds of the training part, and the predictions for it, out of fold, and the others."""
    stock = StockModel(n_jobs=1, random_state=seed)
    rows = check_training_rows(None, with_categories(train.X), train.y, train.groups)
    folds = assign_folds(2 * rows.groups + rows.labels.astype(int), 5, seed)
    models, fitted = cross_fit((stock, stock), rows, (None,), folds)
    found = [Predicted(fitted.scores, fitted.probabilities[0], train.y, train.groups)]
    for part in parts:
        scores, chances = models.predict(part.X)
        found.append(Predicted(scores, chances[0], part.y, part.groups))
    return (rows, folds), found


def repaired(found: list[Predicted]) -> Iterator[tuple[float, list[np.ndarray]]]:
    """The scores of all parts, repaired to each bound within reach of the first."""
    fitted = found[0]
    for bound in BOUNDS:
        try:
            repair = lp.models.GroupBlindRepair(bound).fit(
                fitted.scores, sensitive_features=fitted.groups, group_probabilities=fitted.chances
            )
        except ValueError:
            continue
        yield bound, [repair.transform(part.scores, group_probabilities=part.chances) for part in found]


def blind_scores(seed: int, train: Fold, parts: list[Fold]) -> Scored:
    _, found = cross_fitted(seed, train, parts)
    yield "unrepaired", [part.scores for part in found[1:]]
    for bound, scores in repaired(found):
        yield f"bound {bound:g}", scores[1:]


def aware_scores(seed: int, train: Fold, parts: list[Fold]) -> Scored:
    _, found = cross_fitted(seed, train, parts)
    for bound in BOUNDS:
        try:
            repair = lp.models.ScoreRepair(bound).fit(found[0].scores, sensitive_features=train.groups)
        except ValueError:
            continue
        scores = [repair.transform(part.scores, sensitive_features=part.groups) for part in found[1:]]
        yield f"bound {bound:g}", scores


def equipy_scores(seed: int, train: Fold, parts: list[Fold]) -> Scored:
    from equipy.fairness import FairWasserstein

    _, found = cross_fitted(seed, train, parts)
    repair = FairWasserstein()
    repair.fit(found[0].scores, pd.DataFrame({"group": train.groups}))
    for kept in KEPT:
        scores = [
            repair.transform(part.scores, pd.DataFrame({"group": part.groups}), epsilon=kept)
            for part in found[1:]
        ]
        yield f"kept {kept:g}", [np.clip(np.asarray(part, dtype=float).ravel(), 0.0, 1.0) for part in scores]


METHODS: dict[str, Callable[..., Scored]] = {
    "group-blind repair": blind_scores,
    "plain LightGBM": partial(plain_scores, "lightgbm"),
    "penalised LightGBM": partial(penalised_scores, "lightgbm"),
    "penalised XGBoost": partial(penalised_scores, "xgboost"),
    "ExponentiatedGradient": partial(gradient_scores, "lightgbm", soft=False, slacks=SLACKS),
    "ExponentiatedGradient, probabilities": partial(gradient_scores, "lightgbm", soft=True, slacks=SLACKS),
    "ThresholdOptimizer": partial(threshold_scores, "lightgbm"),
    "EquiPy": equipy_scores,
    "group-aware repair": aware_scores,
}
AWARE = ("ThresholdOptimizer", "EquiPy", "group-aware repair")
"""Those that need the group at prediction."""


def load(data: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """The features, labels and groups of a data set; groups of fewer than 1% join "Other" or "unknown"."""
    if data in ("adult", "bank"):
        bunch = getattr(lp.datasets, f"fetch_{data}")()
        return bunch.data, np.asarray(bunch.target), np.asarray(bunch.sensitive_features)
    if data == "census":
        bunch = lp.datasets.make_census(20_000, random_state=16)
        return with_categories(bunch.data), bunch.target, bunch.sensitive_features
    folder = Path(os.environ["LOCALPARITY_DATA"]) / data
    if data == "compas":
        table = pd.read_csv(folder / "compas_features.csv")
        target, groups, joined = table["two_year_recid"], table["race"], "Other"
        table = table.drop(columns=["two_year_recid", "race", "decile_score"])
    else:
        table = pd.read_csv(folder / "hmda_2018_sample.csv.gz", index_col=0)
        target, joined = table["high_priced"].astype(int), "unknown"
        groups = (
            table[list(RACES)]
            .fillna(0.0)
            .apply(lambda row: next((race for race in RACES if row[race] == 1.0), "unknown"), axis=1)
        )
        table = table.loc[:, "loan_amount":"conforming"].drop(columns=["high_priced"])
    groups = groups.where(groups.map(groups.value_counts(normalize=True)) >= 0.01, joined)
    return with_categories(table), target.to_numpy(), groups.to_numpy(dtype=str)


def measure(data: str, seed: int, method: str) -> list[Run]:
    """All settings of a method on one split."""
    X, y, groups = load(data)
    rows = paper_split(y, seed)
    train, *parts = [
        Fold(X.iloc[part].reset_index(drop=True), y[part], groups[part])
        for part in (rows.train, rows.validation, rows.test)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scored = list(METHODS[method](seed=seed, train=train, parts=parts))
    return [
        Run(data, seed, method, setting, *values(scores[0], parts[0]), *values(scores[1], parts[1]))
        for setting, scores in scored
    ]


def values(scores: np.ndarray, part: Fold) -> tuple[float, float, float]:
    """AP, MCDP(0) and MCDP(0.05), in percent."""
    disparities = [lp.mcdp(None, scores, sensitive_features=part.groups, epsilon=one) for one in (0.0, 0.05)]
    return tuple(100.0 * one for one in (average_precision_score(part.y, scores), *disparities))


def read() -> list[Run]:
    """The runs that are finished."""
    if not RUNS.exists():
        return []
    with RUNS.open(newline="") as file:
        return [
            Run(*line[:1], int(line[1]), *line[2:4], *map(float, line[4:]))
            for line in list(csv.reader(file))[1:]
        ]


def append(runs: list[Run], path: Path) -> None:
    """Add runs to the file."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(Run._fields)
        writer.writerows([*run[:4], *(f"{value:.3f}" for value in run[4:])] for run in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RUNS, help="where runs are added")
    given = parser.parse_args()
    done = {(run.data, run.seed, run.method) for run in read()}
    tasks = [task for task in product(DATA, SEEDS, METHODS) if task not in done]
    tasks.sort(key=lambda task: not task[2].startswith(("Exp", "pen")))
    for runs in Parallel(given.jobs, return_as="generator_unordered")(
        delayed(measure)(*task) for task in tasks
    ):
        append(runs, given.out)


if __name__ == "__main__":
    main()
