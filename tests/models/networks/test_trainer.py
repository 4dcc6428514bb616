"""The loop: the same bits from the same seed, and from an interrupted run."""

from __future__ import annotations

import copy

import pytest
import torch

from localparity.models.networks import METHODS, TensorRows, TrainingSettings
from localparity.models.networks._methods import make_method
from localparity.models.networks._networks import Network, multilayer
from localparity.models.networks._trainer import Trainer, evaluate


def rows(count: int, seed: int) -> TensorRows:
    generator = torch.Generator().manual_seed(seed)
    groups = (torch.rand(count, generator=generator) < 0.3).long()
    features = torch.randn(count, 6, generator=generator) + 0.8 * groups[:, None]
    labels = (features[:, 0] + 0.3 * torch.randn(count, generator=generator) > 0.3).float()
    return TensorRows(features, labels, groups, torch.ones(count))


TRAINING, VALIDATION = rows(400, 0), rows(200, 1)


def fit(name: str, settings: TrainingSettings) -> Network:
    torch.manual_seed(3)
    network = multilayer(6, (16, 8), 0.4)
    trainer = Trainer(make_method(name, 0.5, 2, settings), network, seed=7)
    trainer.fit(TRAINING, VALIDATION)
    return trainer.network


def same(one: Network, other: Network) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", list(METHODS))
def test_the_same_seed_trains_the_same_bits(name: str) -> None:
    settings = TrainingSettings(
        steps=12, batch_size=64, check_every=4, decay_every=5, patience=10, memory=64 * (name == "diffmcdp")
    )
    assert same(fit(name, settings), fit(name, settings))


def test_the_caller_keeps_its_random_numbers() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    trainer = Trainer(make_method("erm", 0.0, 2, TrainingSettings(steps=2)), multilayer(6, (4,), 0.5))
    torch.manual_seed(0)
    trainer.fit(TRAINING)
    assert torch.equal(torch.rand(3), expected)


def test_the_loss_falls_and_the_penalty_evens_the_scores() -> None:
    settings = TrainingSettings(
        steps=120, batch_size=128, learning_rate=5e-3, check_every=40, decay_every=100
    )
    found = {}
    for name in ("erm", "diffmcdp"):
        torch.manual_seed(3)
        trainer = Trainer(make_method(name, 2.0, 2, settings), multilayer(6, (16,), 0.0))
        history = trainer.fit(TRAINING, VALIDATION)
        assert history[-1]["loss"] < history[0]["loss"]
        assert [record["step"] for record in history if "mcdp" in record] == [40, 80, 120]
        found[name] = evaluate(trainer.network, VALIDATION, settings)[1]
    assert found["diffmcdp"].mcdp < 0.6 * found["erm"].mcdp
    assert found["erm"].average_precision > 0.9


def test_early_stopping_goes_back_to_the_best() -> None:
    settings = TrainingSettings(
        steps=400, batch_size=64, learning_rate=0.05, check_every=5, patience=3, decay_every=1000
    )
    torch.manual_seed(3)
    trainer = Trainer(make_method("erm", 0.0, 2, settings), multilayer(6, (64, 64), 0.0))
    history = trainer.fit(TRAINING, VALIDATION)
    assert len(history) < 400
    kept = evaluate(trainer.network, VALIDATION, settings)[1]
    checks = [record for record in history if "mcdp" in record]
    assert kept.average_precision == pytest.approx(checks[-4]["average_precision"])


def test_bfloat16_trains() -> None:
    network = multilayer(6, (16,), 0.0)
    before = copy.deepcopy(network.state_dict())
    settings = TrainingSettings(steps=3, precision="bfloat16")
    Trainer(make_method("diffmcdp", 1.0, 2, settings), network).fit(TRAINING)
    assert all(torch.isfinite(value).all() for value in network.state_dict().values())
    assert any(not torch.equal(before[name], value) for name, value in network.state_dict().items())
