"""The frontier of the census: the best average precision under a bound, by quadrature."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from localparity._types import FloatArray, IntArray
from localparity._validation import as_numbers
from localparity.datasets._census import (
    _AGE_EFFECT,
    _AGE_MEAN,
    _AGES,
    _EDUCATION_DEVIATION,
    _EDUCATION_EFFECT,
    _EDUCATION_MEAN,
    _EFFECTS,
    _HOURS,
    _HOURS_DEVIATION,
    _OCCUPATIONS,
    _SHARE_OF_MEN,
    _SHARES,
    _STEEPNESS,
    _chance,
    _index,
    _logistic,
)

_RATES = 64
_TOLERANCE = 1e-9


def census_probabilities(data: Any) -> tuple[FloatArray, FloatArray]:
    """Return the true P(target = 1 | x) of people, and P(group | x) of shape (n_samples, 2), Female first.

    They are what the best possible models of the class and of the group would predict.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(100_000, random_state=0)
    >>> income, sex = census_probabilities(census.data)
    >>> print(f"{income.mean():.2f} {census.target.mean():.2f}")
    0.29 0.29
    >>> print(f"{sex[:, 0].mean():.2f} {(census.sensitive_features == 'Female').mean():.2f}")
    0.45 0.45
    """
    age, education, hours = (
        as_numbers(data[name], name) for name in ("age", "education_years", "hours_per_week")
    )
    occupation = np.searchsorted(_OCCUPATIONS, np.asarray(data["occupation"]))
    return _chance(_index(education, hours, occupation), age), _groups_given(hours, occupation)


def _groups_given(hours: FloatArray, occupation: IntArray) -> FloatArray:
    """The probabilities of Female and Male, by Bayes' rule; the other features say nothing about sex."""
    joint = [
        share
        * np.asarray(_SHARES[group])[occupation]
        * np.exp(-0.5 * ((hours - _HOURS[group]) / _HOURS_DEVIATION) ** 2)
        for group, share in (("Female", 1.0 - _SHARE_OF_MEN), ("Male", _SHARE_OF_MEN))
    ]
    return np.asarray(np.stack(joint, axis=1) / np.sum(joint, axis=0)[:, None])


def census_frontier(max_mcdp: float = 1.0) -> float:
    r"""Return the best average precision of census scores that look at the features alone, under a bound.

    No score whose MCDP(0) is at most `max_mcdp` in the population has a higher average precision. The most
    positives that a set within the bound can have at selection rate q, V(q), are among people with a large
    :math:`P(y = 1 | x) - \lambda P(F | x) / P(F) + \lambda P(M | x) / P(M)`, and average precision is at most

    .. math:: \frac{1}{2} \Bigl(p + \frac{1}{p} \int_0^1 (V(q) / q)^2 dq\Bigr), \qquad p = P(y = 1),

    which is reached where the sets of all rates are nested. The integrals are good to about five decimals.

    Parameters
    ----------
    max_mcdp : float
        The most that MCDP(0) may be in the population; 1 for no bound.

    Returns
    -------
    float
        A fraction in [0, 1].

    Examples
    --------
    >>> round(census_frontier(0.05), 3), round(census_frontier(), 3)
    (0.635, 0.673)
    """
    cells = _cells()
    nodes, weights = np.polynomial.legendre.leggauss(_RATES)
    roots, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    # Rates are squares of the nodes: precision changes most where few are selected.
    precision = np.array([cells.most_positives(rate, max_mcdp) / rate for rate in roots**2])
    positives = cells.everyone()
    return float(0.5 * (positives + np.sum(weights * 2.0 * roots * precision**2) / positives))


