"""UTKFace: a ResNet-18 with two heads, of age and of gender, and group-blind repair of what it predicts.

On a machine with a GPU, ``LOCALPARITY_DATA=FOLDER python -m benchmarks.frontier_faces --seed 0`` adds the
runs of a seed to results/frontier.csv, as `benchmarks.frontier` does. Five networks are trained for 900
steps, each without a fold of the training part, and their mean predicts the others.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.boosting import Fold
from benchmarks.frontier import RUNS, Predicted, Run, append, repaired, values
from localparity.models._rows import assign_folds, check_training_rows
from localparity.models.networks._networks import RandomLayer
from localparity.paper._data import DATA_SETS, load_samples
from localparity.paper._resnet import resnet18

STEPS, BATCH, FOLDS = 900, 256, 5
LEARNING_RATE, WEIGHT_DECAY = 2e-3, 1e-3


class TwoHeads(nn.Module):
    """The logits of two questions from one trunk."""

    def __init__(self) -> None:
        super().__init__()
        one = resnet18(None, augment=True)
        self.trunk = nn.Sequential(one.trunk, one.body)
        self.heads = nn.Linear(512, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The two logits of each image."""
        return self.heads(self.trunk(images))


def train(images: torch.Tensor, answers: torch.Tensor, seed: int) -> TwoHeads:
    """A network trained to answer both questions."""
    torch.manual_seed(seed)
    device = images.device
    generator = torch.Generator(device).manual_seed(seed)
    model = TwoHeads().to(device)
    views = [layer for layer in model.modules() if isinstance(layer, RandomLayer)]
    optimiser = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=STEPS, pct_start=0.1)
    for _ in range(STEPS):
        places = torch.randint(len(images), (BATCH,), generator=generator, device=device)
        for layer in views:
            layer.draw(BATCH, generator)
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(images[places])
        loss = binary_cross_entropy_with_logits(logits.float(), answers[places])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def predict(model: TwoHeads, images: torch.Tensor) -> np.ndarray:
    """The probabilities of both questions."""
    found = [model(part).float().sigmoid() for part in images.split(4096)]
    return torch.cat(found).double().cpu().numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RUNS)
    given = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    samples = load_samples("utkface")
    names, codes = np.unique(samples.groups, return_inverse=True)
    images = torch.as_tensor(np.asarray(samples.features)).to(device)
    answers = torch.as_tensor(np.column_stack([samples.labels, codes])).float().to(device)
    split = DATA_SETS["utkface"].split(samples.labels, given.seed)
    rows = check_training_rows(
        None, np.zeros((len(split.train), 1)), samples.labels[split.train], codes[split.train]
    )
    folds = assign_folds(2 * rows.groups + rows.labels.astype(int), FOLDS, given.seed)
    inside = np.empty((len(split.train), 2))
    others = [np.zeros((len(part), 2)) for part in (split.validation, split.test)]
    for fold in range(FOLDS):
        places = torch.as_tensor(split.train[folds != fold], device=device)
        model = train(images[places], answers[places], FOLDS * given.seed + fold)
        inside[folds == fold] = predict(
            model, images[torch.as_tensor(split.train[folds == fold], device=device)]
        )
        for found, part in zip(others, (split.validation, split.test), strict=True):
            found += predict(model, images[torch.as_tensor(part, device=device)]) / FOLDS
    parts = [split.train, split.validation, split.test]
    predicted = [
        Predicted(
            two[:, 0], np.column_stack([1.0 - two[:, 1], two[:, 1]]), samples.labels[part], names[codes[part]]
        )
        for two, part in zip([inside, *others], parts, strict=True)
    ]
    folded = [Fold(None, part.labels, part.groups) for part in predicted[1:]]
    scored = [("unrepaired", [part.scores for part in predicted[1:]])]
    scored += [(f"bound {bound:g}", scores[1:]) for bound, scores in repaired(predicted)]
    append(
        [
            Run(
                "utkface",
                given.seed,
                "group-blind repair",
                setting,
                *values(scores[0], folded[0]),
                *values(scores[1], folded[1]),
            )
            for setting, scores in scored
        ],
        given.out,
    )


if __name__ == "__main__":
    main()
