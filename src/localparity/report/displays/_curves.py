"""Figures of one model's scores: gaps, distributions, the profile, impact ratios, and MCDP over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from localparity._types import ArrayLike, BoolArray, Compare, Criterion, FloatArray, Group, IntArray, Seed
from localparity._validation import InputError, as_count, as_fraction, as_probability, check_rows
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._comparison import EVERYONE
from localparity.counts._score_counts import Data, as_counts, checked_data, strata_of, with_everyone
from localparity.metrics import GapCurve, Interval, McdpProfile, Window
from localparity.metrics._gap_curve import gap_curves
from localparity.predictions import Predictions
from localparity.report.displays._base import (
    COLOURS,
    FIRST,
    MOST_POINTS,
    QUIET,
    SECOND,
    WINDOW,
    PredictionsDisplay,
    counts_and_curve,
    shown_name,
    thin_steps,
    thin_thresholds,
)
from localparity.uncertainty import ImpactRatioCurve, impact_ratio_curve, mcdp_interval
from localparity.uncertainty._bands import (
    as_interval_method,
    band_radii,
    bootstrap_radii,
    finite_sample_radii,
)
from localparity.uncertainty._intervals import band_intervals, measured_pair, worst_intervals
from localparity.uncertainty._permutation import parity_resamples
from localparity.uncertainty._resampling import Draws

if TYPE_CHECKING:
    from localparity.monitoring import PeriodResult


class PairDisplay(PredictionsDisplay):
    """A display of one pair of groups at every threshold."""

    @staticmethod
    def _shade_window(ax: Any, window: Window) -> None:
        """Shade the worst window; its edges make the narrowest visible."""
        if window.gap > 0.0:
            ax.axvspan(window.low, window.high, facecolor=WINDOW, alpha=0.3, lw=0, label="worst window")
            for edge in {window.low, window.high}:
                ax.axvline(edge, color=WINDOW, lw=0.8)

    @staticmethod
    def _show_thresholds(ax: Any, thresholds: FloatArray, label: int | None) -> None:
        """The axis of thresholds."""
        ax.set_xlim(thresholds[0], thresholds[-1])
        ax.set_xlabel("threshold" if label is None else f"threshold, among people with label {label}")


class GapCurveDisplay(PairDisplay):
    """The gap of a pair at every threshold, with a band that holds the whole true curve.

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
    'gap, Female less Male'
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
        thresholds = thin_thresholds(self.curve)
        gap = self.curve(thresholds)
        self._shade_window(ax, self.curve.worst_window(self.epsilon))
        if self.radius is not None:
            below, above = np.maximum(gap - self.radius, -1.0), np.minimum(gap + self.radius, 1.0)
            band = f"{100 * self.confidence:g}% band"
            ax.fill_between(thresholds, below, above, step="post", color=QUIET, alpha=0.25, lw=0, label=band)
        ax.axhline(0.0, color=QUIET, lw=0.8)
        ax.step(thresholds, gap, where="post", color="black", lw=1.2, label="gap")
        first, second = (shown_name(group).strip() for group in self.curve.groups)
        self._show_percent(ax.yaxis, f"gap, {first} less {second}")
        self._show_thresholds(ax, thresholds, self.curve.label)
        self._add_legend(ax, ["worst window"])


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


# Two groups' cumulative distributions, the gap between them and the worst window.


class GroupCdfDisplay(PairDisplay):
    """Two groups' cumulative distributions with the gap and the worst window shaded.

    Make one with `from_predictions` or `from_estimator`.

    Parameters
    ----------
    thresholds : ndarray
        Where the shares step, ascending, from one end of the score range to the other.
    shares : tuple of ndarray
        The share of each group at or below each threshold.
    window : Window
        The worst window, which names the groups and the label.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> rows = lp.Predictions.from_arrays(None, census.score, sensitive_features=sex)
    >>> lp.report.GroupCdfDisplay.from_predictions(rows, epsilon=0.05).ax_.get_xlabel()
    'threshold'
    """

    def __init__(self, thresholds: FloatArray, shares: tuple[FloatArray, FloatArray], window: Window) -> None:
        self.thresholds = thresholds
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
        """Draw the cumulative distributions of a pair of groups.

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
        GroupCdfDisplay
            The display, drawn.
        """
        counts, curve = counts_and_curve(data, criterion, groups, epsilon)
        stratum = strata_of(counts, Comparison(criterion))[curve.label]
        sides = with_everyone(stratum) if EVERYONE in curve.groups else stratum
        thresholds = thin_thresholds(curve)
        first, second = (sides[group].shares_at_or_below(thresholds) for group in curve.groups)
        return cls(thresholds, (first, second), curve.worst_window(epsilon)).plot(ax)

    def _draw(self, ax: Any) -> None:
        names = [shown_name(group) for group in self.window.groups]
        self._shade_window(ax, self.window)
        ax.fill_between(self.thresholds, *self.shares, step="post", color=QUIET, alpha=0.2, lw=0, label="gap")
        for share, name, colour, style in zip(self.shares, names, (FIRST, SECOND), ("-", "--"), strict=True):
            ax.step(self.thresholds, share, where="post", color=colour, ls=style, label=name)
        ax.set_ylim(0.0, 1.0)
        self._show_percent(ax.yaxis, "share at or below")
        self._show_thresholds(ax, self.thresholds, self.window.label)
        self._add_legend(ax, [*names, "worst window"])


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


