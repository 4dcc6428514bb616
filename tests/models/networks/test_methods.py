"""Each method computes what the paper's code computes, written out once more in plain torch."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch.nn.functional import binary_cross_entropy

from localparity.models.networks import METHODS, TensorRows, TrainingSettings
from localparity.models.networks._methods import make_method, objective
from localparity.models.networks._networks import Network, multilayer

SETTINGS = TrainingSettings(search="frozen")


def rows(count: int = 64, n_groups: int = 2, seed: int = 0) -> TensorRows:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, 5, generator=generator, dtype=torch.float64)
    groups = torch.arange(count) % n_groups
    labels = (features[:, 0] + groups > 0.5).double()
    return TensorRows(features, labels, groups, torch.ones(count, dtype=torch.float64))


def network() -> Network:
    torch.manual_seed(0)
    return multilayer(5, (16, 8), 0.0).double()


def loss_of(name: str, strength: float, batch: TensorRows, model: Network, n_groups: int = 2) -> torch.Tensor:
    method = make_method(name, strength, n_groups, SETTINGS)
    method.prepare(batch, model)
    return objective(method, model, batch, nullcontext())


def test_there_are_the_seven_of_the_paper() -> None:
    assert list(METHODS) == ["erm", "advdebias", "diffdp", "fairmixup", "dralign", "diffabcc", "diffmcdp"]


def test_the_penalties_on_scores() -> None:
    batch, model = rows(), network()
    p, y, s = torch.sigmoid(model(batch.features)), batch.labels, batch.groups
    base = binary_cross_entropy(p, y)
    means = (p[s == 0].mean() - p[s == 1].mean()).abs()
    points = torch.linspace(0, 1, 101, dtype=torch.float64)

    def distribution(group: int, t: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.sigmoid(10.0 * (at - p[s == group])).mean() for at in t])

    area = torch.trapezoid((distribution(0, points) - distribution(1, points)).abs(), points)
    rate = y.mean()[None]
    frozen = (distribution(0, rate) - distribution(1, rate)).abs()[0]
    torch.testing.assert_close(loss_of("erm", 0.3, batch, model), base)
    torch.testing.assert_close(loss_of("diffdp", 0.3, batch, model), base + 0.3 * means)
    torch.testing.assert_close(loss_of("diffabcc", 0.3, batch, model), base + 0.3 * area)
    torch.testing.assert_close(loss_of("diffmcdp", 0.3, batch, model), base + 0.3 * frozen)


def test_dralign() -> None:
    batch, model = rows(), network()
    p, y, s = torch.sigmoid(model(batch.features)), batch.labels, batch.groups
    layers = [model.body[0].weight, model.body[3].weight]
    importances = []
    for group in (0, 1):
        gradients = torch.autograd.grad(
            binary_cross_entropy(p[s == group], y[s == group]), layers, retain_graph=True
        )
        importances.append([(w * g).pow(2).sum(1) for w, g in zip(layers, gradients, strict=True)])
    cosines = sum(
        torch.dot(one, other) / (one.norm() * other.norm()) for one, other in zip(*importances, strict=True)
    )
    means = (p[s == 0].mean() - p[s == 1].mean()).abs()
    expected = binary_cross_entropy(p, y) + 0.3 * means - 0.05 * cosines
    torch.testing.assert_close(loss_of("dralign", 0.3, batch, model), expected)


def test_fairmixup() -> None:
    batch, model = rows(), network()
    order = torch.cat([torch.nonzero(batch.groups == group)[:, 0] for group in (0, 1)])
    batch = batch.take(order)
    method = make_method("fairmixup", 0.3, 2, SETTINGS)
    method.draw(torch.Generator().manual_seed(5))
    found = objective(method, model, batch, nullcontext())
    t = method.share.double()
    assert 0.0 < t < 1.0
    first, second = batch.features.chunk(2)
    step, size = 1e-6, len(first)
    change = 0.0
    for one, other in zip(first, second, strict=True):
        ahead, behind = t - step, t + step
        rise = torch.sigmoid(model((ahead * one + (1 - ahead) * other)[None])) - torch.sigmoid(
            model((behind * one + (1 - behind) * other)[None])
        )
        change = change + rise / (2 * step) / size
    p = torch.sigmoid(model(batch.features))
    expected = binary_cross_entropy(p, batch.labels) + 0.3 * change.abs()[0]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_advdebias_turns_the_adversarys_gradient_around() -> None:
    batch, model = rows(), network()
    torch.manual_seed(1)
    method = make_method("advdebias", 0.3, 2, SETTINGS)
    method.prepare(batch, model)
    hidden = model.body(batch.features)
    guess = torch.sigmoid(method.adversary(hidden)[:, 0])
    base = binary_cross_entropy(torch.sigmoid(model.logits(hidden)), batch.labels)
    adversary = binary_cross_entropy(guess, batch.groups.double())
    found = objective(method, model, batch, nullcontext())
    torch.testing.assert_close(found, base + 0.3 * adversary)
    weight, inner = model.body[0].weight, method.adversary[0].weight
    turned = torch.autograd.grad(base - 0.3 * adversary, weight, retain_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(found, weight, retain_graph=True)[0], turned)
    straight = torch.autograd.grad(0.3 * adversary, inner)[0]
    torch.testing.assert_close(torch.autograd.grad(found, inner)[0], straight)


def test_advdebias_has_no_dropout() -> None:
    model = multilayer(5, (16,), 0.5)
    make_method("advdebias", 0.3, 2, SETTINGS).prepare(rows(), model)
    features = torch.randn(50, 5)
    torch.testing.assert_close(model.train()(features), model.eval()(features))


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("name", list(METHODS))
def test_gradients_are_finite_with_a_group_missing_too(name: str, n_groups: int) -> None:
    model = network()
    for groups in (torch.arange(66) % n_groups, torch.zeros(66, dtype=torch.long)):
        batch = rows(66, n_groups)._replace(groups=groups)
        model.zero_grad()
        loss_of(name, 0.5, batch, model, n_groups).backward()
        assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


@pytest.mark.parametrize("name", ["advdebias", "fairmixup", "dralign"])
def test_a_criterion_that_a_method_does_not_know(name: str) -> None:
    with pytest.raises(ValueError, match=f"criterion.*demographic_parity.*{name}.*equalized_odds"):
        make_method(name, 0.3, 2, TrainingSettings(criterion="equalized_odds"))


@pytest.mark.parametrize("strength", [-0.1, float("inf")])
def test_a_strength_that_is_none(strength: float) -> None:
    with pytest.raises(ValueError, match=f"strength.*{strength:g}"):
        make_method("diffdp", strength, 2, SETTINGS)


def test_a_method_that_is_none() -> None:
    with pytest.raises(ValueError, match=r"method.*erm.*magic"):
        make_method("magic", 0.3, 2, SETTINGS)
