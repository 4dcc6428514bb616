"""What the classifiers of boosted trees share, whatever the library."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import MANY
from localparity._io._sealed import Files
from localparity._progress import Progress
from localparity._types import Criterion, FloatArray, Seed
from localparity._validation import InputError, as_count, as_number
from localparity.metrics import mcdp
from localparity.models._base import Backend, BoundedClassifier, Model, Pace
from localparity.models._encoding import CategoryEncoder
from localparity.models._rows import TrainingRows
from localparity.models.trees import _kernels
from localparity.models.trees._objective import TEMPERATURE, MCDPObjective, each_part, logistic

_REFUSED = set('[]<>{}",:')

Objective = Callable[[FloatArray, Any], tuple[FloatArray, FloatArray]]
"""Takes the training rows' margins and the data set, and returns a gradient and a Hessian.

LightGBM copies an objective deeply, unless it is a function.
"""

Watched = tuple[Any, Callable[[FloatArray], float]]
"""A data set like the training one, and the loss of its margins, which early stopping watches."""


def check_booster_params(params: Mapping[str, Any] | None, refused: Iterable[str]) -> dict[str, Any]:
    """Return a library's further parameters, without those that the estimator sets."""
    for name in refused:
        if name in (params or {}):
            raise InputError(f"must not have {name!r}, which the estimator sets", "booster_params")
    return dict(params or {})


def library_names(encoder: CategoryEncoder) -> list[str] | None:
    """Return the columns' names, or None where one has a character that a library refuses."""
    refused = any(_REFUSED & set(name) or not name.isprintable() for name in encoder.names_)
    return None if refused else encoder.names_


_ZERO = float(np.float32(1e-35))
"""The largest size of a number that LightGBM takes for 0."""

_MANY_ROWS = 500
_MOST_LEAVES = 64
_MOST_NUMBERS, _TABLE = 2**13, 2**15
"""Tables of more numbers are slower than walking; the trees of a table of so many numbers fit in a cache."""

