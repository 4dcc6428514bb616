"""AdvDebias and DRAlign are the published code's: from its start, they give its predictions.

Each part of the start, changed alone, gives others: initial weights, batches and the order of the columns are why
the rows of results/faithful.md that are trained from a start of our own differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.faithful import PublishedStart, published_parts
from numpy.typing import NDArray
from torch import nn

from localparity.models.networks._trainer import predict_scores
from localparity.paper import Run

pytestmark = pytest.mark.slow

Change = Callable[[PublishedStart], None]


def distances(run: Run, folder: Path, change: Change | None = None) -> NDArray[np.float32]:
    """How far every test score is from the published one, from the published start or a changed one."""
    rows, test = published_parts(run.dataset, run.seed)
    training = PublishedStart(run, rows)
    if change is not None:
        change(training)
    training.train()
    file = folder / "predictions" / f"{run.dataset}_{run.method}_{run.strength}_{run.seed}.npz"
    with np.load(file) as published:
        return np.abs(predict_scores(training.network, test.features).numpy() - published["score"].ravel())


@pytest.mark.parametrize(
    ("dataset", "strength"), [("adult", 0.2), ("adult", 1.0), ("bank", 0.3), ("bank", 1.5)]
)
def test_advdebias_gives_the_published_predictions(
    reference_folder: Path, dataset: str, strength: float
) -> None:
    assert distances(Run(dataset, "advdebias", strength, seed=0), reference_folder).max() < 1e-3


@pytest.mark.parametrize("dataset", ["adult", "bank"])
def test_dralign_gives_the_published_predictions(reference_folder: Path, dataset: str) -> None:
    found = distances(Run(dataset, "dralign", 0.4, seed=0), reference_folder)
    assert found.max() < 1e-2
    assert found.mean() < 1e-3


def other_adversary(training: PublishedStart) -> None:
    torch.manual_seed(1)
    training.method.prepare(training.rows, training.network)


def other_batches(training: PublishedStart) -> None:
    training.generator.manual_seed(1)


def other_columns(training: PublishedStart) -> None:
    """The same as columns in another order: a column meets the weights of another."""
    first = next(layer for layer in training.network.modules() if isinstance(layer, nn.Linear))
    first.weight.data = first.weight.data.flip(1)


@pytest.mark.parametrize("change", [other_adversary, other_batches, other_columns])
def test_every_part_of_the_start_matters_to_advdebias(reference_folder: Path, change: Change) -> None:
    found = distances(Run("adult", "advdebias", 1.0, seed=0), reference_folder, change)
    assert found.mean() > 0.005


def stronger_alignment(training: PublishedStart) -> None:
    """Adult's, which is not Bank's."""
    training.method.options = replace(training.method.options, alignment=0.05)


@pytest.mark.parametrize("change", [stronger_alignment, other_batches])
def test_the_alignment_and_the_start_matter_to_dralign(reference_folder: Path, change: Change) -> None:
    found = distances(Run("bank", "dralign", 0.4, seed=0), reference_folder, change)
    assert found.mean() > 0.003
