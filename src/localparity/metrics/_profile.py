"""MCDP as a function of epsilon: the steps, their values and the worst windows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from localparity._validation import FloatArray, as_epsilon, as_epsilons, score_resolution
from localparity.metrics._window import Window

if TYPE_CHECKING:
    from localparity.metrics._gap_curve import GapCurve
    from localparity.report import McdpProfileDisplay

_A_FEW = 8


def find_runs(unit_knots: FloatArray, gap: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Half-widths and values of the runs of a gap curve on [0, 1], few of the dominated ones among them."""
    # Imported here: numba is not loaded with the package.
    from localparity.metrics import _kernels

    return _kernels.profile_runs(unit_knots, gap)


def mcdp_of_runs(half_widths: FloatArray, values: FloatArray, reach: FloatArray) -> FloatArray:
    """The highest run among those that exceed each half-width of `reach`."""
    return np.array([values[half_widths > least].max(initial=0.0) for least in reach])


def pareto_steps(
    half_widths: FloatArray, values: FloatArray, rounding: float
) -> tuple[FloatArray, FloatArray]:
    """Of runs, those that no longer and at least as high run dominates, from the highest to the longest.

    A run that is longer by a rounding error only counts as no longer.
    """
    order = np.argsort(-values, kind="stable")
    half_widths, values = half_widths[order], values[order]
    del order  # of millions of runs, each array counts
    longest = np.maximum.accumulate(half_widths)
    leads = np.ones(values.size, dtype=bool)
    np.greater(half_widths[1:], longest[:-1], out=leads[1:])
    half_widths, values = half_widths[leads], values[leads]
    last_of_value = np.ones(values.size, dtype=bool)
    np.less(values[1:], values[:-1], out=last_of_value[:-1])
    half_widths, values = half_widths[last_of_value], values[last_of_value]
    longer = np.ones(values.size, dtype=bool)
    np.greater(np.diff(half_widths), rounding, out=longer[1:])
    return half_widths[longer], values[longer]


class McdpProfile:
    """MCDP at every epsilon at once, exactly.

    The profile falls in steps: it is ``values[i]`` from ``epsilons[i]`` up to, but not at,
    ``epsilons[i + 1]``, and 0 from the last step on. Of several curves (several pairs of groups, or the two
    labels of equalized odds) it is the worst.

    Parameters
    ----------
    curves : sequence of GapCurve
        The curves whose worst the profile is.

    Attributes
    ----------
    epsilons, values : ndarray
        The steps, as above: `epsilons` ascends from 0, `values` falls to 0.
    curves : tuple of GapCurve
        The curves it was made from.

    Examples
    --------
    >>> import localparity as lp
    >>> profile = lp.mcdp_profile(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"])
    >>> profile.epsilons, profile.values
    (array([0. , 0.1, 0.4]), array([1. , 0.5, 0. ]))
    >>> profile(0.25)
    0.5
    """

    def __init__(self, curves: Sequence[GapCurve]) -> None:
        self.curves = tuple(curves)
        self._resolution = max(curve.resolution for curve in curves)
        runs = [find_runs(curve.unit_knots, curve.gap) for curve in curves]
        self._half_widths, self._values = runs[0]
        if len(runs) > 1:
            self._half_widths, self._values = (np.concatenate(column) for column in zip(*runs, strict=True))

    @cached_property
    def _steps(self) -> tuple[FloatArray, FloatArray]:
        rounding = 0.5 * score_resolution(np.dtype(np.float64), self.curves[0].score_range)
        half_widths, values = pareto_steps(self._half_widths, self._values, rounding)
        return np.concatenate([[0.0], half_widths]), np.concatenate([values, [0.0]])

    @property
    def epsilons(self) -> FloatArray:
        """Where the steps begin, from 0 on."""
        return self._steps[0]

    @property
    def values(self) -> FloatArray:
        """MCDP from each step on, down to 0."""
        return self._steps[1]

    @overload
    def __call__(self, epsilon: float) -> float: ...

    @overload
    def __call__(self, epsilon: Sequence[float] | FloatArray) -> FloatArray: ...

    def __call__(self, epsilon: Any) -> float | FloatArray:
        """MCDP(epsilon): a float for a number, an array for an array."""
        epsilons = as_epsilons(epsilon)
        found = self.mcdp_at(epsilons)
        return found if epsilons.ndim else float(found)

    def mcdp_at(self, epsilons: FloatArray) -> FloatArray:
        """MCDP at half-widths of any size, unchecked: a figure shows where the profile ends."""
        reach = carried_half_widths(epsilons, self._resolution)
        if epsilons.size <= _A_FEW:
            # A few are found among the runs sooner than the runs are sorted into steps.
            return mcdp_of_runs(self._half_widths, self._values, reach.ravel()).reshape(epsilons.shape)
        return self.values[np.searchsorted(self.epsilons[1:], reach, side="right")]

    def worst_window(self, epsilon: float = 0.0) -> Window:
        """The run that carries the worst window of half-width `epsilon`, of the worst curve.

        Parameters
        ----------
        epsilon : float
            The half-width, as a fraction of the score range.

        Returns
        -------
        Window
            Its ends are in the scores' own units.

        Examples
        --------
        >>> import localparity as lp
        >>> profile = lp.mcdp_profile(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"])
        >>> window = profile.worst_window(0.05)
        >>> window.low, window.high, window.gap, window.higher
        (0.4, 0.6, 1.0, 'b')
        """
        epsilon = as_epsilon(epsilon)
        worst = max(self.curves, key=lambda curve: curve.mcdp(epsilon))
        return worst.worst_window(epsilon)

    def plot(self, ax: Any = None, *, level: float = 0.95) -> McdpProfileDisplay:
        """Draw the profile with its band; see `localparity.report.McdpProfileDisplay`."""
        from localparity.report import McdpProfileDisplay

        return McdpProfileDisplay(self, level=level).plot(ax)

    def __repr__(self) -> str:
        return f"McdpProfile({self.values.size - 1} steps, MCDP(0) = {self.values[0]:.4f})"


def carried_half_widths(epsilons: FloatArray, resolution: float) -> FloatArray:
    """The half-width that a run must exceed to carry a window of half-width epsilon.

    Lengths within the scores' resolution count as equal, so a run must be longer by more than that; any
    run at all carries a window of half-width 0.
    """
    return np.where(epsilons > 0.0, epsilons + 0.5 * resolution, 0.0)
