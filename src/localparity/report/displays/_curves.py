"""Figures of one model's scores: gaps, distributions, the profile, impact ratios, and MCDP over time."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from localparity._scale import fractions_of
from localparity._text import points
from localparity._types import Compare, Criterion, FloatArray, Group, Seed
from localparity._validation import as_count, as_probability
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._comparison import EVERYONE
from localparity.counts._score_counts import Data, as_counts, checked_data, strata_of, with_everyone
from localparity.metrics import GapCurve, McdpProfile, Window
from localparity.metrics._gap_curve import gap_curves
from localparity.report.displays._base import (
    FIRST,
    INK,
    MOST_POINTS,
    QUIET,
    SECOND,
    WINDOW,
    PredictionsDisplay,
    counts_and_curve,
    show_percent,
    shown_name,
    thin_thresholds,
    write_beside,
)
from localparity.uncertainty._bands import (
    as_interval_method,
    band_radii,
    bootstrap_radii,
    finite_sample_radii,
)
from localparity.uncertainty._intervals import band_intervals, measured_pair, worst_intervals
from localparity.uncertainty._permutation import parity_resamples
from localparity.uncertainty._resampling import Draws


class PairDisplay(PredictionsDisplay):
    """A display of one pair of groups at every cutoff."""

    @staticmethod
    def _shade_window(ax: Any, window: Window) -> None:
        """Shade the worst window."""
        if window.gap > 0.0:
            ax.axvspan(window.low, window.high, facecolor=WINDOW, alpha=0.2, lw=0)

    @staticmethod
    def _show_cutoffs(ax: Any, cutoffs: FloatArray, label: int | None) -> None:
        """The axis of cutoffs."""
        ax.set_xlim(cutoffs[0], cutoffs[-1])
        ax.set_xlabel("cutoff" if label is None else f"cutoff, among people with label {label}")


class GapCurveDisplay(PairDisplay):
    """By how much one group is ahead of another at every cutoff, with a band that holds the whole true curve.

    It is the difference of the shares above each cutoff, of the group that is ahead where they differ most.

    Make one with `from_predictions` or `from_estimator`; `GapCurve.plot` draws a curve that you have.

    Parameters
    ----------
    curve : GapCurve
        The curve.
    confidence : float
        The probability with which the band holds the true gap everywhere.
    epsilon : float
        The half-width of the window that is shaded.
    radius : float, optional
        How far the true gap may be from the curve; without it, one that holds at any sample size for this
        pair alone, or no band where rows have weights or clusters.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> curve = lp.gap_curve(lp.Predictions.from_arrays(None, census.score, sensitive_features=sex))
    >>> lp.report.GapCurveDisplay(curve, epsilon=0.05).plot().ax_.get_ylabel()
    'share above, Male less Female'
    """

    def __init__(
        self, curve: GapCurve, *, confidence: float = 0.95, epsilon: float = 0.0, radius: float | None = None
    ) -> None:
        self.curve = curve
        self.confidence = as_probability(confidence)
        self.epsilon = epsilon
        if radius is None and curve.exchangeable:
            radius = float(finite_sample_radii([curve], self.confidence)[0])
        self.radius = None if radius is None else radius + 2.0 * curve.rank_error

    @classmethod
    def from_predictions(
        cls,
        data: Data,
        *,
        groups: tuple[Group, Group] | None = None,
        epsilon: float = 0.0,
        criterion: Criterion = "demographic_parity",
        confidence: float = 0.95,
        n_resamples: int = 1000,
        random_state: Seed = None,
        ax: Any = None,
    ) -> Self:
        """Draw the gap of a pair of groups.

        The band holds for all pairs together, since the one drawn may have been chosen for what it shows.

        Parameters
        ----------
        data : Predictions or ScoreCounts
            The people.
        groups : tuple, optional
            The pair, of which the second may be ``"everyone"``; by default the worst.
        epsilon : float
            The half-width of the window that is shaded.
        criterion : str
            Which people are compared, as in `localparity.mcdp`.
        confidence : float
            The probability with which the band holds the true gap everywhere.
        n_resamples : int
            How many resamples the band takes where rows have weights or clusters.
        random_state : int, Generator or None
            The same seed gives the same band.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        GapCurveDisplay
            The display, drawn.
        """
        counts, curve = counts_and_curve(data, criterion, groups, epsilon)
        radius = _radius(counts, criterion, curve, confidence, Draws(n_resamples, random_state))
        return cls(curve, confidence=confidence, epsilon=epsilon, radius=radius).plot(ax)

    def _draw(self, ax: Any) -> None:
        cutoffs, window = thin_thresholds(self.curve), self.curve.worst_window(self.epsilon)
        first, second = (shown_name(group).strip() for group in self.curve.groups)
        ahead, sign = (
            ((first, second), -1.0) if window.higher == self.curve.groups[0] else ((second, first), 1.0)
        )
        gap = sign * self.curve(cutoffs)
        self._shade_window(ax, window)
        if self.radius is not None:
            below, above = np.maximum(gap - self.radius, -1.0), np.minimum(gap + self.radius, 1.0)
            ax.fill_between(cutoffs, below, above, step="post", color=QUIET, alpha=0.2, lw=0)
            highest = int(np.argmax(above))
            band = f"{100 * self.confidence:g}% band"
            at = (float(cutoffs[highest]), float(above[highest]))
            write_beside(ax, at, band, colour=QUIET, move=(0.0, 6.0))
        ax.axhline(0.0, color=QUIET, lw=0.8)
        ax.step(cutoffs, gap, where="post", color=FIRST)
        if window.gap > 0.0:
            ax.plot([window.low, window.high], [window.gap] * 2, color=INK, lw=2.0)
            at = (window.high, window.gap)
            write_beside(ax, at, points(window.gap), move=(5.0, 0.0), weight="bold")
        show_percent(ax.yaxis, f"share above, {ahead[0]} less {ahead[1]}")
        self._show_cutoffs(ax, cutoffs, self.curve.label)


def _radius(
    counts: ScoreCounts, criterion: Criterion, curve: GapCurve, confidence: float, draws: Draws
) -> float:
    """The radius of one pair's band among those of all pairs, which hold together."""
    compared = Comparison(criterion, "to_overall" if EVERYONE in curve.groups else "between_groups")
    curves = gap_curves(counts, compared)
    method = as_interval_method(None, counts)
    radii = band_radii(counts, compared, curves, confidence=confidence, method=method, draws=draws)
    who = [(each.label, frozenset(each.groups)) for each in curves]
    return float(radii[who.index((curve.label, frozenset(curve.groups)))])


