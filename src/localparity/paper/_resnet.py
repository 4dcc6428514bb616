"""ResNet-18 for small images, layer for layer and name for name torchvision's."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import affine_grid, grid_sample

from localparity.models.networks._networks import Network, RandomLayer

# ImageNet's, which pretrained weights expect.
_MEAN = (0.485, 0.456, 0.406)
_DEVIATION = (0.229, 0.224, 0.225)
_IMAGENET_FILE = "resnet18-f37072fd.pth"
# Relative to half the image's side, and to its size.
_SHIFT = 0.1
_ZOOM = 0.1


class _Pixels(nn.Module):
    """From bytes of shape (n_samples, side, side, 3) to standardised channels."""

    mean: Tensor
    deviation: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name, values in (("mean", _MEAN), ("deviation", _DEVIATION)):
            self.register_buffer(name, torch.tensor(values)[:, None, None], persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        channels = pixels.to(self.mean).div(255.0).permute(0, 3, 1, 2)
        return ((channels - self.mean) / self.deviation).contiguous(memory_format=torch.channels_last)


class _Views(RandomLayer):
    """Random views in training: each image mirrored or not, slightly shifted and slightly scaled."""

    views: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("views", torch.zeros(0, 2, 3), persistent=False)

    @torch.no_grad()
    def draw(self, rows: int, generator: torch.Generator) -> None:
        """Draw the view of each of this many images."""
        if len(self.views) != rows:
            self.views = self.views.new_zeros(rows, 2, 3)
        drawn = torch.rand(rows, 4, generator=generator, device=self.views.device)
        size = 1.0 + _ZOOM * (2.0 * drawn[:, 1] - 1.0)
        self.views[:, 0, 0] = size * torch.where(drawn[:, 0] < 0.5, -1.0, 1.0)
        self.views[:, 1, 1] = size
        self.views[:, :, 2] = _SHIFT * (2.0 * drawn[:, 2:] - 1.0)

    def forward(self, channels: Tensor) -> Tensor:
        """Transform the images to the views drawn; in evaluation, change nothing."""
        if not self.training:
            return channels
        grid = affine_grid(self.views[: len(channels)], list(channels.shape), align_corners=False)
        seen = grid_sample(channels, grid, padding_mode="border", align_corners=False)
        return seen.contiguous(memory_format=torch.channels_last)


class _Block(nn.Module):
    """Two convolutions, with the input added to their output."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, values: Tensor) -> Tensor:
        straight = values if self.downsample is None else self.downsample(values)
        bent = self.relu(self.bn1(self.conv1(values)))
        added: Tensor = self.relu(self.bn2(self.conv2(bent)) + straight)
        return added


class _Trunk(nn.Sequential):
    """From pixels to the feature map before pooling."""

    def __init__(self, augment: bool) -> None:
        super().__init__()
        self.add_module("pixels", _Pixels())
        if augment:
            self.add_module("views", _Views())
        self.add_module("conv1", nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False))
        self.add_module("bn1", nn.BatchNorm2d(64))
        self.add_module("relu", nn.ReLU())
        self.add_module("maxpool", nn.MaxPool2d(3, stride=2, padding=1))
        for index, (inputs, outputs) in enumerate(((64, 64), (64, 128), (128, 256), (256, 512)), start=1):
            stride = 1 if index == 1 else 2
            layer = nn.Sequential(_Block(inputs, outputs, stride), _Block(outputs, outputs, 1))
            self.add_module(f"layer{index}", layer)


def resnet18(weights: dict[str, Tensor] | None = None, *, augment: bool = False) -> Network:
    """ResNet-18 with one logit, for images as bytes of shape (n_samples, side, side, 3).

    `weights` is the state of torchvision's ``resnet18`` to start from, without its last layer; None starts
    from scratch, as torchvision does. With `augment`, training sees random views of the images.
    """
    trunk = _Trunk(augment)
    for layer in trunk.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    if weights is not None:
        trunk.load_state_dict({name: value for name, value in weights.items() if not name.startswith("fc.")})
    body = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    # The layout of the images: otherwise every layer would convert its weights first.
    trunk.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Network(body, nn.Linear(512, 1), trunk)


def imagenet_weights() -> dict[str, Tensor] | None:
    """The ImageNet weights that torchvision has left in torch's cache, or None.

    Nothing is downloaded: ``torchvision.models.resnet18(weights="IMAGENET1K_V1")`` does that.
    """
    path = Path(torch.hub.get_dir()) / "checkpoints" / _IMAGENET_FILE
    if not path.exists():
        return None
    weights: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return weights
