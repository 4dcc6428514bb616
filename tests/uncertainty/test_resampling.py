"""The loop over resamples, and what is measured of each."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from threading import Barrier, get_ident
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.counts import Comparison
from localparity.uncertainty import _resampling
from localparity.uncertainty._permutation import Pool
from localparity.uncertainty._resampling import Draws, repeat, repeat_together, resample


def test_what_a_resample_of_two_people_measures() -> None:
    one = np.array([1, 1])
    found = resample(
        [Pool.of_people(one, np.array([0.1, 0.2]), one, 1).measuring],
        Draws(7, random_state=0),
        comparison=Comparison(),
        epsilons=np.array([0.0, 0.2]),
    )
    assert (found.seen == np.inf).all()
    assert found.at_most(0.5).seen.tolist() == [[0.5, 0.5]]
    assert found.worst.tolist() == [[1.0, 0.0]] * 7
    assert found.scaled[:, 0] == pytest.approx(np.sqrt(0.5))
    assert found.supremum == pytest.approx(np.sqrt(0.5))


def test_the_supremum_is_that_of_epsilon_zero_whatever_epsilons_are_asked_for() -> None:
    pool = Pool.of_people(np.array([20, 30]), np.arange(50) / 50, np.ones(50, dtype=np.int64), 1)
    draws = Draws(40, random_state=3)
    zero, *others = (
        resample([pool.measuring], draws, comparison=Comparison(), epsilons=np.array(epsilons))
        for epsilons in ([0.0], [0.1], [0.1, 0.0])
    )
    np.testing.assert_array_equal(zero.supremum, zero.scaled[:, 0])
    for found in others:
        np.testing.assert_array_equal(found.supremum, zero.supremum)
    np.testing.assert_array_equal(others[1].worst[:, 1], zero.worst[:, 0])
    np.testing.assert_array_equal(others[1].worst[:, 0], others[0].worst[:, 0])


def test_resamples_that_are_measured_together_are_those_measured_one_by_one() -> None:
    def several(streams: Any) -> Any:
        return np.array([[stream.random(), len(streams)] for stream in streams])

    one = repeat(lambda stream: stream.random(), Draws(10, random_state=7))
    for at_once, together in ((4, [4] * 8 + [2] * 2), (100, [10] * 10), (0, [1] * 10)):
        for jobs in (1, 2):
            found = repeat_together(several, Draws(10, 7, jobs), 2, at_once=at_once)
            np.testing.assert_array_equal(found[:, 0], one[:, 0])
            assert found[:, 1].tolist() == together


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
    both = Barrier(2, timeout=300)

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
        monkeypatch.setattr("localparity._validation._arguments.cpu_count", lambda cores=cores: cores)
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

    split = lp.worst_split(
        lp.Predictions.from_arrays(None, scores, sensitive_features=age), min_group_size=1, **options
    )
    assert found() == found()
    for each in (*found(), split):
        with pytest.raises(FrozenInstanceError):
            setattr(each, fields(each)[0].name, None)


def test_more_resamples_than_streams_are_kept_for_are_those_of_one_spawn() -> None:
    rng = np.random.default_rng(7)
    found = repeat(lambda stream: stream.random(), Draws(5000, random_state=7))
    assert found[:, 0].tolist() == [stream.random() for stream in rng.spawn(5000)]
