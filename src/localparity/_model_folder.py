"""A fitted model as a folder: what the model learned in a file of its own, and JSON that describes it."""

from __future__ import annotations

import hashlib
import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from localparity._files import damage_of, parse_json, write_whole
from localparity._validation import as_strength

_FORMAT = 1
_DESCRIPTION = "model.json"
_FIRST_KIND = "LocalParityClassifier"


def describe_model(model: Any, learned: Path, parameters: dict[str, Any], **more: Any) -> None:
    """Write the description of a classifier last, with the checksum of what it learned.

    Parameters
    ----------
    model : estimator
        A fitted classifier with `classes_`, `groups_` and `strength_`.
    learned : Path
        The file of what it learned, which is there already.
    parameters : dict
        Its parameters, as JSON takes them.
    **more
        Whatever else is needed to load it.
    """
    described = {
        "format": _FORMAT,
        "estimator": type(model).__name__,
        "sha256": hashlib.sha256(learned.read_bytes()).hexdigest(),
        "parameters": parameters,
        "named": hasattr(model, "feature_names_in_"),
        "classes": model.classes_.tolist(),
        "classes_dtype": model.classes_.dtype.str,
        "groups": [str(group) for group in model.groups_],
        "strength": model.strength_,
        **more,
    }
    write_whole(learned.parent / _DESCRIPTION, json.dumps(described, indent=1).encode())


def read_model(folder: Path, learned: str, kind: str) -> dict[str, Any]:
    """The description of a model in a folder; anything but a whole model of the kind is a ValueError.

    Parameters
    ----------
    folder : Path
        The folder.
    learned : str
        The name of the file of what the model learned, whose checksum is checked.
    kind : str
        The name of the estimator.

    Returns
    -------
    dict
    """
    described = _read_description(folder / _DESCRIPTION)
    found_kind = described.get("estimator", _FIRST_KIND)
    if found_kind != kind:
        raise ValueError(f"{folder} is a {found_kind} where a {kind} is expected; {found_kind}.load reads it")
    try:
        found = hashlib.sha256((folder / learned).read_bytes()).hexdigest()
    except OSError as error:
        raise ValueError(
            f"{folder} is not a whole model: {learned} cannot be read ({error.strerror})"
        ) from error
    with damage_of(str(folder / _DESCRIPTION)):
        expected = described["sha256"]
    if found != expected:
        raise ValueError(
            f"{folder} is damaged: the sha256 of {learned} is {found} where {expected} is expected"
        )
    return described


def damage_of_model(folder: Path) -> AbstractContextManager[None]:
    """Turn what breaks on a model's description into a ValueError that names its file."""
    return damage_of(str(folder / _DESCRIPTION))


def restore_classes(model: Any, described: dict[str, Any]) -> None:
    """Set what the description says about classes, groups and strength."""
    model.classes_ = np.asarray(described["classes"], dtype=described["classes_dtype"])
    if model.classes_.shape != (2,):
        raise ValueError(f"classes is {described['classes']!r} where two are expected")
    model.groups_ = tuple(described["groups"])
    model.strength_ = as_strength(described["strength"])


def _read_description(path: Path) -> dict[str, Any]:
    try:
        described = parse_json(path.read_bytes())
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
