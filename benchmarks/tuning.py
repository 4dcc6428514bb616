"""How the tuned preset was chosen: candidates judged on validation parts alone.

``python -m benchmarks.tuning CANDIDATES.json OUT.csv``: a candidate names a data set, a method, its
strengths, a `plan` and `options` (the fields of `Plan` and of `MethodOptions`), and may name `hidden` and
`dropout`. Every strength is trained on the seeds 0 to 4 as one stack. Each seed takes the strength with the
lowest validation MCDP(0) among those that keep 95% of the validation AP of the ERM with the same network and
plan; a line of OUT.csv is the mean over the seeds. Test parts are not looked at. results/tuning.csv has the
candidates that were judged.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from sklearn.metrics import average_precision_score

import localparity as lp
from localparity.experiments._train import prepare
from localparity.training import MethodOptions, Plan, Trainer
from localparity.training._methods import make_method
from localparity.training._networks import multilayer
from localparity.training._stack import fit_stack
from localparity.training._trainer import predict_scores

SEEDS = range(5)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
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
Scored = dict[tuple[int, float], tuple[float, float]]


def main(candidates: Path, out: Path) -> None:
    judged: dict[str, Scored] = {}
    with out.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for candidate in json.loads(candidates.read_text()):
            plain = {**candidate, "method": "erm", "strengths": [0.0], "options": {}}
            known = json.dumps(plain, sort_keys=True)
            if known not in judged:
                judged[known] = validate(plain)
            writer.writerow(line(candidate, validate(candidate), judged[known]))
            stream.flush()


def validate(candidate: dict[str, Any]) -> Scored:
    """The validation AP and MCDP(0) of every seed and strength."""
    runs = [(seed, strength) for seed in SEEDS for strength in candidate["strengths"]]
    parts = {seed: prepare(candidate["dataset"], seed) for seed in SEEDS}
    rows = {seed: part.training.to(torch.device(DEVICE)) for seed, part in parts.items()}
    trainers = []
    for seed, strength in runs:
        torch.manual_seed(seed)
        width = rows[seed].features.shape[1]
        network = multilayer(width, candidate.get("hidden", [512, 256, 64]), candidate.get("dropout", 0.6))
        method = make_method(candidate["method"], strength, 2, MethodOptions(**candidate["options"]))
        trainers.append(Trainer(method, network.to(DEVICE), Plan(**candidate["plan"]), seed=seed + 1))
    fit_stack(trainers, [rows[seed] for seed, _ in runs])
    found = {}
    for run, trainer in zip(runs, trainers, strict=True):
        part = parts[run[0]].validation
        scores = predict_scores(trainer.network, part.features).numpy()
        disparity = lp.mcdp(None, scores, sensitive_features=part.groups)
        found[run] = float(average_precision_score(part.labels, scores)), disparity
    return found


def line(candidate: dict[str, Any], found: Scored, erm: Scored) -> list[Any]:
    """What the rule gives for a candidate."""
    chosen: list[tuple[float, float, float]] = []
    for seed in SEEDS:
        kept = [
            (disparity, precision, strength)
            for (own, strength), (precision, disparity) in found.items()
            if own == seed and precision >= 0.95 * erm[seed, 0.0][0]
        ]
        chosen += [min(kept)] if kept else []
    settings = {
        name: candidate[name] for name in ("plan", "options", "hidden", "dropout") if name in candidate
    }
    return [
        candidate["dataset"],
        candidate["method"],
        json.dumps(settings),
        *(f"{100 * value:.2f}" for value in (mean(value for value, _ in erm.values()),)),
        *(
            f"{100 * mean(column):.2f}" if chosen else ""
            for column in ([c[1] for c in chosen], [c[0] for c in chosen])
        ),
        len(chosen),
        " ".join(f"{strength:g}" for _, _, strength in chosen),
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
