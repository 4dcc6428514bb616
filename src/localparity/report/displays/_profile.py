"""MCDP over epsilon with its band and what is expected under parity."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from localparity._types import ArrayLike, Compare, Criterion, FloatArray, Groups, ScoreRange, Seed
from localparity._validation import as_count, as_probability
from localparity.counts import Comparison
from localparity.counts._inputs import Data
from localparity.metrics import McdpProfile
from localparity.metrics._gap_curves import gap_curves
from localparity.report._thin import MOST_POINTS
from localparity.report.displays._display import FIRST, QUIET, PredictionsDisplay, counts_of
from localparity.uncertainty._bands import bootstrap_radii, finite_sample_radii
from localparity.uncertainty._intervals import band_intervals, measured_pair, worst_intervals
from localparity.uncertainty._permutation import parity_resamples
from localparity.uncertainty._resampling import Draws

_FLOOR_EPSILONS = np.concatenate([np.arange(10) / 200, np.arange(5, 51) / 100])


class McdpProfileDisplay(PredictionsDisplay):
    """MCDP at every epsilon, of the worst pair, with a band around it and the noise floor below it.

    Make one with `from_predictions` or `from_estimator`. `McdpProfile.plot` draws a profile that you have,
    without the noise floor, which takes the scores.

    Parameters
    ----------
    profile : McdpProfile
        The profile.
    confidence : float
        The probability with which the band holds the whole true profile.
    noise_floor : tuple of ndarray, optional
        Epsilons, and what is expected under parity at each.
    radii : ndarray, optional
        How far the gap of each of the profile's curves may be off; without it, by a band that
        holds at any sample size, or no band where rows have weights or clusters.

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
        confidence: float = 0.95,
        noise_floor: tuple[FloatArray, FloatArray] | None = None,
        radii: FloatArray | None = None,
    ) -> None:
        self.profile = profile
        self.confidence = as_probability(confidence)
        self.noise_floor = noise_floor
        if radii is None and all(curve.exchangeable for curve in profile.curves):
            radii = finite_sample_radii(profile.curves, self.confidence)
        self.radii = radii

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | Data | None,
        y_score: ArrayLike | None = None,
        *,
        sensitive_features: Groups | None = None,
        criterion: Criterion = "demographic_parity",
        compare: Compare = "between_groups",
        confidence: float = 0.95,
        n_resamples: int = 200,
        random_state: Seed = None,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        score_range: ScoreRange = (0.0, 1.0),
        ax: Any = None,
    ) -> Self:
        """Draw MCDP of the worst pair at every epsilon.

        Parameters
        ----------
        y_true, y_score, sensitive_features, sample_weight, cluster, score_range : array-like
            The rows, as in `localparity.mcdp_interval`; `y_true` may be Predictions or ScoreCounts instead.
        criterion, compare : str
            Who is compared, as in `localparity.mcdp`.
        confidence : float
            The probability with which the band holds the whole true profile.
        n_resamples : int
            How many resamples find the noise floor and, with weights or clusters, the band; 0 leaves both
            out.
        random_state : int, Generator or None
            The same seed gives the same noise floor.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        McdpProfileDisplay
            The display, drawn.
        """
        options = {"sample_weight": sample_weight, "cluster": cluster, "score_range": score_range}
        counts = counts_of(criterion, y_true, y_score, sensitive_features, **options)
        comparison, floor, radii = Comparison(criterion, compare), None, None
        if as_count(n_resamples, "n_resamples", at_least=0):
            draws = Draws(n_resamples, random_state)
            found = parity_resamples(counts, comparison, _FLOOR_EPSILONS, draws)
            floor = (_FLOOR_EPSILONS, found.worst.mean(axis=0))
            radii = None if counts.exchangeable else bootstrap_radii(found, as_probability(confidence))
        profile = McdpProfile(gap_curves(counts, comparison))
        return cls(profile, confidence=confidence, noise_floor=floor, radii=radii).plot(ax)

    def _draw(self, ax: Any) -> None:
        end = float(np.clip(1.05 * self.profile.epsilons[-1], 0.1, 1.0))
        epsilons = np.linspace(0.0, end, MOST_POINTS // 2)
        if self.radii is not None:
            pairs = [measured_pair(curve, epsilons) for curve in self.profile.curves]
            of_pairs = band_intervals(pairs, self.radii, self.confidence)
            low, high = zip(*((each.low, each.high) for each in worst_intervals(of_pairs)), strict=True)
            band = f"{100 * self.confidence:g}% band"
            ax.fill_between(epsilons, low, high, color=FIRST, alpha=0.2, lw=0, label=band)
        ax.step(epsilons, self.profile.mcdp_at(epsilons), where="post", color=FIRST, label="MCDP")
        if self.noise_floor is not None:
            ax.plot(*self.noise_floor, color=QUIET, ls=":", label="expected under parity")
        ax.set_xlim(0.0, end)
        ax.set_ylim(0.0, None)
        ax.set_xlabel("epsilon, half of a window's width")
        self._show_percent(ax.yaxis, "MCDP")
        self._add_legend(ax, ["expected under parity"])
