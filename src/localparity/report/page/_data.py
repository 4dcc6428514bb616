"""What the page draws and moves: the share of each group above each cutoff, as enough people allow."""

from __future__ import annotations

import base64
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._scale import even_thresholds, threshold_reach
from localparity._text import group_text
from localparity._types import FloatArray, Group, ScoreRange
from localparity.auditing._answer import named_pair, window_of
from localparity.counts import ScoreCounts
from localparity.counts._score_counts import Stratum, strata_of, with_everyone
from localparity.metrics._gap_curve import curve_between
from localparity.report.displays._base import thin_steps
from localparity.report.page._svg import RateCurves, shortened

if TYPE_CHECKING:
    from localparity.auditing._document import Document
    from localparity.auditing._findings import PairSummary

_CUTOFFS = 100
_MOST_NUMBERS = 20_000
_POINTS = 300

# Steps of a group may be off by so much in a curve, and as a dot with its interval; else it is not drawn.
_HALF_A_POINT = 0.005
_CURVE_OFF, _DOT_OFF = 0.1, 0.25

# Ranges that are no wider than a few floats, or near the ends of what floats hold, have no round numbers.
_SMALLEST, _NARROW = 1e-100, 1e-9

_FULL_SCALE = 2**32 - 1


class PageModel:
    """A model on the page: its answer, and the groups that have enough people to be drawn.

    Shares come from counts in which each step rests on enough people. At the cutoff of the answer they are
    those of every row, unless few people of a group are above or below it.
    """

    def __init__(self, name: str, document: Document) -> None:
        self.name, self.audit, self.answer = name, document.audits[name], document.answer(name)
        self.max_mcdp = document.max_mcdp
        audit = self.audit
        self.named, _, _ = named_pair(audit)
        self.counts = document.shown_counts(name)
        self.exact, self.stratum = self._stratum(audit.counts), self._stratum(self.counts)
        self.off = {group: self.exact[group].distance(atoms) for group, atoms in self.stratum.items()}
        self.groups = [group for group, off in self.off.items() if off <= _DOT_OFF]

    def _stratum(self, counts: ScoreCounts) -> Stratum:
        """The people that the answer is about, and everyone where groups are compared with everyone."""
        stratum = strata_of(counts, self.audit.comparison)[self.named.label]
        return with_everyone(stratum) if self.audit.comparison.compare == "to_overall" else stratum

    @cached_property
    def pair(self) -> PairSummary | None:
        """The pair that is drawn: that of the answer, or the clearest that has enough people."""
        fine = {group for group, off in self.off.items() if off <= _CURVE_OFF}
        drawable = [pair for pair in self.audit.pairs if fine >= set(pair.groups)]
        drawable = [pair for pair in drawable if pair.label == self.named.label]
        if self.named in drawable:
            return self.named
        return max(drawable, key=lambda pair: pair.strength, default=None)

    @property
    def whole(self) -> bool:
        """Whether all scores are whole numbers."""
        return all(pair.window.whole for pair in self.audit.pairs)

    @property
    def cutoff(self) -> float:
        """The cutoff that the page opens on."""
        if self.pair in (self.named, None) and self.answer.cutoff is not None:
            return self.answer.cutoff
        return (self.pair or self.named).window.low

    @cached_property
    def cutoffs(self) -> FloatArray:
        """Cutoffs that a reader would type, and that of the answer."""
        score_range, few = self.counts.score_range, _MOST_NUMBERS // max(1, len(self.groups))
        most = max(_CUTOFFS, min(1000, few)) if self.whole else _CUTOFFS
        cutoffs = round_cutoffs(score_range, most, whole=self.whole)
        return np.union1d(cutoffs, [self.cutoff])

    def shares(self, group: Group) -> FloatArray:
        """The share of a group above each cutoff."""
        reach = threshold_reach(self.cutoffs, self.counts.resolution, self.counts.score_range)
        shares = 1.0 - self.stratum[group].shares_at_or_below(reach)
        if self.is_exact(group):
            shares[self.cutoffs == self.cutoff] = self.exact[group].share_above(self.cutoff)
        return np.asarray(shares)

    def is_exact(self, group: Group) -> bool:
        """Whether the share of a group above the first cutoff is that of every row."""
        if self.pair is self.named and group in self.sides:
            return True  # as the answer has it
        exact, shown = (side[group].share_above(self.cutoff) for side in (self.exact, self.stratum))
        return math.isclose(exact, shown, abs_tol=1e-12)

    def is_rough(self, group: Group) -> bool:
        """Whether the share of a group above the first cutoff may be off by more than half a point."""
        return not self.is_exact(group) and self.off[group] > _HALF_A_POINT

    def first_share(self, group: Group) -> tuple[float, float | None, float | None]:
        """The share of a group above the first cutoff, and the ends of its interval."""
        share, radius = float(self.shares(group)[self.cutoffs == self.cutoff][0]), self.radius(group)
        if radius is None:
            return share, None, None
        radius += 0.0 if self.is_exact(group) else self.off[group]
        return share, max(share - radius, 0.0), min(share + radius, 1.0)

    def radius(self, group: Group) -> float | None:
        """How far the share of a group in every row may be off at any cutoff; None if not known."""
        for row in self.answer.groups:
            if row.name == group_text(group) and row.share_above is not None and row.low is not None:
                return max(row.share_above - row.low, (row.high or 1.0) - row.share_above)
        return None

    @cached_property
    def sides(self) -> tuple[Group, ...]:
        """The groups of the pair that is drawn, the one with the larger share above the cutoff first."""
        groups = () if self.pair is None else self.pair.groups
        return tuple(sorted(groups, key=lambda group: -self.exact[group].share_above(self.cutoff)))

    def curves(self) -> RateCurves | None:
        """The two curves of the pair that is drawn; None where nobody has enough people."""
        pair, audit = self.pair, self.audit
        if pair is None:
            return None
        curve = curve_between(self.counts, self.stratum, pair.groups, pair.label)
        points = curve.knots[thin_steps(curve.knots, curve.gap, _POINTS)]
        if self.whole:
            # Means of several people's scores are no scores that anybody has.
            points = points[points == np.rint(points)]
        cutoffs = np.union1d(points, self.counts.score_range)
        first, second = (1.0 - self.stratum[group].shares_at_or_below(cutoffs) for group in self.sides)
        rates = [self.first_share(group)[0] for group in self.sides]
        clear = self.answer.status == "disparity" and pair.window.gap > 0.0
        window = window_of(audit, pair, self.answer.epsilon) if clear else None
        return RateCurves(
            score_range=self.counts.score_range,
            whole=self.whole,
            names=(group_text(self.sides[0]), group_text(self.sides[1])),
            cutoffs=cutoffs,
            shares=(first, second),
            cutoff=self.cutoff,
            rates=(rates[0], rates[1]),
            max_mcdp=self.max_mcdp,
            window=None if window is None else (window.low, window.high),
            chance=pair.detectable if self.answer.status == "none found" else None,
        )

    def data(self) -> dict[str, Any]:
        """What the cutoff moves, as plain lists and packed numbers."""
        groups = self.groups
        return {
            "range": list(self.counts.score_range),
            "cutoffs": self.cutoffs.tolist(),
            "at": int(np.flatnonzero(self.cutoffs == self.cutoff)[0]),
            "sides": [groups.index(group) for group in self.sides],
            "names": [shortened(group_text(group)) for group in self.sides],
            "shares": [pack(self.shares(group)) for group in groups],
            "radii": [self.radius(group) for group in groups],
            "off": [self.off[group] for group in groups],
            "exact": [self.is_exact(group) for group in groups],
            "bound": self.max_mcdp,
        }


