"""Sketches: small, mergeable, and within their stated error."""

from __future__ import annotations

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import localparity as lp
from localparity.monitoring import ScoreSketch
from localparity.monitoring._sketch import open_sealed, read_keys, seal_parts
from scale_rows import NARROW_RANGES, assert_same_counts, narrow_counts, narrow_scores

pytest.importorskip("datasketches")

SIZE = 1_000_000


def two_groups(size: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    groups = np.repeat([0, 1], size)
    return rng.beta(2.0, 3.0 + 0.3 * groups), groups


def exact_mcdp(scores: NDArray[np.float64], groups: NDArray[np.int64], epsilon: float) -> float:
    return lp.mcdp(None, scores, sensitive_features=groups, epsilon=epsilon)


def sketch_of(scores: NDArray[np.float64], groups: NDArray[np.int64]) -> ScoreSketch:
    sketch = ScoreSketch()
    sketch.update(lp.Predictions.from_arrays(None, scores, sensitive_features=groups, min_groups=1))
    return sketch


def test_a_short_stream_is_kept_whole() -> None:
    scores, groups = two_groups(700, 0)
    labels = np.arange(scores.size) % 2
    sketch = ScoreSketch()
    for part in np.array_split(np.arange(scores.size), 7):
        sketch.update(
            lp.Predictions.from_arrays(
                labels[part], scores[part], sensitive_features=groups[part], min_groups=1
            )
        )
    counts = sketch.counts()
    assert counts.rank_error == 0.0
    for criterion in ("demographic_parity", "equalized_odds"):
        expected = lp.mcdp(labels, scores, sensitive_features=groups, epsilon=0.02, criterion=criterion)
        bounds = lp.mcdp_bounds(counts, epsilon=0.02, criterion=criterion)
        assert bounds == lp.results.Interval(expected, expected, expected)


def test_a_million_scores_a_group_fit_in_64_kilobytes() -> None:
    scores, groups = two_groups(SIZE, 0)
    sketch = sketch_of(scores, groups)
    assert len(sketch.to_bytes()) < 2 * 64 * 1024
    counts = sketch.counts()
    assert counts.size == 2 * SIZE
    for epsilon in (0.0, 0.05):
        bounds = lp.mcdp_bounds(counts, epsilon=epsilon)
        assert bounds.low <= exact_mcdp(scores, groups, epsilon) <= bounds.high
        assert bounds.high - bounds.low < 0.012
    # The highest and the lowest score are exact.
    assert counts.atoms[0, None].scores[0] == scores[groups == 0].min()
    assert counts.atoms[1, None].scores[-1] == scores[groups == 1].max()
    assert lp.mcdp_bounds(counts, epsilon=0.499) == lp.results.Interval(0.0, 0.0, 0.0)


@pytest.mark.slow
def test_the_stated_error_holds_in_99_of_100_runs() -> None:
    scores, groups = two_groups(SIZE, 1)
    exact = {epsilon: exact_mcdp(scores, groups, epsilon) for epsilon in (0.0, 0.05)}
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(1000):
        start = int(rng.integers(2 * SIZE))
        counts = sketch_of(np.roll(scores, start), np.roll(groups, start)).counts(0.99)
        bounds = {epsilon: lp.mcdp_bounds(counts, epsilon=epsilon) for epsilon in exact}
        held += all(bounds[epsilon].low <= value <= bounds[epsilon].high for epsilon, value in exact.items())
    assert held >= 990


def test_merged_sketches_are_a_sketch_of_all() -> None:
    scores, groups = two_groups(50_000, 3)
    parts = [sketch_of(scores[i::4], groups[i::4]) for i in range(4)]
    merged = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
    assert merged.size == scores.size
    assert parts[0].size == scores.size // 4  # what was merged stays as it was
    bounds = lp.mcdp_bounds(merged.counts(), epsilon=0.01)
    assert bounds.low <= exact_mcdp(scores, groups, 0.01) <= bounds.high


def test_a_group_that_appears_late() -> None:
    sketch = ScoreSketch()
    sketch.update(lp.Predictions.from_arrays(None, [0.2], sensitive_features=["a"], min_groups=1))
    with pytest.raises(ValueError, match=r"two groups .* got 'a'"):
        lp.mcdp(sketch.counts())
    late = ScoreSketch()
    late.update(lp.Predictions.from_arrays(None, [0.7], sensitive_features=["b"], min_groups=1))
    assert lp.mcdp(sketch.merge(late).counts()) == 1.0
    assert "1 rows, 1 groups" in repr(late)


def test_bytes_keep_everything() -> None:
    sketch = ScoreSketch(score_range=(300, 850), k=200)
    groups = {"sex": ["f", "m", "f"], "old": [True, False, True]}
    options: dict[str, Any] = {"sensitive_features": groups, "score_range": (300, 850)}
    sketch.update(lp.Predictions.from_arrays([1, 0, 1], [310, 320, 330], **options))
    back = ScoreSketch.from_bytes(sketch.to_bytes())
    assert (back.score_range, back.k, back.size, back.labelled) == ((300.0, 850.0), 200, 3, True)
    assert back.counts().groups == (("f", True), ("m", False))
    assert back.to_bytes() == sketch.to_bytes()
    assert pickle.loads(pickle.dumps(sketch)).to_bytes() == sketch.to_bytes()
    assert deepcopy(sketch).to_bytes() == sketch.to_bytes()
    options |= {"sensitive_features": {"sex": ["x"], "old": [True]}, "min_groups": 1}
    back.update(lp.Predictions.from_arrays([0], [400], **options))
    assert back.size == 4


def test_damaged_bytes_and_other_versions_are_named() -> None:
    data = sketch_of(*two_groups(10, 0)).to_bytes()
    with pytest.raises(ValueError, match=r"the sketch is damaged: .*checksum"):
        ScoreSketch.from_bytes(data[:-1] + b"!")
    other = bytearray(data)
    other[8] = 3
    with pytest.raises(ValueError, match=r"the sketch .*newer.* format 3; .*format 2"):
        ScoreSketch.from_bytes(bytes(other))
    with pytest.raises(ValueError, match=r"the file .* got 0"):
        ScoreSketch.from_bytes(b"", "the file")


def test_any_other_byte_of_a_sketch_is_refused() -> None:
    data = sketch_of(*two_groups(10, 0)).to_bytes()
    for place, byte in enumerate(data):
        with pytest.raises(ValueError, match="the sketch "):
            ScoreSketch.from_bytes(data[:place] + bytes([byte ^ 1]) + data[place + 1 :])


def test_what_does_not_fit_is_named() -> None:
    sketch = sketch_of(*two_groups(10, 0))
    with pytest.raises(ValueError, match="without labels, got rows with"):
        sketch.update(lp.Predictions.from_arrays([0, 1], [0.1, 0.2], sensitive_features=[0, 1], min_groups=1))
    weighted = lp.Predictions.from_arrays(None, [0.1, 0.2], sensitive_features=[0, 1], sample_weight=[1, 2])
    with pytest.raises(ValueError, match="got predictions with clusters"):
        ScoreSketch().update(
            lp.Predictions.from_arrays(None, [0.1, 0.2], sensitive_features=[0, 1], cluster=[0, 0])
        )
    with pytest.raises(ValueError, match="got predictions with weights"):
        sketch.update(weighted)
    wide = lp.Predictions.from_arrays(None, [0.1, 0.2], sensitive_features=[0, 1], score_range=(0, 2))
    with pytest.raises(ValueError, match=r"score_range must be \(0.0, 1.0\), got \(0.0, 2.0\)"):
        sketch.update(wide)
    with pytest.raises(ValueError, match=r"k .* 2048, got 100"):
        sketch.merge(ScoreSketch(k=100))
    with pytest.raises(ValueError, match=r"k .*65535, got 70000"):
        ScoreSketch(k=70_000)
    with pytest.raises(ValueError, match="the sketch has no rows"):
        ScoreSketch().counts()
    with pytest.raises(ValueError, match=r"confidence .* got 1"):
        sketch.counts(1.0)
    odd = ScoreSketch()
    odd.update(
        lp.Predictions.from_arrays(
            None, [0.1], sensitive_features=np.array([3 + 4j], dtype=object), min_groups=1
        )
    )
    with pytest.raises(ValueError, match=r"group .* got \(3\+4j\)"):
        odd.to_bytes()


@pytest.mark.parametrize("score_range", NARROW_RANGES)
def test_ends_of_the_range_that_few_bits_cannot_hold(score_range: tuple[float, float]) -> None:
    scores, groups = narrow_scores(score_range, 100), np.tile([0, 1], 50)
    sketch = lp.monitoring.ScoreSketch(score_range=score_range)
    rows = lp.Predictions.from_arrays(None, scores, sensitive_features=groups, score_range=score_range)
    sketch.update(rows)
    assert_same_counts(sketch.counts(), narrow_counts(scores, groups, score_range))


@pytest.mark.parametrize("rows", [100, 101, 333])
def test_equal_scores_are_counted_once_each(rows: int) -> None:
    sketch = ScoreSketch(k=8)
    sketch.update(
        lp.Predictions.from_arrays(
            None, np.repeat([0.5, 0.1], rows), sensitive_features=np.repeat(["a", "b"], rows), min_groups=1
        )
    )
    assert sketch.counts().size == sketch.size == 2 * rows


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("k", 70_000, "the sketch is damaged: k .* got 70000"),
        ("score_range", [1.0, 0.0], "the sketch is damaged: score_range .* got"),
        ("resolution", "high", "the sketch is damaged: resolution .* got 'high'"),
        ("resolution", -1.0, "the sketch is damaged: resolution .* got -1"),
        ("keys", [[0, None]], "the sketch is damaged: zip"),
        ("keys", [[0, None], [0, None]], "the sketch is damaged: keys must be distinct"),
        ("keys", [[0, None], [1, 1]], "the sketch is damaged: keys .* labels"),
        ("keys", [[0, 2], [1, 1]], "the sketch is damaged: a label .* got 2"),
        ("keys", [[{}, None], [1, None]], r"the sketch is damaged: a group .* got \{\}"),
    ],
)
def test_a_header_that_lies_is_named(field: str, value: object, message: str) -> None:
    header, parts = open_sealed(sketch_of(*two_groups(10, 0)).to_bytes(), "it")
    with pytest.raises(ValueError, match=message):
        ScoreSketch.from_bytes(seal_parts({**header, field: value}, parts))


