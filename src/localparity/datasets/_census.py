"""A synthetic census with known disparity."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity._types import ArrayLike, FloatArray, IntArray, Seed
from localparity._validation import as_choice, as_count, as_epsilon, as_rng, require
from localparity.metrics import GapCurve

_SHARE_OF_MEN = 0.55
_OCCUPATIONS = ("care", "office", "technical", "trades")
# Occupation is a proxy: it depends on sex, and the score depends on it.
_SHARES = {"Female": (0.35, 0.40, 0.20, 0.05), "Male": (0.08, 0.27, 0.25, 0.40)}
_EFFECTS = (-0.9, 0.0, 0.9, 0.3)
_HOURS = {"Female": 37.0, "Male": 42.0}
_EDUCATION_MEAN, _EDUCATION_DEVIATION, _EDUCATION_EFFECT = 13.0, 2.5, 0.25
_HOURS_MEAN, _HOURS_DEVIATION, _HOURS_EFFECT = 40.0, 8.0, 0.05
_INTERCEPT = -0.9
_AGES = (18, 75)
_STEEPNESS, _AGE_MEAN, _AGE_EFFECT = 1.6, 46.0, 0.02


def make_census(n_samples: int = 20_000, *, random_state: Seed = None, as_frame: bool = True) -> Any:
    """Generate a census of invented people, scored by a model whose disparity is known.

    Men and women have different occupations (`occupation` is a proxy for sex) and working hours. The score is
    the logistic function of a linear index of education, hours and occupation, so in each group it is a
    mixture of logit-normal distributions; `census_mcdp` returns its true MCDP.

    Parameters
    ----------
    n_samples : int
        The number of people.
    random_state : int, Generator or None
        The same seed gives the same census.
    as_frame : bool
        Whether `data` is a pandas data frame or a dictionary of columns.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (age, education_years, hours_per_week, occupation), `target` (1 for a high income),
        `sensitive_features` (Female or Male), `score` (the model's), `feature_names`.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> census.feature_names
    ['age', 'education_years', 'hours_per_week', 'occupation']
    >>> lp.mcdp(None, census.score, sensitive_features=census.sensitive_features) > 0.2
    True
    """
    from sklearn.utils import Bunch

    n_samples = as_count(n_samples, "n_samples")
    rng = as_rng(random_state)
    male = rng.random(n_samples) < _SHARE_OF_MEN
    sex = np.where(male, "Male", "Female")
    occupation = np.empty(n_samples, dtype=np.int64)
    for name, shares in _SHARES.items():
        members = sex == name
        occupation[members] = rng.choice(len(_OCCUPATIONS), size=int(members.sum()), p=shares)
    education = rng.normal(_EDUCATION_MEAN, _EDUCATION_DEVIATION, n_samples)
    hours = rng.normal(np.where(male, _HOURS["Male"], _HOURS["Female"]), _HOURS_DEVIATION)
    age = rng.integers(_AGES[0], _AGES[1] + 1, n_samples)
    index = _index(education, hours, occupation)
    chance = _chance(index, age)
    columns = {"age": age, "education_years": education, "hours_per_week": hours}
    columns["occupation"] = np.asarray(_OCCUPATIONS)[occupation]
    return Bunch(
        data=require("pandas", extra="data").DataFrame(columns) if as_frame else columns,
        target=(rng.random(n_samples) < chance).astype(np.int64),
        sensitive_features=sex,
        score=_logistic(index),
        feature_names=list(columns),
    )


def census_cdf(group: str, threshold: ArrayLike) -> FloatArray:
    """Return the true share of a census group ("Female" or "Male") with a score at or below each threshold.

    Examples
    --------
    >>> census_cdf("Female", [0.25, 0.5]).round(4)
    array([0.5317, 0.8753])
    """
    from scipy.special import logit, ndtr

    as_choice(group, "group", _SHARES)
    deviation = np.hypot(_EDUCATION_EFFECT * _EDUCATION_DEVIATION, _HOURS_EFFECT * _HOURS_DEVIATION)
    mean = _INTERCEPT + _HOURS_EFFECT * (_HOURS[group] - _HOURS_MEAN)
    index = logit(np.asarray(threshold, dtype=np.float64))
    shares = [
        share * ndtr((index - mean - effect) / deviation)
        for share, effect in zip(_SHARES[group], _EFFECTS, strict=True)
    ]
    return np.asarray(sum(shares), dtype=np.float64)


def census_mcdp(epsilon: float = 0.0) -> float:
    """Return the true MCDP(epsilon) of the census scores, to about five decimals.

    It is computed from the gap of the two true distributions on a fine grid.

    Parameters
    ----------
    epsilon : float
        The half-width of the windows, as a fraction of the score range.

    Returns
    -------
    float
        A fraction in [0, 1].

    Examples
    --------
    >>> import localparity as lp
    >>> round(lp.datasets.census_mcdp(0.0), 4)
    0.2794
    """
    epsilon = as_epsilon(epsilon)
    knots = np.linspace(0.0, 1.0, 2**18 + 1)
    gap = census_cdf("Female", knots) - census_cdf("Male", knots)
    return GapCurve(knots, gap, ("Female", "Male"), (np.inf, np.inf)).mcdp(epsilon)


def _index(education: FloatArray, hours: FloatArray, occupation: IntArray) -> FloatArray:
    """The index that the score is the logistic function of."""
    return np.asarray(
        _INTERCEPT
        + _EDUCATION_EFFECT * (education - _EDUCATION_MEAN)
        + _HOURS_EFFECT * (hours - _HOURS_MEAN)
        + np.asarray(_EFFECTS)[occupation]
    )


def _chance(index: FloatArray, age: FloatArray | IntArray) -> FloatArray:
    """The probability of a high income."""
    return _logistic(_STEEPNESS * index + _AGE_EFFECT * (age - _AGE_MEAN))


def _logistic(index: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-index))
