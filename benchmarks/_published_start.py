"""Training from where the published code starts: its columns, initial weights, batches and dropout.

Only AdvDebias and DRAlign need it: from another start they end elsewhere, by points of MCDP(0). The published
code seeds torch once and draws everything from torch's own generator, so that the start can be drawn again.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

import localparity
from localparity.models.networks._batches import TensorRows
from localparity.models.networks._networks import Dropout
from localparity.models.networks._trainer import Steps, Training, predict_scores
from localparity.paper import Run
from localparity.paper._data import DATA_SETS, load_samples
from localparity.paper._store import PartScores, Record
from localparity.paper._train import EncodedPart, make_trainer

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
        settings = self.method.settings
        steps = Steps(self, settings)
        for step in range(settings.steps):
            steps.take(step)

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
