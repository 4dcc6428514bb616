"""A small sketch of a stream's scores for each group, with a stated rank error."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from localparity._io._files import reading
from localparity._types import ArrayLike, Group, Groups, ScoreRange
from localparity._validation import as_count, as_fraction, as_probability, as_score_range, at_ends, require
from localparity.counts import ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.monitoring._container import pack, unpack
from localparity.monitoring._kll import check_kll, kept_scores
from localparity.predictions import Predictions

_MARK, _VERSION = b"LPSKETCH", 2
_PLAIN = (str, int, float, bool)

# DataSketches states the error of one rank at 99%.
_STATED = NormalDist().inv_cdf(0.995)
_CHECKPOINTS = 10_000

Key = tuple[Group, int | None]


class ScoreSketch:
    """The scores of a stream in about 50 kilobytes for each group, by the KLL sketch of Apache DataSketches.

    Rows weigh 1 each. KLL is randomised and cannot be seeded: two sketches of the same stream differ within
    their stated error.

    Parameters
    ----------
    score_range : tuple of float
        The lowest and the highest score there can be.
    k : int
        The size: the error decreases about as 1 / k, and a group takes about 24 k bytes.

    Examples
    --------
    >>> import numpy as np
    >>> import localparity as lp
    >>> rng = np.random.default_rng(0)
    >>> sketch = lp.monitoring.ScoreSketch()
    >>> for _ in range(5):
    ...     sex = rng.choice(["f", "m"], 10_000)
    ...     sketch.update(None, rng.beta(2, 3 + (sex == "f")), sensitive_features=sex)
    >>> bounds = lp.mcdp_bounds(sketch.counts(), epsilon=0.05)
    >>> bounds.high - bounds.low < 0.02
    True
    >>> lp.monitoring.ScoreSketch.from_bytes(sketch.to_bytes()).size
    50000
    """

    def __init__(self, *, score_range: ScoreRange = (0.0, 1.0), k: int = 2048) -> None:
        self.score_range = as_score_range(score_range)
        self.k = as_count(k, "k", at_least=8)
        if self.k > 65535:
            raise ValueError(f"k must be <= 65535, got {self.k}")
        self.resolution = 0.0
        self._sketches: dict[Key, Any] = {}

    @property
    def size(self) -> int:
        """The number of rows."""
        return sum(int(sketch.n) for sketch in self._sketches.values())

    @property
    def labelled(self) -> bool:
        """Whether rows are counted by label."""
        return any(label is not None for _, label in self._sketches)

    def group_sizes(self) -> dict[Group, int]:
        """Return the number of rows of each group.

        Returns
        -------
        dict
        """
        sizes: dict[Group, int] = {}
        for (group, _), sketch in self._sketches.items():
            sizes[group] = sizes.get(group, 0) + int(sketch.n)
        return sizes

    def update(self, y_true: ArrayLike | None, y_score: ArrayLike, *, sensitive_features: Groups) -> None:
        """Count a batch.

        Parameters
        ----------
        y_true : array-like or None
            Labels 0 and 1, where a criterion needs them.
        y_score : array-like
            Scores inside `score_range`.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; a batch may have one group only.
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
        """Count a batch that is checked already.

        Parameters
        ----------
        predictions : Predictions
            The rows, without weights or clusters.
        """
        for name, given in (("weights", predictions.weights), ("clusters", predictions.clusters)):
            if given is not None:
                raise ValueError(f"a sketch counts independent rows of weight 1, got predictions with {name}")
        if predictions.score_range != self.score_range:
            raise ValueError(f"score_range must be {self.score_range}, got {predictions.score_range}")
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
        """Return a sketch of the rows of both sketches.

        Parameters
        ----------
        other : ScoreSketch
            A sketch with the same `score_range` and `k`.

        Returns
        -------
        ScoreSketch
        """
        merged = ScoreSketch.from_bytes(self.to_bytes())
        merged.absorb(other)
        return merged

    def absorb(self, other: ScoreSketch) -> None:
        """Count the rows of another sketch, too.

        Parameters
        ----------
        other : ScoreSketch
            A sketch with the same `score_range` and `k`.
        """
        for name in ("score_range", "k"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                raise ValueError(f"{name} of the other sketch must be {ours}, got {theirs}")
        if other._sketches:
            self._check_labels(other.labelled)
        for key, sketch in other._sketches.items():
            self._sketch_of(key).merge(sketch)
        self.resolution = max(self.resolution, other.resolution)

    def counts(self, confidence: float = 0.99) -> ScoreCounts:
        """Return counts of all rows, with a rank error that holds for all groups together.

        Parameters
        ----------
        confidence : float
            The probability that every group's distribution is within the rank error everywhere.

        Returns
        -------
        ScoreCounts
            `mcdp_bounds` of them contains the MCDP of the rows with this probability.
        """
        error = self.rank_error(confidence)
        atoms = {key: _atoms_of(sketch) for key, sketch in self._sketches.items()}
        return ScoreCounts(atoms, self.score_range, self.resolution, error)

    def rank_error(self, confidence: float = 0.99) -> float:
        """Return the most that any group's cumulative distribution is off, anywhere.

        Parameters
        ----------
        confidence : float
            The probability that this holds for all groups together.

        Returns
        -------
        float
            0 while all scores are kept.
        """
        return rank_error_but_for(self, 1.0 - as_probability(confidence))

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes that any process and machine can read."""
        header = {
            "k": self.k,
            "score_range": list(self.score_range),
            "resolution": self.resolution,
            "keys": [[_plain_group(group), label] for group, label in self._sketches],
        }
        parts = [bytes(sketch.serialize()) for sketch in self._sketches.values()]
        return pack(_MARK, _VERSION, header, parts)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by way of the bytes."""
        return type(self).from_bytes, (self.to_bytes(),)

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "the sketch") -> ScoreSketch:
        """Read a sketch that `to_bytes` returned.

        Parameters
        ----------
        data : bytes
            The bytes.
        name : str
            The name of the sketch in messages.

        Returns
        -------
        ScoreSketch
        """
        header, parts = unpack(data, _MARK, _VERSION, name)
        kll = require("datasketches", extra="sketch").kll_doubles_sketch
        with reading(name):
            sketch = cls(score_range=header["score_range"], k=header["k"])
            sketch.resolution = as_fraction(header["resolution"], "resolution")
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
            ours, theirs = ("with" if each else "without" for each in (self.labelled, labelled))
            raise ValueError(f"the sketch has rows {ours} labels, got rows {theirs}")

    def __repr__(self) -> str:
        return f"ScoreSketch({self.size} rows, {len({group for group, _ in self._sketches})} groups)"