class _Cells(NamedTuple):
    """Cells of hours and occupation, and how income varies inside each with education and age.

    `masses` has the mass of each cell in each group; `tilt` is P(F | x) / P(F) - P(M | x) / P(M). Inside a
    cell the logit of the probability of a high income is `centre` plus a value of `grid`; `above` is the
    share of people above each value, and `positives` the share, in each cell, above it and with such income.
    """

    masses: FloatArray
    tilt: FloatArray
    centre: FloatArray
    grid: FloatArray
    above: FloatArray
    positives: FloatArray

    def everyone(self) -> float:
        """Return the share with a high income."""
        return float(self._everywhere @ self.positives[:, 0])

    def most_positives(self, rate: float, bound: float) -> float:
        """Return the share of people with a high income inside the best set of a rate."""
        from scipy.optimize import brentq

        def excess(multiplier: float) -> float:
            women, men = self._selected(self._cuts(multiplier, rate))
            return float(men - women)

        multiplier = 0.0
        plain = excess(0.0)
        if abs(plain) > bound:
            aim = float(np.copysign(bound, plain))
            ends = sorted((0.0, -float(np.sign(plain))))
            multiplier = brentq(lambda value: excess(value) - aim, *ends, xtol=_TOLERANCE)
        return float(self._everywhere @ self._at(self.positives, self._cuts(multiplier, rate)))

    @property
    def _everywhere(self) -> FloatArray:
        return np.asarray([1.0 - _SHARE_OF_MEN, _SHARE_OF_MEN] @ self.masses)

    def _cuts(self, multiplier: float, rate: float) -> FloatArray:
        """Return where each cell is cut, so that a share of everyone is selected."""
        from scipy.optimize import brentq
        from scipy.special import logit

        def cuts(threshold: float) -> FloatArray:
            needed = np.clip(threshold + multiplier * self.tilt, 1e-300, 1.0 - 1e-16)
            return np.asarray(logit(needed) - self.centre)

        def excess(threshold: float) -> float:
            return float(self._everywhere @ self._at(self.above, cuts(threshold))) - rate

        reach = 1.0 + abs(multiplier) * float(np.abs(self.tilt).max())
        return cuts(brentq(excess, -reach, reach, xtol=1e-14))

    def _selected(self, cuts: FloatArray) -> FloatArray:
        """Return the share of women and of men above the cuts."""
        return self.masses @ self._at(self.above, cuts)

    def _at(self, table: FloatArray, cuts: FloatArray) -> FloatArray:
        """Return a table of the grid, one for all cells or a row for each, at each cell's cut."""
        step = self.grid[1] - self.grid[0]
        places = np.clip((cuts - self.grid[0]) / step, 0.0, self.grid.size - 1.0)
        left = np.minimum(places.astype(np.int64), self.grid.size - 2)
        rows = np.arange(cuts.size) if table.ndim == 2 else 0
        table = np.atleast_2d(table)
        return np.asarray(table[rows, left] + (places - left) * (table[rows, left + 1] - table[rows, left]))


@cache
def _cells() -> _Cells:
    """Return the cells of the census."""
    hours = np.linspace(-30.0, 110.0, 281)
    grid = np.linspace(-9.0, 9.0, 3601)
    places = np.repeat(np.arange(len(_EFFECTS)), hours.size)
    hours = np.tile(hours, len(_EFFECTS))
    masses = []
    for group in ("Female", "Male"):
        density = np.exp(-0.5 * ((hours - _HOURS[group]) / _HOURS_DEVIATION) ** 2)
        mass = density * np.asarray(_SHARES[group])[places]
        masses.append(mass / mass.sum())
    chances = _groups_given(hours, places) / [1.0 - _SHARE_OF_MEN, _SHARE_OF_MEN]
    centre = _STEEPNESS * _index(np.full(hours.size, _EDUCATION_MEAN), hours, places)
    deviation = _STEEPNESS * _EDUCATION_EFFECT * _EDUCATION_DEVIATION
    shifts = _AGE_EFFECT * (np.arange(_AGES[0], _AGES[1] + 1) - _AGE_MEAN)
    density = np.exp(-0.5 * ((grid[:, None] - shifts) / deviation) ** 2).sum(axis=1)
    density /= density.sum()
    above = _tails(density)
    positives = _tails(density * _logistic(centre[:, None] + grid))
    return _Cells(np.array(masses), chances[:, 0] - chances[:, 1], centre, grid, above, positives)


def _tails(density: FloatArray) -> FloatArray:
    """Return the mass above each point of the grid, by the trapezoidal rule."""
    middles = 0.5 * (density[..., 1:] + density[..., :-1])
    tails = np.zeros_like(density)
    tails[..., :-1] = np.cumsum(middles[..., ::-1], axis=-1)[..., ::-1]
    return tails
