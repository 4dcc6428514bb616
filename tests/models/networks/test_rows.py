"""The order in which batches take rows."""

from __future__ import annotations

import pytest
import torch

from localparity.models.networks import TensorRows, TrainingSettings
from localparity.models.networks._batches import BalancedBatches, Batches
from localparity.models.networks._methods import cross_entropy, make_method


def test_an_epoch_has_no_row_twice_and_batches_one_size() -> None:
    batches = Batches(10, 4, seed=0)
    epoch = torch.cat([batches.draw(), batches.draw()])
    assert len(set(epoch.tolist())) == 8
    assert len(batches.draw()) == 4
    assert sorted(Batches(3, 4, seed=0).draw().tolist()) == [0, 1, 2]


def test_balanced_batches_have_as_many_of_each_group() -> None:
    groups = torch.tensor([0] * 90 + [1] * 10)
    drawn = BalancedBatches(groups, 2, 40, seed=0).draw()
    assert groups[drawn].tolist() == [0] * 20 + [1] * 20
    assert len(set(drawn[:20].tolist())) == 20


def test_reweighted_balanced_batches_estimate_the_same_loss() -> None:
    torch.manual_seed(0)
    groups = torch.tensor([0] * 900 + [1] * 100)
    labels = (torch.rand(1000) < 0.2 + 0.6 * groups).float()
    rows = TensorRows(torch.zeros(1000, 1), labels, groups, torch.ones(1000))
    logits = torch.where(groups == 1, 2.0, -1.0)
    method = make_method("diffdp", 0.1, 2, TrainingSettings(balanced=True, batch_size=100))
    batches, weighted = method.batches(rows, seed=0)
    losses = [
        cross_entropy(logits[drawn], weighted.take(drawn)) for drawn in (batches.draw() for _ in range(400))
    ]
    assert float(torch.stack(losses).mean()) == pytest.approx(float(cross_entropy(logits, rows)), rel=0.01)


def test_a_balanced_batch_has_no_more_rows_than_there_are() -> None:
    groups = torch.tensor([0] * 6 + [1] * 4)
    assert len(BalancedBatches(groups, 2, 1000, seed=0).draw()) == 10
