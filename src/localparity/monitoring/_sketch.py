"""A small sketch of a stream's scores for each group, with a stated rank error."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._files import check_format, parse_json, reading
from localparity._scale import clip_to_range
from localparity._types import FloatArray, Group, ScoreRange
from localparity._validation import (
    InputError,
    as_count,
    as_fraction,
    as_probability,
    as_score_range,
    require,
    setting,
)
from localparity.counts import ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.predictions import Predictions

# The bytes of a KLL sketch of doubles are checked before DataSketches reads them: it may crash on others.

_FIRST = struct.Struct("<BBBBHBB")
_SECOND = struct.Struct("<QHBB")
_FAMILY, _LEAST_LEVEL = 15, 8
_ONE_ROW, _MORE_ROWS = (2, 2), (5, 1)
_SORTED, _SINGLE = 2, 4


def check_kll(part: bytes, k: int, score_range: tuple[float, float]) -> None:
    """Raise a ValueError unless the bytes are a sketch of that size with scores in that range.

    A score at level i stands for ``2**i`` rows. The bytes hold the number of rows, where each level begins,
    the lowest and the highest score, and the scores.
    """
    if len(part) < _FIRST.size + 8:
        raise ValueError(f"a group's sketch must have at least {_FIRST.size + 8} bytes, got {len(part)}")
    ints, version, family, flags, size, least, _ = _FIRST.unpack_from(part)
    kind, flags = (ints, version), flags & ~_SORTED
    is_one, is_more = (kind, flags) == (_ONE_ROW, _SINGLE), (kind, flags) == (_MORE_ROWS, 0)
    if (family, size, least) != (_FAMILY, k, _LEAST_LEVEL) or not (is_one or is_more):
        raise ValueError(f"a group's sketch must be a KLL sketch of doubles with k = {k}")
    scores = _levels_of(part, k)[1] if is_more else np.frombuffer(part[_FIRST.size :], "<f8")
    low, high = score_range
    if not (low <= scores.min() and scores.max() <= high):
        raise InputError(
            f"the scores of a group's sketch must be inside {setting('score_range')} ({low}, {high})"
        )


def kept_scores(part: bytes, k: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """The scores that a sketch of two rows or more kept, and the number of rows each stands for.

    DataSketches' own iterator gives every score the weight 1 where a merge left the lowest level empty.
    """
    sizes, scores = _levels_of(part, k)
    return scores[2:], np.repeat(1 << np.arange(sizes.size), sizes)


def _levels_of(part: bytes, k: int) -> tuple[NDArray[np.int64], FloatArray]:
    """The number of scores at each level, and the lowest, the highest and the kept scores."""
    start = _FIRST.size + _SECOND.size
    if len(part) < start:
        raise ValueError(f"a group's sketch must have at least {start} bytes, got {len(part)}")
    rows, least_k, n_levels, _ = _SECOND.unpack_from(part, _FIRST.size)
    levels = np.frombuffer(part, "<u4", n_levels, start).astype(np.int64)
    scores = np.frombuffer(part, "<f8", offset=start + 4 * n_levels)
    sizes = np.diff(levels, append=levels[:1] + scores.size - 2)
    counted = sum(int(size) << level for level, size in enumerate(sizes))
    if least_k != k or (sizes < 0).any() or counted != rows:
        raise ValueError(f"a group's sketch must keep scores for its {rows} rows, got {counted}")
    return sizes, scores


# A header in JSON and parts, joined into bytes; sealed, they begin with a mark, a format and a checksum.

_SIZE = struct.Struct("<I")
_HEAD = struct.Struct("<8sH32s")
_MARK, _VERSION = b"LPSKETCH", 2


def join_parts(header: dict[str, Any], parts: Sequence[bytes]) -> bytes:
    """Join a header and parts."""
    text = json.dumps({**header, "_sizes": [len(part) for part in parts]}, ensure_ascii=False).encode()
    return _SIZE.pack(len(text)) + text + b"".join(parts)


def split_parts(content: bytes, name: str) -> tuple[dict[str, Any], list[bytes]]:
    """Split what `join_parts` joined; `name` is what messages call it."""
    with reading(name, struct.error):
        start = _SIZE.size + _SIZE.unpack_from(content)[0]
        header = parse_json(content[_SIZE.size : start])
        sizes = [as_count(size, "_sizes", at_least=0, at_most=len(content)) for size in header.pop("_sizes")]
        ends = list(accumulate(sizes, initial=start))
        if ends[-1] != len(content):
            raise ValueError(f"its parts end at byte {ends[-1]} of {len(content)}")
    return header, [content[begin:end] for begin, end in pairwise(ends)]


def seal_parts(header: dict[str, Any], parts: Sequence[bytes]) -> bytes:
    """The bytes of a sketch; the checksum covers everything but itself."""
    body = join_parts(header, parts)
    return _HEAD.pack(_MARK, _VERSION, _checksum(body)) + body


def open_sealed(data: bytes, name: str) -> tuple[dict[str, Any], list[bytes]]:
    """The header and the parts of a sketch's bytes."""
    if len(data) < _HEAD.size:
        raise InputError(f"must have at least {_HEAD.size} bytes, got {len(data)}", name)
    mark, version, checksum = _HEAD.unpack_from(data)
    if mark != _MARK:
        raise InputError(f"must begin with {_MARK!r}, got {mark!r}", name)
    check_format(version, _VERSION, name, advice="make the sketch again")
    body = data[_HEAD.size :]
    if _checksum(body) != checksum:
        raise InputError(f"is damaged: its {len(body)} bytes do not match its checksum", name)
    return split_parts(body, name)


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(_HEAD.pack(_MARK, _VERSION, b"") + body).digest()


