"""A neural classifier whose local disparity is penalised, or kept within a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from localparity._io._sealed import Files
from localparity._progress import Progress
from localparity._types import Criterion, FloatArray, Seed
from localparity._validation import InputError, as_choice, require, setting
from localparity.models._base import Backend, BoundedClassifier, Model, Pace
from localparity.models._encoding import TableEncoder
from localparity.models._folder import as_json
from localparity.models._rows import TrainingRows
from localparity.models.networks._batches import TensorRows
from localparity.models.networks._methods import Method, TrainingSettings, as_method, make_method
from localparity.models.networks._networks import Network, multilayer
from localparity.models.networks._trainer import Trainer, predict_scores

PRESETS: dict[str, TrainingSettings] = {
    # What the paper's published code ran on tables.
    "paper": TrainingSettings(),
    # The same network, trained for longer; chosen on the validation parts of Adult and Bank.
    "tuned": TrainingSettings(dropout=0.6, steps=900, schedule="cosine", temperature=80.0, balanced=True),
}

# In the middle of the strengths that the paper compares on Adult; used where none is given.
STRENGTHS: dict[str, float] = {
    "erm": 0.0,
    "advdebias": 0.6,
    "diffdp": 0.3,
    "fairmixup": 0.3,
    "dralign": 0.3,
    "diffabcc": 0.3,
    "diffmcdp": 0.2,
}


@dataclass(frozen=True)
class NetworkModel(Model):
    """A trained network, and a record of each step of its training."""

    filename: ClassVar[str] = "model.safetensors"

    network: Network
    history: list[dict[str, float]] = field(default_factory=list)

    def scores(self, features: FloatArray) -> FloatArray:
        """Return the probability of the second class for each row, in the network's precision."""
        scores: FloatArray = predict_scores(self.network, torch.from_numpy(features)).numpy()
        return scores

    def dump(self) -> tuple[dict[str, Any], bytes]:
        """Return the widths of the layers, and the tensors."""
        tensors = {name: tensor.detach().contiguous() for name, tensor in self.network.state_dict().items()}
        weights = list(self.network.hidden_weights().values())
        width = (weights[0] if weights else self.network.head.weight).shape[1]
        described = {"width": int(width), "hidden": [len(weight) for weight in weights]}
        return described, require("safetensors.torch", extra="train").save(tensors)

    @classmethod
    def parse(cls, described: dict[str, Any], content: bytes) -> Self:
        """Return the model that `dump` wrote."""
        safetensors = require("safetensors", extra="train")
        try:
            tensors = require("safetensors.torch", extra="train").load(content)
        except safetensors.SafetensorError as error:
            raise ValueError(f"{cls.filename} cannot be read: {error}") from error
        return cls(_network(described["width"], described["hidden"], tensors))


def _network(width: int, hidden: Sequence[int], tensors: Mapping[str, Tensor]) -> Network:
    """Return the network of some tensors, whose widths are checked first: memory might not hold others."""
    shapes = [tuple(tensor.shape) for tensor in tensors.values() if tensor.ndim == 2]
    widths = [width, *hidden, 1]
    if sorted(shapes) != sorted(zip(widths[1:], widths[:-1], strict=True)):
        raise InputError(f"is {hidden} and width {width}, the tensors have shapes {shapes}", "hidden")
    network = multilayer(width, hidden, 0.0).to(tensors["head.weight"].dtype)
    network.load_state_dict(tensors)
    network.eval()
    return network


