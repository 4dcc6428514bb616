"""Figures of one model's scores: gaps, distributions, the profile, impact ratios, and MCDP over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from localparity._text import points
from localparity._types import Compare, Criterion, FloatArray, Group, IntArray, Seed
from localparity._validation import as_count, as_fraction, as_probability
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._comparison import EVERYONE
from localparity.counts._score_counts import Data, as_counts, checked_data, strata_of, with_everyone
from localparity.metrics import GapCurve, Interval, McdpProfile, Window
from localparity.metrics._gap_curve import gap_curves
from localparity.report.displays._base import (
    COLOURS,
    FIRST,
    INK,
    MOST_POINTS,
    QUIET,
    SECOND,
    WINDOW,
    Display,
    PredictionsDisplay,
    counts_and_curve,
    name_lines,
    place_in,
    show_percent,
    shown_name,
    thin_steps,
    thin_thresholds,
    write_beside,
)
from localparity.uncertainty import ImpactRatioCurve
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
        room = 72.0 * ax.figure.get_figwidth() * ax.get_position().width * place_in(ax.get_xlim(), at)
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


# Impact ratios at every cutoff, with their bands and the cutoffs that are safe.


_SAFE = "#009E73"
_MOST_DRAWN = 600
_HIGHEST = 2.0


class ImpactRatioDisplay(Display):
    """The ratio of each group's selection rate to the reference's at every cutoff, with its band.

    Cutoffs at which the band of every group lies at or above `min_ratio` are shaded; without bands, those at
    which every ratio does. `ImpactRatioCurve.plot` makes one.

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
    >>> lp.impact_ratio_curve(rows).plot().ax_.get_ylabel()
    'ratio to the best-off group'
    """

    def __init__(self, curve: ImpactRatioCurve, *, min_ratio: float = 0.8) -> None:
        self.curve = curve
        self.min_ratio = as_fraction(min_ratio, "min_ratio")

    def _draw(self, ax: Any) -> None:
        curve, places = self.curve, self._places()
        at = np.append(curve.cutoffs[places], curve.score_range[1])
        ends = []
        for row, group in enumerate(curve.groups):
            if group == curve.reference:
                continue
            colour, ratios = COLOURS[row % len(COLOURS)], _extended(curve.ratios[row, places])
            known = ratios[np.isfinite(ratios)]
            ends += [(float(known[-1]), shown_name(group).strip(), colour)] if known.size else []
            ax.step(at, ratios, where="post", color=colour)
            if curve.confidence is not None:
                low, high = (_extended(end[row, places]) for end in curve.ratio_bands)
                ax.fill_between(at, low, high, step="post", color=colour, alpha=0.15, lw=0)
        ax.axhline(self.min_ratio, color=QUIET, lw=1.0, ls="--")
        top = np.nanmax(curve.ratios, initial=1.0, where=np.isfinite(curve.ratios))
        ax.set_ylim(0.0, min(1.05 * top, _HIGHEST))
        ax.set_xlim(*curve.score_range)
        among = "" if curve.label is None else f", among people with label {curve.label}"
        ax.set_xlabel(f"cutoff{among}")
        reference = "the best-off group" if curve.reference is None else shown_name(curve.reference)
        ax.set_ylabel(f"ratio to {reference}")
        self._shade_safe(ax)
        name_lines(ax, [*ends, (self.min_ratio, f"{self.min_ratio:g}", QUIET)])

    def _shade_safe(self, ax: Any) -> None:
        """Shade the cutoffs that are safe, and say so above the widest."""
        safe = self.curve.safe_cutoffs(self.min_ratio)
        ranges = safe.by_estimate if safe.by_band is None else safe.by_band
        for each in ranges:
            ax.axvspan(each.low, each.high, color=_SAFE, alpha=0.12, lw=0)
        if ranges:
            widest = max(ranges, key=lambda each: each.high - each.low)
            sure = "" if safe.confidence is None else f" ({100.0 * safe.confidence:g}%)"
            at = ((widest.low + widest.high) / 2.0, 0.03)
            look = {"xycoords": ax.get_xaxis_transform(), "va": "bottom"}
            write_beside(ax, at, f"safe{sure}", colour=_SAFE, move=(0.0, 0.0), **look)

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


class McdpOverTimeDisplay(Display):
    """MCDP of one period after the other with its interval, the bound that it should keep, and alarms.

    Make one with `from_periods`.

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
    >>> intervals = [lp.results.Interval(0.2, 0.3, 0.4, 0.95), lp.results.Interval(0.1, 0.2, 0.3, 0.95)]
    >>> display = lp.report.McdpOverTimeDisplay(["2026-05", "2026-06"], intervals, max_mcdp=0.2)
    >>> display.plot().ax_.get_ylabel()
    'MCDP(0) and its 95% interval'
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

    def _draw(self, ax: Any) -> None:
        ends = [(each.low, each.estimate, each.high) if each else (np.nan,) * 3 for each in self.intervals]
        low, estimate, high = np.array(ends).T
        ax.fill_between(self.times, low, high, color=FIRST, alpha=0.2, lw=0)
        ax.plot(self.times, estimate, "o-", color=FIRST, ms=4, lw=1.2)
        if self.max_mcdp is not None:
            ax.axhline(self.max_mcdp, color=INK, lw=1.0, ls="--")
            at, look = (0.0, self.max_mcdp), {"xycoords": ax.get_yaxis_transform()}
            write_beside(ax, at, f"bound {100 * self.max_mcdp:g}%", move=(4.0, 6.0), **look)
        if any(self.alarms):
            alarmed = np.where(self.alarms, estimate, np.nan)
            ax.plot(self.times, alarmed, "o", color=SECOND, ms=7)
            last = len(self.alarms) - 1 - self.alarms[::-1].index(True)
            if np.isfinite(estimate[last]):
                at = (self.times[last], estimate[last])
                write_beside(ax, at, "alarm", colour=SECOND, move=(0.0, 11.0), weight="bold")
        ax.set_ylim(0.0, None)
        known = [interval for interval in self.intervals if interval is not None]
        sure = f" and its {100 * known[0].confidence:g}% interval" if known else ""
        show_percent(ax.yaxis, f"MCDP({self.epsilon:g}){sure}")
        if isinstance(self.times[0], str):
            width = 72.0 * ax.figure.get_figwidth() * ax.get_position().width
            few = max(2, min(len(self.times), int(width / (7.0 * len(self.times[0])))))
            places = np.unique(np.linspace(0, len(self.times) - 1, few).round().astype(int))
            ax.set_xticks([self.times[place] for place in places])