_STATED = NormalDist().inv_cdf(0.995)  # DataSketches states the error of one rank at 99%
_CHECKPOINTS = 10_000

Key = tuple[Group, int | None]
"""A group, and the label of its people; None where there are no labels."""


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
    ...     scores = rng.beta(2, 3 + (sex == "f"))
    ...     sketch.update(lp.Predictions.from_arrays(None, scores, sensitive_features=sex))
    >>> bounds = lp.mcdp_bounds(sketch.counts(), epsilon=0.05)
    >>> bounds.high - bounds.low < 0.02
    True
    >>> lp.monitoring.ScoreSketch.from_bytes(sketch.to_bytes()).size
    50000
    """

    def __init__(self, *, score_range: ScoreRange = (0.0, 1.0), k: int = 2048) -> None:
        self.score_range = as_score_range(score_range)
        self.k = as_count(k, "k", at_least=8, at_most=65535)
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

    def update(self, batch: Predictions) -> None:
        """Count a batch.

        Parameters
        ----------
        batch : Predictions
            The rows, without weights or clusters; they may be of one group only.
        """
        for name, values in (("weights", batch.weights), ("clusters", batch.clusters)):
            if values is not None:
                raise ValueError(f"a sketch counts independent rows of weight 1, got predictions with {name}")
        if batch.score_range != self.score_range:
            raise InputError(f"must be {self.score_range}, got {batch.score_range}", "score_range")
        self._check_labels(batch.labels is not None)
        scores = clip_to_range(batch.scores, self.score_range)
        for code, group in enumerate(batch.groups):
            among = batch.group_codes == code
            for label in (None,) if batch.labels is None else (0, 1):
                chosen = among if label is None else among & (batch.labels == label)
                if chosen.any():
                    self._sketch_of((group, label)).update(scores[chosen].astype(np.float64))
        self.resolution = max(self.resolution, batch.resolution)

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
        for name in ("score_range", "k"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                raise ValueError(f"{name} of the other sketch must be {ours}, got {theirs}")
        if other._sketches:
            self._check_labels(other.labelled)
        merged = ScoreSketch.from_bytes(self.to_bytes())
        for key, sketch in other._sketches.items():
            merged._sketch_of(key).merge(sketch)
        merged.resolution = max(self.resolution, other.resolution)
        return merged

    def counts(self, confidence: float = 0.99) -> ScoreCounts:
        """Return counts of all rows, with a rank error that holds for all groups together.

        Parameters
        ----------
        confidence : float
            The probability that every group's distribution is within the rank error everywhere.

        Returns
        -------
        ScoreCounts
            `mcdp_bounds` of them contains the MCDP of the rows with this probability; `rank_error` is the
            most that any group's cumulative distribution is off, 0 while all scores are kept.
        """
        error = rank_error_but_for(self, 1.0 - as_probability(confidence))
        atoms = {key: _atoms_of(sketch) for key, sketch in self._sketches.items()}
        return ScoreCounts(atoms, self.score_range, self.resolution, error)

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes that any process and machine can read."""
        return seal_parts(*describe_sketch(self))

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
        return restore_sketch(*open_sealed(data, name), name)

    def _sketch_of(self, key: Key) -> Any:
        if key not in self._sketches:
            kll = require("datasketches", extra="sketch").kll_doubles_sketch
            self._sketches[key] = kll(self.k)
        return self._sketches[key]

    def _check_labels(self, labelled: bool) -> None:
        if self._sketches and labelled != self.labelled:
            ours, theirs = ("with" if has_labels else "without" for has_labels in (self.labelled, labelled))
            raise ValueError(f"the sketch has rows {ours} labels, got rows {theirs}")

    def __repr__(self) -> str:
        return f"ScoreSketch({self.size} rows, {len({group for group, _ in self._sketches})} groups)"


