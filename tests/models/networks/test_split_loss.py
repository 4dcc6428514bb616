"""The loss over splits of a number: the worst of the losses between two groups, smooth and of use."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import localparity as lp
from localparity.losses import MCDPLoss, SplitMCDPLoss
from training_oracles import scanned_gaps


def batch(seed: int, rows: int = 30) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(rows, generator=generator, dtype=torch.float64)
    ages = torch.randint(18, 70, (rows,), generator=generator)
    return scores, ages, torch.arange(rows) % 2


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_is_the_worst_loss_of_any_split(criterion: str, epsilon: float) -> None:
    scores, ages, labels = batch(0)
    weights = torch.linspace(0.5, 2.0, 30, dtype=torch.float64)
    options = {"temperature": 10.0, "epsilon": epsilon, "criterion": criterion}
    found = SplitMCDPLoss([30, 40, 55], **options)(scores, ages, labels, weights)
    each = [MCDPLoss(**options)(scores, (ages > split).long(), labels, weights) for split in (30, 40, 55)]
    torch.testing.assert_close(found, torch.stack(each).amax())


def test_agrees_with_a_scan_over_thresholds() -> None:
    scores, ages, _ = batch(1)
    found = SplitMCDPLoss([30.0, 45.0], 10.0)(scores, ages).item()
    scans = [
        np.abs(scanned_gaps(scores.numpy(), (ages > split).long().numpy(), 0, 1, 10.0, 2001)).max()
        for split in (30, 45)
    ]
    assert found == pytest.approx(max(scans), abs=1e-4)


@pytest.mark.parametrize(
    "options", [{}, {"epsilon": 0.05}, {"search": "soft"}, {"criterion": "equalized_odds"}]
)
def test_gradients_in_double_precision(options: dict[str, object]) -> None:
    loss = SplitMCDPLoss([30.0, 40.0, 55.0], 10.0, **options)
    for seed in range(3):
        scores, ages, labels = batch(seed)
        assert torch.autograd.gradcheck(lambda p, a=ages, y=labels: loss(p, a, y), (scores.requires_grad_(),))
    logits = SplitMCDPLoss([40.0], 10.0, from_logits=True)
    assert torch.autograd.gradcheck(
        lambda z: logits(z, ages), (torch.logit(scores.detach()).requires_grad_(),)
    )


def test_a_batch_on_one_side_of_every_split_costs_nothing() -> None:
    scores = torch.rand(8, requires_grad=True)
    value = SplitMCDPLoss([90.0])(scores, torch.full((8,), 40.0))
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(scores.grad, torch.zeros(8))


def test_it_takes_the_worst_split_of_a_model_down() -> None:
    generator = torch.Generator().manual_seed(0)
    age = torch.rand(1500, generator=generator) * 60 + 18
    skill = torch.randn(1500, generator=generator)
    labels = (torch.rand(1500, generator=generator) < torch.sigmoid(skill + 0.06 * (age - 48))).float()
    features = torch.stack([skill, (age - 48) / 17], dim=1)

    def worst_after(strength: float) -> float:
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)
        penalty = SplitMCDPLoss.at_quantiles(age, n_splits=5, from_logits=True)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(150):
            logits = model(features)[:, 0]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
            (loss + strength * penalty(logits, age)).backward()
            optimiser.step()
            optimiser.zero_grad()
        scores = torch.sigmoid(model(features)[:, 0])
        return lp.worst_split(None, scores, sensitive_features=age, min_share=0.1, n_resamples=0).mcdp

    assert worst_after(1.0) < 0.4 * worst_after(0.0)


def test_splits_part_the_people_evenly() -> None:
    assert SplitMCDPLoss.at_quantiles([1, 1, 1, 1, 2, 3], n_splits=2).splits.tolist() == [1.0]
    assert SplitMCDPLoss.at_quantiles([3.0, 1.0, 2.0, 4.0], n_splits=9).splits.tolist() == [1.0, 2.0, 3.0]
    loss = SplitMCDPLoss([1.0]).to(torch.float32)
    assert "splits" in loss.state_dict()


def test_people_at_a_split_stay_there_in_less_precision() -> None:
    feature, scores = (
        torch.tensor([0.1, 0.1, 0.2, 0.2], dtype=torch.float64),
        torch.tensor([0.1, 0.1, 0.9, 0.9]),
    )
    loss = SplitMCDPLoss.at_quantiles(feature.numpy(), n_splits=1)
    assert loss(scores, feature.float()).item() == pytest.approx(loss(scores, feature).item())
    assert loss(scores, feature.float()).item() > 0.9


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"feature.*n_splits=3"):
        SplitMCDPLoss.at_quantiles([2, 2, 2], n_splits=3)
    with pytest.raises(ValueError, match=r"n_splits.*0"):
        SplitMCDPLoss.at_quantiles([1, 2, 3], n_splits=0)
    with pytest.raises(ValueError, match=r"splits.*nan"):
        SplitMCDPLoss([float("nan")])
    with pytest.raises(ValueError, match=r"frozen.*threshold"):
        SplitMCDPLoss([1.0], search="frozen")