def test_merged_sketches_count_every_row_and_keep_their_bounds() -> None:
    """A busy machine and a quiet one whose groups differ, where both together are at parity."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        busy, quiet = int(rng.integers(4_000, 12_000)), int(rng.integers(200, 2_000))
        low, high = 0.5 * rng.random((2, busy)), 0.5 + 0.5 * rng.random((2, quiet))
        mixed = rng.permutation(np.concatenate([low[1], high[1]]))
        parts = [
            (np.concatenate([low[0], mixed[:busy]]), np.repeat([0, 1], busy)),
            (np.concatenate([high[0], mixed[busy:]]), np.repeat([0, 1], quiet)),
        ]
        sketches = [ScoreSketch(k=200), ScoreSketch(k=200)]
        for sketch, (scores, groups) in zip(sketches, parts, strict=True):
            sketch.update(lp.Predictions.from_arrays(None, scores, sensitive_features=groups, min_groups=1))
        merged = sketches[0].merge(sketches[1])
        counts = merged.counts(0.999999)
        assert counts.size == merged.size == 2 * (busy + quiet)
        scores, groups = (np.concatenate(column) for column in zip(*parts, strict=True))
        assert lp.mcdp_bounds(counts).low <= exact_mcdp(scores, groups, 0.0) <= lp.mcdp_bounds(counts).high
        ends = [(atoms.scores[0], atoms.scores[-1]) for atoms in counts.atoms.values()]
        assert ends == [(scores[groups == g].min(), scores[groups == g].max()) for g in (0, 1)]


def test_a_header_of_many_keys_is_read_in_one_pass() -> None:
    """A list that is searched for every key takes 800 million steps."""
    keys = [Counted(number) for number in range(40_000)]
    assert len(read_keys([[key, None] for key in keys])) == 40_000
    assert Counted.compared < 1000


class Counted(int):
    """A number that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return int(self) == other

    __hash__ = int.__hash__
