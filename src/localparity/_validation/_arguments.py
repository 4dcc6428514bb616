"""Single arguments: numbers, counts, seeds, words."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable
from importlib import import_module
from os import cpu_count
from typing import Any, TypeVar, get_args

import numpy as np

from localparity._types import FloatArray, HigherIs, ScoreRange, Seed

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
}
"""The most of what takes long in proportion: beyond it a number is a slip of the hand, or a hang."""


def as_number(value: Any, name: str) -> float:
    """One number, NaN excepted."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got nan")
    return number


def as_fraction(value: Any, name: str) -> float:
    """A number in [0, 1], the ends included."""
    number = as_number(value, name)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must be between 0 and 1, got {number:g}")
    return number


def as_strength(strength: Any) -> float:
    """The weight of a penalty: a finite number that is not negative."""
    number = as_number(strength, "strength")
    if not 0.0 <= number < math.inf:
        raise ValueError(f"strength must be >= 0 and finite, got {number:g}")
    return number


def as_temperature(temperature: Any, *, at_most: float = math.inf) -> float:
    """The steepness of a sigmoid that stands for a step: a number above 0."""
    number = as_number(temperature, "temperature")
    if not (0.0 < number <= at_most and number < math.inf):
        limit = "finite" if at_most == math.inf else f"<= {at_most:g}"
        raise ValueError(f"temperature must be > 0 and {limit}, got {number:g}")
    return number


def as_sharpness(sharpness: Any) -> float:
    """The power of a soft search: a number from 1 on."""
    number = as_number(sharpness, "sharpness")
    if not number >= 1.0:
        raise ValueError(f"sharpness must be >= 1, got {number:g}")
    return number


def as_search(search: Any, choices: Iterable[str], epsilon: float) -> str:
    """How a penalty finds its threshold; windows are found by the exact search only."""
    found = as_choice(search, "search", choices)
    if epsilon > 0.0 and found != "exact":
        raise ValueError(f"search={found!r} needs epsilon=0, got {epsilon:g}; use search='exact'")
    return found


def as_threshold(threshold: Any, score_range: ScoreRange) -> float:
    """A threshold inside the score range, in the scores' own units."""
    number = as_number(threshold, "threshold")
    low, high = score_range
    if not low <= number <= high:
        raise ValueError(f"threshold must be inside score_range ({low}, {high}), got {number:g}")
    return number


def as_rng(random_state: Seed) -> np.random.Generator:
    """A random stream from a seed, a generator or nothing."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state must be an integer >= 0, a Generator or None, got {random_state!r}"
        ) from error


def as_epsilons(epsilon: Any, name: str = "epsilon") -> FloatArray:
    """Half-widths of windows, as fractions of the score range, as an array of the input's shape."""
    try:
        epsilons = np.asarray(epsilon, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number >= 0, got {epsilon!r}") from None
    wrong = ~((epsilons >= 0.0) & np.isfinite(epsilons))
    if wrong.any():
        raise ValueError(f"{name} must be >= 0 and finite, got {float(epsilons[wrong].flat[0])}")
    return epsilons


def as_epsilon(epsilon: Any, name: str = "epsilon") -> float:
    """One half-width of a window."""
    epsilons = as_epsilons(epsilon, name)
    if epsilons.ndim:
        raise ValueError(f"{name} must be one number, got an array of shape {epsilons.shape}")
    return float(epsilons)


def as_count(value: Any, name: str, *, at_least: int = 1, at_most: float | None = None) -> int:
    """A whole number between a least and a largest one.

    The largest is by default what `_MOST` has for the argument, else what every library can count to.
    """
    try:
        count = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer, got {value!r}") from None
    if count < at_least:
        raise ValueError(f"{name} must be >= {at_least}, got {count}")
    most = _MOST.get(name, 2**31 - 1) if at_most is None else at_most
    if count > most:
        raise ValueError(f"{name} must be <= {most}, got {count}")
    return count


def as_jobs(n_jobs: int | None) -> int:
    """How many jobs run at a time: 1 without a number, and for -1 as many as there are cores."""
    if n_jobs is None:
        return 1
    return as_count(cpu_count() or 1 if n_jobs == -1 else n_jobs, "n_jobs")


def as_probability(value: Any, name: str = "confidence") -> float:
    """A probability strictly between 0 and 1."""
    number = as_number(value, name)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be > 0 and < 1, got {number:g}")
    return number


def as_choice(value: Any, name: str, choices: Iterable[Choice]) -> Choice:
    """One of a few words."""
    known = tuple(choices)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
    chosen: Choice = value
    return chosen


def as_higher_is(higher_is: Any) -> HigherIs | None:
    """What a higher score means for the person scored; None where that is not said."""
    if higher_is is not None and higher_is not in get_args(HigherIs):
        raise ValueError(f"higher_is must be None, 'better' or 'worse', got {higher_is!r}")
    found: HigherIs | None = higher_is
    return found


def unknown_name(kind: str, name: object, known: Iterable[object]) -> ValueError:
    """The error for a name that is not there, with the nearest that are."""
    by_text = {str(candidate): candidate for candidate in known}
    folded = {text.casefold(): text for text in by_text}
    nearest = difflib.get_close_matches(str(name).casefold(), folded, n=3, cutoff=0.5)
    if nearest:
        hint = "; did you mean " + " or ".join(repr(by_text[folded[text]]) for text in nearest) + "?"
    else:
        hint = "; there is " + ", ".join(repr(candidate) for candidate in list(by_text.values())[:12])
    return ValueError(f"there is no {kind} {name!r}{hint}")


# Optional components: a missing one is an error that says which extra to install.


def require(module: str, *, extra: str) -> Any:
    """Import `module`, or say which extra of localparity brings it.

    Parameters
    ----------
    module : str
        The module's name, as in an import statement.
    extra : str
        The extra that installs it.

    Returns
    -------
    module
        The imported module.

    Examples
    --------
    >>> require("math", extra="data").sqrt(4.0)
    2.0
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed here and cannot be imported ({error}); "
            f"install it with: pip install 'localparity[{extra}]'"
        ) from error
