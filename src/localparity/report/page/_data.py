"""What the page's sliders and charts need of each model, as plain dictionaries and packed numbers."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._scale import even_thresholds, fractions_of, threshold_reach
from localparity._text import RUN_FORMS, group_text, points_text, run_ends
from localparity._types import Criterion, FloatArray, Group, HigherIs, ScoreRange
from localparity.counts._comparison import CRITERIA, Comparison, labels_of
from localparity.counts._disclosure import all_disclosed, disclosed
from localparity.counts._score_counts import ScoreCounts, Stratum, strata_of, with_everyone
from localparity.metrics import GapCurve, Window
from localparity.metrics._gap_curve import curve_between, gap_curves
from localparity.metrics._profile import sentence_parts
from localparity.report.displays._base import MOST_POINTS, thin_steps
from localparity.uncertainty._bands import band_radii
from localparity.uncertainty._resampling import Draws

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit

Pair = tuple[Group, Group]

# What keeps a page under three megabytes, whatever it is made from.
MOST_VIEWS = 800
_MOST_CURVE_POINTS = 16_000
_MOST_WINDOWS = 40_000
_MOST_RATES = 60_000
_MOST_LISTED = 600

# A group whose steps may be further off than this is not drawn: its curve would say what is not so.
_MOST_OFF = 0.1

# Ranges that are no wider than a few floats, or near the ends of what floats hold, have no round numbers.
_SMALLEST, _NARROW = 1e-100, 1e-9

_FULL_SCALE = 2**32 - 1

# Positions of the slider for epsilon, from the finest to the coarsest; the last one is fine near 0 only.
_EPSILON_GRIDS = (
    np.arange(500) / 1000,
    np.arange(100) / 200,
    np.concatenate([np.arange(11) / 100, np.arange(6, 25) / 50]),
)


class PageModel:
    """A model on the page: its audit, the pairs that are drawn from the worst on, and the people by label.

    The labels are those of the audit's criterion and, where there is room and none has few people of a group,
    all others. What is drawn comes from counts whose steps rest on enough people; pairs with a group that has
    too few people for such steps are in the tables only.
    """

    def __init__(self, name: str, audit: Audit, limit: int) -> None:
        self.name, self.audit = name, audit
        self.counts = disclosed(audit.counts, audit.comparison, min_group_size=limit)
        self.strata: dict[int | None, Stratum] = {}
        self.exact: dict[int | None, Stratum] = {}
        self.off: dict[tuple[int | None, Group], float] = {}
        self._add(audit.comparison.criterion, ())
        every = dict.fromkeys(pair.groups for pair in audit.pairs)
        coarse = {group for (_, group), off in self.off.items() if off > _MOST_OFF}
        self.pairs: list[Pair] = [pair for pair in every if not coarse & set(pair)]
        self.undrawn = [group for group in audit.counts.groups if group in coarse]
        if self.counts.labelled and all_disclosed(audit.counts, limit) and 3 * len(self.pairs) <= MOST_VIEWS:
            for criterion in CRITERIA:
                if not self.counts.small_groups(Comparison(criterion)):
                    self._add(criterion, self.groups(len(self.pairs)))

    def _add(self, criterion: Criterion, groups: Iterable[Group]) -> None:
        """Add the people of a criterion, unless they are too few to draw of one of some groups."""
        drawn, exact = (self._strata(counts, criterion) for counts in (self.counts, self.audit.counts))
        off = {
            (label, group): exact[label][group].distance(atoms)
            for label, stratum in drawn.items()
            for group, atoms in stratum.items()
        }
        if all(off[label, group] <= _MOST_OFF for label in drawn for group in groups):
            self.strata |= drawn
            self.exact |= exact
            self.off |= off

    def _strata(self, counts: ScoreCounts, criterion: Criterion) -> dict[int | None, Stratum]:
        """The people compared by label, everyone among them where groups are compared with everyone."""
        overall = self.audit.comparison.compare == "to_overall"
        strata = strata_of(counts, Comparison(criterion)).items()
        return {label: with_everyone(stratum) if overall else stratum for label, stratum in strata}

    def groups(self, most_pairs: int) -> list[Group]:
        """The groups of the worst pairs."""
        return list(dict.fromkeys(group for pair in self.pairs[:most_pairs] for group in pair))

    def data(self, plan: Plan, words: Words) -> dict[str, Any]:
        """The model's criteria, sides (a group under a label) and views (a pair under a label)."""
        audit, counts = self.audit, self.counts
        whole = all(pair.window.whole for pair in audit.pairs)
        thresholds = round_thresholds(counts.score_range, plan.steps, whole=whole)
        if audit.threshold is not None:
            thresholds = np.union1d(thresholds, [audit.threshold])
        reach = threshold_reach(thresholds, counts.resolution, counts.score_range)
        pairs, groups = self.pairs[: plan.pairs], self.groups(plan.pairs)
        radii = {(pair.label, pair.groups): pair.radius for pair in audit.pairs} | self._other_radii()
        sides: list[dict[str, Any]] = []
        views: list[dict[str, Any]] = []
        for label, stratum in self.strata.items():
            place = {group: len(sides) + i for i, group in enumerate(groups)}
            rates = [1.0 - stratum[group].shares_at_or_below(reach) for group in groups]
            off = [self.off[label, group] for group in groups]
            sides += [{"rates": pack(one), "off": two} for one, two in zip(rates, off, strict=True)]
            for number, pair in enumerate(pairs):
                curve = curve_between(counts, stratum, pair, label)
                off_both = sum(self.off[label, group] for group in pair)
                radius = radii[label, pair] + off_both + 2.0 * audit.counts.rank_error
                place_of = {"pair": number, "label": label, "sides": [place[group] for group in pair]}
                windows = self._windows(curve, plan)
                view = _view_data(curve, stratum, radius, plan, windows, whole=whole)
                views.append(view | place_of | words.of_windows(windows, audit.higher_is))
        return {
            "name": self.name,
            "range": list(counts.score_range),
            "thresholds": thresholds.tolist(),
            "threshold": audit.threshold,
            "criterion": audit.comparison.criterion,
            "higher_is": audit.higher_is,
            "start": self._start(pairs),
            "whole": all(finding.window.groups in pairs for finding in audit.findings),
            "overall": audit.comparison.compare == "to_overall",
            "criteria": [name for name in CRITERIA if set(labels_of(name)) <= set(self.strata)],
            "labels": {name: labels_of(name) for name in CRITERIA},
            "pairs": [[group_text(group) for group in pair] for pair in pairs],
            "sides": sides,
            "views": views,
            "findings": [
                {
                    "epsilon": finding.epsilon,
                    "mcdp": finding.mcdp,
                    "low": finding.interval.low,
                    "high": finding.interval.high,
                    "parity": None if finding.test is None else finding.test.null_mean,
                }
                for finding in audit.findings
            ],
        }

    def _start(self, pairs: Sequence[Pair]) -> int:
        """The pair that the page opens on: the worst (-1), or the clearest where the worst is too small."""
        worst = self.audit.worst_pair(self.audit.findings[0])
        clearest = self.audit.most_significant.groups
        other = worst.too_small or worst.groups not in pairs
        return pairs.index(clearest) if other and clearest in pairs else -1

    def _windows(self, curve: GapCurve, plan: Plan) -> list[Window]:
        """The worst window at each epsilon; those that the audit's tables rest on are exact."""
        windows = dict(zip(plan.epsilons.tolist(), curve.worst_windows(plan.epsilons), strict=True))
        if curve.label in self.audit.comparison.labels:
            epsilons = [finding.epsilon for finding in self.audit.findings]
            exact = curve_between(self.audit.counts, self.exact[curve.label], curve.groups, curve.label)
            windows |= dict(zip(epsilons, exact.worst_windows(np.array(epsilons)), strict=True))
        return list(windows.values())

    def _other_radii(self) -> dict[tuple[int | None, Pair], float]:
        """How far the true gap may be off under labels that are not the audit's.

        Of these labels, the bands of everyone hold by themselves and those of people with a label together.
        """
        audit = self.audit
        found: dict[tuple[int | None, Pair], float] = {}
        others = set(self.strata) - set(audit.comparison.labels)
        for criterion in CRITERIA:
            if set(labels_of(criterion)) in ({None} & others, others - {None}):
                comparison = Comparison(criterion, audit.comparison.compare)
                curves = gap_curves(audit.counts, comparison)
                radii = band_radii(
                    audit.counts,
                    comparison,
                    curves,
                    confidence=audit.confidence,
                    method=audit.method,
                    draws=Draws(audit.n_resamples, 0, -1),
                )
                pairs = [(curve.label, curve.groups) for curve in curves]
                found |= dict(zip(pairs, radii.tolist(), strict=True))
        return found


