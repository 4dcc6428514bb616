"""A fitted model as a folder: what the model learned in a file of its own, and JSON that describes it."""

from __future__ import annotations

import hashlib
import json
import numbers
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from localparity._io._files import parse_json, reading, write_whole
from localparity._types import Group
from localparity._validation import as_strength

_FORMAT = 1
_DESCRIPTION = "model.json"
_PLAIN = (str, int, float, bool)
_FIRST_KIND = "LocalParityClassifier"


def write_model(
    model: Any, learned: Path, write: Callable[[Path], None], parameters: dict[str, Any], **more: Any
) -> None:
    """Write what a classifier learned, and last its description with the checksum of that.

    Parameters
    ----------
    model : estimator
        A fitted classifier with `classes_`, `groups_` and `strength_`.
    learned : Path
        The file of what it learned.
    write : callable
        Writes that file; is called when it is known that all of the description can be written.
    parameters : dict
        Its parameters, as `plain_parameters` has them.
    **more
        Whatever else is needed to load it, as JSON takes it.
    """
    described = {
        "format": _FORMAT,
        "estimator": type(model).__name__,
        "parameters": parameters,
        "named": hasattr(model, "feature_names_in_"),
        "classes": model.classes_.tolist(),
        "classes_dtype": model.classes_.dtype.str,
        "groups": [_plain_group(group) for group in model.groups_],
        "strength": model.strength_,
        **more,
    }
    write(learned)
    described["sha256"] = hashlib.sha256(learned.read_bytes()).hexdigest()
    write_whole(learned.parent / _DESCRIPTION, json.dumps(described, indent=1).encode())


def plain_parameters(model: Any, **instead: Any) -> dict[str, Any]:
    """A model's parameters as JSON has them, without a generator's state; `instead` replaces some.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> plain_parameters(LogisticRegression(C=np.float32(0.5)))["C"]
    0.5
    """
    given = {**model.get_params(deep=False), **instead}
    if not isinstance(given["random_state"], numbers.Integral):
        given["random_state"] = None
    return {name: plain(value, name) for name, value in given.items()}


def plain(value: Any, name: str) -> Any:
    """A value as JSON has it, numpy's numbers as Python's; anything else is a ValueError that has its name.

    Examples
    --------
    >>> plain({"depths": (np.int64(3), None)}, "booster_params")
    {'depths': [3, None]}
    """
    found = value.item() if isinstance(value, np.generic) else value
    if isinstance(found, Mapping):
        return {str(key): plain(part, name) for key, part in found.items()}
    if isinstance(found, list | tuple):
        return [plain(part, name) for part in found]
    if found is None or isinstance(found, _PLAIN):
        return found
    raise ValueError(f"{name} has {value!r}, which cannot be written as JSON")


def _plain_group(group: Group) -> Any:
    """A group as JSON has it, the parts of an intersection as a list; what JSON has not, in words."""
    if isinstance(group, tuple):
        return [_plain_group(part) for part in group]
    return group if isinstance(group, _PLAIN) else str(group)


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
    with reading(str(folder / _DESCRIPTION)):
        expected = described["sha256"]
    if found != expected:
        raise ValueError(
            f"{folder} is damaged: the sha256 of {learned} is {found} where {expected} is expected"
        )
    return described


def damage_of_model(folder: Path) -> AbstractContextManager[None]:
    """Turn what breaks on a model's description into a ValueError that names its file."""
    return reading(str(folder / _DESCRIPTION))


def restore_classes(model: Any, described: dict[str, Any]) -> None:
    """Set what the description says about classes, groups and strength."""
    model.classes_ = np.asarray(described["classes"], dtype=described["classes_dtype"])
    if model.classes_.shape != (2,):
        raise ValueError(f"classes is {described['classes']!r} where two are expected")
    groups = described["groups"]
    model.groups_ = tuple(tuple(group) if isinstance(group, list) else group for group in groups)
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
