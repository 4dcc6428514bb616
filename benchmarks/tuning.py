"""How the tuned preset was chosen: candidates judged on validation parts alone.

``python -m benchmarks.tuning OUT.csv --limit 600`` searches for the baselines: of 48 settings for each method
and data set (the network's width, dropout, how batches are drawn, and six values of what else matters to the
method) it judges as many as it can in so many seconds, in an order drawn by lot, each at six strengths on the
seeds 0 and 1. An interrupted search resumes.

``python -m benchmarks.tuning OUT.csv --candidates FILE.json`` judges others: a candidate names a data set, a
method, its strengths, a `plan` and `options` (fields of `TrainingSettings`), and may name `hidden`,
`dropout`, how many `seeds`, and as `erm` what is other for ERM.

Each seed takes the strength with the lowest validation MCDP(0) among those that keep 95% of the validation AP
of ERM; a line of OUT.csv is the mean over the seeds. Test parts are not looked at. results/tuning.csv has the
candidates by which the network, the steps and DiffMCDP's settings were chosen, results/search.csv those of
the baselines, and results/search-utkface.csv those for faces, one line a strength.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import time
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from sklearn.metrics import average_precision_score

import localparity as lp
from benchmarks._settings import settings_from, train_with
from localparity.models.networks._trainer import predict_scores
from localparity.paper._train import prepare

COLUMNS = [
    "dataset",
    "method",
    "settings",
    "erm_val_ap",
    "val_ap",
    "val_mcdp_0",
    "seeds_that_keep_the_ap",
    "strengths",
]
Validated = dict[tuple[int, float], tuple[float, float]]
Settings = dict[str, dict[str, Any]]
PLAN = {"steps": 900, "schedule": "cosine"}
NARROW, WIDE = [512, 256, 64], [1024, 512, 128]
SIZES = (512, 1024, 2048)
BATCHES: list[Settings] = [
    {"plan": {"batch_size": rows, "learning_rate": rate}} for rows, rate in product(SIZES, (0.001, 0.002))
]
# Six values of what else matters to a method; AdvDebias has twelve, since it has no dropout.
OWN: dict[str, list[Settings]] = {
    "advdebias": [
        {"plan": {"batch_size": rows, "learning_rate": rate}}
        for rows, rate in product(SIZES, (0.0005, 0.001, 0.002, 0.004))
    ],
    "diffdp": BATCHES,
    "fairmixup": BATCHES,
    "dralign": [
        {"plan": {"batch_size": rows}, "options": {"alignment": weight}}
        for weight, rows in product((0.0125, 0.05, 0.2), (1024, 2048))
    ],
    "diffabcc": [{"options": {"temperature": steep}} for steep in (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)],
}
# From hardly any effect to too much of it.
STRENGTHS = {
    "adult": {
        "advdebias": [0.5, 1.0, 1.5, 2.5, 4.0, 8.0],
        "diffdp": [0.1, 0.2, 0.3, 0.45, 0.6, 0.9],
        "fairmixup": [0.2, 0.4, 0.6, 0.8, 1.0, 1.4],
        "dralign": [0.1, 0.2, 0.3, 0.45, 0.6, 0.9],
        "diffabcc": [0.1, 0.2, 0.35, 0.5, 0.7, 1.0],
    },
    "bank": {
        "advdebias": [0.2, 0.45, 0.8, 1.3, 2.0, 4.0],
        "diffdp": [0.3, 0.6, 1.0, 1.5, 2.2, 3.2],
        "fairmixup": [0.05, 0.15, 0.4, 1.0, 2.0, 4.0],
        "dralign": [0.3, 0.6, 1.0, 1.5, 2.2, 3.2],
        "diffabcc": [0.4, 0.8, 1.2, 1.6, 2.2, 3.2],
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--candidates", type=Path)
    parser.add_argument("--limit", type=float, default=float("inf"), help="begin none after so many seconds")
    given = parser.parse_args()
    candidates = search() if given.candidates is None else json.loads(given.candidates.read_text())
    judged: dict[str, Validated] = {}
    known = _known(given.out)
    started = time.perf_counter()
    for candidate in candidates:
        if (candidate["dataset"], candidate["method"], settings(candidate)) in known:
            continue
        if time.perf_counter() - started > given.limit:
            return
        plain = {**candidate, "method": "erm", "strengths": [0.0], "options": {}, **candidate.get("erm", {})}
        name = json.dumps(plain, sort_keys=True)
        if name not in judged:
            judged[name] = validate(plain)
        found = line(candidate, validate(candidate), judged[name])
        with given.out.open("a", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerow(found)


def search() -> list[dict[str, Any]]:
    """The settings of the baselines, in an order drawn by lot; ERM has the preset's."""
    candidates = [
        {
            "dataset": dataset,
            "method": method,
            "strengths": STRENGTHS[dataset][method],
            "seeds": 2,
            "plan": {**PLAN, **own.get("plan", {})},
            "options": {"balanced": balanced, **own.get("options", {})},
            "hidden": hidden,
            "dropout": dropout,
            "erm": {"plan": PLAN, "hidden": NARROW, "dropout": 0.6},
        }
        for dataset, method in product(STRENGTHS, OWN)
        for hidden, balanced, own in product((NARROW, WIDE), (False, True), OWN[method])
        for dropout in ((0.5,) if method == "advdebias" else (0.5, 0.6))
    ]
    random.Random(0).shuffle(candidates)
    return candidates


