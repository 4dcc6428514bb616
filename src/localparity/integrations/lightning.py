"""Lightning: a callback that logs MCDP of every validation epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from localparity._validation import InputError, require
from localparity.monitoring import LocalDisparity

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
else:
    Callback = require("lightning.pytorch", extra="lightning").Callback

__all__ = ["LocalDisparityCallback"]


class LocalDisparityCallback(Callback):
    """Log MCDP(epsilon) of the validation set, over all batches and all processes.

    The module's ``validation_step`` returns a mapping with the scores of the batch and the groups of its
    people, and with the labels where the criterion needs them. Each data loader is measured by itself.

    Parameters
    ----------
    score, group, label : str
        The keys of the scores, groups and labels in what ``validation_step`` returns.
    name : str
        The name under which the value is logged; of several data loaders, followed by
        ``/dataloader_idx_0`` and so on.
    **options
        Arguments of `LocalDisparity`, such as ``n_groups``, ``epsilon`` and ``level``.

    Examples
    --------
    >>> from localparity.integrations.lightning import LocalDisparityCallback
    >>> callback = LocalDisparityCallback(n_groups=2, epsilon=0.05)
    >>> callback.name
    'val_mcdp'
    """

    def __init__(
        self,
        *,
        score: str = "y_score",
        group: str = "sensitive_features",
        label: str = "y_true",
        name: str = "val_mcdp",
        **options: Any,
    ) -> None:
        self.score, self.group, self.label, self.name = score, group, label, name
        self.options = options
        self.metrics: list[LocalDisparity] = []

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin anew, in every process with a metric for each data loader.

        Parameters
        ----------
        trainer, pl_module : Trainer, LightningModule
            What runs.
        """
        metrics = (LocalDisparity(**self.options).to(pl_module.device) for _ in trainer.num_val_batches)
        self.metrics = list(metrics)

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        *batch: Any,
        **named: Any,
    ) -> None:
        """Count a batch.

        Parameters
        ----------
        trainer, pl_module : Trainer, LightningModule
            What runs.
        outputs : mapping
            What ``validation_step`` returned.
        *batch, **named
            The batch, its number, and the number of its data loader where there are several.
        """
        if trainer.sanity_checking:
            return
        place = named.get("dataloader_idx", batch[2] if len(batch) > 2 else 0)
        metric = self.metrics[place]
        keys = [self.score, self.group, *([self.label] if metric.comparison.needs_labels else [])]
        given = list(outputs) if isinstance(outputs, Mapping) else type(outputs).__name__
        if not isinstance(outputs, Mapping) or not set(keys) <= set(outputs):
            raise InputError(f"must return a mapping with {keys}, got {given}", "validation_step")
        metric.update(*(outputs[key] for key in keys))

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log the value of all processes.

        Parameters
        ----------
        trainer, pl_module : Trainer, LightningModule
            What runs.
        """
        if trainer.sanity_checking:
            return
        for place, metric in enumerate(self.metrics):
            suffix = f"/dataloader_idx_{place}" if len(self.metrics) > 1 else ""
            pl_module.log(f"{self.name}{suffix}", metric.compute(), add_dataloader_idx=False)
