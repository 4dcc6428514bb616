"""The callback in a real Trainer: what it logs is MCDP of the rows that were validated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import localparity as lp
from localparity.integrations.lightning import LocalDisparityCallback


class Classifier(pl.LightningModule):
    """A linear model of two features; what validation returns is for the callback."""

    def __init__(self, output: str = "mapping") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.output = torch.nn.Linear(2, 1), output

    def training_step(self, batch: Any) -> torch.Tensor:
        features, labels, _ = batch
        logits = self.linear(features).squeeze(1)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels.float())

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> Any:
        features, labels, groups = batch
        scores = torch.sigmoid(self.linear(features)).squeeze(1)
        found = {"y_score": scores, "sensitive_features": groups, "y_true": labels}
        return found if self.output == "mapping" else scores

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def rows(seed: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    groups = torch.randint(2, (90,), generator=generator)
    features = torch.randn(90, 2, generator=generator) + groups[:, None]
    return TensorDataset(features, (features[:, 0] > 0.5).long(), groups)


def trainer(folder: Path, callback: LocalDisparityCallback, **options: Any) -> pl.Trainer:
    return pl.Trainer(
        default_root_dir=folder,
        max_epochs=2,
        accelerator="cpu",
        callbacks=[callback],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )


def expected(model: Classifier, data: TensorDataset, **options: Any) -> float:
    features, labels, groups = data.tensors
    with torch.no_grad():
        scores = torch.sigmoid(model.linear(features)).squeeze(1)
    return lp.mcdp(labels, scores, sensitive_features=groups, **options)


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity"])
def test_it_logs_mcdp_of_the_validation_set(tmp_path: Path, criterion: Any) -> None:
    options: dict[str, Any] = {"epsilon": 0.05, "criterion": criterion}
    callback = LocalDisparityCallback(**options)
    model, data, fit = Classifier(), rows(1), trainer(tmp_path, callback)
    # Sorted by group: the first batches, and the sanity check, lack one.
    features, labels, groups = data.tensors
    order = groups.argsort()
    data = TensorDataset(features[order], labels[order], groups[order])
    fit.fit(model, DataLoader(rows(0), batch_size=30), DataLoader(data, batch_size=16))
    logged = fit.callback_metrics["val_mcdp"].item()
    assert logged == pytest.approx(expected(model, data, **options), abs=1e-6)
    assert logged > 0.05


def test_each_data_loader_has_its_own_value(tmp_path: Path) -> None:
    callback = LocalDisparityCallback(name="gap", level=14)
    model, fit = Classifier(), trainer(tmp_path, callback)
    loaders = [DataLoader(rows(seed), batch_size=30) for seed in (1, 2)]
    fit.validate(model, loaders, verbose=False)
    for place, seed in enumerate((1, 2)):
        logged = fit.callback_metrics[f"gap/dataloader_idx_{place}"]
        assert logged == pytest.approx(expected(model, rows(seed)), abs=1e-3)


def test_a_step_that_returns_something_else_is_named(tmp_path: Path) -> None:
    fit = trainer(tmp_path, LocalDisparityCallback())
    with pytest.raises(ValueError, match=r"validation_step .*'y_score', 'sensitive_features'.*got Tensor"):
        fit.validate(Classifier("scores"), DataLoader(rows(1), batch_size=30), verbose=False)
