"""A fitted classifier as a folder: tensors by safetensors, everything else by JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity.models._encoding import TableEncoder
from localparity.models._folder import (
    damage_of_model,
    plain_parameters,
    read_model,
    restore_classes,
    write_model,
)
from localparity.models.networks._checkpoint import load_tensors, save_tensors
from localparity.models.networks._networks import Network, multilayer

if TYPE_CHECKING:
    from torch import Tensor

    from localparity.models.networks._classifier import LocalParityClassifier

_TENSORS = "model.safetensors"


def save_classifier(classifier: LocalParityClassifier, folder: Any) -> None:
    """Write the tensors first and their description, which names their checksum, last."""
    write_model(
        classifier,
        Path(folder) / _TENSORS,
        lambda path: save_tensors(path, classifier.network_.state_dict(), {}),
        # Without what belongs to the machine.
        plain_parameters(classifier, checkpoint=None, device="auto", verbose=False),
        encoder=classifier.encoder_.to_dict(),
        hidden=[int(weight.shape[0]) for weight in classifier.network_.hidden_weights().values()],
    )


def load_classifier(folder: Any) -> LocalParityClassifier:
    """The classifier that `save_classifier` wrote; anything else is a ValueError that says what is wrong."""
    from localparity.models.networks._classifier import LocalParityClassifier

    path = Path(folder)
    described = read_model(path, _TENSORS, LocalParityClassifier.__name__)
    tensors, _ = load_tensors(path / _TENSORS)
    with damage_of_model(path):
        parameters = described["parameters"]
        if parameters["hidden"] is not None:
            parameters["hidden"] = tuple(parameters["hidden"])
        classifier = LocalParityClassifier(**parameters)
        restore_classes(classifier, described)
        classifier.encoder_ = TableEncoder.from_dict(described["encoder"])
        classifier.n_features_in_ = len(classifier.encoder_.names_)
        if described["named"]:
            classifier.feature_names_in_ = np.asarray(classifier.encoder_.names_, dtype=object)
        classifier.network_ = _network(classifier.encoder_, described["hidden"], tensors)
    return classifier


def _network(encoder: TableEncoder, hidden: Sequence[int], tensors: Mapping[str, Tensor]) -> Network:
    """The network of some tensors; one of other widths is not even made, since memory might not hold it."""
    found = [len(tensor) for name, tensor in tensors.items() if name != "head.weight" and tensor.ndim == 2]
    if sorted(hidden) != sorted(found):
        raise ValueError(f"hidden is {hidden} where the tensors have {found}")
    network = multilayer(len(encoder.get_feature_names_out()), hidden, 0.0).to(tensors["head.weight"].dtype)
    network.load_state_dict(tensors)
    network.eval()
    return network
