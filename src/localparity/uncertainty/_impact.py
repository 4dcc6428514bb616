"""Selection rates and their ratios at every cutoff, with bands that hold at all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._types import FloatArray, Group, HigherIs, ScoreRange
from localparity._validation import as_count, as_fraction, as_number, as_probability
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.metrics._interval import Interval
from localparity.metrics._selection import Selection, quotients, ratios_to_best
from localparity.uncertainty._impact_ratio import ImpactRatio, finite
from localparity.uncertainty._rate_bands import rate_band, shared_error

if TYPE_CHECKING:
    from localparity.report import ImpactRatioDisplay
    from localparity.uncertainty._safe_cutoffs import SafeCutoffs

MIN_RATE = 0.05
_ALMOST = 1e-9
_MOST_WRITTEN = 500


@dataclass(frozen=True, eq=False)
class ImpactRatioCurve:
    """Selection rates of all groups, and their ratios to a reference group, at every cutoff.

    Make one with `impact_ratio_curve` or `Audit.impact_ratios`. Between two neighbouring cutoffs the same
    people are selected: every number holds from its cutoff up to, but not at, the next. Arrays have a row for
    each group and a column for each cutoff.

    Attributes
    ----------
    selection : Selection
        Who is selected at each cutoff.
    reference : hashable or None
        The group that the others are compared with; None for the best-off group at each cutoff.
    higher_is : str
        "better" where people above a cutoff are selected, "worse" where those at or below it are.
    score_range : tuple of float
        The range of the scores.
    resolution : float
        Fractions of the range that differ by less count as equal.
    label : int or None
        The label of the people compared, None for everyone.
    confidence : float or None
        The probability with which the bands hold for all groups at all cutoffs together; None without bands.
    standardised_differences : mapping or None
        Each group's mean score less the reference's, over their pooled standard deviation; negative where the
        group is worse off. Without a reference, the group with the best mean score is it. None where the
        counts do not have every score.
    accuracy : ndarray or None
        The share of all people whose score is above the cutoff exactly when their label is 1; None without
        labels.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8], ["f", "f", "f", "m", "m", "m"]
    >>> curve = lp.impact_ratio_curve(None, scores, sensitive_features=sex)
    >>> curve.cutoffs
    array([0. , 0.1, 0.3, 0.4, 0.6, 0.8])
    >>> curve.ratios.round(2)
    array([[1.  , 0.67, 0.33, 0.5 , 0.  ,  nan],
           [1.  , 1.  , 1.  , 1.  , 1.  ,  nan]])
    """

    selection: Selection
    reference: Group | None
    higher_is: HigherIs
    score_range: ScoreRange
    resolution: float
    label: int | None
    confidence: float | None
    standardised_differences: Mapping[Group, float] | None
    accuracy: FloatArray | None

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups, in the order of the rows."""
        return self.selection.groups

    @property
    def cutoffs(self) -> FloatArray:
        """The bottom of the score range and every score, in the scores' own units."""
        return self.selection.cutoffs

    @property
    def whole(self) -> bool:
        """Whether the scores are whole numbers, such as deciles, on a range wider than 1."""
        low, high = self.score_range
        known = self.selection.least is self.selection.selected
        return known and high - low > 1.0 and bool((self.cutoffs[1:] == np.rint(self.cutoffs[1:])).all())

    @property
    def rates(self) -> FloatArray:
        """The selection rates."""
        return self.selection.rates

    @cached_property
    def ratios(self) -> FloatArray:
        """The adverse impact ratios: rates over the reference's, not a number where nobody is selected."""
        return self._over_reference(self.rates, self.rates)

    @cached_property
    def odds_ratios(self) -> FloatArray:
        """The odds of being selected over the reference's; not a number where both are 0 or infinite."""
        odds = _odds(self.rates)
        return self._over_reference(odds, odds)

    @cached_property
    def rate_bands(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper ends of the selection rates; an error without a confidence."""
        if self.confidence is None:
            raise ValueError("the curve has no bands; make it with a confidence")
        error = shared_error(self.confidence, len(self.groups))
        sizes = self.selection.sizes.astype(np.int64).tolist()
        bands = [rate_band(size, error) for size in sizes]
        counted = zip(bands, self.selection.least, self.selection.most, strict=True)
        ends = [
            (band[0][np.floor(least).astype(np.int64)], band[1][np.ceil(most).astype(np.int64)])
            for band, least, most in counted
        ]
        low, high = (np.stack(side) for side in zip(*ends, strict=True))
        return low, high

    @cached_property
    def ratio_bands(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper ends of the adverse impact ratios."""
        low, high = self.rate_bands
        return self._over_reference(low, high), self._over_reference(high, low)

    @cached_property
    def odds_ratio_bands(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper ends of the odds ratios."""
        low, high = map(_odds, self.rate_bands)
        return self._over_reference(low, high), self._over_reference(high, low)

    @cached_property
    def least_ratios(self) -> FloatArray:
        """The ratios, and the least that they can be where the counts do not have every score."""
        shares = self.selection.shares
        return self._over_reference(shares(self.selection.least), shares(self.selection.most))

    def shortfall(self, min_ratio: float = 1.0) -> FloatArray:
        """Return how many more of each group would have to be selected to reach a ratio to the reference.

        The reference's own selection is taken to stay as it is.

        Parameters
        ----------
        min_ratio : float
            The ratio to reach, a fraction in [0, 1].

        Returns
        -------
        ndarray of shape (groups, cutoffs)
            Whole people; with weights, weight.
        """
        min_ratio = as_fraction(min_ratio, "min_ratio")
        rates = self.rates
        aim = rates.max(axis=0) if self.reference is None else rates[self.groups.index(self.reference)]
        missing = min_ratio * aim * self.selection.sizes[:, None] - self.selection.selected
        if self.selection.selected.dtype.kind == "i":
            missing = np.ceil(missing - _ALMOST * self.selection.sizes[:, None])
        return np.asarray(np.maximum(missing, 0.0), dtype=np.float64)

    def at(self, cutoff: float) -> tuple[ImpactRatio, ...]:
        """Return every group at one cutoff.

        Parameters
        ----------
        cutoff : float
            In the scores' own units, inside the score range.

        Returns
        -------
        tuple of ImpactRatio
            One for each group, in the order of `groups`.
        """
        cutoff = as_number(cutoff, "cutoff")
        low, high = self.score_range
        if not low <= cutoff <= high:
            raise ValueError(f"cutoff must be inside score_range ({low}, {high}), got {cutoff:g}")
        place = self.selection.place(cutoff, self.resolution, self.score_range)
        if place < 0:
            first = f"{self.cutoffs[0]:g}"
            raise ValueError(f"cutoff must be >= {first}, below which too few people are, got {cutoff:g}")
        if not self.selection.selected[:, place].any():
            raise ValueError(f"nobody is selected at cutoff {cutoff:g}, so no ratio is defined")
        there = self._only(place, at_cutoff=cutoff <= self.cutoffs[place])
        return tuple(there._ratio(row) for row in range(len(self.groups)))

    def _only(self, place: int, *, at_cutoff: bool) -> ImpactRatioCurve:
        """The curve at one cutoff by itself, or anywhere from it up to the next."""
        return replace(self, selection=self.selection.only(place, at_cutoff=at_cutoff), accuracy=None)

    def _ratio(self, row: int) -> ImpactRatio:
        """A group, of a curve at one cutoff."""
        best = self.groups[int(self.rates.argmax())] if self.reference is None else self.reference
        names = ("rate", "ratio", "odds_ratio")
        values: dict[str, Any] = {name: float(getattr(self, f"{name}s")[row, 0]) for name in names}
        intervals: dict[str, Any] = {f"{name}_interval": None for name in names}
        if self.confidence is not None:
            for name in names:
                low, high = (float(end[row, 0]) for end in getattr(self, f"{name}_bands"))
                intervals[f"{name}_interval"] = Interval(low, values[name], high, self.confidence)
        return ImpactRatio(
            group=self.groups[row],
            reference=best,
            selected=float(self.selection.selected[row, 0]),
            size=float(self.selection.sizes[row]),
            shortfall=float(self.shortfall()[row, 0]),
            **values,
            **intervals,
        )

    def worst(self, min_rate: float = MIN_RATE) -> tuple[float, ImpactRatio]:
        """Return the lowest ratio at any cutoff, and that cutoff.

        Parameters
        ----------
        min_rate : float
            Only cutoffs at which the reference's selection rate is at least this, so that a cutoff that
            selects one person does not count; where there are none, those with the highest rate.

        Returns
        -------
        tuple of float and ImpactRatio
            The cutoff, the first of several; and the group that has the lowest ratio there.
        """
        min_rate = as_probability(min_rate, "min_rate")
        rates = self.rates if self.reference is None else self.rates[[self.groups.index(self.reference)]]
        if not rates.any():
            raise ValueError("no cutoff selects anybody of the reference group, so no ratio is defined")
        looked_at = np.flatnonzero(rates.max(axis=0) >= min(min_rate, rates.max()))
        ratios = self.ratios[:, looked_at]
        row, column = np.unravel_index(int(ratios.argmin()), ratios.shape)
        place = int(looked_at[column])
        return float(self.cutoffs[place]), self._only(place, at_cutoff=True)._ratio(int(row))

    def safe_cutoffs(self, min_ratio: float = 0.8) -> SafeCutoffs:
        """Return the cutoffs at which every group's ratio is at least `min_ratio`.

        Parameters
        ----------
        min_ratio : float
            The least ratio that is safe, a fraction in [0, 1].

        Returns
        -------
        SafeCutoffs
        """
        from localparity.uncertainty._safe_cutoffs import find_safe_cutoffs

        return find_safe_cutoffs(self, as_fraction(min_ratio, "min_ratio"))

    def disclosed(self, disclosure_limit: int = DISCLOSURE_LIMIT, *, most: int = 10_000) -> ImpactRatioCurve:
        """Return the curve at so few cutoffs that every step rests on enough people, to be handed on.

        Its bands, safe cutoffs and lowest ratio allow for what is left out: they hold as before, and may be a
        little wider.

        Parameters
        ----------
        disclosure_limit : int
            Between two cutoffs a group has at least so many people, or none; a group with fewer is an error.
        most : int
            The most cutoffs that are kept.

        Returns
        -------
        ImpactRatioCurve
        """
        limit = as_count(disclosure_limit, "disclosure_limit")
        for group, people in zip(self.groups, self.selection.people[:, -1].tolist(), strict=True):
            if people < limit:
                raise ValueError(f"disclosure_limit={limit} does not allow group {group!r}, of fewer people")
        shown = self.selection.disclosed(limit, as_count(most, "most"), self.higher_is)
        if not shown.selected.any():
            raise ValueError(
                f"no cutoff that selects anybody parts every group into {limit} people and more, or none; "
                "leave small groups out, or pass a smaller disclosure_limit"
            )
        kept = np.searchsorted(self.cutoffs, shown.cutoffs)
        accuracy = None if self.accuracy is None else self.accuracy[kept]
        return replace(self, selection=shown, accuracy=accuracy)

    def to_dict(self, *, disclosure_limit: int = DISCLOSURE_LIMIT) -> dict[str, Any]:
        """Return the curve as plain dictionaries and lists, at some hundred cutoffs at the most.

        Parameters
        ----------
        disclosure_limit : int
            As in `disclosed`.

        Returns
        -------
        dict
            What is not a number, as where nobody is selected, or infinite is None.
        """
        shown = self.disclosed(disclosure_limit, most=_MOST_WRITTEN)
        arrays = {"rates": shown.rates, "ratios": shown.ratios, "odds_ratios": shown.odds_ratios}
        arrays["shortfalls"] = shown.shortfall()
        if self.confidence is not None:
            for name in ("rate", "ratio", "odds_ratio"):
                arrays[f"{name}s_low"], arrays[f"{name}s_high"] = getattr(shown, f"{name}_bands")
        groups: list[dict[str, Any]] = [{"group": group} for group in self.groups]
        for row, found in enumerate(groups):
            if self.standardised_differences is not None:
                found["standardised_difference"] = finite(self.standardised_differences[self.groups[row]])
            found |= {name: finite(array[row].tolist()) for name, array in arrays.items()}
        return {
            "reference": self.reference,
            "higher_is": self.higher_is,
            "label": self.label,
            "confidence": self.confidence,
            "cutoffs": shown.cutoffs.tolist(),
            "accuracy": None if shown.accuracy is None else shown.accuracy.tolist(),
            "groups": groups,
        }

    def plot(self, ax: Any = None, *, min_ratio: float = 0.8) -> ImpactRatioDisplay:
        """Draw the ratios with their bands, and shade the safe cutoffs.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure by default.
        min_ratio : float
            The least ratio that is safe.

        Returns
        -------
        ImpactRatioDisplay
        """
        from localparity.report import ImpactRatioDisplay

        return ImpactRatioDisplay(self, min_ratio=min_ratio).plot(ax)

    def _over_reference(self, part: FloatArray, whole: FloatArray) -> FloatArray:
        """Rows of one array over the reference's row of another, whose own ratio is 1."""
        if self.reference is None:
            return ratios_to_best(part, whole)
        row = self.groups.index(self.reference)
        found = quotients(part, whole[row])
        found[row] = np.where(np.isnan(found[row]), np.nan, 1.0)
        return found

    def __repr__(self) -> str:
        reference = "the best-off group" if self.reference is None else repr(self.reference)
        return f"ImpactRatioCurve({len(self.groups)} groups, {self.cutoffs.size} cutoffs, over {reference})"


def _odds(rates: FloatArray) -> FloatArray:
    return quotients(rates, 1.0 - rates)