def _known(out: Path) -> set[tuple[str, str, str]]:
    """What a file has already; a new one gets its first line."""
    if not out.exists():
        out.write_text(",".join(COLUMNS) + "\n")
    with out.open(newline="") as stream:
        return {(row["dataset"], row["method"], row["settings"]) for row in csv.DictReader(stream)}


def settings(candidate: dict[str, Any]) -> str:
    """What tells a candidate from the others of its method."""
    names = [name for name in ("plan", "options", "hidden", "dropout") if name in candidate]
    return json.dumps({name: candidate[name] for name in names})


def validate(candidate: dict[str, Any]) -> Validated:
    """The validation AP and MCDP(0) of every seed and strength."""
    dataset = candidate["dataset"]
    runs = [(seed, value) for seed in range(candidate.get("seeds", 5)) for value in candidate["strengths"]]
    chosen = settings_from({"hidden": NARROW, "dropout": 0.6, **candidate})
    trainers = train_with(chosen, dataset, candidate["method"], runs)
    found = {}
    for run, trainer in zip(runs, trainers, strict=True):
        part = prepare(dataset, run[0]).validation
        scores = predict_scores(trainer.network, part.features).numpy()
        disparity = lp.mcdp(None, scores, sensitive_features=part.groups)
        found[run] = float(average_precision_score(part.labels, scores)), disparity
    return found


def line(candidate: dict[str, Any], found: Validated, erm: Validated) -> list[Any]:
    """What the rule gives for a candidate."""
    chosen: list[tuple[float, float, float]] = []
    for seed in range(candidate.get("seeds", 5)):
        kept = [
            (disparity, precision, strength)
            for (own, strength), (precision, disparity) in found.items()
            if own == seed and precision >= 0.95 * erm[seed, 0.0][0]
        ]
        chosen += [min(kept)] if kept else []
    return [
        candidate["dataset"],
        candidate["method"],
        settings(candidate),
        *(f"{100 * value:.2f}" for value in (mean(value for value, _ in erm.values()),)),
        *(
            f"{100 * mean(column):.2f}" if chosen else ""
            for column in ([c[1] for c in chosen], [c[0] for c in chosen])
        ),
        len(chosen),
        " ".join(f"{strength:g}" for _, _, strength in chosen),
    ]


if __name__ == "__main__":
    main()