# Impact ratios at every cutoff, with their bands and the cutoffs that are safe.


_SAFE = "#009E73"
_MOST_DRAWN = 600
_HIGHEST = 2.0


class ImpactRatioDisplay(PredictionsDisplay):
    """The ratio of each group's selection rate to the reference's at every cutoff, with its band.

    Cutoffs at which the band of every group lies at or above `min_ratio` are shaded; without bands, those at
    which every ratio does. Make one with `from_predictions` or `from_estimator`; `ImpactRatioCurve.plot`
    draws a curve that you have.

    Parameters
    ----------
    curve : ImpactRatioCurve
        The curve.
    min_ratio : float
        The least ratio that is safe.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> rows = lp.Predictions.from_arrays(None, census.score, sensitive_features=sex)
    >>> lp.report.ImpactRatioDisplay.from_predictions(rows).ax_.get_ylabel()
    'ratio to the best-off group'
    """

    def __init__(self, curve: ImpactRatioCurve, *, min_ratio: float = 0.8) -> None:
        self.curve = curve
        self.min_ratio = as_fraction(min_ratio, "min_ratio")

    @classmethod
    def from_predictions(
        cls,
        data: Data,
        *,
        min_ratio: float = 0.8,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the impact ratios of scores.

        Parameters
        ----------
        data : Predictions or ScoreCounts
            The people.
        min_ratio : float
            The least ratio that is safe.
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        **options
            Further arguments of `localparity.impact_ratio_curve`, such as ``reference`` or ``confidence``.

        Returns
        -------
        ImpactRatioDisplay
            The display, drawn.
        """
        return cls(impact_ratio_curve(data, **options), min_ratio=min_ratio).plot(ax)

    def _draw(self, ax: Any) -> None:
        curve = self.curve
        safe = self._shade_safe(ax)
        places = self._places()
        at = np.append(curve.cutoffs[places], curve.score_range[1])
        names = []
        for row, group in enumerate(curve.groups):
            if group == curve.reference:
                continue
            colour = COLOURS[row % len(COLOURS)]
            names.append(shown_name(group))
            ax.step(at, _extended(curve.ratios[row, places]), where="post", color=colour, label=names[-1])
            if curve.confidence is not None:
                low, high = (_extended(end[row, places]) for end in curve.ratio_bands)
                ax.fill_between(at, low, high, step="post", color=colour, alpha=0.15, lw=0)
        ax.axhline(self.min_ratio, color=QUIET, lw=1.0, ls="--", label=f"ratio {self.min_ratio:g}")
        top = np.nanmax(curve.ratios, initial=1.0, where=np.isfinite(curve.ratios))
        ax.set_ylim(0.0, min(1.05 * top, _HIGHEST))
        ax.set_xlim(*curve.score_range)
        among = "" if curve.label is None else f", among people with label {curve.label}"
        ax.set_xlabel(f"cutoff{among}")
        reference = "the best-off group" if curve.reference is None else shown_name(curve.reference)
        ax.set_ylabel(f"ratio to {reference}")
        self._add_legend(ax, [*names, *safe, f"ratio {self.min_ratio:g}"])

    def _shade_safe(self, ax: Any) -> list[str]:
        safe = self.curve.safe_cutoffs(self.min_ratio)
        ranges = safe.by_estimate if safe.by_band is None else safe.by_band
        sure = "" if safe.confidence is None else f" with {100.0 * safe.confidence:g}% confidence"
        names = [f"safe{sure}"] if ranges else []
        for place, each in enumerate(ranges):
            ax.axvspan(each.low, each.high, color=_SAFE, alpha=0.12, lw=0, label=None if place else names[0])
        return names

    def _places(self) -> IntArray:
        """Few cutoffs, the extremes of every group's ratio among them."""
        curve = self.curve
        ratios = np.nan_to_num(curve.ratios, posinf=_HIGHEST)
        most = max(_MOST_DRAWN // len(curve.groups), 50)
        return np.unique(np.concatenate([thin_steps(curve.cutoffs, row, most) for row in ratios]))


def _extended(values: Any) -> Any:
    """Steps up to the top of the score range."""
    return np.append(values, values[-1])


# MCDP over time.


class McdpOverTimeDisplay(PredictionsDisplay):
    """MCDP of one period after the other with its interval, the bound that it should keep, and alarms.

    Make one with `from_predictions`, `from_estimator` or `from_periods`.

    Parameters
    ----------
    times : sequence
        The periods: dates, numbers or names, in order.
    intervals : sequence of Interval or None
        MCDP in each period with its interval; None where there is nothing to compare.
    epsilon : float
        The half-width of the windows.
    max_mcdp : float, optional
        The most that MCDP may be.
    alarms : sequence of bool, optional
        Whether each period raises an alarm.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(3000, random_state=0)
    >>> month = [f"2024-{1 + row % 3:02d}" for row in range(3000)]
    >>> sex = census.sensitive_features
    >>> rows = lp.Predictions.from_arrays(None, census.score, sensitive_features=sex)
    >>> lp.report.McdpOverTimeDisplay.from_predictions(rows, month, max_mcdp=0.2).times
    ['2024-01', '2024-02', '2024-03']
    """

    def __init__(
        self,
        times: Sequence[Any],
        intervals: Sequence[Interval | None],
        *,
        epsilon: float = 0.0,
        max_mcdp: float | None = None,
        alarms: Sequence[bool] | None = None,
    ) -> None:
        self.times = list(times)
        self.intervals = list(intervals)
        self.epsilon = epsilon
        self.max_mcdp = max_mcdp
        self.alarms = [False] * len(self.times) if alarms is None else list(alarms)

    @classmethod
    def from_periods(
        cls,
        periods: Sequence[PeriodResult],
        *,
        epsilon: float = 0.0,
        max_mcdp: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw what `Monitor.series` gives, with its alarms.

        Parameters
        ----------
        periods : sequence of PeriodResult
            The periods, in order.
        epsilon : float
            The epsilon of the series.
        max_mcdp : float, optional
            The bound of the series.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        McdpOverTimeDisplay
            The display, drawn; a period without an interval leaves a gap.
        """
        times, intervals = [one.period for one in periods], [one.interval for one in periods]
        alarms = [one.alarm is not None for one in periods]
        return cls(times, intervals, epsilon=epsilon, max_mcdp=max_mcdp, alarms=alarms).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        data: Predictions,
        times: ArrayLike = None,
        *,
        epsilon: float = 0.0,
        max_mcdp: float | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw scores, each row of which has its period.

        Parameters
        ----------
        data : Predictions
            The people, as `Predictions.from_arrays` makes them.
        times : array-like
            The period of each row; periods are drawn in sorted order.
        epsilon : float
            The half-width of the windows.
        max_mcdp : float, optional
            The most that MCDP may be.
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        **options
            Further arguments of `localparity.mcdp_interval`, such as ``criterion`` or ``confidence``.

        Returns
        -------
        McdpOverTimeDisplay
            The display, drawn.
        """
        if not isinstance(data, Predictions):
            raise InputError(f"must be Predictions, got {type(data).__name__}", argument="data")
        if times is None:
            raise InputError("must be the period of each row, got None", argument="times")
        check_rows("times", len(times), len(data))
        periods, place = np.unique(np.asarray(times), return_inverse=True)
        parts = [_rows_of(data, place == period) for period in range(periods.size)]
        intervals = [mcdp_interval(part, epsilon=epsilon, **options) for part in parts]
        return cls(periods.tolist(), intervals, epsilon=epsilon, max_mcdp=max_mcdp).plot(ax)

    def _draw(self, ax: Any) -> None:
        known = [interval for interval in self.intervals if interval is not None]
        ends = [(each.low, each.estimate, each.high) if each else (np.nan,) * 3 for each in self.intervals]
        low, estimate, high = np.array(ends).T
        confidence = f"{100 * known[0].confidence:g}% interval" if known else "interval"
        ax.fill_between(self.times, low, high, color=FIRST, alpha=0.2, lw=0, label=confidence)
        ax.plot(self.times, estimate, "o-", color=FIRST, ms=4, label=f"MCDP({self.epsilon:g})")
        if self.max_mcdp is not None:
            ax.axhline(self.max_mcdp, color=SECOND, ls="--", label=f"bound of {100 * self.max_mcdp:g}%")
        if any(self.alarms):
            alarmed = np.where(self.alarms, estimate, np.nan)
            ax.plot(self.times, alarmed, "X", color=SECOND, ms=9, label="alarm")
        ax.set_ylim(0.0, None)
        self._show_percent(ax.yaxis, f"MCDP({self.epsilon:g})")
        ax.tick_params(axis="x", rotation=30 if len(self.times) > 4 else 0)
        self._add_legend(ax, [confidence])


def _rows_of(data: Predictions, rows: BoolArray) -> Predictions:
    """Some rows of predictions, with the groups that occur among them."""
    present, codes = np.unique(data.codes[rows], return_inverse=True)
    return replace(
        data,
        scores=data.scores[rows],
        codes=codes.astype(data.codes.dtype),
        groups=tuple(data.groups[code] for code in present),
        labels=None if data.labels is None else data.labels[rows],
        weights=None if data.weights is None else data.weights[rows],
        clusters=None if data.clusters is None else data.clusters[rows],
    )
