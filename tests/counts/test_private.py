"""Counts with noise: nothing of a person, and intervals that still hold."""

from __future__ import annotations

import numpy as np
import pytest

import localparity as lp
from localparity.counts import Comparison, ScoreCounts, private
from localparity.counts._private import _most_off, _with_noise

dp = pytest.importorskip("opendp.prelude")


def counts_of(sizes: tuple[int, ...], seed: int = 0, **options: object) -> ScoreCounts:
    rng = np.random.default_rng(seed)
    groups = np.repeat(["a", "b", "c"][: len(sizes)], sizes)
    scores = rng.random(groups.size) ** np.where(groups == "a", 1.0, 1.5)
    labels = rng.integers(0, 2, groups.size)
    return ScoreCounts.from_predictions(
        lp.Predictions.from_arrays(labels, scores, sensitive_features=groups, **options)  # type: ignore[arg-type]
    )


def test_people_are_counted_at_the_ends_of_cells() -> None:
    counts = counts_of((3000, 2000))
    released = private(counts, budget=100.0, cells=10, error=0.01)
    ends = np.linspace(0.0, 1.0, 11)
    for (group, label), atoms in released.atoms.items():
        assert label is None
        found = counts._stratum(None, "demographic_parity")[group]
        assert np.isin(atoms.scores, ends).all()
        expected = [found.rows[found.scores <= end].sum() for end in ends]
        at = [atoms.rows[atoms.scores <= end].sum() for end in ends]
        assert np.abs(np.subtract(at, expected)).max() <= 1
    assert released.rank_error <= 3 * _most_off(100.0, 11, 0.005) / 1990


def test_the_noise_is_that_of_the_budget() -> None:
    """A person more or less changes one number by one, which the noise of a scale of 1 / budget hides."""
    whole = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    assert dp.m.make_laplace(*whole, scale=1.0 / 0.7).map(1) == pytest.approx(0.7)
    atoms = counts_of((100_000, 1)).atoms["a", 0]
    ends = np.linspace(0.0, 1.0, 2001)
    rows = np.bincount(np.searchsorted(ends, atoms.scores), atoms.rows, ends.size)
    up_to = np.cumsum(_with_noise(atoms, ends, 0.7)) - np.cumsum(rows)
    steps = np.diff(up_to)
    kept = steps[np.diff(np.cumsum(_with_noise(atoms, ends, 0.7))) > 0]
    expected = 2.0 * np.exp(-0.7) / (1.0 - np.exp(-0.7)) ** 2
    assert np.var(kept) == pytest.approx(expected, rel=0.4)


@pytest.mark.parametrize(("budget", "cells"), [(0.2, 6), (1.0, 21), (1.0, 101), (3.0, 21)])
def test_sums_of_noise_stay_below_the_bound(budget: float, cells: int) -> None:
    rng = np.random.default_rng(0)
    share = 1.0 - np.exp(-budget)
    noise = rng.geometric(share, (20_000, cells)) - rng.geometric(share, (20_000, cells))
    largest = np.abs(noise.cumsum(axis=1)).max(axis=1)
    bound = _most_off(budget, cells, 0.01)
    assert np.mean(largest >= bound) <= 0.01
    assert bound <= 2.0 * np.quantile(largest, 0.99) + 1


def test_labels_are_released_where_they_are_compared() -> None:
    counts = counts_of((4000, 4000, 4000))
    assert set(private(counts, budget=2.0).atoms) == {("a", None), ("b", None), ("c", None)}
    released = private(counts, Comparison("equalized_odds"), budget=2.0)
    assert {label for _, label in released.atoms} == {0, 1}
    interval = lp.mcdp_interval(released, criterion="equalized_odds")
    assert interval.low <= lp.mcdp(counts, criterion="equalized_odds") <= interval.high


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0.0}, "budget must be > 0 and <= 100, got 0"),
        ({"budget": 1000.0}, "budget must be > 0 and <= 100, got 1000"),
        ({"budget": 1.0, "cells": 0}, "cells must be >= 1, got 0"),
        ({"budget": 1.0, "error": 1.0}, "error must be > 0 and < 1, got 1"),
        ({"budget": 0.001}, r"budget=0.001 makes noise of up to .* use fewer cells"),
    ],
)
def test_what_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        private(counts_of((300, 200)), **options)  # type: ignore[arg-type]


def test_weights_and_clusters_are_refused() -> None:
    for given in ({"sample_weight": np.ones(500) * 2}, {"cluster": np.arange(500) // 2}):
        with pytest.raises(ValueError, match="counts must be exact, of one row for each person"):
            private(counts_of((300, 200), **given), budget=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(400, 400), (5000, 300)])
def test_intervals_hold(sizes: tuple[int, ...]) -> None:
    """MCDP of the rounded scores, of which the truth is known, at the ends of the cells."""
    ends = np.linspace(0.0, 1.0, 21)
    truth = float(np.abs(ends - ends ** (1 / 1.5)).max())
    missed = 0
    for seed in range(400):
        found = lp.mcdp_interval(private(counts_of(sizes, seed), budget=1.0))
        missed += not found.low <= truth <= found.high
    assert missed / 400 <= 0.055 + 3 * (0.055 * 0.945 / 400) ** 0.5
