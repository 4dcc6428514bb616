"""What the engines' tests share: rows in arrays, and the counts that numpy makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import localparity as lp
from localparity.counts._atoms import Atoms
from localparity.counts._weights import LIMB_BITS, limbs_of

CRITERIA = ("demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds")
EPSILONS = (0.0, 0.01, 0.1, 0.6, 1.2)

NARROW_RANGES = [(0.1, 1.1), (0.7, 1.3), (-0.7, 0.1)]
"""Score ranges whose ends float32 does not hold: its stand-ins lie inside, outside, or on either side."""

FAR_RANGES = [(-1e308, 1e308), (0.0, 1e-310), (0.0, 1e12), (0.0, 100.0)]
"""Ranges too long for a float, too short for all of its digits, and those of which scores take a corner."""

FINE_EPSILONS = (0.0, 1e-20, 1e-9, 0.01)


def to_units(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Numbers that are not negative in whole units, by the formula that engines share."""
    limbs = limbs_of(
        lambda scale: numbers * scale, np.floor, lambda whole, above: whole - above * 2.0**LIMB_BITS
    )
    return np.array(list(limbs)).astype(np.int64)


def units_of_weights(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """The weights, and the squared weights, of rows: two tables of limbs in one array."""
    return np.stack([to_units(weights), to_units(weights * weights)])


def count_rows(scores: NDArray[Any], weights: NDArray[np.float64] | None = None) -> Atoms:
    """Rows as numpy counts them, without a compiled loop; a row of weight 0 is nobody."""
    if weights is None:
        return Atoms.gather(scores, np.ones(scores.size, dtype=np.int64))
    scores, weights = scores[weights > 0.0], weights[weights > 0.0]
    return Atoms.gather(scores, np.ones(scores.size, dtype=np.int64), units_of_weights(weights))


@dataclass(frozen=True)
class Rows:
    """Scores on a fine grid and at the ends, three groups, labels, weights of many sizes."""

    scores: NDArray[np.float64]
    groups: NDArray[np.str_]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]

    def counts(self, *, labelled: bool = True, weighted: bool = True) -> lp.ScoreCounts:
        predictions = lp.Predictions.from_arrays(
            self.labels if labelled else None,
            self.scores,
            sensitive_features=self.groups,
            sample_weight=self.weights if weighted else None,
        )
        return lp.ScoreCounts.from_predictions(predictions)


def make_rows(size: int, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b", "c"], size, p=[0.5, 0.3, 0.2])
    scores = rng.beta(2.0, 3.0 + 0.5 * (groups == "b"))
    scores[: size // 20] = 0.0
    scores[size // 20 : size // 10] = 1.0
    scores[size // 10 : size // 2] = scores[size // 10 : size // 2].round(3)
    order = rng.permutation(size)
    weights = rng.random(size) * 10.0 ** rng.integers(-6, 6, size)
    weights[:: size // 10] = 0.0
    return Rows(scores[order], groups[order], rng.integers(0, 2, size), weights)


def assert_same_counts(found: lp.ScoreCounts, expected: lp.ScoreCounts) -> None:
    """Bit for bit, keys, scores, rows, weights and squared weights."""
    occupied = {key for key, atoms in expected.atoms.items() if atoms.size}
    assert {key for key, atoms in found.atoms.items() if atoms.size} == occupied
    for key in occupied:
        one, two = found.atoms[key], expected.atoms[key]
        for name in ("scores", "rows", "weights", "squares"):
            left, right = getattr(one, name), getattr(two, name)
            assert left.dtype == right.dtype
            assert left.tobytes() == right.tobytes(), (key, name)
    assert (found.score_range, found.resolution) == (expected.score_range, expected.resolution)


def assert_exact(found: lp.ScoreCounts, exact: lp.ScoreCounts, **asked: Any) -> None:
    """MCDP, and its bounds, of counts on a grid are those of the exact counts."""
    value = lp.mcdp(exact, **asked)
    assert lp.mcdp_bounds(found, **asked) == lp.results.Interval(value, value, value)
    assert lp.mcdp(found, **asked) == value


def narrow_scores(score_range: tuple[float, float], size: int = 2000) -> NDArray[np.float32]:
    """Scores of 32 bits, many of them at the ends of the range as these bits have them."""
    low, high = score_range
    scores = np.random.default_rng(0).uniform(low, high, size).astype(np.float32)
    scores[: size // 20], scores[size // 20 : size // 8] = low, high
    return scores


def narrow_counts(
    scores: NDArray[np.float32], groups: Any, score_range: tuple[float, float]
) -> lp.ScoreCounts:
    """The counts that numpy makes of them."""
    predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=groups, score_range=score_range)
    counts = lp.ScoreCounts.from_predictions(predictions)
    for atoms in counts.atoms.values():
        assert score_range[0] <= atoms.scores[0] < atoms.scores[-1] <= score_range[1]
    return counts


def far_scores(score_range: tuple[float, float], dtype: Any = np.float64) -> NDArray[Any]:
    """Scores all over a range that is too long or too short, and below a millionth in any other."""
    low, high = score_range
    drawn = np.random.default_rng(0).random(2000)
    drawn[1::2] **= 1.2
    if dtype == np.float64 and (low < 0.0 or high < 1.0):
        return (1.0 - drawn) * low + drawn * high
    return (1e-6 * drawn).astype(dtype)
