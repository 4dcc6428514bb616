"""MCDP over epsilon with its band and what parity itself would measure."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from localparity._docs import documented
from localparity._validation import FloatArray, as_count, as_level
from localparity.metrics import McdpProfile, ScoreCounts
from localparity.report._display import FIRST, QUIET, CountsDisplay, legend_above, show_percent
from localparity.report._thin import MOST_POINTS
from localparity.uncertainty._bands import bootstrap_radii, dkw_radii
from localparity.uncertainty._interval import pair_intervals, worst_intervals
from localparity.uncertainty._permutation import parity_resamples
from localparity.uncertainty._resampling import Draws

_FLOOR_EPSILONS = np.concatenate([np.arange(10) / 200, np.arange(5, 51) / 100])


class McdpProfileDisplay(CountsDisplay):
    """MCDP at every epsilon, of the worst pair, with an interval around it and the noise floor below it.

    Make one with `from_predictions`, `from_estimator` or `from_counts`. `McdpProfile.plot` is short for one
    without the noise floor, for which the scores are needed.

    Parameters
    ----------
    profile : McdpProfile
        The profile.
    level : float
        The probability with which the band holds the whole true profile.
    noise_floor : tuple of ndarray, optional
        Epsilons, and what is expected under parity at each.
    radii : ndarray, optional
        How far the gap of each of the profile's curves may be off; without it, by Dvoretzky, Kiefer and
        Wolfowitz, or no band where rows have weights or clusters.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> display = lp.report.McdpProfileDisplay.from_predictions(
    ...     None, census.score, sensitive_features=census.sensitive_features, random_state=0
    ... )
    >>> display.ax_.get_ylabel()
    'MCDP'
    """

    def __init__(
        self,
        profile: McdpProfile,
        *,
        level: float = 0.95,
        noise_floor: tuple[FloatArray, FloatArray] | None = None,
        radii: FloatArray | None = None,
    ) -> None:
        self.profile = profile
        self.level = as_level(level)
        self.noise_floor = noise_floor
        if radii is None and all(curve.exchangeable for curve in profile.curves):
            radii = dkw_radii(profile.curves, self.level)
        self.radii = radii

    @classmethod
    @documented
    def from_counts(
        cls,
        counts: ScoreCounts,
        *,
        criterion: str = "demographic_parity",
        ax: Any = None,
        compare: str = "between_groups",
        level: float = 0.95,
        n_resamples: int = 200,
        random_state: Any = None,
    ) -> Self:
        """Draw counts.

        Parameters
        ----------
        level : float
            The probability with which the band holds the whole true profile.
        n_resamples : int
            How many resamples find the noise floor and, with weights or clusters, the band; 0 leaves it out.
        random_state : int, Generator or None
            The same seed gives the same noise floor.

        Returns
        -------
        McdpProfileDisplay
            The display, drawn.
        """
        floor, radii = None, None
        if as_count(n_resamples, "n_resamples", at_least=0):
            draws = Draws(n_resamples, random_state)
            found = parity_resamples(counts, _FLOOR_EPSILONS, criterion, compare, draws)
            floor = (_FLOOR_EPSILONS, found.worst.mean(axis=0))
            radii = None if counts.exchangeable else bootstrap_radii(found, as_level(level))
        profile = counts.profile(criterion, compare)
        return cls(profile, level=level, noise_floor=floor, radii=radii).plot(ax)

    def _draw(self, ax: Any) -> None:
        end = float(np.clip(1.05 * self.profile.epsilons[-1], 0.1, 1.0))
        epsilons = np.linspace(0.0, end, MOST_POINTS // 2)
        if self.radii is not None:
            found = worst_intervals(pair_intervals(self.profile.curves, epsilons, self.radii, self.level))
            low, high = [each.low for each in found], [each.high for each in found]
            band = f"{100 * self.level:g}% band"
            ax.fill_between(epsilons, low, high, color=FIRST, alpha=0.2, lw=0, label=band)
        ax.step(epsilons, self.profile.mcdp_at(epsilons), where="post", color=FIRST, label="MCDP")
        if self.noise_floor is not None:
            ax.plot(*self.noise_floor, color=QUIET, ls=":", label="expected under parity")
        ax.set_xlim(0.0, end)
        ax.set_ylim(0.0, None)
        ax.set_xlabel("epsilon, half of a window's width")
        ax.set_ylabel("MCDP")
        show_percent(ax.yaxis)
        ax.spines[["top", "right"]].set_visible(False)
        legend_above(ax, ["expected under parity"])
