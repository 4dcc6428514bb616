"""Every method at every strength of the reference, with preset "paper", beside the published code.

Run it with ``python -m benchmarks.faithful REFERENCE.csv STORE``. AdvDebias and DRAlign, which depend on the
start, are trained from the published code's start, too. Interrupted sweeps resume, since what the store has
is not run again; results/faithful.csv and results/faithful.md are written at the end.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

import localparity
from localparity.cli.reproduce import sweep_progress
from localparity.models.networks._batches import TensorRows
from localparity.models.networks._networks import Dropout
from localparity.models.networks._trainer import Training, predict_scores
from localparity.paper import Run, Store, run_missing
from localparity.paper._data import DATA_SETS, load_samples
from localparity.paper._store import PartScores, Record
from localparity.paper._train import EncodedPart, make_trainer

# Training from where the published code starts: its columns, initial weights, batches and dropout.

GROUP_1 = {"adult": "Male", "bank": "25 and over"}
MEASURED_AFTER = (1, 2)
"""The steps after which the reference runs measured their three parts, which draws random numbers, too."""


def published_parts(dataset: str, seed: int) -> tuple[TensorRows, EncodedPart]:
    """The training and the test part as the published code has them.

    The numbers come first, then a column for each text that the whole data set has.
    """
    samples = load_samples(dataset)
    split = DATA_SETS[dataset].split(samples.labels, seed)
    numbers = samples.features.select_dtypes("number").astype("float32")
    scaled = StandardScaler().fit(numbers.iloc[split.train]).transform(numbers)
    texts = pd.get_dummies(samples.features.drop(columns=numbers.columns), dtype="float32")
    features = torch.from_numpy(np.hstack([scaled, texts.to_numpy()]))
    training = TensorRows(
        features[split.train],
        torch.from_numpy(samples.labels[split.train]).float(),
        torch.from_numpy(samples.groups[split.train] == GROUP_1[dataset]).long(),
        torch.ones(len(split.train)),
    )
    return training, EncodedPart(features[split.test], samples.groups[split.test], samples.labels[split.test])


class PublishedStart(Training):
    """A run that draws what the published code draws from one generator, in the same order.

    First the weights of the network, then those of the adversary. For every epoch, torch's `DataLoader` draws
    a seed for its workers and one for the order of the rows. Every step draws the dropout, layer by layer.
    """

    def __init__(self, run: Run, rows: TensorRows) -> None:
        trainer = make_trainer(run, rows, n_groups=2)
        super().__init__(trainer.method, trainer.network, rows, seed=run.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(run.seed)
            for layer in (*self.network.modules(), *self.method.modules()):
                if isinstance(layer, nn.Linear):
                    layer.reset_parameters()
            self.generator.set_state(torch.get_rng_state())
        self.order = torch.arange(0)
        self.taken = 0

    def draw(self) -> Tensor:
        """Draw the dropout of a step into buffers, and return the row numbers of its batch."""
        if self.taken in MEASURED_AFTER:
            self._draw_seeds(4)  # Two for the training part, which is shuffled, one for each of the others.
        size = self.method.settings.batch_size
        if len(self.order) < size:
            shuffler = torch.Generator().manual_seed(self._draw_seeds(2)[1])
            self.order = torch.randperm(len(self.rows.labels), generator=shuffler)
        batch, self.order = self.order[:size], self.order[size:]
        for layer in self.network.modules():
            if isinstance(layer, Dropout) and layer.share > 0.0:
                kept = torch.empty(len(batch), layer.width)
                layer.drawn = kept.bernoulli_(1.0 - layer.share, generator=self.generator)
        self.taken += 1
        return batch

    def train(self) -> None:
        """Take all steps."""
        for step in range(self.settings.steps):
            self.take(step)

    def _draw_seeds(self, count: int) -> list[int]:
        draws = (torch.empty((), dtype=torch.int64).random_(generator=self.generator) for _ in range(count))
        return [int(draw) for draw in draws]


def replay(run: Run) -> tuple[Record, PartScores]:
    """Train a run from the published code's start, on the CPU, and measure its test part."""
    rows, test = published_parts(run.dataset, run.seed)
    started = time.perf_counter()
    training = PublishedStart(run, rows)
    training.train()
    seconds = time.perf_counter() - started
    found = PartScores(predict_scores(training.network, test.features).numpy(), test.groups, test.labels)
    versions = {"localparity": localparity.__version__, "torch": torch.__version__}
    return Record(run, found.measure("test"), seconds, "cpu", versions), found


