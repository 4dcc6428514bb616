"""Selection rates and their ratios at every cutoff, with bands that hold at all of them together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from localparity._text import capitalised, group_text, number_text, percent, round_inward, run_text
from localparity._types import BoolArray, Criterion, FloatArray, Group, HigherIs, IntArray, ScoreRange
from localparity._validation import (
    InputError,
    as_choice,
    as_count,
    as_fraction,
    as_probability,
    as_threshold,
    setting,
    unknown_name,
)
from localparity.counts._comparison import Comparison
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.counts._score_counts import Data, ScoreCounts, as_counts, checked_data, strata_of
from localparity.metrics._gap_curve import Interval
from localparity.metrics._selection import SelectionCounts, quotients, ratios_to_best


@dataclass(frozen=True)
class ImpactRatio:
    """A group at one cutoff: how many are selected, and how that compares with the reference group.

    Attributes
    ----------
    group, reference : hashable
        The group, and the group that it is compared with.
    selected, size : float
        How many of the group are selected, of how many; with weights, their weight.
    rate, ratio : float
        The selection rate, and its ratio to that of the reference.
    rate_interval, ratio_interval : Interval or None
        Their intervals, which hold at all cutoffs and for all groups together; None without bands.
    shortfall : float
        How many more of the group would have to be selected to reach the reference's rate.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8], ["f", "f", "f", "m", "m", "m"]
    >>> rows = lp.Predictions.from_arrays(None, scores, sensitive_features=sex)
    >>> first, _ = lp.impact_ratio_curve(rows).at(0.5)
    >>> first.group, first.reference, first.ratio, first.shortfall
    ('f', 'm', 0.5, 1.0)
    """

    group: Group
    reference: Group
    selected: float
    size: float
    rate: float
    ratio: float
    rate_interval: Interval | None
    ratio_interval: Interval | None
    shortfall: float


def finite(value: Any) -> Any:
    """A number, or None in place of one that JSON does not have; inside dictionaries and lists too."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# How far the share of a group above every cutoff may be from the measured one. A band of one width for all
# cutoffs says nothing where few are selected. Here each number of people selected has the interval of Clopper
# and Pearson, at one level at which all intervals hold together with the confidence asked for (Aldor-Noiman
# and others, 2013, *The power to see*). The probability of that is computed, not simulated.

_MOST_RANKS = 1500
_TAIL_RANKS = 100
_CLOSE = 0.98
_LEAST_ERROR = 1e-9
_BY_TRANSFORM = 2**17


def shared_error(confidence: float, groups: int) -> float:
    """The error of each of several independent groups whose bands hold together with a confidence."""
    return -math.expm1(math.log(confidence) / groups)


@lru_cache(maxsize=512)
def rate_band(size: int, error: float) -> tuple[FloatArray, FloatArray]:
    """The ends between which the true rate lies, by how many of a group's rows are selected.

    Let k of n rows have a score above a cutoff t. Of a continuous distribution the share above the k-th
    highest score is the k-th smallest of n uniform numbers, U_k, so that the true rate S(t) is at least U_k
    and at most U_(k+1); with ties all the more. Numbers l_k with P(l_k <= U_k <= 1 - l_(n+1-k) for all k) >=
    1 - error therefore give l_k <= S(t) <= 1 - l_(n-k) at all cutoffs together. Here l_k is the quantile of
    Beta(k, n + 1 - k), the distribution of U_k, at one level for all k. In groups of more than 1,500 rows, k
    runs over about as many ranks, closer together near the tails; a rank between two has the end of its
    neighbour.
    """
    ranks = _ranks(size)
    ends = _ends(size, ranks, _local_level(size, error, ranks))
    places = np.searchsorted(ranks, np.arange(size + 1), side="right")
    low = np.concatenate([[0.0], ends])[places]
    high = 1.0 - low[::-1]
    low.flags.writeable = high.flags.writeable = False
    return low, high