@dataclass(frozen=True)
class Plan:
    """How fine the page is, for all its models together.

    The positions of the slider for epsilon, the steps of the slider for the threshold, the most points of a
    curve besides the thresholds, and the most pairs of a model on the sliders and in the table: the worst.
    """

    epsilons: FloatArray
    steps: int
    points: int
    pairs: int
    listed: int

    @classmethod
    def of(cls, models: Sequence[PageModel]) -> Plan:
        """The finest page that stays small: fewer views leave room for finer sliders and curves."""
        pairs = max(1, MOST_VIEWS // sum(len(model.strata) for model in models))
        views = sum(len(model.strata) * min(pairs, len(model.pairs)) for model in models)
        sides = sum(len(model.strata) * len(model.groups(pairs)) for model in models)
        grid = next(grid for grid in _EPSILON_GRIDS if views * grid.size <= _MOST_WINDOWS)
        asked = [finding.epsilon for model in models for finding in model.audit.findings]
        steps = next((steps for steps in (1000, 200) if sides * steps <= _MOST_RATES), 50)
        points = min(_MOST_CURVE_POINTS // max(1, views), MOST_POINTS - 1010)
        listed = min(pairs, max(1, _MOST_LISTED // len(asked)))
        return cls(np.union1d(grid, asked), steps, points, pairs, listed)


def round_thresholds(score_range: ScoreRange, most: int, *, whole: bool) -> FloatArray:
    """Thresholds that a reader would type: round numbers at equal steps, and the ends of the range.

    There are about `most` of them, and for whole scores no others than whole numbers between the ends.

    Examples
    --------
    >>> round_thresholds((1.0, 10.0), 1000, whole=True)
    array([ 1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10.])
    >>> round_thresholds((0.05, 0.75), 10, whole=False)
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
    found = numbers * step if step >= 1.0 else numbers / round(1.0 / step)
    return np.union1d(np.clip(found, low, high), score_range)


def pack(fractions: FloatArray) -> str:
    """Fractions in [0, 1] as base64 of 32-bit whole numbers, each within 1.2e-10 of the truth.

    Examples
    --------
    >>> pack(np.array([0.0, 1.0]))
    'AAAAAP////8='
    """
    whole = np.rint(np.clip(fractions, 0.0, 1.0) * _FULL_SCALE).astype("<u4")
    return base64.b64encode(whole.tobytes()).decode("ascii")


class Words:
    """The library's words about windows, each of them once on a page.

    A sentence has the place of a group, 0 or 1, where the group's name stands.
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._sentences: dict[tuple[str | int, ...], int] = {}

    def data(self) -> dict[str, Any]:
        """The words that the places of views are among."""
        return {"runs": RUN_FORMS, "words": list(self._places), "sentences": list(self._sentences)}

    def of_windows(self, windows: Sequence[Window], higher_is: HigherIs | None) -> dict[str, Any]:
        """For a view, its sentences by the sign, and the ends, forms and gaps that windows put in them."""
        told = [(*run_ends(one.low, one.high, one.whole), points_text(one.gap)) for one in windows]
        return {
            "sentences": {_sign(window): self._sentence(window, higher_is) for window in windows},
            "forms": "".join(str(RUN_FORMS.index(form)) for form, _, _ in told),
            "lows": self._pack([ends[0] for _, ends, _ in told]),
            "highs": self._pack([ends[1] for _, ends, _ in told]),
            "points": self._pack([points for _, _, points in told]),
        }

    def _sentence(self, window: Window, higher_is: HigherIs | None) -> int:
        names = [group_text(group) for group in window.groups]
        parts: list[str | int] = [*sentence_parts(window, higher_is, "{run}", "{points}")]
        parts[1::2] = [names.index(str(name)) if name else "" for name in parts[1::2]]
        return self._sentences.setdefault(tuple(parts), len(self._sentences))

    def _pack(self, texts: Sequence[str]) -> str:
        """The places of words as base64 of whole numbers of three bytes."""
        places = [self._places.setdefault(text, len(self._places)) for text in texts]
        return base64.b64encode(b"".join(place.to_bytes(3, "little") for place in places)).decode("ascii")


def _view_data(
    curve: GapCurve,
    stratum: Stratum,
    radius: float,
    plan: Plan,
    windows: Sequence[Window],
    *,
    whole: bool,
) -> dict[str, Any]:
    """A pair under a label: MCDP and the worst window at each epsilon, the band, and the curve's extremes.

    The page joins these points to the rates at the thresholds, which all pairs of a group share.
    """
    points = curve.knots[thin_steps(curve.knots, curve.gap, plan.points)]
    if whole:
        # Means of several people's scores are no scores that anybody has.
        points = points[points == np.rint(points)]
    return {
        "mcdp": pack(np.array([window.gap for window in windows])),
        "whole": curve.whole,
        "sign": "".join(_sign(window) for window in windows),
        "radius": radius,
        "x": pack(fractions_of(points, curve.score_range)),
        "a": pack(stratum[curve.groups[0]].shares_at_or_below(points)),
        "b": pack(stratum[curve.groups[1]].shares_at_or_below(points)),
    }


def _sign(window: Window) -> str:
    """Who is more often at or below: the first group (+), the second (-), neither (0), each in turn (x)."""
    if window.gap == 0.0:
        return "0"
    if window.lower is None:
        return "x"
    return "+" if window.lower == window.groups[0] else "-"
