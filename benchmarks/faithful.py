"""Every method at every strength of the reference, with preset "paper" and the frozen search.

Run it with ``python -m benchmarks.faithful REFERENCE.csv``: finished runs are read back from
results/faithful.csv, so that an interrupted sweep goes on, and results/faithful.md is written at the end.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

import torch
from sklearn.metrics import average_precision_score

import localparity as lp

RESULTS = Path(__file__).parent.parent / "results"
RUNS, TABLE = RESULTS / "faithful.csv", RESULTS / "faithful.md"
NAMES = {"mixup": "fairmixup"}
COLUMNS = ["dataset", "method", "strength", "seed", "test_ap", "test_mcdp0"]
Cell = tuple[str, str, float]
NOTES = [
    "ERM, DiffDP, FairMixup, DiffABCC and DiffMCDP are within the bounds at every strength. They came",
    "this close once the network was the first thing made after `torch.manual_seed(seed)`, which suggests",
    "that the published code starts from the same weights.",
    "",
    "The stars are AdvDebias and, on Bank, DRAlign. AdvDebias depends strongly on the start: on Adult at",
    "strength 1.0, four starts on each of the three splits gave MCDP(0) from 16.2 to 36.1, with a",
    "standard deviation of 7.7 over the twelve. Some fifteen other readings of it were tried on two to",
    "four cells each. A reversal that grows during training was the nearest, though not within the bounds",
    "everywhere; chosen after so many trials, and against that spread, it would prove little, so the",
    "method stays as it is described.",
    "",
    "DRAlign on Bank gave 14.3 and 16.1 at strength 0.4 with two seeds of dropout and batches from the",
    "same start. In MCDP(0) its differences all lean to one side; six other readings, tried at one strength",
    "each, did not bring both AP and MCDP within the bounds at that strength, but for one (the first two",
    "layers only) on too few runs to tell. What is behind them has not been found.",
]


def main(reference: Path) -> None:
    torch.set_num_threads(1)
    expected = read(reference)
    found = read(RUNS) if RUNS.exists() else {}
    for dataset in ("adult", "bank"):
        bunch = getattr(lp.datasets, f"fetch_{dataset}")()
        for cell in sorted(expected):
            for seed in sorted(expected[cell]):
                if cell[0] == dataset and seed not in found.get(cell, {}):
                    found.setdefault(cell, {})[seed] = result = run(bunch, *cell[1:], seed)
                    append([*cell, seed, *(f"{value:.4f}" for value in result)])
    TABLE.write_text(table(expected, found))


def run(bunch: object, method: str, strength: float, seed: int) -> tuple[float, float]:
    split = lp.datasets.paper_split(bunch.target, seed)
    model = lp.training.LocalParityClassifier(
        method, strength, preset="paper", search="frozen", device="cpu", random_state=seed
    )
    groups = bunch.sensitive_features
    model.fit(bunch.data.iloc[split.train], bunch.target[split.train], sensitive_features=groups[split.train])
    scores = model.predict_proba(bunch.data.iloc[split.test])[:, 1]
    labels = bunch.target[split.test]
    disparity = lp.mcdp(None, scores, sensitive_features=groups[split.test])
    return 100.0 * average_precision_score(labels, scores), 100.0 * disparity


def read(path: Path) -> dict[Cell, dict[int, tuple[float, float]]]:
    found: dict[Cell, dict[int, tuple[float, float]]] = defaultdict(dict)
    with path.open() as stream:
        for row in csv.DictReader(stream):
            cell = (row["dataset"], NAMES.get(row["method"], row["method"]), float(row["strength"]))
            found[cell][int(row["seed"])] = float(row["test_ap"]), float(row["test_mcdp0"])
    return dict(found)


def append(row: list[object]) -> None:
    RESULTS.mkdir(exist_ok=True)
    new = not RUNS.exists()
    with RUNS.open("a", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        writer.writerow(row)


def table(
    expected: dict[Cell, dict[int, tuple[float, float]]], found: dict[Cell, dict[int, tuple[float, float]]]
) -> str:
    lines = [
        "# The seven methods beside the published code",
        "",
        'Preset "paper", `search="frozen"`, mean over the seeds 0 to 2, in percent; the reference is what',
        "the published code gives on the same splits. Made by",
        "`python -m benchmarks.faithful REFERENCE.csv`; the single runs are in `faithful.csv`. A star marks",
        "a difference above 1.0 (AP) or 2.0 (MCDP).",
        "",
        "| data | method | strength | AP | reference | difference | MCDP(0) | reference | difference | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in sorted(expected):
        ours, theirs = (
            [mean(column) for column in zip(*runs[cell].values(), strict=True)] for runs in (found, expected)
        )
        gaps = [our - their for our, their in zip(ours, theirs, strict=True)]
        star = "" if abs(gaps[0]) <= 1.0 and abs(gaps[1]) <= 2.0 else "*"
        numbers = [
            f"{our:.2f} | {their:.2f} | {gap:+.2f}"
            for our, their, gap in zip(ours, theirs, gaps, strict=True)
        ]
        lines.append(f"| {cell[0]} | {cell[1]} | {cell[2]:g} | {numbers[0]} | {numbers[1]} | {star} |")
    return "\n".join([*lines, "", *NOTES]) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
