"""A fitted classifier as a folder: tensors by safetensors, everything else by JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._encoding import TableEncoder
from localparity._model_folder import describe_model, read_model, restore_classes
from localparity.training._checkpoint import load_tensors, save_tensors
from localparity.training._networks import multilayer

if TYPE_CHECKING:
    from localparity.training._estimator import LocalParityClassifier

_TENSORS = "model.safetensors"


def save_classifier(classifier: LocalParityClassifier, folder: Any) -> None:
    """Write the tensors first and their description, which names their checksum, last."""
    tensors = Path(folder) / _TENSORS
    save_tensors(tensors, classifier.network_.state_dict(), {})
    describe_model(
        classifier,
        tensors,
        _plain_parameters(classifier),
        encoder=classifier.encoder_.to_dict(),
        hidden=[int(weight.shape[0]) for weight in classifier.network_.hidden_weights().values()],
    )


def load_classifier(folder: Any) -> LocalParityClassifier:
    """The classifier that `save_classifier` wrote; anything else is a ValueError that says what is wrong."""
    from localparity.training._estimator import LocalParityClassifier

    path = Path(folder)
    described = read_model(path, _TENSORS, LocalParityClassifier.__name__)
    tensors, _ = load_tensors(path / _TENSORS)
    parameters = described["parameters"]
    if parameters["hidden"] is not None:
        parameters["hidden"] = tuple(parameters["hidden"])
    classifier = LocalParityClassifier(**parameters)
    restore_classes(classifier, described)
    classifier.encoder_ = TableEncoder.from_dict(described["encoder"])
    classifier.n_features_in_ = len(classifier.encoder_.names_)
    if described["named"]:
        classifier.feature_names_in_ = np.asarray(classifier.encoder_.names_, dtype=object)
    width = len(classifier.encoder_.get_feature_names_out())
    dtype = next(iter(tensors.values())).dtype
    classifier.network_ = multilayer(width, described["hidden"], 0.0).to(dtype)
    classifier.network_.load_state_dict(tensors)
    classifier.network_.eval()
    return classifier


def _plain_parameters(classifier: LocalParityClassifier) -> dict[str, Any]:
    """The parameters, without what belongs to the machine or to a generator's state."""
    plain = dict(classifier.get_params(deep=False))
    plain |= {"checkpoint": None, "device": "auto", "verbose": False}
    if not isinstance(plain["random_state"], int):
        plain["random_state"] = None
    return plain
