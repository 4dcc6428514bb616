"""Fitted estimators as folders: JSON that describes the estimator, files of data, and a card for people.

Nothing in a folder is run when it is loaded. The description names the subfolder of the data, and a new model
takes the place of an old one when the description is replaced: whenever a `save` is interrupted, the folder
holds the old model or the new one, whole, with its card. The card beside the description is a copy for
people; loading needs none.
"""

from __future__ import annotations

import numbers
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import signature
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from localparity._io._files import (
    check_format,
    locked_folder,
    parse_sealed,
    read_settled,
    reading,
    seal_json,
    sha256_of,
    write_whole,
)
from localparity._validation import InputError
from localparity.models._card import CARD, ModelCard, remove_shown_card, show_card, versions_of
from localparity.models._rows import FittedOn

FORMAT = 3
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
)
"""What `load` may make, all of them in `localparity.models`."""

_BOUND = ("max_mcdp", "epsilon", "criterion", "confidence")

Files = dict[str, bytes]
"""The content of a folder's files, by their paths below it."""

_DATA = re.compile("data-[0-9a-f]{12}")
"""The name of the subfolder of the data, which differs for models that differ."""


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
        `RepairedClassifier`, `GroupBlindRepair`, `GroupBlindClassifier` or `TableClassifier`, ready to
        predict.

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
    _libraries: ClassVar[tuple[str, ...]] = ()
    """The libraries, beside those that the package always needs, that the estimator runs on."""
    _fitted_on: FittedOn | None = None

    def save(self, folder: str | Path, card: ModelCard | None = None) -> None:
        """Write the fitted estimator and its model card to a folder.

        What an earlier `save` wrote there is replaced, as a whole: if this one is interrupted, the folder
        still holds the old model or already holds the new one.

        Parameters
        ----------
        folder : path
            Where to.
        card : ModelCard, optional
            What people should know of the model; by default `card()`, what the estimator knows itself.
        """
        card = self.card() if card is None else card
        described, files = self._describe()
        data = f"data-{sha256_of(seal_json(described))[:12]}"
        description = seal_json({**described, "data": data})
        top, card = Path(folder), replace(card, model_sha256=sha256_of(description))
        top.mkdir(parents=True, exist_ok=True)
        with locked_folder(top):
            for name, content in {**files, CARD: seal_json(card.to_dict())}.items():
                write_whole(top / data / name, content, durable=True)
            remove_shown_card(top)
            write_whole(top / DESCRIPTION, description, durable=True)
            show_card(card, top)
            for other in top.iterdir():
                if _DATA.fullmatch(other.name) and other.name != data:
                    shutil.rmtree(other, ignore_errors=True)

    def card(self) -> ModelCard:
        """Return what the fitted estimator knows for its model card.

        Returns
        -------
        ModelCard
            Without what only its user knows: the file of the data, an audit on held-out people, the use.
        """
        check_is_fitted(self)
        return ModelCard(
            estimator=type(self).__name__,
            parameters=self._told_parameters(),
            needs_group=needs_group(self),
            versions=versions_of(self._used_libraries()),
            fitted_on=self._fitted_on,
            **{name: getattr(self, name) for name in _BOUND if hasattr(self, name)},
            promise=getattr(self, "promise_", None),
        )

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

    def _describe(self) -> tuple[dict[str, Any], Files]:
        """Return the description, and the content of the files that it names."""
        check_is_fitted(self)
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
        return described, files

    def _dump_files(self) -> Files:
        """Return the content of all files, the description's with it, as a part of another estimator."""
        described, files = self._describe()
        return {**files, DESCRIPTION: seal_json(described)}

    def _used_libraries(self) -> tuple[str, ...]:
        """Return the further libraries of the estimator and of those that it wraps."""
        wrapped = [part for part in self.get_params(deep=False).values() if isinstance(part, FolderMixin)]
        return tuple(
            sorted({*self._libraries, *(name for part in wrapped for name in part._used_libraries())})
        )

    def _told_parameters(self) -> dict[str, Any]:
        """Return the parameters for the card: those of a wrapped estimator too, none of the machine's."""
        told: dict[str, Any] = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, FolderMixin):
                told[name] = {"estimator": type(value).__name__, **value._told_parameters()}
            elif name == "random_state":
                told[name] = int(value) if isinstance(value, numbers.Integral) else None
            elif name not in self._unsaved:
                told[name] = plain(value, name)
        return told


def needs_group(estimator: Any) -> bool:
    """Return whether an estimator asks for the group of each row at prediction.

    Examples
    --------
    >>> import localparity as lp
    >>> needs_group(lp.models.ScoreRepair()), needs_group(lp.models.LocalParityLGBMClassifier())
    (True, False)
    """
    methods = (getattr(estimator, name, None) for name in ("predict_proba", "transform", "predict"))
    return "sensitive_features" in signature(next(filter(None, methods))).parameters


def parse_files(files: Files) -> Any:
    """Return the estimator that the content of a folder's files describes."""
    described = _parse_description(files[DESCRIPTION], DESCRIPTION)
    return _revive(described, files, _estimator_class(described))


def _load(folder: Path, kind: type[FolderMixin] | None) -> Any:
    path = folder / DESCRIPTION
    try:
        return read_settled(path, lambda content: _load_described(folder, content, kind))
    except OSError as error:
        reason = f"{path.name} cannot be read ({error.strerror})"
        raise ValueError(f"there is no model in {folder}: {reason}") from error


def _load_described(folder: Path, content: bytes, kind: type[FolderMixin] | None) -> Any:
    path = folder / DESCRIPTION
    with reading(str(path)):
        described = _parse_description(content, str(path))
        found, kind = described["estimator"], kind or _estimator_class(described)
    if found != kind.__name__:
        raise InputError(f"holds a {found}, not a {kind.__name__}; use localparity.load", file=folder)
    with reading(str(path)):
        if not _DATA.fullmatch(described["data"]):
            raise ValueError(f"data must be the name of a subfolder, got {described['data']!r}")
        data = folder / described["data"]
        files = {name: _read(data, name, digest) for name, digest in described["files"].items()}
        return _revive(described, files, kind)


def _parse_description(content: bytes, name: str) -> dict[str, Any]:
    described = parse_sealed(content)
    check_format(described["format"], FORMAT, name, advice="train the model again")
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
        raise InputError(f"cannot be read ({error.strerror})", name) from error
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
    raise InputError(f"has {value!r}, which cannot be written as JSON", name)


def dump_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Return a classifier's classes as JSON has them."""
    return {"classes": plain(classes.tolist(), "y"), "classes_dtype": classes.dtype.str}


def restore_classes(learned: dict[str, Any], *, two: bool = False) -> NDArray[Any]:
    """Return the classes that `dump_classes` described; anything else, or any but two, is a ValueError."""
    classes = np.asarray(learned["classes"], dtype=learned["classes_dtype"])
    if two and classes.shape != (2,):
        raise ValueError(f"classes must be two, got {learned['classes']!r}")
    return classes


def restore_groups(groups: Any) -> tuple[Any, ...]:
    """Return groups' names from JSON, where intersections are lists."""
    return tuple(restore_groups(group) if isinstance(group, list) else group for group in groups)