def _ranks(size: int) -> IntArray:
    """The ranks whose ends are computed: all, or some that are the closer the nearer the tails."""
    if size <= _MOST_RANKS:
        return np.arange(1, size + 1)
    angles = np.linspace(0.0, 0.5 * np.pi, _MOST_RANKS)
    middle = np.rint(size * np.sin(angles) ** 2).astype(np.int64)
    tail = np.arange(1, _TAIL_RANKS + 1)
    ranks = np.unique(np.concatenate([tail, middle, size + 1 - tail]))
    return ranks[ranks >= 1]


def _ends(size: int, ranks: IntArray, level: float) -> FloatArray:
    from scipy.special import betaincinv

    return np.asarray(betaincinv(ranks, size + 1.0 - ranks, 0.5 * level))


def _local_level(size: int, error: float, ranks: IntArray) -> float:
    """The level of each interval at which all hold together but for an error, from below."""
    if error < _LEAST_ERROR:
        return error / ranks.size  # the union bound, where floats cannot tell a probability from 1
    level = error / (1.0 + 2.0 * math.pow(math.log(ranks.size), 1.5))
    while True:
        missed = 1.0 - hold_probability(size, ranks, _ends(size, ranks, level))
        if _CLOSE * error <= missed <= error:
            return level
        # The error is all but a power of the level, a little below the first: each step is ten times closer.
        level = min(error, level * math.pow(0.5 * (1.0 + _CLOSE) * error / missed, 1.05))


def hold_probability(size: int, ranks: IntArray, ends: FloatArray) -> float:
    """The probability that no uniform order statistic lies below its rank's end, or above the mirrored end.

    The number of uniform numbers below u is a Poisson process, given how many there are in all (Khmaladze and
    Shinjikashvili, 2001); the distribution of one that has met all ends so far is carried to the next end.
    """
    places = np.concatenate([ends, 1.0 - ends])
    order = np.argsort(places, kind="stable")
    is_lower_end = order < ranks.size
    reached = np.concatenate([ranks - 1, size + 1 - ranks])[order]
    # The process may go up to what the next lower end allows.
    most = np.minimum.accumulate(np.where(is_lower_end, reached, size)[::-1])[::-1]
    state, low, before = np.ones(1), 0, 0.0
    stops = zip(places[order].tolist(), is_lower_end.tolist(), reached.tolist(), most.tolist(), strict=True)
    for place, at_lower, count, high in stops:
        state = _advance(state, size * (place - before), high - low + 1)
        before = place
        if not at_lower and count > low:
            state, low = state[count - low :], count
    left = size - low - np.arange(state.size)
    mean = size * (1.0 - before)
    reached_all = np.exp(left * math.log(mean) - mean - _log_factorials(left))
    return float(state @ reached_all) / math.exp(size * math.log(size) - size - math.lgamma(size + 1.0))


def _advance(state: FloatArray, mean: float, length: int) -> FloatArray:
    """The distribution of a count after a Poisson number more, cut to a length."""
    if mean <= 0.0:
        return state[:length]
    terms = int(min(length, mean + 10.0 * math.sqrt(mean) + 25.0))
    steps = np.arange(terms)
    known = _first_log_factorials(1 << (terms - 1).bit_length())
    chances = np.exp(steps * math.log(mean) - mean - known[:terms])
    if state.size * terms <= _BY_TRANSFORM:
        return np.convolve(state, chances)[:length]
    size = 1 << (state.size + terms - 1).bit_length()
    both = np.fft.irfft(np.fft.rfft(state, size) * np.fft.rfft(chances, size), size)
    return np.maximum(both[: min(length, state.size + terms - 1)], 0.0)


@lru_cache(maxsize=32)
def _first_log_factorials(count: int) -> FloatArray:
    return _log_factorials(np.arange(count))


def _log_factorials(numbers: IntArray) -> FloatArray:
    from scipy.special import gammaln

    return np.asarray(gammaln(numbers + 1.0))


_LEAST_RATE = 0.05  # the lowest ratio is looked for where so many of the reference group are selected
_ALMOST = 1e-9
_MOST_WRITTEN = 500


