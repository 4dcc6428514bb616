"""Scores that pass by once: a small sketch for each group, with a stated rank error."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from localparity._io._files import damage_of
from localparity._types import Group
from localparity._validation import as_count, as_number, as_probability, as_score_range, at_ends, require
from localparity.counts import ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.monitoring._container import pack, unpack
from localparity.monitoring._kll import check_kll, kept_scores
from localparity.predictions import Predictions

_MARK, _VERSION = b"LPSKETCH", 1
_PLAIN = (str, int, float, bool)

# DataSketches states the error of one rank at 99%.
_STATED = NormalDist().inv_cdf(0.995)
_CHECKPOINTS = 10_000

Key = tuple[Group, int | None]


class ScoreSketch:
    """The scores of a stream in some 50 kilobytes a group, on Apache DataSketches' KLL.

    Rows weigh 1 each. The sketch draws lots inside, which cannot be seeded: two sketches of the same stream
    differ within their stated error.

    Parameters
    ----------
    score_range : tuple of float
        The lowest and the highest score there can be.
    k : int
        The size: the error falls about as 1 / k, and a group takes about 24 k bytes.

    Examples
    --------
    >>> import numpy as np
    >>> import localparity as lp
    >>> rng = np.random.default_rng(0)
    >>> sketch = lp.monitoring.ScoreSketch()
    >>> for _ in range(5):
    ...     sex = rng.choice(["f", "m"], 10_000)
    ...     sketch.update(None, rng.beta(2, 3 + (sex == "f")), sensitive_features=sex)
    >>> low, high = sketch.counts().mcdp_bounds(0.05)
    >>> high - low < 0.02
    True
    >>> lp.monitoring.ScoreSketch.from_bytes(sketch.to_bytes()).size
    50000
    """

    def __init__(self, *, score_range: tuple[float, float] = (0.0, 1.0), k: int = 2048) -> None:
        self.score_range = as_score_range(score_range)
        self.k = as_count(k, "k", at_least=8)
        if self.k > 65535:
            raise ValueError(f"k is {self.k} where a whole number <= 65535 is expected")
        self.resolution = 0.0
        self._sketches: dict[Key, Any] = {}

    @property
    def size(self) -> int:
        """How many rows were counted."""
        return sum(int(sketch.n) for sketch in self._sketches.values())

    @property
    def labelled(self) -> bool:
        """Whether labels were counted."""
        return any(label is not None for _, label in self._sketches)

    def update(self, y_true: Any, y_score: Any, *, sensitive_features: Any) -> None:
        """Count a batch.

        Parameters
        ----------
        y_true, y_score, sensitive_features : array-like
            Labels (or None), scores and groups, as in `mcdp`; one group alone may do.
        """
        self.add(
            Predictions.from_arrays(
                y_true,
                y_score,
                sensitive_features=sensitive_features,
                score_range=self.score_range,
                min_groups=1,
            )
        )

    def add(self, predictions: Predictions) -> None:
        """Count predictions that are checked already."""
        if predictions.weights is not None:
            raise ValueError("a sketch counts rows and takes no weights")
        if predictions.clusters is not None:
            raise ValueError("a sketch counts independent rows and takes no clusters")
        if predictions.score_range != self.score_range:
            raise ValueError(
                f"scores over {predictions.score_range} cannot join a sketch over {self.score_range}"
            )
        self._check_labels(predictions.labels is not None)
        labels = (None,) if predictions.labels is None else (0, 1)
        scores = at_ends(predictions.scores, self.score_range)
        for code, group in enumerate(predictions.groups):
            among = predictions.codes == code
            for label in labels:
                chosen = among if label is None else among & (predictions.labels == label)
                if chosen.any():
                    self._sketch_of((group, label)).update(scores[chosen].astype(np.float64))
        self.resolution = max(self.resolution, predictions.resolution)

    def merge(self, other: ScoreSketch) -> ScoreSketch:
        """A sketch of both sketches' rows together."""
        if (self.score_range, self.k) != (other.score_range, other.k):
            raise ValueError(
                f"a sketch over {self.score_range} with k = {self.k} cannot merge with one over "
                f"{other.score_range} with k = {other.k}"
            )
        merged = ScoreSketch.from_bytes(self.to_bytes())
        if other._sketches:
            merged._check_labels(other.labelled)
        for key, sketch in other._sketches.items():
            merged._sketch_of(key).merge(sketch)
        merged.resolution = max(self.resolution, other.resolution)
        return merged

    def counts(self, confidence: float = 0.99) -> ScoreCounts:
        """Counts that stand for the rows, with the rank error that holds for all groups at once.

        Parameters
        ----------
        confidence : float
            The probability with which no group's distribution is off by more than `rank_error` anywhere.

        Returns
        -------
        ScoreCounts
            Its `mcdp_bounds` hold MCDP of the rows themselves with this probability.
        """
        confidence = as_probability(confidence, "confidence")
        if not self._sketches:
            raise ValueError("the sketch has no rows")
        each = 1.0 - (1.0 - confidence) / len(self._sketches)
        errors = [_rank_error(sketch, each) for sketch in self._sketches.values()]
        atoms = {key: _atoms_of(sketch) for key, sketch in self._sketches.items()}
        return ScoreCounts(atoms, self.score_range, self.resolution, max(errors))

    def to_bytes(self) -> bytes:
        """The sketch as bytes that any process and machine can read."""
        header = {
            "k": self.k,
            "score_range": list(self.score_range),
            "resolution": self.resolution,
            "keys": [[_plain_group(group), label] for group, label in self._sketches],
        }
        parts = [bytes(sketch.serialize()) for sketch in self._sketches.values()]
        return pack(_MARK, _VERSION, header, parts)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made of the bytes."""
        return type(self).from_bytes, (self.to_bytes(),)

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "the sketch") -> ScoreSketch:
        """The sketch that `to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.
        name : str
            What messages call it.

        Returns
        -------
        ScoreSketch
            It can be updated and merged as before.
        """
        header, parts = unpack(data, _MARK, _VERSION, name)
        kll = require("datasketches", extra="sketch").kll_doubles_sketch
        with damage_of(name):
            sketch = cls(score_range=header["score_range"], k=header["k"])
            sketch.resolution = as_number(header["resolution"], "resolution")
            for key, part in zip(_read_keys(header["keys"]), parts, strict=True):
                check_kll(part, sketch.k, sketch.score_range)
                sketch._sketches[key] = kll.deserialize(part)
        return sketch

    def _sketch_of(self, key: Key) -> Any:
        if key not in self._sketches:
            kll = require("datasketches", extra="sketch").kll_doubles_sketch
            self._sketches[key] = kll(self.k)
        return self._sketches[key]

    def _check_labels(self, labelled: bool) -> None:
        if self._sketches and labelled != self.labelled:
            raise ValueError("rows with labels cannot join a sketch without, nor the other way round")

    def __repr__(self) -> str:
        return f"ScoreSketch({self.size} rows, {len({group for group, _ in self._sketches})} groups)"


def _rank_error(sketch: Any, confidence: float) -> float:
    """How far the sketched distribution may be off, anywhere, with some probability.

    The library states the error of one rank. It is asked here of many ranks at once, so many that between
    two of them next to nothing can hide.
    """
    if not sketch.is_estimation_mode():
        return 0.0
    deviation = float(sketch.normalized_rank_error(False)) / _STATED
    quantile = NormalDist().inv_cdf(1.0 - (1.0 - confidence) / (2.0 * _CHECKPOINTS))
    return deviation * quantile + 1.0 / _CHECKPOINTS + 1.0 / float(sketch.n)


def _atoms_of(sketch: Any) -> Atoms:
    """What the sketch kept, with one row each at the lowest and the highest score, which it knows exactly."""
    if sketch.n == 1:
        return Atoms.of_rows(np.array([sketch.get_min_value()]))
    scores, rows = kept_scores(bytes(sketch.serialize()))
    if not sketch.is_estimation_mode():
        return Atoms.gather(scores, rows)
    for end, nearest in (
        (float(sketch.get_min_value()), int(scores.argmin())),
        # The last of the highest, so that scores that are all equal give the two rows from two places.
        (float(sketch.get_max_value()), scores.size - 1 - int(scores[::-1].argmax())),
    ):
        rows[nearest] -= 1
        scores, rows = np.append(scores, end), np.append(rows, 1)
    return Atoms.gather(scores[rows > 0], rows[rows > 0])


def _plain_group(group: Group) -> Any:
    """A group as JSON has it; the parts of an intersection as a list."""
    parts = group if isinstance(group, tuple) else (group,)
    for part in parts:
        if not isinstance(part, _PLAIN):
            raise ValueError(f"group {group!r} is no text, number or truth value and cannot be written")
    return list(parts) if isinstance(group, tuple) else group


def _read_keys(keys: Any) -> list[Key]:
    """The groups and labels of a header: no two the same, and labels everywhere or nowhere."""
    found: list[Key] = []
    for group, label in keys:
        key = (tuple(group) if isinstance(group, list) else group, label)
        _plain_group(key[0])
        if label is not None and (type(label) is not int or label not in (0, 1)):
            raise ValueError(f"keys has the label {label!r} where 0, 1 or none is expected")
        if key in found or (found and (label is None) != (found[0][1] is None)):
            raise ValueError(f"keys has {keys!r} where different ones, with labels or without, are expected")
        found.append(key)
    return found