# The share of two groups above each cutoff, with a bracket where they differ most.


class SharesDisplay(PairDisplay):
    """The share of two groups above each cutoff, with a bracket where they differ most.

    Make one with `from_predictions` or `from_estimator`.

    Parameters
    ----------
    cutoffs : ndarray
        Where the shares step, ascending, from one end of the score range to the other.
    shares : tuple of ndarray
        The share of each group above each cutoff.
    window : Window
        The worst window, which names the groups and the label.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> rows = lp.Predictions.from_arrays(None, census.score, sensitive_features=sex)
    >>> lp.report.SharesDisplay.from_predictions(rows, epsilon=0.05).ax_.get_xlabel()
    'cutoff'
    """

    def __init__(self, cutoffs: FloatArray, shares: tuple[FloatArray, FloatArray], window: Window) -> None:
        self.cutoffs = cutoffs
        self.shares = shares
        self.window = window

    @classmethod
    def from_predictions(
        cls,
        data: Data,
        *,
        groups: tuple[Group, Group] | None = None,
        epsilon: float = 0.0,
        criterion: Criterion = "demographic_parity",
        ax: Any = None,
    ) -> Self:
        """Draw the shares of a pair of groups above each cutoff.

        Parameters
        ----------
        data : Predictions or ScoreCounts
            The people.
        groups : tuple, optional
            The pair, of which the second may be ``"everyone"``; by default the worst.
        epsilon : float
            The half-width of the window that is shaded.
        criterion : str
            Which people are compared, as in `localparity.mcdp`.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        SharesDisplay
            The display, drawn.
        """
        counts, curve = counts_and_curve(data, criterion, groups, epsilon)
        stratum = strata_of(counts, Comparison(criterion))[curve.label]
        sides = with_everyone(stratum) if EVERYONE in curve.groups else stratum
        cutoffs = thin_thresholds(curve)
        first, second = (1.0 - sides[group].shares_at_or_below(cutoffs) for group in curve.groups)
        return cls(cutoffs, (first, second), curve.worst_window(epsilon)).plot(ax)

    def _draw(self, ax: Any) -> None:
        cutoffs, apart = self.cutoffs, np.abs(self.shares[0] - self.shares[1])
        inside = np.flatnonzero((cutoffs >= self.window.low) & (cutoffs < self.window.high))
        # The bracket stands where the gap of the window is smallest: there it is MCDP.
        place = inside[np.argmin(apart[inside])] if inside.size else 0
        at, rates = float(cutoffs[place]), [float(shares[place]) for shares in self.shares]
        self._shade_window(ax, self.window)
        for shares, colour, style in zip(self.shares, (FIRST, SECOND), ("-", "--"), strict=True):
            ax.step(cutoffs, shares, where="post", color=colour, ls=style)
        ax.set_ylim(0.0, 1.0)
        show_percent(ax.yaxis, "share above")
        self._show_cutoffs(ax, cutoffs, self.window.label)
        if self.window.gap > 0.0:
            ax.plot([at, at], rates, color=INK, lw=1.4)
            middle = sum(rates) / 2.0
            write_beside(ax, (at, middle), points(self.window.gap), move=(6.0, 0.0), weight="bold")
        # Curves fall from left to right: there is room on the right above them, and on the left below.
        width = 72.0 * ax.figure.get_figwidth() * ax.get_position().width
        room = width * float(fractions_of(np.array([at]), ax.get_xlim())[0])
        for group, rate, colour in zip(self.window.groups, rates, (FIRST, SECOND), strict=True):
            name = f"{shown_name(group).strip()} {100 * rate:.0f}%"
            is_right = rate == max(rates) or room < 7.5 * len(name)
            write_beside(ax, (at, rate), name, colour=colour, move=(6.0, 7.0) if is_right else (-6.0, -7.0))


