"""Fitted estimators as folders: JSON that describes the estimator, and files of data with their checksums.

Nothing in a folder is run when it is loaded. The description is written last, so that a folder that was not
written to the end does not load.
"""

from __future__ import annotations

import json
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from localparity._io._files import parse_json, reading, sha256_of, write_whole

FORMAT = 2
DESCRIPTION = "model.json"
ESTIMATORS = (
    "GroupBlindClassifier",
    "GroupBlindRepair",
    "LocalParityClassifier",
    "LocalParityLGBMClassifier",
    "LocalParityXGBClassifier",
    "RepairedClassifier",
    "ScoreRepair",
    "TableClassifier",
    "TableRegressor",
)
"""What `load` may make, all of them in `localparity.models`."""

Files = dict[str, bytes]
"""The content of a folder's files, by their paths below it."""


def load(folder: str | Path) -> Any:
    """Load a fitted estimator of any kind from the folder that its `save` wrote.

    Parameters
    ----------
    folder : path
        The folder. A folder that is not a whole model is a ValueError. Load boosted trees from sources you
        trust: the libraries that read them can crash on files made to harm.

    Returns
    -------
    estimator
        A `LocalParityClassifier`, `LocalParityLGBMClassifier`, `LocalParityXGBClassifier`, `ScoreRepair`,
        `RepairedClassifier`, `GroupBlindRepair`, `GroupBlindClassifier`, `TableClassifier` or
        `TableRegressor`, ready to predict.

    Examples
    --------
    >>> import tempfile
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> repair = lp.models.ScoreRepair().fit(census.score, sensitive_features=census.sensitive_features)
    >>> folder = tempfile.mkdtemp()
    >>> repair.save(folder)
    >>> lp.load(folder).mcdp_ == repair.mcdp_
    True
    """
    return _load(Path(folder), None)


class FolderMixin(ABC):
    """`save` and `load` for an estimator that can describe and restore itself."""

    get_params: Callable[..., dict[str, Any]]
    _unsaved: ClassVar[dict[str, Any]] = {}
    """Parameters that belong to the machine or to training, and what they are after loading."""

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator to a folder.

        Parameters
        ----------
        folder : path
            Where to; what an earlier `save` wrote there is replaced.
        """
        check_is_fitted(self)
        files = self._dump_files()
        description = files.pop(DESCRIPTION)
        for name, content in files.items():
            write_whole(Path(folder) / name, content)
        write_whole(Path(folder) / DESCRIPTION, description)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a fitted estimator of this class; `localparity.load` loads any.

        Parameters
        ----------
        folder : path
            The folder that `save` wrote. A folder that is not a whole model is a ValueError.

        Returns
        -------
        estimator
            Ready to predict.
        """
        loaded: Self = _load(Path(folder), cls)
        return loaded

    @abstractmethod
    def _dump(self) -> tuple[dict[str, Any], Files]:
        """Return what was learned: values that JSON can hold, and the content of files."""

    @abstractmethod
    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        """Take what `_dump` returned; anything else raises."""

    def _dump_files(self) -> Files:
        """Return the content of all files, the description's with it."""
        learned, files = self._dump()
        given: dict[str, Any] = {**self.get_params(deep=False), **self._unsaved}
        if not isinstance(given["random_state"], numbers.Integral):
            given["random_state"] = None
        described = {
            "format": FORMAT,
            "estimator": type(self).__name__,
            "parameters": {name: plain(value, name) for name, value in given.items()},
            "learned": learned,
            "files": {name: sha256_of(content) for name, content in files.items()},
        }
        return {**files, DESCRIPTION: json.dumps(described, indent=1).encode()}


def parse_files(files: Files) -> Any:
    """Return the estimator that the content of a folder's files describes."""
    described = _parse_description(files[DESCRIPTION])
    return _revive(described, files, _estimator_class(described))


def _load(folder: Path, kind: type[FolderMixin] | None) -> Any:
    path = folder / DESCRIPTION
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{folder} is not a model: {path.name} cannot be read ({error.strerror})") from error
    with reading(str(path)):
        described = _parse_description(content)
        found, kind = described["estimator"], kind or _estimator_class(described)
    if found != kind.__name__:
        raise ValueError(f"{folder} holds a {found}, not a {kind.__name__}; use localparity.load")
    with reading(str(path)):
        files = {name: _read(folder, name, digest) for name, digest in described["files"].items()}
        return _revive(described, files, kind)


def _parse_description(content: bytes) -> dict[str, Any]:
    described = parse_json(content)
    if described["format"] != FORMAT:
        raise ValueError(f"format must be {FORMAT}, got {described['format']!r}")
    return described


def _estimator_class(described: dict[str, Any]) -> type[FolderMixin]:
    name = described["estimator"]
    if name not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {name!r}")
    kind: type[FolderMixin] = getattr(import_module("localparity.models"), name)
    return kind


def _revive(described: dict[str, Any], files: Files, kind: type[FolderMixin]) -> Any:
    parameters = described["parameters"]
    estimator = kind(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}
    )
    estimator._restore(described["learned"], files)
    return estimator


def _read(folder: Path, name: str, digest: str) -> bytes:
    """Return a file's content, if it lies in the folder and has the checksum."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(f"{name!r} is not a file of the folder")
    try:
        content = (folder / path).read_bytes()
    except OSError as error:
        raise ValueError(f"{name} cannot be read ({error.strerror})") from error
    found = sha256_of(content)
    if found != digest:
        raise ValueError(f"the sha256 of {name} is {found}, expected {digest}")
    return content


def plain(value: Any, name: str) -> Any:
    """Return a value as JSON has it, numpy's numbers as Python's; anything else is a ValueError.

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
    if found is None or isinstance(found, str | int | float | bool):
        return found
    raise ValueError(f"{name} has {value!r}, which cannot be written as JSON")


def restore_groups(groups: Any) -> tuple[Any, ...]:
    """Return groups' names from JSON, where intersections are lists."""
    return tuple(restore_groups(group) if isinstance(group, list) else group for group in groups)
