"""A fitted classifier of boosted trees as a folder: the library's own text format, the rest by JSON."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from localparity._files import write_whole
from localparity._model_folder import damage_of_model, describe_model, read_model, restore_classes
from localparity._validation import as_count, as_number

if TYPE_CHECKING:
    from localparity.boosting._estimator import BoostedClassifier

_TREES = "model.trees"

Classifier = TypeVar("Classifier", bound="BoostedClassifier")


def save_boosted(classifier: BoostedClassifier, folder: Any) -> None:
    """Write the trees first and their description, which names their checksum, last."""
    parameters = _plain_parameters(classifier)
    trees = Path(folder) / _TREES
    write_whole(trees, classifier._library.dump(classifier.booster_))
    describe_model(
        classifier,
        trees,
        parameters,
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


def _plain_parameters(classifier: BoostedClassifier) -> dict[str, Any]:
    """The parameters, without a generator's state."""
    plain = dict(classifier.get_params(deep=False))
    if not isinstance(plain["random_state"], int):
        plain["random_state"] = None
    try:
        dumps(plain)
    except TypeError as error:
        raise ValueError(f"booster_params cannot be written as JSON: {error}") from error
    return plain
