"""Single arguments: numbers, counts, seeds, words."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable
from os import cpu_count
from typing import Any, TypeVar, get_args

import numpy as np

from localparity._types import FloatArray, HigherIs, ScoreRange, Seed
from localparity._validation._errors import Argument, InputError, setting

Choice = TypeVar("Choice", bound=str | None)

_MOST = {
    "cv": 1_000,
    "jobs": 1_000,
    "level": 30,
    "n_estimators": 1_000_000,
    "n_jobs": 1_000,
    "n_resamples": 1_000_000,
    "n_samples": 100_000_000,
    "seeds": 1_000,
    "steps": 100_000_000,
    "network_steps": 100_000_000,
}
"""The most of what takes time in proportion: a larger number is a slip, or would hang."""


def as_number(value: Any, name: Argument) -> float:
    """One number, NaN excepted."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"must be a number, got {value!r}", name) from None
    if math.isnan(number):
        raise InputError("must be a number, got nan", name)
    return number


def _such(value: Any, name: Argument, fits: Callable[[float], bool], expected: str) -> float:
    """One number of a kind."""
    number = as_number(value, name)
    if not fits(number):
        raise InputError(f"must be {expected}, got {number:g}", name)
    return number


def as_fraction(value: Any, name: Argument) -> float:
    """A number in [0, 1], the ends included."""
    return _such(value, name, lambda number: 0.0 <= number <= 1.0, "between 0 and 1")


def as_probability(value: Any, name: Argument = "confidence") -> float:
    """A probability strictly between 0 and 1."""
    return _such(value, name, lambda number: 0.0 < number < 1.0, "> 0 and < 1")


def as_strength(strength: Any) -> float:
    """The weight of a penalty: a finite number that is not negative."""
    return _such(strength, "strength", lambda number: 0.0 <= number < math.inf, ">= 0 and finite")


def as_temperature(temperature: Any, *, at_most: float = math.inf) -> float:
    """The steepness of a sigmoid that stands for a step: a number above 0."""
    limit = "finite" if at_most == math.inf else f"<= {at_most:g}"
    most = min(at_most, sys.float_info.max)
    return _such(temperature, "temperature", lambda number: 0.0 < number <= most, f"> 0 and {limit}")


def as_sharpness(sharpness: Any) -> float:
    """The power of a soft search: a number from 1 on."""
    return _such(sharpness, "sharpness", lambda number: number >= 1.0, ">= 1")


def as_search(search: Any, choices: Iterable[str], epsilon: float) -> str:
    """How a penalty finds its threshold; windows are found by the exact search only."""
    chosen = as_choice(search, "search", choices)
    if epsilon > 0.0 and chosen != "exact":
        raise InputError(f"search={chosen!r} needs {setting(epsilon=0)}, got {epsilon:g}; use search='exact'")
    return chosen


def as_threshold(threshold: Any, score_range: ScoreRange, name: str = "threshold") -> float:
    """A threshold inside the score range, in the scores' own units."""
    low, high = score_range
    expected = f"inside {setting('score_range')} ({low}, {high})"
    return _such(threshold, name, lambda number: low <= number <= high, expected)


def as_rng(random_state: Seed) -> np.random.Generator:
    """A random stream from a seed, a generator or nothing."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"must be an integer >= 0, a Generator or None, got {random_state!r}", "random_state"
        ) from error


def as_epsilons(epsilon: Any, name: Argument = "epsilon") -> FloatArray:
    """Half-widths of windows, as fractions of the score range, as an array of the input's shape."""
    try:
        epsilons = np.asarray(epsilon, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"must be a number >= 0, got {epsilon!r}", name) from None
    wrong = ~((epsilons >= 0.0) & np.isfinite(epsilons))
    if wrong.any():
        raise InputError(f"must be >= 0 and finite, got {float(epsilons[wrong].flat[0])}", name)
    return epsilons


def as_epsilon(epsilon: Any, name: Argument = "epsilon") -> float:
    """One half-width of a window."""
    epsilons = as_epsilons(epsilon, name)
    if epsilons.ndim:
        raise InputError(f"must be one number, got an array of shape {epsilons.shape}", name)
    return float(epsilons)


def as_bounded_epsilon(epsilon: Any) -> float:
    """The half-width of the windows of a bound on MCDP: from 1 on, everything is within every bound."""
    number = as_epsilon(epsilon)
    if number >= 1.0:
        reason = f"must be < 1 with {setting('max_mcdp')}, got {number:g}: MCDP is then 0 for all scores"
        raise InputError(reason, "epsilon")
    return number


def as_count(value: Any, name: Argument, *, at_least: int = 1, at_most: float | None = None) -> int:
    """A whole number between a least and a largest one.

    The largest is by default what `_MOST` has for the argument, else what every library can count to.
    """
    try:
        count = operator.index(value)
    except TypeError:
        raise InputError(f"must be an integer, got {value!r}", name) from None
    if count < at_least:
        raise InputError(f"must be >= {at_least}, got {count}", name)
    most = _MOST.get(str(name), 2**31 - 1) if at_most is None else at_most
    if count > most:
        raise InputError(f"must be <= {most}, got {count}", name)
    return count


def as_jobs(n_jobs: int | None) -> int:
    """How many jobs run at a time: 1 without a number, and for -1 as many as there are cores."""
    if n_jobs is None:
        return 1
    return as_count(cpu_count() or 1 if n_jobs == -1 else n_jobs, "n_jobs")


def as_choice(value: Any, name: Argument, choices: Iterable[Choice]) -> Choice:
    """One of a few words."""
    known = tuple(choices)
    if value not in known:
        raise InputError(f"must be one of {', '.join(map(repr, known))}, got {value!r}", name)
    chosen: Choice = value
    return chosen


def as_higher_is(higher_is: Any) -> HigherIs | None:
    """What a higher score means for the person scored; None where that is not said."""
    meaning: HigherIs | None = as_choice(higher_is, "higher_is", (None, *get_args(HigherIs)))
    return meaning
