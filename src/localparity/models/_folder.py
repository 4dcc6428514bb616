"""Fitted estimators as folders: JSON that describes the estimator, files of data, and a card for people.

Nothing in a folder is run when it is loaded, and loading needs no card.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from localparity._io._files import check_format, parse_sealed, reading, seal_json
from localparity._io._sealed import Files, SealedFolder, read_folder, seal_facts, write_folder
from localparity._validation import InputError
from localparity.models._card import DESCRIPTION, ModelCard, card_files, versions_of
from localparity.models._rows import FittedOn

FORMAT = 4
ESTIMATORS = {
    "GroupBlindClassifier": "localparity.models",
    "GroupBlindRepair": "localparity.models",
    "LocalParityClassifier": "localparity.models",
    "LocalParityLGBMClassifier": "localparity.models",
    "LocalParityXGBClassifier": "localparity.models",
    "RepairedClassifier": "localparity.models",
    "ScoreRepair": "localparity.models",
    "StockModel": "localparity.models.trees._stock",
}
"""What `load` may make, and where each is."""

_BOUND = ("max_mcdp", "epsilon", "criterion", "confidence")


def load(folder: str | Path) -> Any:
    """Load a fitted estimator of any kind from the folder that its `save` wrote.

    Parameters
    ----------
    folder : path
        The folder. A folder that is not a whole model is a ValueError, and so is one with links.

    Returns
    -------
    estimator
        Of the class that was saved, ready to predict.

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
    path = Path(folder) / DESCRIPTION

    def read(sealed: SealedFolder) -> Any:
        with reading(str(path)):
            return _revive(sealed.facts, str(path), sealed.read_files())

    try:
        return read_folder(path.parent, DESCRIPTION, read)
    except OSError as error:
        reason = f"{path.name} cannot be read ({error.strerror})"
        raise ValueError(f"there is no model in {folder}: {reason}") from error


class FolderMixin(ABC):
    """`save` for an estimator that can describe and restore itself, as `load` asks it to."""

    get_params: Callable[..., dict[str, Any]]
    _unsaved: ClassVar[dict[str, Any]] = {}
    """Parameters that belong to the machine or to training, and what they are after loading."""
    _libraries: ClassVar[tuple[str, ...]] = ()
    """The libraries, in addition to those that the package always needs, that the estimator runs on."""
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
        described = self.card() if card is None else card
        write_folder(
            Path(folder),
            DESCRIPTION,
            *self._facts_and_files(),
            lambda sha256: card_files(replace(described, model_sha256=sha256)),
        )

    def card(self) -> ModelCard:
        """Return the model card, without what only its user knows: the file, an audit, the use."""
        check_is_fitted(self)
        return ModelCard(
            estimator=type(self).__name__,
            parameters=self._card_parameters(),
            needs_group=needs_group(self),
            versions=versions_of(self._used_libraries()),
            fitted_on=self._fitted_on,
            **{name: getattr(self, name) for name in self._bound_names() if hasattr(self, name)},
            promise=getattr(self, "promise_", None),
        )

    def _bound_names(self) -> tuple[str, ...]:
        """Return the parameters of the bound; one at some cutoffs, or on ratios, is no bound on MCDP."""
        elsewhere = (getattr(self, name, None) is not None for name in ("selection_rates", "min_ratio"))
        return _BOUND[1:] if any(elsewhere) else _BOUND

    @abstractmethod
    def _dump(self) -> tuple[dict[str, Any], Files]:
        """Return what was learned: values that JSON can hold, and the content of files."""

    @abstractmethod
    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        """Take what `_dump` returned; anything else raises."""

    def _facts_and_files(self) -> tuple[dict[str, Any], Files]:
        """Return what describes the estimator, and the content of its files."""
        check_is_fitted(self)
        learned, files = self._dump()
        parameters: dict[str, Any] = {**self.get_params(deep=False), **self._unsaved}
        if not isinstance(parameters["random_state"], numbers.Integral):
            parameters["random_state"] = None
        facts = {
            "format": FORMAT,
            "estimator": type(self).__name__,
            "parameters": {name: as_json(value, name) for name, value in parameters.items()},
            "learned": learned,
        }
        return facts, files

    def _dump_files(self) -> Files:
        """Return the content of all files, the description's with it, as a part of another estimator."""
        facts, files = self._facts_and_files()
        return {**files, DESCRIPTION: seal_json(seal_facts(facts, files))}

    def _used_libraries(self) -> tuple[str, ...]:
        """Return the further libraries of the estimator and of those that it wraps."""
        wrapped = [part for part in self.get_params(deep=False).values() if isinstance(part, FolderMixin)]
        return tuple(
            sorted({*self._libraries, *(name for part in wrapped for name in part._used_libraries())})
        )

    def _card_parameters(self) -> dict[str, Any]:
        """Return the parameters for the card: those of a wrapped estimator too, none of the machine's."""
        parameters: dict[str, Any] = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, FolderMixin):
                parameters[name] = {"estimator": type(value).__name__, **value._card_parameters()}
            elif name == "random_state":
                parameters[name] = int(value) if isinstance(value, numbers.Integral) else None
            elif name not in self._unsaved:
                parameters[name] = as_json(value, name)
        return parameters


def needs_group(estimator: Any) -> bool:
    """Return whether an estimator asks for the group of each row at prediction."""
    methods = (getattr(estimator, name, None) for name in ("predict_proba", "transform", "predict"))
    return "sensitive_features" in signature(next(filter(None, methods))).parameters


def parse_files(files: Files) -> Any:
    """Return the estimator that the content of a folder's files describes."""
    return _revive(parse_sealed(files[DESCRIPTION]), DESCRIPTION, files)


def _revive(facts: dict[str, Any], name: str, files: Files) -> Any:
    check_format(facts["format"], FORMAT, name, advice="train the model again")
    kind = facts["estimator"]
    if kind not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {kind!r}")
    parameters = {
        parameter: tuple(value) if isinstance(value, list) else value
        for parameter, value in facts["parameters"].items()
    }
    estimator = getattr(import_module(ESTIMATORS[kind]), kind)(**parameters)
    estimator._restore(facts["learned"], files)
    return estimator


def as_json(value: Any, name: str) -> Any:
    """Return a value as JSON has it: numpy's numbers as Python's, a class as its name; else a ValueError."""
    value = value.item() if isinstance(value, np.generic) else value
    value = value.__name__ if isinstance(value, type) else value
    if isinstance(value, Mapping):
        return {str(key): as_json(part, name) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part, name) for part in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise InputError(f"has {value!r}, which cannot be written as JSON", name)


def dump_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Return a classifier's classes as JSON has them."""
    return {"classes": as_json(classes.tolist(), "y"), "classes_dtype": classes.dtype.str}


def restore_classes(learned: dict[str, Any], *, two: bool = False) -> NDArray[Any]:
    """Return the classes that `dump_classes` described; anything else, or any but two, is a ValueError."""
    classes = np.asarray(learned["classes"], dtype=learned["classes_dtype"])
    if two and classes.shape != (2,):
        raise ValueError(f"classes must be two, got {learned['classes']!r}")
    return classes


def restore_groups(groups: Any) -> tuple[Any, ...]:
    """Return groups' names from JSON, where intersections are lists."""
    return tuple(restore_groups(group) if isinstance(group, list) else group for group in groups)
