"""A fitted classifier of boosted trees as a folder: the library's own text format, the rest by JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from localparity._io._files import write_whole
from localparity._validation import as_count, as_number
from localparity.models._folder import (
    damage_of_model,
    plain_parameters,
    read_model,
    restore_classes,
    write_model,
)

if TYPE_CHECKING:
    from localparity.models.trees._classifier import BoostedClassifier

_TREES = "model.trees"

Classifier = TypeVar("Classifier", bound="BoostedClassifier")


def save_boosted(classifier: BoostedClassifier, folder: Any) -> None:
    """Write the trees first and their description, which names their checksum, last."""
    write_model(
        classifier,
        Path(folder) / _TREES,
        lambda path: write_whole(path, classifier._library.dump(classifier.booster_)),
        plain_parameters(classifier),
        start=classifier.start_,
        columns=list(map(str, getattr(classifier, "feature_names_in_", []))),
        width=classifier.n_features_in_,
    )


def load_boosted(kind: type[Classifier], folder: Any) -> Classifier:
    """The classifier that `save_boosted` wrote; anything else is a ValueError that says what is wrong."""
    path = Path(folder)
    described = read_model(path, _TREES, kind.__name__)
    with damage_of_model(path):
        classifier = kind(**described["parameters"])
        restore_classes(classifier, described)
        classifier.start_ = as_number(described["start"], "start")
        classifier.n_features_in_ = as_count(described["width"], "width")
        if described["named"]:
            classifier.feature_names_in_ = np.array(list(map(str, described["columns"])), dtype=object)
    classifier.booster_ = classifier._library.parse((path / _TREES).read_bytes())
    classifier.n_estimators_ = classifier._library.rounds(classifier.booster_)
    return classifier
