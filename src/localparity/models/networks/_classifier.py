"""A scikit-learn classifier whose local disparity is penalised, or kept within a bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from localparity._types import Criterion, FloatArray
from localparity._validation import as_choice, as_probability, as_strength
from localparity.models._base import PenalisedClassifier
from localparity.models._bound import check_bound
from localparity.models._encoding import TableEncoder, table_columns
from localparity.models._rows import check_labelled, hold_out
from localparity.models.networks._devices import as_device
from localparity.models.networks._fitting import Fitting
from localparity.models.networks._methods import METHODS
from localparity.models.networks._presets import PRESETS, STRENGTHS
from localparity.models.networks._rows import TensorRows
from localparity.models.networks._saving import load_classifier, save_classifier
from localparity.models.networks._trainer import predict_scores


class LocalParityClassifier(PenalisedClassifier):
    """A neural classifier for two classes, trained by one of seven methods.

    The sensitive feature is needed to fit and not to predict. Data frames may have text columns; they are
    encoded, and numbers are standardised.

    Parameters
    ----------
    method : str
        "erm", "advdebias", "diffdp", "fairmixup", "dralign", "diffabcc" or "diffmcdp".
    strength : float, optional
        The weight of the method's penalty; None takes the middle of those that the paper compares.
    max_mcdp : float, optional
        In place of a strength: the most accurate model is sought whose MCDP(epsilon) on a validation part
        is within this bound. Where none is found, a `BoundNotMetWarning` says so.
    max_mcdp_confidence : float, optional
        Compare the upper end of the interval of this confidence with the bound, in place of the estimate.
        It is not adjusted for the search, which keeps the best of several strengths.
    epsilon : float
        The half-width of the windows, of `max_mcdp` and of DiffMCDP's penalty, which above 0 needs
        ``search="exact"``.
    criterion : str
        Which people are compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds".
    preset : str
        "paper" or "tuned": what the parameters below are where they are None.
    temperature : float, optional
        The steepness of the sigmoid that stands for a step, for DiffABCC and DiffMCDP.
    search : str, optional
        How DiffMCDP finds its threshold: "exact", "probe", "frozen" or "soft".
    hidden : tuple of int, optional
        The widths of the hidden layers.
    dropout : float, optional
        The share of hidden units left out in a training step.
    steps, batch_size : int, optional
        How many optimiser steps, and how many rows in each.
    learning_rate : float, optional
        Adam's, at the start.
    schedule : str, optional
        "steps" divides the learning rate by ten after every 50 steps, "cosine" brings it down to 0.
    memory : int, optional
        How many recent rows DiffMCDP remembers to find its threshold in.
    balanced : bool, optional
        Whether every batch has as many rows of each group, reweighted: for small groups.
    sharpness : float
        The power of the soft search.
    alignment : float
        DRAlign's weight of the cosines.
    weight_decay : float
        Decoupled, as in AdamW.
    clip_norm : float, optional
        The largest norm of a gradient.
    precision : str
        "float32"; "float64"; or "bfloat16" for the network's forward pass.
    validation_fraction : float
        The share of the rows held out where `max_mcdp` or `patience` needs a validation part.
    patience : int, optional
        After so many evaluations (every 25 steps) without a better one, training stops and goes back to
        the best.
    device : str
        "auto" takes a GPU where there is one.
    random_state : int, RandomState or None
        The same seed gives the same bits on the CPU.
    checkpoint : path, optional
        A folder to which the state of training is written, so that an interrupted fit can go on; what was
        written is removed when the fit is done.
    verbose : bool
        Whether to show a bar with the loss, AP and MCDP.

    Attributes
    ----------
    classes_ : ndarray
        The two classes; scores are those of the second.
    groups_ : tuple
        The groups' names.
    strength_ : float
        The strength, given or found.
    history_ : list of dict
        Step, loss and, where evaluated, average_precision and mcdp.
    trials_ : list of Trial
        With `max_mcdp`, the strengths that were tried and what the validation part says of them.
    bound_met_ : bool
        With `max_mcdp`, whether the bound is met.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> model = lp.models.LocalParityClassifier(strength=0.5, steps=60, random_state=0)
    >>> model = model.fit(census.data, census.target, sensitive_features=census.sensitive_features)
    >>> model.predict_proba(census.data).shape
    (2000, 2)
    """

    def __init__(
        self,
        method: str = "diffmcdp",
        strength: float | None = None,
        *,
        max_mcdp: float | None = None,
        max_mcdp_confidence: float | None = None,
        epsilon: float = 0.0,
        criterion: Criterion = "demographic_parity",
        preset: str = "tuned",
        temperature: float | None = None,
        search: str | None = None,
        hidden: tuple[int, ...] | None = None,
        dropout: float | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        schedule: str | None = None,
        memory: int | None = None,
        balanced: bool | None = None,
        sharpness: float = 8.0,
        alignment: float = 0.05,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
        precision: str = "float32",
        validation_fraction: float = 0.2,
        patience: int | None = None,
        device: str = "auto",
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.strength = strength
        self.max_mcdp = max_mcdp
        self.max_mcdp_confidence = max_mcdp_confidence
        self.epsilon = epsilon
        self.criterion = criterion
        self.preset = preset
        self.temperature = temperature
        self.search = search
        self.hidden = hidden
        self.dropout = dropout
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.memory = memory
        self.balanced = balanced
        self.sharpness = sharpness
        self.alignment = alignment
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.precision = precision
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    def _fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> None:
        settings = self._settings()
        rows = self._check(X, y, sensitive_features, sample_weight)
        seed = self._seed()
        training, validation = rows, None
        if self.max_mcdp is not None or self.patience is not None:
            training, validation = self._hold_out(rows, seed)
        device = as_device(self.device)
        run = Fitting(self, settings, len(self.groups_), seed, training.to(device))
        if self.max_mcdp is None:
            strength = self._strength_of_method() if self.strength is None else self.strength
            held_out = None if validation is None else validation.to(device)
            self.network_, self.history_ = run.train(as_strength(strength), held_out)
            self.strength_ = as_strength(strength)
        else:
            assert validation is not None
            self._fit_within_bound(run, validation.to(device))
        run.forget_checkpoints()
        self.network_.cpu()

    def _scores(self, X: Any) -> FloatArray:
        features = torch.from_numpy(self.encoder_.encode(table_columns(self, X, reset=False)))
        return np.asarray(predict_scores(self.network_, features).numpy(), dtype=np.float64)

    def _save(self, folder: Any) -> None:
        save_classifier(self, folder)

    @classmethod
    def _load(cls, folder: Any) -> LocalParityClassifier:
        return load_classifier(folder)

    def _strength_of_method(self) -> float:
        if self.method not in STRENGTHS:
            raise ValueError(f"strength is None where method {self.method!r} has none of its own")
        return STRENGTHS[self.method]

    def _settings(self) -> dict[str, Any]:
        """The preset's settings, with the parameters that are given in their place."""
        as_choice(self.method, "method", METHODS)
        settings = dict(PRESETS[as_choice(self.preset, "preset", PRESETS)])
        given = {name: getattr(self, name) for name in settings if getattr(self, name, None) is not None}
        as_probability(self.validation_fraction, "validation_fraction")
        check_bound(self.strength, self.max_mcdp, self.max_mcdp_confidence)
        if self.max_mcdp is not None and self.method == "erm":
            raise ValueError("method is 'erm', which has no strength to search, where max_mcdp needs one")
        return settings | given

    def _check(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> TensorRows:
        """The rows as tensors, after every check; learns the classes and the encoding."""
        columns = table_columns(self, X, reset=True)
        found = check_labelled(self, X, len(columns[0].values), y, sensitive_features, sample_weight)
        self.classes_, self.groups_ = found.classes, found.names
        self.encoder_ = TableEncoder().learn(columns, found.all_weights)
        features = self.encoder_.encode(columns)[found.kept]
        dtype = torch.float64 if self.precision == "float64" else torch.float32
        return TensorRows(
            torch.from_numpy(features).to(dtype),
            torch.from_numpy(found.labels).to(dtype),
            torch.from_numpy(found.groups),
            torch.from_numpy(found.weights).to(dtype),
        )

    def _hold_out(self, rows: TensorRows, seed: int) -> tuple[TensorRows, TensorRows]:
        labels, groups = rows.labels.numpy(), rows.groups.numpy()
        parts = hold_out(labels, groups, self.validation_fraction, seed, self.groups_)
        return rows.take(torch.from_numpy(parts[0])), rows.take(torch.from_numpy(parts[1]))

    def _fit_within_bound(self, run: Fitting, validation: TensorRows) -> None:
        seen = (validation.labels, validation.groups, validation.weights)
        judge = self._judge(*(values.cpu().numpy() for values in seen))
        self.network_ = self._keep_within_bound(
            lambda strength: run.try_strength(strength, validation, judge), judge
        )
        self.history_ = run.histories[self.strength_]
