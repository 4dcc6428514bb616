"""Runs that are trained as one stack become what they would have become alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from localparity.models.networks._batches import TensorRows
from localparity.models.networks._methods import METHODS, TrainingSettings, make_method
from localparity.models.networks._networks import multilayer
from localparity.models.networks._trainer import Trainer
from localparity.paper._train import fit_stack

SETTINGS = TrainingSettings(steps=12, batch_size=128, check_every=5)
VARIANTS = [
    *(("diffmcdp", replace(SETTINGS, search=search)) for search in ("soft", "frozen", "probe")),
    ("diffmcdp", replace(SETTINGS, memory=256)),
    ("diffmcdp", replace(SETTINGS, epsilon=0.05)),
    ("diffdp", replace(SETTINGS, balanced=True)),
]


def rows(n_features: int, seed: int) -> TensorRows:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(500, n_features, generator=generator, dtype=torch.float64)
    groups = (torch.rand(500, generator=generator) < 0.3).long()
    labels = (features[:, 0] + groups > torch.randn(500, generator=generator)).to(features)
    return TensorRows(features, labels, groups, torch.ones_like(labels))


def runs(
    method: str, settings: TrainingSettings, data: list[TensorRows]
) -> tuple[list[Trainer], list[TensorRows]]:
    trainers, parts = [], []
    for seed, part in enumerate(data):
        for strength in (0.1, 0.5):
            torch.manual_seed(seed)
            network = multilayer(part.features.shape[1], (16, 8), 0.5).double()
            trainers.append(Trainer(make_method(method, strength, 2, settings), network, seed=seed))
            parts.append(part)
    return trainers, parts


@pytest.mark.parametrize(("method", "settings"), [*((name, SETTINGS) for name in METHODS), *VARIANTS])
def test_a_stack_gives_what_the_runs_give_alone(method: str, settings: TrainingSettings) -> None:
    data = [rows(5, 0), rows(4, 1)]
    alone, parts = runs(method, settings, data)
    stacked, _ = runs(method, settings, data)
    expected = [trainer.fit(part) for trainer, part in zip(alone, parts, strict=True)]
    found = fit_stack(stacked, parts)
    for one, other in zip(alone, stacked, strict=True):
        for (name, weight), (_, same) in zip(
            one.network.named_parameters(), other.network.named_parameters(), strict=True
        ):
            assert weight.shape == same.shape, name
            torch.testing.assert_close(weight, same, rtol=1e-7, atol=1e-7)
    for one_history, other_history in zip(expected, found, strict=True):
        assert [record["step"] for record in one_history] == [record["step"] for record in other_history]
        torch.testing.assert_close(
            [record["loss"] for record in one_history], [record["loss"] for record in other_history]
        )


def test_the_runs_of_a_stack_differ() -> None:
    trainers, parts = runs("diffmcdp", SETTINGS, [rows(5, 0), rows(5, 1)])
    fit_stack(trainers, parts)
    heads = [trainer.network.head.weight.detach() for trainer in trainers]
    assert all(not torch.equal(one, other) for one in heads for other in heads if one is not other)


def test_runs_that_cannot_be_stacked_are_refused() -> None:
    data = [rows(4, 0)]
    trainers, parts = runs("diffdp", SETTINGS, data)
    with pytest.raises(ValueError, match=r"rows has 1.*trainers has 2"):
        fit_stack(trainers, parts[:1])
    others, _ = runs("diffabcc", SETTINGS, data)
    with pytest.raises(ValueError, match=r"name.*diffdp.*diffabcc"):
        fit_stack([trainers[0], others[1]], parts)
    longer, _ = runs("diffdp", replace(SETTINGS, steps=13), data)
    with pytest.raises(ValueError, match=r"settings.*steps=12.*steps=13"):
        fit_stack([trainers[0], longer[1]], parts)
    stopped, _ = runs("diffdp", replace(SETTINGS, patience=2), data)
    with pytest.raises(ValueError, match=r"patience.*None.*2"):
        fit_stack(stopped, parts)