_ARRAYS = {
    "feature": ("nodes", "<i4"),
    "left": ("nodes", "<i4"),
    "right": ("nodes", "<i4"),
    "flags": ("nodes", "|u1"),
    "value": ("nodes", "<f8"),
    "roots": ("roots", "<i4"),
    "bounds": ("bounds", "<i4"),
    "words": ("words", "<u4"),
}
"""The arrays of a forest in the order of its file: whose size they have, and how numbers are written."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of any library as arrays that are checked, so that predicting takes no library and always ends.

    A node is a leaf, whose feature is -1, or a split. A split sends a row left where its feature is at most
    the split's value or, by category, is in the set of that number; `flags` say where missing values go.
    Children come after their parents. The trees take turns with the outputs, which start at `start`.

    Set k of categories is the bits of ``words[bounds[k]:bounds[k + 1]]``. With `single`, features and sums
    are rounded to single precision, as XGBoost does; without, tiny numbers are 0, as LightGBM has it.
    """

    feature: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    flags: NDArray[np.uint8]
    value: FloatArray
    roots: NDArray[np.int32]
    bounds: NDArray[np.int32]
    words: NDArray[np.uint32]
    n_features: int
    n_outputs: int = 1
    start: float = 0.0
    single: bool = False

    def __post_init__(self) -> None:
        nodes, sets, splits = self.feature.size, self.bounds.size - 1, self.feature >= 0
        chosen = self.value[splits & (self.flags & _kernels.BY_CATEGORY > 0)]
        turns = f"be as many for each of {self.n_outputs} outputs"
        for name, holds, expected in (
            ("feature", _between(self.feature, -1, self.n_features), f"be below {self.n_features}"),
            ("left", _descends(self.left, splits), "come after its parent"),
            ("right", _descends(self.right, splits), "come after its parent"),
            ("left", _is_once(self.roots, self.left[splits], self.right[splits]), "be no other node's child"),
            ("flags", _between(self.flags, 0, 8), "be below 8"),
            ("value", not np.isnan(self.value).any(), "not be NaN"),
            ("value", bool(np.isfinite(self.value[~splits]).all()), "be finite in leaves"),
            ("value", _between(chosen, 0, sets), f"be one of {sets} sets of categories"),
            ("value", bool((chosen == np.floor(chosen)).all()), "be the whole number of a set of categories"),
            ("roots", _between(self.roots, 0, nodes), f"be below {nodes}"),
            ("roots", self.roots.size % self.n_outputs == 0, turns),
            ("bounds", bool((np.diff(self.bounds) >= 0).all()), "ascend"),
            ("bounds", self.bounds[0] == 0 and self.bounds[-1] == self.words.size, "be those of the words"),
        ):
            if not holds:
                raise InputError(f"must {expected}", name)

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return self.roots.size

    def margins(self, features: FloatArray) -> FloatArray:
        """Return the margins of rows, of shape (n_rows, n_outputs)."""
        if features.shape[1] != self.n_features:
            raise InputError(f"must have {self.n_features} columns, got {features.shape[1]}", "X")
        if self.single:
            with np.errstate(over="ignore"):
                features = features.astype(np.float32).astype(np.float64)
        else:
            features = np.where(np.abs(features) <= _ZERO, 0.0, features)
        sums = np.full((len(features), self.n_outputs), self.start)
        each_part(lambda rows: self._add(features[rows], sums[rows]), len(features))
        return sums

    def _add(self, features: FloatArray, sums: FloatArray) -> None:
        """Add the trees' leaves to the sums of rows: from tables if rows are many, else by walking."""
        if len(features) >= _MANY_ROWS and self._add_from_tables(features, sums):
            return
        step = max(1, MANY // self.n_trees)
        for first in range(0, len(features), step):
            some = slice(first, first + step)
            _kernels.add_leaves(features[some], self._nodes, self.roots, self._sets, self.single, sums[some])

    def _add_from_tables(self, features: FloatArray, sums: FloatArray) -> bool:
        """Do so, unless a tree has too many leaves or splits tell too many numbers apart."""
        numbers = [self._numbers(column) for column in range(self.n_features)]
        starts = np.cumsum([0, *(known.size for known in numbers)])
        leaves = _kernels.number_leaves(self._nodes, self.roots)
        if not 0 < starts[-1] <= _MOST_NUMBERS or leaves[2].max() > _MOST_LEAVES:
            return False
        places = []
        for start, known, values in zip(starts, numbers, features.T, strict=False):
            if known.size:
                at = np.searchsorted(known[:-1], values)
                places.append(start + np.where(np.isnan(values), known.size - 1, at))
        size = max(1, _TABLE // int(starts[-1]))
        for first in range(0, self.n_trees, size):
            last = min(first + size, self.n_trees)
            tables = _kernels.reachable_leaves(
                self._nodes, self._sets, leaves, np.concatenate(numbers), starts, first, last
            )
            _kernels.add_reachable(np.column_stack(places), *tables, first, self.single, sums)
        return True

    @property
    def _nodes(self) -> _kernels.Nodes:
        return self.feature, self.left, self.right, self.flags, self.value

    @property
    def _sets(self) -> _kernels.Sets:
        return self.bounds, self.words

    def _numbers(self, column: int) -> FloatArray:
        """Return a number for each way that splits tell a feature's numbers apart, ascending, then NaN.

        Each stands for itself and those down to the one before it. A feature without splits has none.
        """
        at = self.feature == column
        if not at.any():
            return np.zeros(0)
        by_category = self.flags[at] & _kernels.BY_CATEGORY > 0
        sets = self.value[at][by_category].astype(np.int64)
        categories = 32 * (self.bounds[sets + 1] - self.bounds[sets]).max(initial=-1)
        numbers = [self.value[at][~by_category], np.nextafter(np.arange(categories + 1.0), -1.0), [np.inf]]
        if (self.flags[at] & _kernels.ZERO_MISSING).any():
            numbers.append([np.nextafter(0.0, -1.0), 0.0])
        return np.append(np.unique(np.concatenate(numbers)), np.nan)

    def dump(self) -> tuple[dict[str, Any], bytes]:
        """Return what describes the trees in JSON, and the content of their file."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        described = {
            "features": self.n_features,
            "outputs": self.n_outputs,
            "start": self.start,
            "single": self.single,
            **{size: arrays[name].size for name, (size, _) in _ARRAYS.items()},
        }
        return described, b"".join(array.astype(_ARRAYS[name][1]).tobytes() for name, array in arrays.items())

    @classmethod
    def parse(cls, described: dict[str, Any], content: bytes) -> Self:
        """Return the trees that `dump` wrote; anything else is a ValueError."""
        sizes = {
            size: as_count(described[size], size, at_least=0 if size == "words" else 1)
            for size, _ in _ARRAYS.values()
        }
        parts = {name: (sizes[size], np.dtype(written)) for name, (size, written) in _ARRAYS.items()}
        expected = sum(size * dtype.itemsize for size, dtype in parts.values())
        if len(content) != expected:
            raise ValueError(f"the trees must take {expected} bytes, got {len(content)}")
        arrays, first = {}, 0
        for name, (size, dtype) in parts.items():
            arrays[name] = np.frombuffer(content, dtype, size, first).astype(dtype.newbyteorder("="))
            first += size * dtype.itemsize
        return cls(
            **arrays,
            n_features=as_count(described["features"], "features"),
            n_outputs=as_count(described["outputs"], "outputs"),
            start=as_number(described["start"], "start"),
            single=described["single"] is True,
        )


def check_width(forest: Forest, n_features: int) -> None:
    """Refuse trees for tables of another width."""
    if forest.n_features != n_features:
        raise ValueError(f"the trees have {forest.n_features} features, expected {n_features}")


def _between(numbers: NDArray[Any], least: int, above: int) -> bool:
    """Whether all numbers are at least one bound and below another."""
    return bool(((numbers >= least) & (numbers < above)).all())


def _is_once(*nodes: NDArray[np.int32]) -> bool:
    """Whether no node is there twice."""
    return np.unique(np.concatenate(nodes)).size == sum(some.size for some in nodes)


def _descends(children: NDArray[Any], splits: NDArray[np.bool_]) -> bool:
    """Whether the children of splits are nodes that come after their parents."""
    after = (children > np.arange(children.size)) & (children < children.size)
    return bool(after[splits].all())


@dataclass(frozen=True)
class TreeModel(Model):
    """The trees of a classifier and, until it is saved, the booster that grew them."""

    filename: ClassVar[str] = "model.trees"

    forest: Forest
    booster: Any = None

    def scores(self, features: Any) -> FloatArray:
        """Return the probability of the second class for each row."""
        return logistic(self.forest.margins(features)[:, 0])

    def dump(self) -> tuple[dict[str, Any], bytes]:
        """Return what describes the model in JSON, and the content of its file."""
        return self.forest.dump()

    @classmethod
    def parse(cls, described: dict[str, Any], content: bytes) -> Self:
        """Return the model that `dump` wrote; anything else is a ValueError."""
        forest = Forest.parse(described, content)
        if forest.n_outputs != 1:
            raise InputError(f"must be 1, got {forest.n_outputs}", "outputs")
        return cls(forest)


class TreeBackend(Backend):
    """Grows the trees of one library; `objective_names` are its names for what the classifier sets itself."""

    objective_names: ClassVar[tuple[str, ...]]

    def __init__(
        self, classifier: BoostedClassifier, rows: TrainingRows, validation: TrainingRows | None, seed: int
    ) -> None:
        self.classifier, self.validation, self.patience = classifier, validation, classifier.patience
        further = check_booster_params(classifier.booster_params, self.objective_names)
        rate = further.pop("learning_rate", classifier.learning_rate)
        self.pace = Pace(as_count(classifier.n_estimators, "n_estimators"), rate)
        self.parameters = self.common_parameters(seed, classifier.n_jobs) | further
        positive = float(rows.weights @ rows.labels) / float(rows.weights.sum())
        self.start = math.log(positive / (1.0 - positive))
        self.objective = MCDPObjective(
            rows.labels,
            sensitive_features=rows.grouping,
            strength=0.0,
            temperature=classifier.temperature,
            epsilon=classifier.epsilon,
            criterion=classifier.criterion,
            sample_weight=rows.weights,
        )
        self.training = self.dataset(rows.features)

    @staticmethod
    @abstractmethod
    def common_parameters(seed: int, n_jobs: int | None) -> dict[str, Any]:
        """Return the library's names and values for what all libraries have."""

    @abstractmethod
    def dataset(self, features: Any, training: Any = None) -> Any:
        """Return rows as the library trains on them or, given the training set, validates on them."""

    @abstractmethod
    def grow(self, objective: Objective, pace: Pace, watched: Watched | None) -> Any:
        """Return a booster."""

    @abstractmethod
    def forest(self, booster: Any) -> Forest:
        """Return the trees of a booster; with a patience, without those after the best."""

    def train(self, strength: float, pace: Pace, progress: Progress | None = None) -> TreeModel:
        """Return the trees grown at a strength."""
        objective, rows, trees = self.objective._at(strength), self.validation, 0

        def derivatives(margins: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
            nonlocal trees
            trees += 1
            if progress is not None:
                progress({"step": trees})
            return objective(margins)

        def validation_loss(margins: FloatArray) -> float:
            """Return what early stopping watches: the mean loss plus strength x MCDP."""
            assert rows is not None
            losses = np.logaddexp(0.0, margins) - rows.labels * margins
            people, classifier = rows.predictions(logistic(margins), always_weighted=True), self.classifier
            disparity = mcdp(people, epsilon=classifier.epsilon, criterion=classifier.criterion)
            if progress is not None:
                progress({"step": trees, "mcdp": disparity})
            return float(np.average(losses, weights=rows.weights)) + strength * disparity

        watched: Watched | None = None
        if rows is not None and (self.patience is not None or progress is not None):
            watched = self.dataset(rows.features, self.training), validation_loss
        booster = self.grow(derivatives, pace, watched)
        return TreeModel(self.forest(booster), booster)


_STRENGTH = 0.2


class BoostedClassifier(BoundedClassifier):
    """The parameters of boosted trees; see `LocalParityXGBClassifier`."""

    _model_type = TreeModel
    _backend_type: ClassVar[type[TreeBackend]]
    model_: TreeModel
    _unsaved: ClassVar[dict[str, Any]] = {"verbose": False}

    def __init__(
        self,
        strength: float | None = None,
        *,
        max_mcdp: float | None = None,
        confidence: float | None = None,
        epsilon: float = 0.0,
        criterion: Criterion = "demographic_parity",
        temperature: float = TEMPERATURE,
        n_estimators: int = 200,
        learning_rate: float = 0.1,
        patience: int | None = None,
        validation_fraction: float = 0.2,
        n_jobs: int | None = None,
        random_state: Seed = None,
        booster_params: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.strength = strength
        self.max_mcdp = max_mcdp
        self.confidence = confidence
        self.epsilon = epsilon
        self.criterion = criterion
        self.temperature = temperature
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.booster_params = booster_params
        self.verbose = verbose

    @property
    def booster_(self) -> Any:
        """The library's own booster; a model that was loaded has none."""
        if self.model_.booster is None:
            raise AttributeError("booster_ is not saved: a model that was loaded has its trees alone")
        return self.model_.booster

    @property
    def start_(self) -> float:
        """The margin before the first tree."""
        return self.model_.forest.start

    @property
    def n_estimators_(self) -> int:
        """How many trees there are."""
        return self.model_.forest.n_trees

    def _default_strength(self) -> float:
        return _STRENGTH

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        super()._restore(learned, files)
        check_width(self.model_.forest, self.n_features_in_)