def rank_error_but_for(sketch: ScoreSketch, error: float) -> float:
    """The most that any group's sketched distribution is off, anywhere, but for a probability of `error`."""
    if not sketch._sketches:
        raise ValueError("the sketch has no rows")
    each = error / len(sketch._sketches)
    return max(_rank_error(kept, each) for kept in sketch._sketches.values())


def _rank_error(sketch: Any, error: float) -> float:
    """The most that a sketched distribution is off, anywhere, but for some probability.

    DataSketches states the error of one rank; here it holds at so many ranks together that little lies
    between two of them.
    """
    if not sketch.is_estimation_mode():
        return 0.0
    deviation = float(sketch.normalized_rank_error(False)) / _STATED
    quantile = -NormalDist().inv_cdf(error / (2.0 * _CHECKPOINTS))
    return deviation * quantile + 1.0 / _CHECKPOINTS + 1.0 / float(sketch.n)


def _atoms_of(sketch: Any) -> Atoms:
    """The scores kept, with one row each at the lowest and the highest score, which are exact."""
    if sketch.n == 1:
        return Atoms.of_counts(np.array([sketch.get_min_value()]), np.ones(1, dtype=np.int64))
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
    """A group as JSON; the parts of an intersection are a list."""
    parts = group if isinstance(group, tuple) else (group,)
    for part in parts:
        if not isinstance(part, _PLAIN):
            raise ValueError(f"a group must be a text, a number or a boolean to be written, got {group!r}")
    return list(parts) if isinstance(group, tuple) else group


def _read_keys(keys: Any) -> list[Key]:
    """The groups and labels of a header: distinct, and with a label each or none at all."""
    found: list[Key] = []
    for group, label in keys:
        key = (tuple(group) if isinstance(group, list) else group, label)
        _plain_group(key[0])
        if label is not None and (type(label) is not int or label not in (0, 1)):
            raise ValueError(f"a label in keys must be 0, 1 or null, got {label!r}")
        if key in found or (found and (label is None) != (found[0][1] is None)):
            raise ValueError(f"keys must be distinct, all with labels or all without, got {keys!r}")
        found.append(key)
    return found
