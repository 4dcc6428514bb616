"""The pool that resamples are drawn from, and what is measured of them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from fractions import Fraction
from threading import Barrier, get_ident
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import localparity as lp
import oracles
from localparity.metrics._profile import carried_half_widths
from localparity.uncertainty import _resampling
from localparity.uncertainty._resampling import Draws, Pool, pools_of, repeat, worst_mcdp
from strategies import People, people


def counts_of(drawn: People, **options: Any) -> lp.ScoreCounts:
    predictions = lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups, **options)
    return lp.ScoreCounts.from_predictions(predictions)


@settings(max_examples=60)
@given(people(n_groups=3, max_size=5), st.integers(0, 4))
def test_a_pool_measures_what_its_people_measure(drawn: People, steps: int) -> None:
    epsilon = Fraction(steps, 10)
    (pool,) = pools_of(counts_of(drawn), "demographic_parity")
    (weighted,) = pools_of(counts_of(drawn, sample_weight=drawn.weights), "demographic_parity")
    assert (pool.weighted, weighted.weighted) == (False, True)
    reach = carried_half_widths(np.array([float(epsilon)]), 4 * np.finfo(float).eps)
    for compare, worst in (("between_groups", oracles.worst_pair), ("to_overall", oracles.worst_to_overall)):
        for each in (pool, weighted):
            samples = drawn.samples(weighted=each.weighted)
            expected = float(worst(samples, lambda a, b: oracles.mcdp(a, b, epsilon)))
            assert worst_mcdp(each, each.weights, compare, reach)[0] == pytest.approx(expected, abs=1e-12)


@given(people(n_groups=2))
def test_a_pool_lies_on_the_unit_interval_and_rounds_effective_sizes_up(drawn: People) -> None:
    scores = 64.0 + 128.0 * drawn.scores
    predictions = lp.Predictions.from_arrays(
        None, scores, sensitive_features=drawn.groups, sample_weight=drawn.weights, score_range=(64, 192)
    )
    (pool,) = pools_of(lp.ScoreCounts.from_predictions(predictions), "demographic_parity")
    np.testing.assert_allclose(pool.unit_knots, np.unique(drawn.scores), rtol=0, atol=1e-12)
    for size, sample in zip(pool.sizes, drawn.samples(weighted=True), strict=True):
        effective = sum(w for _, w in sample) ** 2 / sum(w**2 for _, w in sample)
        assert effective - Fraction(1, 10**9) <= size < effective + 1 + Fraction(1, 10**9)


def test_a_pool_is_coarse_from_32769_scores_on() -> None:
    scores = (np.arange(2**15) + 0.5) / 2**15
    rows = np.ones((2, 2**15), dtype=np.int64)
    assert _resampling.MOST_KNOTS == 2**15
    pool = Pool(scores, rows, rows.sum(axis=1))
    assert pool.coarsened(2**15) is pool
    finer = Pool(np.append(scores, 1.0), np.hstack([rows, rows[:, :1]]), rows.sum(axis=1) + 1)
    coarse = finer.coarsened(2**15)
    assert coarse.unit_knots.size == 2**15
    np.testing.assert_array_equal(coarse.weights.sum(axis=1), finer.weights.sum(axis=1))


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_a_coarser_pool_keeps_the_last_knot_of_each_part(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 4, (2, 30))
    rows[:, 0] += 1
    pool = Pool(np.arange(30) / 30, rows, rows.sum(axis=1))
    coarse = pool.coarsened(parts)
    shares = [[Fraction(int(n), int(group.sum())) for n in group] for group in rows]
    below = [sum(sum(share[: knot + 1]) for share in shares) / 2 for knot in range(30)]
    part = [-(-share * parts // 1) for share in below]
    kept = [knot for knot in range(30) if knot == 29 or part[knot + 1] > part[knot]]
    assert coarse.unit_knots.tolist() == [knot / 30 for knot in kept]
    for group, fine in zip(coarse.weights, rows, strict=True):
        np.testing.assert_array_equal(np.cumsum(group), np.cumsum(fine)[kept])


def test_a_draw_weighs_as_its_group_does() -> None:
    weights = np.array([[1.5, 0.5, 0.0], [0.0, 4.0, 12.0]])
    pool = Pool(np.array([0.1, 0.2, 0.3]), weights, np.array([4, 2]), weighted=True)
    rng = np.random.default_rng(0)
    drawn = np.array([pool.draw(weights / weights.sum(axis=1, keepdims=True), rng) for _ in range(400)])
    np.testing.assert_allclose(drawn.sum(axis=2), [[2.0, 16.0]] * 400)
    assert set(np.unique(drawn[:, 0])) <= {0.0, 0.5, 1.0, 1.5, 2.0}
    np.testing.assert_allclose(drawn.mean(axis=0), weights, atol=1.0)
    assert (drawn[:, weights == 0.0] == 0.0).all()


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
    with pytest.raises(ValueError, match="n_jobs is -2 where a whole number >= 1 is expected"):
        repeat(lambda stream: stream.random(), Draws(2, 0, -2))


def test_what_is_found_is_frozen_and_equal_to_what_says_the_same() -> None:
    scores, sex, age = [0.1, 0.2, 0.6, 0.9], ["a", "a", "b", "b"], [1, 2, 3, 4]
    options: dict[str, Any] = {"n_resamples": 3, "random_state": 0}

    def found() -> list[Any]:
        return [
            lp.mcdp_interval(None, scores, sensitive_features=sex, kind="bootstrap", **options),
            lp.permutation_test(None, scores, sensitive_features=sex, **options),
            lp.noise_floor([2, 2], **options),
        ]

    split = lp.worst_split(None, scores, sensitive_features=age, **options)
    assert found() == found()
    for each in (*found(), split):
        with pytest.raises(FrozenInstanceError):
            setattr(each, fields(each)[0].name, None)


def test_a_pool_is_frozen_and_equal_to_itself_alone() -> None:
    rows = np.array([[1, 0], [0, 1]])
    pool = Pool(np.array([0.1, 0.2]), rows, rows.sum(axis=1))
    assert pool.coarsened(2) == pool != replace(pool)
    with pytest.raises(FrozenInstanceError):
        pool.weighted = True  # type: ignore[misc]
