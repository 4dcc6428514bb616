"""Rows that belong together, kept beside the counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.counts._rows import ClusteredRows

ROWS: dict[str, Any] = {
    "sensitive_features": ["a", "a", "b", "b", "c", "c"],
    "cluster": ["p", "p", "q", "r", "s", "q"],
    "sample_weight": [1.0, 2.0, 3.0, 4.0, 5.0, 0.0],
}


def counts_of(labels: Any = None, **changes: Any) -> lp.ScoreCounts:
    rows = lp.Predictions.from_arrays(labels, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], **{**ROWS, **changes})
    return lp.ScoreCounts.from_predictions(rows)


def test_counts_carry_the_rows_of_clusters() -> None:
    clusters = counts_of().clusters
    assert clusters is not None
    among = clusters.among(["b", "c"], None)
    assert among.groups == ("b", "c")
    assert among.scores.tolist() == [0.3, 0.4, 0.5]  # a row of weight 0 is nobody
    assert among.codes.tolist() == [0, 0, 1]
    assert among.clusters.tolist() == [0, 1, 2]
    assert among.squares.tolist() == [25.0, 25.0]
    assert among.largest.tolist() == [4.0, 5.0]
    assert among.degrees.tolist() == [25.0**2 / (81 + 256), 1.0]
    together = counts_of(sample_weight=None).clusters
    assert together is not None
    assert together.squares.tolist() == [4.0, 2.0, 2.0]


def test_one_label_and_some_groups() -> None:
    counts = counts_of([0, 1, 0, 1, 1, 1])
    assert counts.clusters is not None
    assert counts.clusters.among(["a", "b", "c"], 1).scores.tolist() == [0.2, 0.4, 0.5]
    fewer = counts.without(["a"])
    assert fewer.clusters is not None
    assert fewer.clusters.scores.tolist() == [0.3, 0.4, 0.5, 0.6]
    assert fewer.clusters.labels is not None
    assert fewer.clusters.labels.tolist() == [0, 1, 1, 1]
    assert counts_of(sample_weight=None).without(["a"]).clusters.weights is None  # type: ignore[union-attr]


def test_a_cluster_moves_as_one() -> None:
    clusters = counts_of(sample_weight=None).clusters
    assert clusters is not None
    placed = clusters.among(["a", "b", "c"], None)
    places = np.arange(6)
    moved = placed.__class__(places, placed.codes, placed.clusters, placed.groups)
    drawn = moved.multiplied(6, np.random.default_rng(0))
    assert drawn.shape == (3, 6)
    assert drawn[0, 0] == drawn[0, 1] != 0.0
    assert drawn[1, 2] == drawn[2, 5] != drawn[1, 3]
    assert drawn[0, 2:].tolist() == [0.0] * 4
    heavy = moved.__class__(places, placed.codes, placed.clusters, placed.groups, weights=np.arange(6.0))
    np.testing.assert_allclose(heavy.multiplied(6, np.random.default_rng(0)), drawn * np.arange(6.0))


def test_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="counts with clusters cannot be merged"):
        counts_of().merge(counts_of())
    with pytest.raises(ValueError, match="cluster has 2 rows"):
        counts_of(cluster=["p", "q"])
    with pytest.raises(ValueError, match="cluster has no value at row 1"):
        counts_of(cluster=["p", None, "q", "q", "q", "q"])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
def test_small_dtypes_do_not_overflow(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    n_groups, n_knots, rows = 200, 50, 2000
    codes, clusters, places = (rng.integers(count, size=rows) for count in (n_groups, 250, n_knots))
    small = ClusteredRows(places, codes.astype(dtype), clusters.astype(dtype), tuple(range(n_groups)))
    totals: dict[tuple[int, int], int] = {}
    for pair in zip(clusters.tolist(), codes.tolist(), strict=True):
        totals[pair] = totals.get(pair, 0) + 1
    squares = [sum(n**2 for (_, code), n in totals.items() if code == group) for group in range(n_groups)]
    assert small.squares.tolist() == squares
    drawn = np.random.default_rng(1).standard_normal(int(clusters.max()) + 1)
    expected = np.zeros((n_groups, n_knots))
    np.add.at(expected, (codes, places), drawn[clusters])
    np.testing.assert_allclose(small.multiplied(n_knots, np.random.default_rng(1)), expected, atol=1e-12)