# MCDP over epsilon with its band and what is expected under parity.


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
    >>> sex = census.sensitive_features
    >>> rows = lp.Predictions.from_arrays(None, census.score, sensitive_features=sex)
    >>> lp.report.McdpProfileDisplay.from_predictions(rows, random_state=0).ax_.get_ylabel()
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
        data: Data,
        *,
        criterion: Criterion = "demographic_parity",
        compare: Compare = "between_groups",
        confidence: float = 0.95,
        n_resamples: int = 200,
        random_state: Seed = None,
        ax: Any = None,
    ) -> Self:
        """Draw MCDP of the worst pair at every epsilon.

        Parameters
        ----------
        data : Predictions or ScoreCounts
            The people.
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
        comparison, floor, radii = Comparison(criterion, compare), None, None
        counts = as_counts(checked_data(data, comparison))
        if as_count(n_resamples, "n_resamples", at_least=0):
            draws = Draws(n_resamples, random_state)
            resampled = parity_resamples(counts, comparison, _FLOOR_EPSILONS, draws)
            floor = (_FLOOR_EPSILONS, resampled.worst.mean(axis=0))
            radii = None if counts.exchangeable else bootstrap_radii(resampled, as_probability(confidence))
        profile = McdpProfile(gap_curves(counts, comparison))
        return cls(profile, confidence=confidence, noise_floor=floor, radii=radii).plot(ax)

    def _draw(self, ax: Any) -> None:
        end = float(np.clip(1.05 * self.profile.epsilons[-1], 0.1, 1.0))
        epsilons = np.linspace(0.0, end, MOST_POINTS // 2)
        if self.radii is not None:
            pairs = [measured_pair(curve, epsilons) for curve in self.profile.curves]
            of_pairs = band_intervals(pairs, self.radii, self.confidence)
            low, high = zip(*((each.low, each.high) for each in worst_intervals(of_pairs)), strict=True)
            ax.fill_between(epsilons, low, high, color=FIRST, alpha=0.2, lw=0)
            band = f"{100 * self.confidence:g}% band"
            write_beside(ax, (0.03 * end, high[0]), band, colour=QUIET, move=(2.0, 6.0))
        values = self.profile(epsilons)
        ax.step(epsilons, values, where="post", color=FIRST)
        middle = values.size // 3
        write_beside(ax, (epsilons[middle], values[middle]), "MCDP", colour=FIRST, move=(4.0, 7.0))
        if self.noise_floor is not None:
            ax.plot(*self.noise_floor, color=QUIET, ls=":")
            at = (0.06 * end, float(np.interp(0.06 * end, *self.noise_floor)))
            write_beside(ax, at, "expected under parity", colour=QUIET, move=(2.0, 7.0))
        ax.set_xlim(0.0, end)
        ax.set_ylim(0.0, None)
        ax.set_xlabel("epsilon, half of a window's width")
        show_percent(ax.yaxis, "MCDP")