class NetworkBackend(Backend):
    """Trains networks on the rows of one call of `fit`."""

    def __init__(
        self,
        classifier: LocalParityClassifier,
        rows: TrainingRows,
        validation: TrainingRows | None,
        seed: int,
    ) -> None:
        self.method, self.settings, self.seed = classifier.method, classifier._settings(), seed
        device, precision = as_device(classifier.device), classifier.precision
        self.training = as_tensors(rows, precision, device)
        self.validation = None if validation is None else as_tensors(validation, precision, device)
        self.n_groups = len(rows.group_names)
        self.pace = Pace(self.settings.steps, self.settings.learning_rate)

    def train(self, strength: float, pace: Pace, progress: Progress | None = None) -> NetworkModel:
        """Return the network trained at a strength; all strengths start alike."""
        settings = replace(self.settings, steps=pace.steps, learning_rate=pace.learning_rate)
        method = make_method(self.method, strength, self.n_groups, settings)
        trainer = Trainer(method, self._new_network(), seed=self.seed + 1, progress=progress)
        history = trainer.fit(self.training, self.validation)
        return NetworkModel(trainer.network, history)

    def _new_network(self) -> Network:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            width = self.training.features.shape[1]
            network = multilayer(width, self.settings.hidden, self.settings.dropout)
        return network.to(self.training.features)


def as_tensors(rows: TrainingRows, precision: str, device: torch.device) -> TensorRows:
    """Return rows as tensors on a device."""
    dtype = torch.float64 if precision == "float64" else torch.float32
    features, labels, weights = (
        torch.from_numpy(column).to(device, dtype) for column in (rows.features, rows.labels, rows.weights)
    )
    return TensorRows(features, labels, torch.from_numpy(rows.groups).to(device), weights)


