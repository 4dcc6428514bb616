"""The loop over resamples, and what is measured of each."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from threading import Barrier, get_ident
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import localparity as lp
import oracles
from localparity.counts import Comparison
from localparity.metrics._gap_curves import gap_curves
from localparity.metrics._profile import carried_half_widths
from localparity.uncertainty import _resampling
from localparity.uncertainty._kernels import largest_difference, mcdp_of_pairs, worst_of_pairs
from localparity.uncertainty._pool import Pool, pools_of
from localparity.uncertainty._resampling import Draws, repeat, resample
from strategies import People, people


def counts_of(drawn: People, **options: Any) -> lp.ScoreCounts:
    predictions = lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups, **options)
    return lp.ScoreCounts.from_predictions(predictions)


@settings(max_examples=60)
@given(people(n_groups=3, max_size=5), st.integers(0, 4), st.booleans())
def test_what_is_seen_is_what_the_people_measure(drawn: People, steps: int, weighted: bool) -> None:
    epsilon = Fraction(steps, 10)
    counts = counts_of(drawn, **({"sample_weight": drawn.weights} if weighted else {}))
    reach = carried_half_widths(np.array([0.0, float(epsilon)]), counts.resolution)
    samples = drawn.samples(weighted=weighted)
    for compare, worst in (("between_groups", oracles.worst_pair), ("to_overall", oracles.worst_to_overall)):
        comparison = Comparison(compare=compare)
        (pool,) = pools_of(counts, comparison)
        pairs, rows = pool.pairs(comparison), pool.distributions(pool.weights, comparison)
        each = mcdp_of_pairs(pool.unit_knots, rows, pairs.first, pairs.second, reach)
        supremum, plain, scaled = worst_of_pairs(pool.unit_knots, rows, *pairs, reach)
        for column, at in enumerate((Fraction(0), epsilon)):
            expected = float(worst(samples, lambda a, b, at=at: oracles.mcdp(a, b, at)))
            assert each[:, column].max() == pytest.approx(expected, abs=1e-12)
            assert plain[column] == pytest.approx(expected, abs=1e-12)
            assert scaled[column] == pytest.approx((each[:, column] * pairs.scale).max(), abs=1e-12)
        assert supremum == pytest.approx(scaled[0], abs=1e-12)
        curves = gap_curves(counts, comparison)
        expected_each = [curve.mcdp(float(epsilon)) for curve in curves]
        np.testing.assert_allclose(each[:, 1], expected_each, atol=1e-12)


def test_the_largest_difference() -> None:
    assert largest_difference(np.array([0.1, 0.5, 1.0]), np.array([0.2, 0.2, 1.0])) == 0.3
    assert largest_difference(np.array([0.1]), np.array([0.1])) == 0.0


def test_every_resample_is_told_of() -> None:
    told: list[int] = []
    found = resample(
        [Pool.of_rows(np.array([0.1, 0.2]), np.array([[1, 0], [0, 1]]))],
        Pool.dealt,
        Draws(7, random_state=0, on_resample=lambda: told.append(1)),
        comparison=Comparison(),
        epsilons=np.array([0.0, 0.2]),
    )
    assert len(told) == 7
    assert found.seen.tolist() == [[1.0, 0.0]]
    assert found.worst.tolist() == [[1.0, 0.0]] * 7
    assert found.scaled[:, 0] == pytest.approx(np.sqrt(0.5))
    assert found.supremum == pytest.approx(np.sqrt(0.5))


def test_every_resample_has_a_stream_of_its_own() -> None:
    def draw(stream: np.random.Generator) -> np.ndarray:
        return stream.random(2)

    found = repeat(draw, Draws(50, random_state=7), columns=2)
    assert found.shape == (50, 2)
    assert np.unique(found).size == 100
    expected = [stream.random(2) for stream in np.random.default_rng(7).spawn(50)]
    np.testing.assert_array_equal(found, expected)
    for jobs in (None, 1, 3, -1):
        np.testing.assert_array_equal(repeat(draw, Draws(50, 7, jobs), columns=2), found)


def test_jobs_run_at_a_time_and_one_alone_in_the_callers_thread() -> None:
    both = Barrier(2, timeout=20)

    def meet(_: np.random.Generator) -> float:
        return float(both.wait() >= 0)

    assert repeat(meet, Draws(2, 0, 2)).tolist() == [[1.0], [1.0]]
    caller = get_ident()
    assert repeat(lambda _: float(get_ident() == caller), Draws(3, 0)).tolist() == [[1.0]] * 3


def test_all_cores_are_asked_for_with_minus_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Executor(_resampling.ThreadPoolExecutor):
        def __init__(self, jobs: int) -> None:
            asked.append(jobs)
            super().__init__(jobs)

    monkeypatch.setattr(_resampling, "ThreadPoolExecutor", Executor)
    for cores in (3, None):
        monkeypatch.setattr(_resampling, "cpu_count", lambda cores=cores: cores)
        for jobs in (None, 2, -1):
            repeat(lambda stream: stream.random(), Draws(2, 0, jobs))
    assert asked == [1, 2, 3, 1, 2, 1]
    with pytest.raises(ValueError, match=r"n_jobs .*got -2"):
        repeat(lambda stream: stream.random(), Draws(2, 0, -2))


def test_what_is_found_is_frozen_and_equal_to_what_says_the_same() -> None:
    scores, sex, age = [0.1, 0.2, 0.6, 0.9], ["a", "a", "b", "b"], [1, 2, 3, 4]
    options: dict[str, Any] = {"n_resamples": 19, "random_state": 0}

    def found() -> list[Any]:
        return [
            lp.mcdp_interval(None, scores, sensitive_features=sex, method="bootstrap", **options),
            lp.permutation_test(None, scores, sensitive_features=sex, **options),
            lp.noise_floor([2, 2], **options),
        ]

    split = lp.worst_split(None, scores, sensitive_features=age, **options)
    assert found() == found()
    for each in (*found(), split):
        with pytest.raises(FrozenInstanceError):
            setattr(each, fields(each)[0].name, None)