@dataclass(frozen=True, eq=False)
class ImpactRatioCurve:
    """Selection rates of all groups, and their ratios to a reference group, at every cutoff.

    Make one with `impact_ratio_curve` or `Audit.impact_ratios`. Arrays have a row for each group and a column
    for each cutoff; every number holds from its cutoff up to, but not at, the next.

    Attributes
    ----------
    selection : SelectionCounts
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
    accuracy : ndarray or None
        The share of all people whose score is above the cutoff exactly when their label is 1; None without
        labels.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8], ["f", "f", "f", "m", "m", "m"]
    >>> curve = lp.impact_ratio_curve(lp.Predictions.from_arrays(None, scores, sensitive_features=sex))
    >>> curve.cutoffs
    array([0. , 0.1, 0.3, 0.4, 0.6, 0.8])
    >>> curve.ratios.round(2)
    array([[1.  , 0.67, 0.33, 0.5 , 0.  ,  nan],
           [1.  , 1.  , 1.  , 1.  , 1.  ,  nan]])
    """

    selection: SelectionCounts
    reference: Group | None
    higher_is: HigherIs
    score_range: ScoreRange
    resolution: float
    label: int | None
    confidence: float | None
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
    def rates(self) -> FloatArray:
        """The selection rates."""
        return self.selection.rates

    @cached_property
    def ratios(self) -> FloatArray:
        """The adverse impact ratios: rates over the reference's, not a number where nobody is selected."""
        return self._over_reference(self.rates, self.rates)

    @cached_property
    def rate_bands(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper ends of the selection rates; an error without a confidence."""
        if self.confidence is None:
            raise ValueError("the curve has no bands; make it with a confidence")
        error = shared_error(self.confidence, len(self.groups))
        selection = self.selection
        bands = [rate_band(size, error) for size in selection.sizes.astype(np.int64).tolist()]
        least, most = np.floor(selection.least).astype(np.int64), np.ceil(selection.most).astype(np.int64)
        low = np.stack([band[0][row] for band, row in zip(bands, least, strict=True)])
        return low, np.stack([band[1][row] for band, row in zip(bands, most, strict=True)])

    @cached_property
    def ratio_bands(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper ends of the adverse impact ratios."""
        low, high = self.rate_bands
        return self._over_reference(low, high), self._over_reference(high, low)

    @cached_property
    def shortfalls(self) -> FloatArray:
        """How many more people of each group, or weight, must be selected to reach the reference's rate."""
        rates = self.rates
        aim = rates.max(axis=0) if self.reference is None else rates[self.groups.index(self.reference)]
        missing = aim * self.selection.sizes[:, None] - self.selection.selected
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
        cutoff = as_threshold(cutoff, self.score_range, "cutoff")
        place = self.selection.place(cutoff, self.resolution, self.score_range)
        if place < 0:
            first = f"{self.cutoffs[0]:g}"
            raise InputError(f"must be >= {first}, below which too few people are, got {cutoff:g}", "cutoff")
        if not self.selection.selected[:, place].any():
            raise ValueError(f"nobody is selected at cutoff {cutoff:g}, so no ratio is defined")
        return self._ratios_at(place, at_cutoff=cutoff <= self.cutoffs[place])

    def _ratios_at(self, place: int, *, at_cutoff: bool) -> tuple[ImpactRatio, ...]:
        """Every group at one cutoff by itself, or anywhere from it up to the next."""
        selection = self.selection.only(place, at_cutoff=at_cutoff)
        there = replace(self, selection=selection, accuracy=None)
        best = self.groups[int(there.rates.argmax())] if self.reference is None else self.reference
        counted = np.column_stack([selection.selected, selection.sizes]).astype(np.float64)
        shown = np.column_stack([counted, there.rates, there.ratios]).tolist()
        bands: list[Any] = [(None, None)] * len(self.groups)
        if self.confidence is not None:
            ends = np.column_stack([*there.rate_bands, *there.ratio_bands]).tolist()
            bands = [
                (Interval(low, rate, high, self.confidence), Interval(least, ratio, most, self.confidence))
                for (low, high, least, most), (_, _, rate, ratio) in zip(ends, shown, strict=True)
            ]
        rows = zip(self.groups, shown, bands, there.shortfalls[:, 0].tolist(), strict=True)
        fields: list[list[Any]] = [[group, best, *some, *pair, short] for group, some, pair, short in rows]
        return tuple(ImpactRatio(*values) for values in fields)

    def _worst(self) -> tuple[float, ImpactRatio]:
        """The first cutoff with the lowest ratio, and the group that has it, where not too few are selected.

        Where all cutoffs select too few of the reference group, those with its highest rate are looked at.
        """
        rates = self.rates if self.reference is None else self.rates[[self.groups.index(self.reference)]]
        if not rates.any():
            raise ValueError("no cutoff selects anybody of the reference group, so no ratio is defined")
        looked_at = np.flatnonzero(rates.max(axis=0) >= min(_LEAST_RATE, rates.max()))
        ratios = self.ratios[:, looked_at]
        row, column = np.unravel_index(int(ratios.argmin()), ratios.shape)
        place = int(looked_at[column])
        return float(self.cutoffs[place]), self._ratios_at(place, at_cutoff=True)[row]

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
        min_ratio = as_fraction(min_ratio, "min_ratio")
        aim, selection = min_ratio * (1.0 - _SLACK), self.selection
        # Where the counts do not have every score, the least that the ratios can be.
        least = self._over_reference(selection.shares(selection.least), selection.shares(selection.most))
        by_estimate = _ranges(self, np.all(least >= aim, axis=0))
        by_band = None
        if self.confidence is not None:
            by_band = _ranges(self, np.all(self.ratio_bands[0] >= aim, axis=0))
        cutoff, worst = self._worst()
        return SafeCutoffs(
            min_ratio, self.confidence, by_estimate, by_band, worst, cutoff, selection.complete
        )

    def disclosed(
        self, min_group_size: int = DISCLOSURE_LIMIT, *, most: int = 10_000, cutoff: float | None = None
    ) -> ImpactRatioCurve:
        """Return the curve at so few cutoffs that every step rests on enough people, to be handed on.

        Its bands, safe cutoffs and lowest ratio allow for that: they hold as before, and may be a little
        wider.

        Parameters
        ----------
        min_group_size : int
            Between two cutoffs a group has at least so many people, or none; a group with fewer is an error.
        most : int
            The most cutoffs that are kept.
        cutoff : float, optional
            A cutoff that is among them if it may be, since other outputs have it.

        Returns
        -------
        ImpactRatioCurve
        """
        limit = as_count(min_group_size, "min_group_size")
        for group, people in zip(self.groups, self.selection.people[:, -1].tolist(), strict=True):
            if people < limit:
                raise InputError(
                    f"{setting(min_group_size=limit)} does not allow group {group!r}, of fewer people"
                )
        kept = None if cutoff is None else max(0, int(np.searchsorted(self.cutoffs, cutoff, "right")) - 1)
        shown = self.selection.disclosed(limit, as_count(most, "most"), self.higher_is, kept)
        if not shown.selected.any():
            raise InputError(
                f"no cutoff that selects anybody parts every group into {limit} people and more, or none; "
                f"leave small groups out, or pass a smaller {setting('min_group_size')}"
            )
        columns = np.searchsorted(self.cutoffs, shown.cutoffs)
        accuracy = None if self.accuracy is None else self.accuracy[columns]
        return replace(self, selection=shown, accuracy=accuracy)

    def to_dict(self, *, min_group_size: int = DISCLOSURE_LIMIT) -> dict[str, Any]:
        """Return the curve as plain dictionaries and lists, at some hundred cutoffs at the most.

        Parameters
        ----------
        min_group_size : int
            As in `disclosed`.

        Returns
        -------
        dict
            What is not a number, as where nobody is selected, or infinite is None.
        """
        shown = self.disclosed(min_group_size, most=_MOST_WRITTEN)
        arrays = {"rates": shown.rates, "ratios": shown.ratios, "shortfalls": shown.shortfalls}
        if self.confidence is not None:
            arrays["rates_low"], arrays["rates_high"] = shown.rate_bands
            arrays["ratios_low"], arrays["ratios_high"] = shown.ratio_bands
        groups = [
            {"group": group, **{name: finite(array[row].tolist()) for name, array in arrays.items()}}
            for row, group in enumerate(self.groups)
        ]
        return {
            "reference": self.reference,
            "higher_is": self.higher_is,
            "label": self.label,
            "confidence": self.confidence,
            "cutoffs": shown.cutoffs.tolist(),
            "accuracy": None if shown.accuracy is None else shown.accuracy.tolist(),
            "groups": groups,
        }

    def _repr_html_(self) -> str:
        """The lowest ratio at each cutoff, for a notebook."""
        from localparity.report.page._notebook import ratio_html

        return ratio_html(self)

    def _over_reference(self, part: FloatArray, whole: FloatArray) -> FloatArray:
        """Rows of one array over the reference's row of another, whose own ratio is 1."""
        if self.reference is None:
            return ratios_to_best(part, whole)
        row = self.groups.index(self.reference)
        ratios = quotients(part, whole[row])
        ratios[row] = np.where(np.isnan(ratios[row]), np.nan, 1.0)
        return ratios

    def __repr__(self) -> str:
        reference = "the best-off group" if self.reference is None else repr(self.reference)
        return f"ImpactRatioCurve({len(self.groups)} groups, {self.cutoffs.size} cutoffs, over {reference})"


_SLACK = 1e-12
_MOST_NAMED = 3
_LEAST_NAMED = 0.01


@dataclass(frozen=True)
class CutoffRange:
    """Neighbouring cutoffs: from `low` up to, but not at, `high`, or up to the top of the score range.

    Attributes
    ----------
    low, high : float
        The ends, in the scores' own units.
    up_to_top : bool
        Whether `high` is the top of the score range and itself one of the cutoffs.
    best_cutoff : float or None
        The most accurate of the cutoffs, on the people given; None without labels.
    accuracy : float or None
        The accuracy there: the share of people whose score is above it exactly when their label is 1.
    text : str
        The cutoffs in words.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.1, 0.4, 0.6, 0.9, 0.9], ["f", "m"] * 3
    >>> rows = lp.Predictions.from_arrays([0, 0, 0, 1, 1, 1], scores, sensitive_features=sex)
    >>> first, second = lp.impact_ratio_curve(rows).safe_cutoffs().by_estimate
    >>> second.text, second.best_cutoff, round(second.accuracy, 4)
    ('from 0.6 to just below 0.9', 0.6, 0.8333)
    """

    low: float
    high: float
    up_to_top: bool
    best_cutoff: float | None
    accuracy: float | None
    text: str

    @property
    def single(self) -> bool:
        """Whether the text names one cutoff, as a whole score."""
        return self.text.startswith("of ")


@dataclass(frozen=True)
class SafeCutoffs:
    """The cutoffs at which every group's ratio is at least `min_ratio`, by estimate and by the band.

    Cutoffs at which nobody is selected are not among them.

    Attributes
    ----------
    min_ratio : float
        The least ratio that is safe.
    confidence : float or None
        The probability with which all cutoffs of `by_band` are safe in the population, together, so that one
        may be chosen after a look at the data. None without bands.
    by_estimate : tuple of CutoffRange
        The cutoffs at which every group's measured ratio is at least `min_ratio`, ascending.
    by_band : tuple of CutoffRange or None
        Those at which the lower end of every group's ratio is; None without bands.
    worst : ImpactRatio
        The lowest ratio of any group at any cutoff that selects at least 5% of the reference group.
    worst_cutoff : float
        The first cutoff that has it.
    complete : bool
        Whether ratios are known at every cutoff; else nothing is said of those in between but that a range is
        safe.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(20_000, random_state=0)
    >>> sex = census.sensitive_features
    >>> rows = lp.Predictions.from_arrays(None, census.score, sensitive_features=sex)
    >>> print(lp.impact_ratio_curve(rows).safe_cutoffs().sentence)
    Any cutoff from 0 to just below 0.1229, or in a narrower range, keeps every group's
    ratio at or above 0.8 with 95% confidence.
    """

    min_ratio: float
    confidence: float | None
    by_estimate: tuple[CutoffRange, ...]
    by_band: tuple[CutoffRange, ...] | None
    worst: ImpactRatio
    worst_cutoff: float
    complete: bool = True

    @property
    def best(self) -> CutoffRange | None:
        """The range with the most accurate cutoff, of those by the band where there is one."""
        ranges = self.by_estimate if self.by_band is None else self.by_band
        known = [cutoffs for cutoffs in ranges if cutoffs.accuracy is not None]
        return max(known, key=lambda cutoffs: cutoffs.accuracy or 0.0, default=None)

    @property
    def worst_sentence(self) -> str:
        """The lowest ratio, where it is, and how sure, in one sentence."""
        worst = self.worst
        lowest = "The lowest ratio" if self.complete else "The lowest computed ratio"
        sure = ""
        if worst.ratio_interval is not None:
            low, high = worst.ratio_interval.low, worst.ratio_interval.high
            sure = f" ({100.0 * worst.ratio_interval.confidence:g}% interval {low:.2f} to {high:.2f})"
        return (
            f"{lowest} is {worst.ratio:.2f}{sure}: at a cutoff of {number_text(self.worst_cutoff, 4)}, "
            f"{percent(worst.rate)} of {group_text(worst.group)} are selected; {worst.shortfall:,.0f} more "
            f"would match the rate of {group_text(worst.reference)}."
        )

    @property
    def sentence(self) -> str:
        """What is safe, in one sentence."""
        aim = f"every group's ratio at or above {number_text(self.min_ratio)}"
        none = "No cutoff" if self.complete else "None of the computed cutoffs"
        safe, sure = self.by_band, f"with {number_text(100.0 * (self.confidence or 0.0), 10)}% confidence"
        if safe is None:
            safe, sure = self.by_estimate, "in these data"
        if safe:
            return capitalised(f"{_one_of(safe)} keeps {aim} {sure}.")
        if self.by_band is None:
            return f"{none} keeps {aim} {sure}."
        if not self.by_estimate:
            return f"{none} keeps {aim}, neither in these data nor {sure}."
        return f"{none} keeps {aim} {sure}; in these data, {_one_of(self.by_estimate)} does."

    def to_dict(self) -> dict[str, Any]:
        """Return the cutoffs as plain dictionaries and lists, with the sentences.

        `ImpactRatioCurve.disclosed` makes a curve whose cutoffs may be handed on.

        Returns
        -------
        dict
        """
        sentences = {"sentence": self.sentence, "worst_sentence": self.worst_sentence}
        plain: dict[str, Any] = finite({**sentences, **asdict(self)})
        return plain


def _one_of(ranges: Sequence[CutoffRange]) -> str:
    """A few ranges in words, the widest, and that there are others."""
    widest = sorted(ranges, key=lambda run: run.low - run.high)[:_MOST_NAMED]
    least = _LEAST_NAMED * (widest[0].high - widest[0].low)
    named = sorted([run for run in widest if run.high - run.low >= least], key=lambda run: run.low)
    text = ", or ".join(f"{'a' if run.single else 'any'} cutoff {run.text}" for run in named)
    others = len(ranges) - len(named)
    if not others:
        return text
    return f"{text}, or in {'a narrower range' if others == 1 else f'one of {others:,} narrower ranges'},"


def _ranges(curve: ImpactRatioCurve, safe: BoolArray) -> tuple[CutoffRange, ...]:
    """The runs of safe cutoffs."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], safe, [False]])))
    selection = curve.selection
    # Whether the scores are whole numbers, such as deciles, on a range wider than 1.
    whole = selection.least is selection.selected and curve.score_range[1] - curve.score_range[0] > 1.0
    whole = whole and bool((curve.cutoffs[1:] == np.rint(curve.cutoffs[1:])).all())
    ranges = []
    for start, end in edges.reshape(-1, 2).tolist():
        low, top = float(curve.cutoffs[start]), end == curve.cutoffs.size
        high = curve.score_range[1] if top else float(curve.cutoffs[end])
        best = accuracy = None
        if curve.accuracy is not None:
            index = start + int(curve.accuracy[start:end].argmax())
            best, accuracy = float(curve.cutoffs[index]), float(curve.accuracy[index])
        if low == high:
            text = f"of {number_text(low)}"
        else:
            text = "from {} to {}".format(*round_inward(low, high)) if top else run_text(low, high, whole)
        ranges.append(CutoffRange(low, high, top, best, accuracy, text))
    return tuple(ranges)


def impact_ratio_curve(
    data: Data,
    *,
    reference: Group | None = None,
    higher_is: HigherIs = "better",
    criterion: Criterion = "demographic_parity",
    min_group_size: int = 1,
    confidence: float | None = 0.95,
) -> ImpactRatioCurve:
    """Selection rates and their ratios at every cutoff at once, with bands that hold at all of them together.

    The adverse impact ratio of a group is its selection rate over that of a reference group. A model may pass
    a rule about ratios at one cutoff and fail at another: `p_rule` is the lowest ratio at one of them, and
    ``impact_ratio_curve(data).safe_cutoffs()`` are the cutoffs at which no group is below four fifths.

    The bands hold at any sample size, for all groups and all cutoffs together, if rows are independent and
    the model was not trained on them.

    Parameters
    ----------
    data : Predictions or ScoreCounts
        The people, as `Predictions.from_arrays` makes them; labels give the accuracy at each cutoff.
    reference : hashable, optional
        The group that the others are compared with; without it, the best-off group at each cutoff, the one
        with the highest selection rate.
    higher_is : str
        "better" selects people with a score above the cutoff, "worse" those with a score at or below it.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1) or
        "predictive_equality" (label 0).
    min_group_size : int
        A group with fewer rows among the people compared is an error.
    confidence : float or None
        The probability with which the bands hold; None makes none, as rows with weights or clusters need.

    Returns
    -------
    ImpactRatioCurve

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(5000, random_state=0)
    >>> sex = census.sensitive_features
    >>> rows = lp.Predictions.from_arrays(None, census.score, sensitive_features=sex)
    >>> women, men = lp.impact_ratio_curve(rows).at(0.2)
    >>> women.group, round(women.ratio, 2), women.shortfall
    ('Female', 0.68, 616.0)
    """
    comparison = Comparison(criterion, min_group_size=min_group_size)
    counts = as_counts(checked_data(data, comparison))
    as_choice(higher_is, "higher_is", ("better", "worse"))
    strata = strata_of(counts, comparison)
    if len(strata) > 1:
        raise InputError(
            f"{setting(criterion=comparison.criterion)} compares two labels and has no single curve; "
            "use 'equal_opportunity' or 'predictive_equality'"
        )
    if len(counts.groups) < 2:
        raise ValueError(f"at least two groups are needed, got {len(counts.groups)}")
    if reference is not None and reference not in counts.groups:
        raise unknown_name("group", reference, counts.groups)
    if confidence is not None:
        confidence = as_probability(confidence)
        if not counts.exchangeable:
            why = "clusters" if counts.clusters is not None else "weights"
            raise InputError(
                f"the bands do not hold with {why}; pass {setting(confidence=None)} for a curve without"
            )
    ((label, stratum),) = strata.items()
    selection = SelectionCounts.everywhere(counts, stratum, higher_is)
    known = counts.rank_error == 0.0
    return ImpactRatioCurve(
        selection,
        reference,
        higher_is,
        counts.score_range,
        counts.resolution,
        label,
        confidence,
        _accuracy(counts, selection.cutoffs) if counts.labelled and (known or counts.cells) else None,
    )


def _accuracy(counts: ScoreCounts, cutoffs: FloatArray) -> FloatArray:
    """The share of all people whose score is above a cutoff exactly when their label is 1."""
    right = np.zeros(cutoffs.size)
    total = 0.0
    for (_, label), atoms in counts.atoms.items():
        below = atoms.below().astype(np.float64)
        up_to = below[np.searchsorted(atoms.scores, cutoffs, side="right")]
        right += below[-1] - up_to if label == 1 else up_to
        total += below[-1]
    return right / total
