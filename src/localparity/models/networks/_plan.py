"""How long and how fast to train."""

from __future__ import annotations

from dataclasses import dataclass

from localparity._validation import as_choice, as_count, as_number


@dataclass(frozen=True)
class TrainingPlan:
    """How long and how fast to train.

    Parameters
    ----------
    steps : int, default=150
        The maximum number of optimiser steps.
    batch_size : int, default=1024
        The number of rows of a batch.
    learning_rate : float, default=1e-3
        Adam's initial learning rate.
    schedule : str, default="steps"
        "steps" multiplies the learning rate by `decay_factor` after every `decay_every` steps; "cosine"
        lowers it to 0 along half a cosine.
    decay_every : int, default=50
        The number of steps at one learning rate, for the schedule "steps".
    decay_factor : float, default=0.1
        The factor of the schedule "steps".
    weight_decay : float, default=0.0
        Decoupled, as in AdamW.
    clip_norm : float, optional
        The largest norm of a gradient; a larger one is scaled down to it.
    precision : str, default="float32"
        "float32" or "float64", as the rows are; or "bfloat16" for the network's forward pass.
    check_every : int, default=25
        The number of steps between evaluations of the validation rows.
    patience : int, optional
        The number of evaluations without improvement after which training stops and returns to the best.

    Examples
    --------
    >>> TrainingPlan().steps
    150
    """

    steps: int = 150
    batch_size: int = 1024
    learning_rate: float = 1e-3
    schedule: str = "steps"
    decay_every: int = 50
    decay_factor: float = 0.1
    weight_decay: float = 0.0
    clip_norm: float | None = None
    precision: str = "float32"
    check_every: int = 25
    patience: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "check_every"):
            as_count(getattr(self, name), name)
        if self.patience is not None:
            as_count(self.patience, "patience")
        if self.clip_norm is not None and not as_number(self.clip_norm, "clip_norm") > 0.0:
            raise ValueError(f"clip_norm must be > 0, got {self.clip_norm:g}")
        as_choice(self.schedule, "schedule", ("steps", "cosine"))
        as_choice(self.precision, "precision", ("float32", "bfloat16", "float64"))