def as_device(name: str) -> torch.device:
    """The torch device with this name; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"must be 'auto' or a torch device, got {name!r}: {error}", "device") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"{name!r} needs CUDA, which this machine or this build of torch lacks", "device")
    return device


class LocalParityClassifier(BoundedClassifier):
    """A neural classifier for two classes, trained by one of seven methods.

    The group is needed to fit and not to predict. Text columns of a data frame are encoded, a missing text as
    a separate category, and numbers are standardised, a missing one to the mean. What `fit` did not see
    counts as unknown, with an `UnseenValuesWarning`.

    Parameters
    ----------
    method : str or subclass of Method
        "erm", "advdebias", "diffdp", "fairmixup", "dralign", "diffabcc", "diffmcdp", or a class of your own.
    strength : float, optional
        The weight of the method's penalty; None takes the middle of those that the paper compares.
    max_mcdp : float, optional
        In place of a strength: find the most accurate model whose MCDP(epsilon) on a validation part is
        within this bound. If there is none, a `BoundNotMetWarning` says so.
    confidence : float, optional
        Promise `max_mcdp` for the population, with this probability. Strengths found on the validation part
        are tested on people held out of everything else, those with the lowest MCDP first, up to the first
        that is not known to be within the bound; the most accurate before it is kept (fixed-sequence testing;
        Angelopoulos et al. 2021, "Learn then Test"). It holds if the rows are an independent sample; with
        weights approximately.
    epsilon : float
        The half-width of the windows, of `max_mcdp` and of DiffMCDP's penalty, which above 0 needs
        ``search="exact"``.
    criterion : str
        Who is compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds".
    preset : str
        "paper" or "tuned": the values of the parameters below that are None.
    temperature : float, optional
        The steepness of the sigmoid that replaces a step, for DiffABCC and DiffMCDP.
    search : str, optional
        How DiffMCDP finds its threshold: "exact" (in both presets), "probe", "frozen" or "soft".
    hidden, dropout : tuple of int and float, optional
        The widths of the hidden layers, and the share of hidden units left out in a training step.
    steps, batch_size : int, optional
        The number of optimiser steps, and of rows in each.
    learning_rate, schedule : float and str, optional
        Adam's at the start; "steps" divides it by ten after every 50 steps, "cosine" brings it down to 0.
    memory : int, optional
        How many recent rows DiffMCDP remembers to find its threshold in.
    balanced : bool, optional
        Whether every batch has as many rows of each group, reweighted: for small groups.
    sharpness, alignment, weight_decay : float
        The power of the soft search, DRAlign's weight of the cosines, and AdamW's decoupled weight decay.
    precision : str
        "float32"; "float64"; or "bfloat16" for the network's forward pass.
    validation_fraction : float
        The share of the rows held out where `max_mcdp` or `patience` needs a validation part. With a
        `confidence` it is held out for the test first, or more, up to half, where a bound this low needs as
        many; and the share of the rest for validation.
    patience : int, optional
        Stop after this many evaluations (every 25 steps) without a lower loss plus strength x MCDP on the
        validation part, and return to the best.
    device : str
        "auto" is a GPU if there is one.
    random_state : int, Generator or None
        The same seed gives the same bits on the CPU.
    verbose : bool
        Whether to show a progress bar for each fit, with the loss and, of a validation part, AP and MCDP.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes; scores are probabilities of the second.
    groups_, strength_ : tuple and float
        The groups' names, and the strength, given or found.
    history_ : list of dict
        Step, loss and, where evaluated, average_precision and mcdp; empty after loading.
    network_, encoder_ : Network and TableEncoder
        The trained network, and what turns a table into its input.
    text_features_ : list of str
        The names of the text columns.
    trials_ : dict of Measured
        With `max_mcdp`, how each strength that was tried does; with a `confidence`, how those that were
        tested do, in order.
    bound_met_ : bool
        With `max_mcdp`, whether the bound is met; with a `confidence`, whether it is promised.
    promise_ : str
        What is known of the bound and for whom, in a sentence.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> model = lp.models.LocalParityClassifier(strength=0.5, steps=60, random_state=0)
    >>> model = model.fit(census.data, census.target, sensitive_features=census.sensitive_features)
    >>> model.predict_proba(census.data).shape
    (2000, 2)
    """

    _model_type = NetworkModel
    _backend_type = NetworkBackend
    _libraries = ("torch",)
    _encoder_type = TableEncoder
    encoder_: TableEncoder
    model_: NetworkModel
    _unsaved: ClassVar[dict[str, Any]] = {"device": "auto", "verbose": False}

    def __init__(
        self,
        method: str | type[Method] = "diffmcdp",
        strength: float | None = None,
        *,
        max_mcdp: float | None = None,
        confidence: float | None = None,
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
        precision: str = "float32",
        validation_fraction: float = 0.2,
        patience: int | None = None,
        device: str = "auto",
        random_state: Seed = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.strength = strength
        self.max_mcdp = max_mcdp
        self.confidence = confidence
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
        self.precision = precision
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def network_(self) -> Network:
        """The trained network."""
        return self.model_.network

    @property
    def history_(self) -> list[dict[str, float]]:
        """Step, loss and, where evaluated, average_precision and mcdp; empty after loading."""
        return self.model_.history

    def _settings(self) -> TrainingSettings:
        """Return the preset's settings, replaced by the parameters of the same name that are given."""
        parameters = {field.name: getattr(self, field.name, None) for field in fields(TrainingSettings)}
        return replace(
            PRESETS[self.preset], **{name: value for name, value in parameters.items() if value is not None}
        )

    def _check_all(self) -> None:
        as_method(self.method)
        as_choice(self.preset, "preset", PRESETS)
        super()._check_all()
        if self.max_mcdp is not None and self.method == "erm":
            raise InputError(f"needs a method with a strength, got {setting(method='erm')}", "max_mcdp")

    def _learn(self, rows: TrainingRows) -> None:
        super()._learn(rows)
        self.network_.cpu()

    def _default_strength(self) -> float:
        if isinstance(self.method, str) and self.method in STRENGTHS:
            return STRENGTHS[self.method]
        name = as_json(self.method, "method")
        raise InputError(f"must be given for method {name!r}, which has no default", "strength")

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        super()._restore(learned, files)
        columns, width = len(self.encoder_.get_feature_names_out()), learned["model"]["width"]
        if columns != width:
            raise ValueError(f"the encoder has {columns} columns, the network {width}")