RESULTS = Path(__file__).parent.parent / "results"
RUNS, TABLE = RESULTS / "faithful.csv", RESULTS / "faithful.md"
NAMES = {"mixup": "fairmixup"}
COLUMNS = ["dataset", "method", "strength", "seed", "start", "test_ap", "test_mcdp0"]
OWN, PUBLISHED = "own", "published"
REPLAYED = ("advdebias", "dralign")
Cell = tuple[str, str, float]
Values = dict[Cell, dict[int, tuple[float, float]]]
NOTES = [
    "From a start of our own, ERM, DiffDP, FairMixup, DiffABCC and DiffMCDP are within the bounds at every",
    "strength. The stars are AdvDebias and DRAlign, and their cause is the start: from the published code's",
    "start the library's AdvDebias and DRAlign give its predictions. DRAlign, which takes longest, was",
    "trained from there at the strengths that have a star.",
    "",
    "The published code seeds torch once and draws the network's weights, the adversary's, the order of the",
    "rows and the dropout from that one generator; the columns of numbers come before those of texts.",
    "`benchmarks/faithful.py` draws the same, and the rest (losses, gradients, optimiser, schedule)",
    "is the library's. The test scores of seed 0 are then those of the reference up to rounding, which",
    "150 steps amplify: they differ by at most 4e-6 for AdvDebias (strengths 0.2 and 1.0 on Adult, 0.3 and",
    "1.5 on Bank) and 1e-3 for DRAlign (0.4 on both). `tests/slow/test_faithful.py` holds them to that and",
    "changes each part of the start alone. On Adult at strength 1.0, seed 0, AdvDebias has an AP of 77.2 and",
    "an MCDP(0) of 34.3, here and in the reference; it is 73.9 and 32.7 with other initial weights of the",
    "adversary, 76.9 and 31.1 with the columns in another order, and 77.4 and 35.1 with other batches.",
    "",
    "The predictions also show that the runs of the reference measured their parts after the first two steps",
    "only, not after every step as the published code does unless told otherwise: measuring draws random",
    "numbers, so that it changes the batches that follow.",
    "",
    "DRAlign on Bank had another cause, too: the published code lowers the weight of the cosines there from",
    "0.05 to 0.03 (`tabular_dralign.py`, line 107). With 0.05, all five of its rows were outside; with 0.03,",
    'which preset "paper" has now, one is, by 0.01 of AP.',
]


def main(reference: Path, folder: Path) -> None:
    expected = read(reference)
    runs = [Run(*cell, seed) for cell in sorted(expected) for seed in sorted(expected[cell])]
    store, replays = Store(folder), Store(folder / "published-start")
    replayed = [run for run in runs if run.method in REPLAYED]
    with sweep_progress(len(store.missing(runs)), shown=True) as progress:
        run_missing(store, runs, jobs=-1, device="cpu", progress=progress)
    missing = replays.missing(replayed)
    with sweep_progress(len(missing), shown=True) as progress:
        for record, scores in Parallel(n_jobs=-1, return_as="generator")(map(delayed(replay), missing)):
            replays.add(record, scores)
            progress(record.run, record.metrics)
    found = {OWN: values_of(store, runs), PUBLISHED: values_of(replays, replayed)}
    write(found)
    TABLE.write_text(table(expected, found[OWN], found[PUBLISHED]))


def values_of(store: Store, runs: list[Run]) -> Values:
    wanted = {run.key for run in runs}
    found: Values = defaultdict(dict)
    for record in store.records():
        run = record.run
        if run.key in wanted:
            values = 100.0 * record.metrics["test_ap"], 100.0 * record.metrics["test_mcdp_0"]
            found[run.dataset, run.method, run.strength][run.seed] = values
    return found


def read(path: Path) -> Values:
    found: Values = defaultdict(dict)
    with path.open() as stream:
        for row in csv.DictReader(stream):
            cell = (row["dataset"], NAMES.get(row["method"], row["method"]), float(row["strength"]))
            found[cell][int(row["seed"])] = float(row["test_ap"]), float(row["test_mcdp0"])
    return dict(found)


def write(found: dict[str, Values]) -> None:
    with RUNS.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for start, runs in found.items():
            for cell in sorted(runs):
                for seed, values in sorted(runs[cell].items()):
                    writer.writerow([*cell, seed, start, *(f"{value:.4f}" for value in values)])


def table(expected: Values, own: Values, replayed: Values) -> str:
    lines = [
        "# The seven methods beside the published code",
        "",
        'Preset "paper", `search="frozen"`, mean over the seeds 0 to 2, in percent; the reference is what',
        "the published code gives on the same splits. Made by",
        "`python -m benchmarks.faithful REFERENCE.csv STORE`; the single runs are in `faithful.csv`. A star",
        "marks a difference above 1.0 (AP) or 2.0 (MCDP). The last two columns are the differences where",
        "training starts from the published code's own start. The runs came in with caf705b4, these with",
        "c6508581.",
        "",
        "| data | method | strength | AP | reference | difference | MCDP(0) | reference | difference | "
        "| AP from its start | MCDP(0) from its start |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in sorted(expected):
        theirs, ours = means(expected[cell]), means(own[cell])
        gaps = differences(ours, theirs)
        star = "" if abs(gaps[0]) <= 1.0 and abs(gaps[1]) <= 2.0 else "*"
        numbers = [
            f"{our:.2f} | {their:.2f} | {gap:+.2f}"
            for our, their, gap in zip(ours, theirs, gaps, strict=True)
        ]
        replay_gaps = differences(means(replayed[cell]), theirs) if cell in replayed else []
        again = [f"{gap:+.2f}" for gap in replay_gaps] or ["", ""]
        cells = [cell[0], cell[1], f"{cell[2]:g}", *numbers, star, *again]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *NOTES]) + "\n"


def means(runs: dict[int, tuple[float, float]]) -> list[float]:
    return [mean(column) for column in zip(*runs.values(), strict=True)]


def differences(ours: list[float], theirs: list[float]) -> list[float]:
    return [our - their for our, their in zip(ours, theirs, strict=True)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