def describe_sketch(sketch: ScoreSketch) -> tuple[dict[str, Any], list[bytes]]:
    """A sketch as a header and the bytes of each group."""
    header = {
        "k": sketch.k,
        "score_range": list(sketch.score_range),
        "resolution": sketch.resolution,
        "keys": [[plain_group(group), label] for group, label in sketch._sketches],
    }
    return header, [bytes(kll.serialize()) for kll in sketch._sketches.values()]


def restore_sketch(header: dict[str, Any], parts: Sequence[bytes], name: str) -> ScoreSketch:
    """The sketch that `describe_sketch` described, checked; `name` is what messages call it."""
    kll = require("datasketches", extra="sketch").kll_doubles_sketch
    with reading(name):
        sketch = ScoreSketch(score_range=header["score_range"], k=header["k"])
        sketch.resolution = as_fraction(header["resolution"], "resolution")
        for key, part in zip(read_keys(header["keys"]), parts, strict=True):
            check_kll(part, sketch.k, sketch.score_range)
            sketch._sketches[key] = kll.deserialize(part)
    return sketch


def rank_error_but_for(sketch: ScoreSketch, error: float) -> float:
    """The most that any group's sketched distribution is off, anywhere, but for a probability of `error`."""
    if not sketch._sketches:
        raise ValueError("the sketch has no rows")
    share = error / len(sketch._sketches)
    return max(_rank_error(kll, share) for kll in sketch._sketches.values())


def _rank_error(sketch: Any, error: float) -> float:
    """The most that a sketched distribution is off, anywhere, but for some probability."""
    if not sketch.is_estimation_mode():
        return 0.0
    # DataSketches states the error of one rank; here it holds at so many that little lies between any two.
    deviation = float(sketch.normalized_rank_error(False)) / _STATED
    quantile = -NormalDist().inv_cdf(error / (2.0 * _CHECKPOINTS))
    return deviation * quantile + 1.0 / _CHECKPOINTS + 1.0 / float(sketch.n)


def _atoms_of(sketch: Any) -> Atoms:
    """The scores kept, with one row each at the lowest and the highest score, which are exact."""
    if sketch.n == 1:
        return Atoms.of_counts(np.array([sketch.get_min_value()]), np.ones(1, dtype=np.int64))
    scores, rows = kept_scores(bytes(sketch.serialize()), sketch.k)
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


def plain_group(group: Group) -> Any:
    """A group as JSON; the parts of an intersection are a list."""
    parts = group if isinstance(group, tuple) else (group,)
    for part in parts:
        if not isinstance(part, str | int | float | bool):
            raise ValueError(f"a group must be a text, a number or a boolean to be written, got {group!r}")
    return list(parts) if isinstance(group, tuple) else group


def read_keys(keys: Any) -> list[Key]:
    """The groups and labels of a header: distinct, and with a label each or none at all."""
    checked: dict[Key, None] = {}
    for group, label in keys:
        key = (tuple(group) if isinstance(group, list) else group, label)
        plain_group(key[0])
        if label is not None and (type(label) is not int or label not in (0, 1)):
            raise ValueError(f"a label in keys must be 0, 1 or null, got {label!r}")
        if key in checked:
            raise InputError(f"must be distinct, got {key!r} twice", "keys")
        checked[key] = None
    if len({label is None for _, label in checked}) > 1:
        raise InputError("must be all with labels or all without", "keys")
    return list(checked)
