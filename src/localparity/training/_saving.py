"""A fitted classifier as a folder: tensors by safetensors, everything else by JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._encoding import TableEncoder
from localparity._files import write_whole
from localparity.training._checkpoint import load_tensors, save_tensors
from localparity.training._networks import multilayer

if TYPE_CHECKING:
    from localparity.training._estimator import LocalParityClassifier

_FORMAT = 1
_DESCRIPTION = "model.json"
_TENSORS = "model.safetensors"


def save_classifier(classifier: LocalParityClassifier, folder: Any) -> None:
    """Write the tensors first and their description, which names their checksum, last."""
    path = Path(folder)
    tensors = path / _TENSORS
    save_tensors(tensors, classifier.network_.state_dict(), {})
    described = {
        "format": _FORMAT,
        "sha256": hashlib.sha256(tensors.read_bytes()).hexdigest(),
        "parameters": _plain_parameters(classifier),
        "encoder": classifier.encoder_.to_dict(),
        "named": hasattr(classifier, "feature_names_in_"),
        "classes": classifier.classes_.tolist(),
        "classes_dtype": classifier.classes_.dtype.str,
        "groups": [str(group) for group in classifier.groups_],
        "hidden": [int(weight.shape[0]) for weight in classifier.network_.hidden_weights().values()],
        "strength": classifier.strength_,
    }
    write_whole(path / _DESCRIPTION, json.dumps(described, indent=1).encode())


def load_classifier(folder: Any) -> LocalParityClassifier:
    """The classifier that `save_classifier` wrote; anything else is a ValueError that says what is wrong."""
    from localparity.training._estimator import LocalParityClassifier

    path = Path(folder)
    described = _read_description(path / _DESCRIPTION)
    try:
        found = hashlib.sha256((path / _TENSORS).read_bytes()).hexdigest()
    except OSError as error:
        raise ValueError(
            f"{path} is not a whole model: {_TENSORS} cannot be read ({error.strerror})"
        ) from error
    if found != described["sha256"]:
        raise ValueError(
            f"{path} is damaged: the sha256 of {_TENSORS} is {found} where {described['sha256']} is expected"
        )
    tensors, _ = load_tensors(path / _TENSORS)
    parameters = described["parameters"]
    if parameters["hidden"] is not None:
        parameters["hidden"] = tuple(parameters["hidden"])
    classifier = LocalParityClassifier(**parameters)
    classifier.encoder_ = TableEncoder.from_dict(described["encoder"])
    classifier.classes_ = np.asarray(described["classes"], dtype=described["classes_dtype"])
    classifier.groups_ = tuple(described["groups"])
    classifier.strength_ = described["strength"]
    classifier.n_features_in_ = len(classifier.encoder_.names_)
    if described["named"]:
        classifier.feature_names_in_ = np.asarray(classifier.encoder_.names_, dtype=object)
    width = len(classifier.encoder_.get_feature_names_out())
    dtype = next(iter(tensors.values())).dtype
    classifier.network_ = multilayer(width, described["hidden"], 0.0).to(dtype)
    classifier.network_.load_state_dict(tensors)
    classifier.network_.eval()
    return classifier


def _read_description(path: Path) -> dict[str, Any]:
    try:
        described: dict[str, Any] = json.loads(path.read_text())
        known = described["format"] == _FORMAT
    except OSError as error:
        raise ValueError(
            f"{path.parent} is not a model: {path.name} cannot be read ({error.strerror})"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not the description of a model: {error}") from error
    if not known:
        raise ValueError(f"{path} has format {described['format']!r} where {_FORMAT} is expected")
    return described


def _plain_parameters(classifier: LocalParityClassifier) -> dict[str, Any]:
    """The parameters, without what belongs to the machine or to a generator's state."""
    plain = dict(classifier.get_params(deep=False))
    plain |= {"checkpoint": None, "device": "auto", "verbose": False}
    if not isinstance(plain["random_state"], int):
        plain["random_state"] = None
    return plain
