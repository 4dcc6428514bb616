"""Every method at every strength of the reference, with preset "paper", beside the published code.

Run it with ``python -m benchmarks.faithful REFERENCE.csv STORE``. Interrupted sweeps resume, since what the
store has is not run again; results/faithful.csv and results/faithful.md are written at the end.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

from localparity.paper import Run, Store, run_missing
from localparity.paper._progress import progress_bar

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
    "The stars are AdvDebias and DRAlign. AdvDebias depends strongly on the start: on Adult at",
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


def main(reference: Path, folder: Path) -> None:
    expected = read(reference)
    runs = [Run(*cell, seed) for cell in sorted(expected) for seed in sorted(expected[cell])]
    store = Store(folder)
    with progress_bar(len(store.missing(runs)), shown=True) as progress:
        run_missing(store, runs, jobs=-1, device="cpu", progress=progress)
    wanted = {run.key for run in runs}
    found: dict[Cell, dict[int, tuple[float, float]]] = defaultdict(dict)
    for record in store.records():
        run = record.run
        if run.key in wanted:
            values = 100.0 * record.metrics["test_ap"], 100.0 * record.metrics["test_mcdp_0"]
            found[run.dataset, run.method, run.strength][run.seed] = values
    write(found)
    TABLE.write_text(table(expected, found))


def read(path: Path) -> dict[Cell, dict[int, tuple[float, float]]]:
    found: dict[Cell, dict[int, tuple[float, float]]] = defaultdict(dict)
    with path.open() as stream:
        for row in csv.DictReader(stream):
            cell = (row["dataset"], NAMES.get(row["method"], row["method"]), float(row["strength"]))
            found[cell][int(row["seed"])] = float(row["test_ap"]), float(row["test_mcdp0"])
    return dict(found)


def write(found: dict[Cell, dict[int, tuple[float, float]]]) -> None:
    with RUNS.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for cell in sorted(found):
            for seed, values in sorted(found[cell].items()):
                writer.writerow([*cell, seed, *(f"{value:.4f}" for value in values)])


def table(
    expected: dict[Cell, dict[int, tuple[float, float]]], found: dict[Cell, dict[int, tuple[float, float]]]
) -> str:
    lines = [
        "# The seven methods beside the published code",
        "",
        'Preset "paper", `search="frozen"`, mean over the seeds 0 to 2, in percent; the reference is what',
        "the published code gives on the same splits. Made by",
        "`python -m benchmarks.faithful REFERENCE.csv STORE`; the single runs are in `faithful.csv`. A star",
        "marks a difference above 1.0 (AP) or 2.0 (MCDP).",
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
    main(Path(sys.argv[1]), Path(sys.argv[2]))