def round_cutoffs(score_range: ScoreRange, most: int, *, whole: bool) -> FloatArray:
    """Cutoffs that a reader would type: round numbers at equal steps, and the ends of the range.

    There are about `most` of them, and for whole scores no others than whole numbers between the ends.

    Examples
    --------
    >>> round_cutoffs((1.0, 10.0), 1000, whole=True)
    array([ 1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10.])
    >>> round_cutoffs((0.05, 0.75), 10, whole=False)
    array([0.05, 0.1 , 0.2 , 0.3 , 0.4 , 0.5 , 0.6 , 0.7 , 0.75])
    """
    low, high = score_range
    largest = max(abs(low), abs(high))
    if not _SMALLEST < largest < 1.0 / _SMALLEST or (high - low) / largest < _NARROW:
        return even_thresholds(score_range, most)
    least = max((high - low) / most, 1.0 if whole else 0.0) * (1.0 - 1e-9)
    tens = 10.0 ** math.floor(math.log10(least))
    step = min(part * tens for part in (1.0, 2.0, 5.0, 10.0) if part * tens >= least)
    numbers = np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    # A quotient of whole numbers is the float of its decimals, which a product may miss.
    cutoffs = numbers * step if step >= 1.0 else numbers / round(1.0 / step)
    return np.union1d(np.clip(cutoffs, low, high), score_range)


def pack(fractions: FloatArray) -> str:
    """Fractions in [0, 1] as base64 of 32-bit whole numbers, each within 1.2e-10 of the truth.

    Examples
    --------
    >>> pack(np.array([0.0, 1.0]))
    'AAAAAP////8='
    """
    whole = np.rint(np.clip(fractions, 0.0, 1.0) * _FULL_SCALE).astype("<u4")
    return base64.b64encode(whole.tobytes()).decode("ascii")
