"""ResNet-18 is torchvision's, and every method trains it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from localparity.models.networks import METHODS, TensorRows, TrainingSettings
from localparity.models.networks._methods import make_method
from localparity.models.networks._networks import Network, random_layers
from localparity.models.networks._trainer import Trainer
from localparity.paper._resnet import imagenet_weights, resnet18


def faces(rows: int = 24, side: int = 32) -> TensorRows:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (rows, side, side, 3), generator=generator, dtype=torch.uint8)
    labels = torch.arange(rows) % 2
    groups = torch.arange(rows) // 2 % 2
    return TensorRows(pixels, labels.float(), groups, torch.ones(rows))


def test_layers_are_those_of_torchvision() -> None:
    network = resnet18()
    # torchvision's 11,689,512 parameters, less the 513,000 of its last layer, which has 1,000 classes.
    assert sum(weight.numel() for weight in network.trunk.parameters()) == 11_689_512 - 513_000
    names = set(network.trunk.state_dict())
    assert {"conv1.weight", "bn1.running_mean", "layer1.1.bn2.bias"} <= names
    assert {"layer2.0.downsample.0.weight", "layer4.0.downsample.1.num_batches_tracked"} <= names
    maps = network.trunk(faces(2, 48).features)
    assert maps.shape == (2, 512, 2, 2)


def same_as_torchvision() -> None:
    """Run it where torchvision is installed: ``python -c "import test_resnet as t; t.same_as_torchvision()"``."""
    from torchvision import models

    theirs = models.resnet18().eval()
    ours = resnet18(theirs.state_dict()).eval()
    pixels = faces(3, 48).features
    standard = ours.trunk.pixels(pixels)
    with torch.no_grad():
        expected = torch.nn.Sequential(*list(theirs.children())[:-1])(standard).flatten(1)
        torch.testing.assert_close(ours.body(ours.trunk(pixels)), expected)


def test_weights_of_another_network_are_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    donor = resnet18()
    state = donor.trunk.state_dict() | {"fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}
    torch.testing.assert_close(resnet18(state).trunk.state_dict(), donor.trunk.state_dict())
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    assert imagenet_weights() is None
    (tmp_path / "checkpoints").mkdir()
    torch.save(state, tmp_path / "checkpoints" / "resnet18-f37072fd.pth")
    torch.testing.assert_close(imagenet_weights(), state)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_it(method: str) -> None:
    rows = faces()
    torch.manual_seed(0)
    network = resnet18(augment=True)
    before = network.head.weight.clone()
    settings = TrainingSettings(alignment=0.002, steps=2, batch_size=12)
    trainer = Trainer(make_method(method, 0.5, 2, settings), network)
    history = trainer.fit(rows)
    assert all(torch.isfinite(torch.tensor(record["loss"])) for record in history)
    assert not torch.equal(network.head.weight, before)
    # One pass of a step counts for the running statistics, however often a penalty looks at the batch.
    assert int(network.trunk.bn1.num_batches_tracked) == 2


def draw(network: Network, rows: int, generator: torch.Generator) -> None:
    for layer in random_layers(network):
        layer.draw(rows, generator)


def test_views_are_drawn_before_a_step_and_end_with_training() -> None:
    network = resnet18(augment=True)
    pixels = faces(6, 16).features
    shown = network.trunk.views
    channels = network.trunk.pixels(pixels)
    draw(network, 6, torch.Generator().manual_seed(0))
    seen = shown(channels)
    torch.testing.assert_close(shown(channels), seen)
    draw(network, 6, torch.Generator().manual_seed(1))
    assert not torch.equal(shown(channels), seen)
    # A mirrored image that is neither shifted nor scaled is itself, turned around.
    shown.views.copy_(torch.tensor([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    torch.testing.assert_close(shown(channels), channels.flip(-1))
    assert shown.eval()(channels) is channels


def test_views_move_faces_a_little() -> None:
    network = resnet18(augment=True)
    draw(network, 4000, torch.Generator().manual_seed(0))
    views = network.trunk.views.views
    mirrored = views[:, 0, 0] < 0.0
    assert 0.45 < float(mirrored.float().mean()) < 0.55
    torch.testing.assert_close(views[:, 0, 0].abs(), views[:, 1, 1])
    assert 0.9 <= float(views[:, 1, 1].min()) < 0.91
    assert 1.09 < float(views[:, 1, 1].max()) <= 1.1
    assert 0.09 < float(views[:, :, 2].abs().max()) <= 0.1
    assert not views[:, 0, 1].any()
    assert not views[:, 1, 0].any()
