"""The cutoffs at which no group's selection rate falls short of another's by more than a ratio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from localparity._types import BoolArray
from localparity.counts._comparison import group_text
from localparity.metrics._window import capitalised, number_text, percent, round_inward, run_text
from localparity.uncertainty._impact import ImpactRatioCurve
from localparity.uncertainty._impact_ratio import ImpactRatio, finite

_ALMOST = 1e-12
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
    selected_at_low, selected_at_high : float
        The share of all people that is selected at the first and at the last of the cutoffs.
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
    >>> first, second = lp.safe_cutoffs([0, 0, 0, 1, 1, 1], scores, sensitive_features=sex).by_estimate
    >>> second.text, second.best_cutoff, round(second.accuracy, 4)
    ('from 0.6 up to, but not including, 0.9', 0.6, 0.8333)
    """

    low: float
    high: float
    up_to_top: bool
    selected_at_low: float
    selected_at_high: float
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
        The probability with which all cutoffs of `by_band` are safe among the people that the rows were drawn
        from. It holds for all of them together, so that one may be chosen after a look at the data. None
        without bands.
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
    >>> found = lp.safe_cutoffs(None, census.score, sensitive_features=census.sensitive_features)
    >>> print(found.sentence)
    Any cutoff from 0 up to, but not including, 0.1229, or in a narrower range, keeps every group's
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
        known = [each for each in ranges if each.accuracy is not None]
        return max(known, key=lambda each: each.accuracy or 0.0, default=None)

    @property
    def worst_sentence(self) -> str:
        """The lowest ratio, where it is, and how sure, in one sentence."""
        worst = self.worst
        lowest = "The lowest ratio" if self.complete else "The lowest ratio that was computed"
        sure = ""
        if worst.ratio_interval is not None:
            low, high = worst.ratio_interval.low, worst.ratio_interval.high
            sure = f" ({100.0 * worst.ratio_interval.confidence:g}% interval {low:.2f} to {high:.2f})"
        where = f"at a cutoff of {number_text(self.worst_cutoff, 4)}"
        selected = f"{percent(worst.rate)} of {group_text(worst.group)} are selected"
        more = f"{worst.shortfall:,.0f} more would have to be to reach the rate of"
        return (
            f"{lowest} is {worst.ratio:.2f}{sure}: {where}, {selected}, and {more} "
            f"{group_text(worst.reference)}."
        )

    @property
    def sentence(self) -> str:
        """What is safe, in one sentence."""
        aim = f"every group's ratio at or above {number_text(self.min_ratio)}"
        none = "No cutoff" if self.complete else "None of the cutoffs that were computed"
        if self.by_band is None or self.confidence is None:
            if not self.by_estimate:
                return f"{none} keeps {aim} in these data."
            return capitalised(f"{_one_of(self.by_estimate)} keeps {aim} in these data.")
        sure = f"with {number_text(100.0 * self.confidence, 10)}% confidence"
        if self.by_band:
            return capitalised(f"{_one_of(self.by_band)} keeps {aim} {sure}.")
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
        said = {"sentence": self.sentence, "worst_sentence": self.worst_sentence}
        plain: dict[str, Any] = finite({**said, **asdict(self)})
        return plain


def _one_of(ranges: Sequence[CutoffRange]) -> str:
    """A few ranges in words, the widest, and that there are others."""
    widest = sorted(ranges, key=lambda each: each.low - each.high)[:_MOST_NAMED]
    least = _LEAST_NAMED * (widest[0].high - widest[0].low)
    named = sorted([each for each in widest if each.high - each.low >= least], key=lambda each: each.low)
    text = ", or ".join(f"{'a' if each.single else 'any'} cutoff {each.text}" for each in named)
    others = len(ranges) - len(named)
    if not others:
        return text
    return f"{text}, or in {'a narrower range' if others == 1 else f'one of {others:,} narrower ranges'},"


def find_safe_cutoffs(curve: ImpactRatioCurve, min_ratio: float) -> SafeCutoffs:
    """The cutoffs of a curve at which every group's ratio is at least `min_ratio`."""
    aim = min_ratio * (1.0 - _ALMOST)
    by_estimate = _ranges(curve, np.all(curve.least_ratios >= aim, axis=0))
    by_band = None
    if curve.confidence is not None:
        by_band = _ranges(curve, np.all(curve.ratio_bands[0] >= aim, axis=0))
    worst_cutoff, worst = curve.worst()
    complete = curve.selection.complete
    return SafeCutoffs(min_ratio, curve.confidence, by_estimate, by_band, worst, worst_cutoff, complete)


def _ranges(curve: ImpactRatioCurve, safe: BoolArray) -> tuple[CutoffRange, ...]:
    """The runs of safe cutoffs."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], safe, [False]])))
    selection = curve.selection
    shares = selection.selected.sum(axis=0) / selection.sizes.sum()
    found = []
    for start, end in edges.reshape(-1, 2).tolist():
        low, top = float(curve.cutoffs[start]), end == curve.cutoffs.size
        high = curve.score_range[1] if top else float(curve.cutoffs[end])
        best = accuracy = None
        if curve.accuracy is not None:
            place = start + int(curve.accuracy[start:end].argmax())
            best, accuracy = float(curve.cutoffs[place]), float(curve.accuracy[place])
        text = _text(low, high, top, curve.whole)
        ends = float(shares[start]), float(shares[end - 1])
        found.append(CutoffRange(low, high, top, *ends, best, accuracy, text))
    return tuple(found)


def _text(low: float, high: float, top: bool, whole: bool) -> str:
    if low == high:
        return f"of {number_text(low)}"
    if top:
        return "from {} to {}".format(*round_inward(low, high))
    return run_text(low, high, whole)
