"""The page's pictures that need no script: curves and ranked dots, as numbers for a template."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from localparity._text import group_text, interval_text, number_text, pair_text, percent, points_text
from localparity._types import FloatArray, ScoreRange
from localparity.auditing._document import FEW_CUTOFFS
from localparity.auditing._tables import numbers_of
from localparity.auditing._wording import named_pair, p_value_at, pair_name, shown_finding, window_of
from localparity.metrics._gap_curve import curve_between
from localparity.report.displays._base import thin_steps
from localparity.uncertainty._impact import ImpactRatioCurve

if TYPE_CHECKING:
    from localparity.auditing._document import Document
    from localparity.report.page._data import PageModel

WIDTH, HEIGHT = 560.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 50.0, 14.0, 30.0, 42.0
_POINTS = 300
_FEWEST_STEPS = 3
MOST_DOTS = 100


@dataclass(frozen=True)
class Frame:
    """Where numbers are on a picture: thresholds from left to right, shares from the bottom up."""

    score_range: ScoreRange
    ticks_of_y: str = "{:.0%}"

    def x(self, threshold: float) -> float:
        """The place of a threshold."""
        low, high = self.score_range
        return _LEFT + (threshold - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def y(self, share: float) -> float:
        """The place of a share."""
        return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)

    def steps(self, thresholds: FloatArray, shares: FloatArray) -> str:
        """The path of a step function; it breaks where there is no number."""
        parts, pen = [], False
        for threshold, share in zip(thresholds.tolist(), shares.tolist(), strict=True):
            if math.isnan(share):
                pen = False
                continue
            x, y = self.x(threshold), self.y(min(share, 1.0))
            parts.append(f"H{x:.1f}V{y:.1f}" if pen else f"M{x:.1f},{y:.1f}")
            pen = True
        return "".join(parts)

    def ticks(self) -> tuple[list[tuple[float, str]], list[tuple[float, str]]]:
        """Marks on each axis, with their texts."""
        shares = [part / 4 for part in range(5)]
        return (
            [(round(self.x(one), 1), number_text(one, 4)) for one in round_marks(*self.score_range)],
            [(round(self.y(one), 1), self.ticks_of_y.format(one)) for one in shares],
        )


def round_marks(low: float, high: float) -> list[float]:
    """Round numbers of a range, in four to nine equal steps.

    Examples
    --------
    >>> round_marks(0.0, 1.0), round_marks(1.0, 10.0)
    ([0.0, 0.25, 0.5, 0.75, 1.0], [2.0, 4.0, 6.0, 8.0, 10.0])
    """
    longest = (high - low) / 4 * (1.0 + 1e-9)
    tens = 10.0 ** math.floor(math.log10(longest))
    step = max(part * tens for part in (1.0, 2.0, 2.5, 5.0) if part * tens <= longest)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * number for number in range(first, last + 1)]


@dataclass(frozen=True, kw_only=True)
class Curves:
    """A picture of step functions."""

    frame: Frame
    paths: tuple[tuple[str, str], ...]
    x_title: str
    y_title: str
    label: str
    window: tuple[float, float] | None = None
    bracket: tuple[float, float, float, str] | None = None
    level: tuple[float, str] | None = None
    dots: tuple[tuple[str, float, float], ...] = ()


@dataclass(frozen=True, kw_only=True)
class RatesPicture(Curves):
    """The shares of two groups above each threshold, with the names of the groups."""

    names: tuple[str, str]


def rates_picture(model: PageModel) -> RatesPicture | None:
    """The shares of the pair that the verdict names above each threshold, and its worst window.

    None where the pair has too few people to be drawn.
    """
    audit = model.audit
    pair, _, _ = named_pair(audit)
    if pair.groups not in model.pairs:
        return None
    window = window_of(audit, pair, shown_finding(audit).epsilon)
    if window.gap == 0.0:
        window = pair.window
    stratum, frame = model.strata[pair.label], Frame(model.counts.score_range)
    curve = curve_between(model.counts, stratum, pair.groups, pair.label)
    kept = curve.knots[thin_steps(curve.knots, curve.gap, _POINTS)]
    thresholds = np.union1d(kept, model.counts.score_range)
    above = [1.0 - stratum[group].shares_at_or_below(thresholds) for group in pair.groups]
    middle = (window.low + window.high) / 2
    place = int(np.searchsorted(thresholds, middle, side="right")) - 1
    ends = sorted(frame.y(float(shares[place])) for shares in above)
    return RatesPicture(
        frame=frame,
        paths=(("first", frame.steps(thresholds, above[0])), ("second", frame.steps(thresholds, above[1]))),
        x_title="threshold",
        y_title="share scoring above it",
        label=f"The share of {pair_text(pair.groups)} scoring above each threshold. "
        + window.sentence_for(audit.higher_is),
        window=(frame.x(window.low), frame.x(window.high)) if window.gap else None,
        bracket=(frame.x(middle), ends[0], ends[1], points_text(window.gap)) if window.gap else None,
        names=(group_text(pair.groups[0]), group_text(pair.groups[1])),
    )


def ratio_picture(curve: ImpactRatioCurve, min_ratio: float) -> Curves:
    """The lowest ratio of any group at each cutoff, with the lower end of its band.

    Dots stand for few cutoffs: a line through them would say what was not computed.
    """
    frame = Frame(curve.score_range, "{:.2f}")
    lowest = _lowest(curve.ratios)
    drawn = {"first": lowest}
    if curve.confidence is not None:
        drawn["band"] = _lowest(curve.ratio_bands[0])
    steps = int(np.isfinite(lowest).sum())
    few = steps < (_FEWEST_STEPS if curve.selection.complete else FEW_CUTOFFS)
    kept = thin_steps(curve.cutoffs, np.nan_to_num(lowest, nan=1.0), _POINTS)
    paths = [(name, frame.steps(curve.cutoffs[kept], shares[kept])) for name, shares in drawn.items()]
    dots = [
        (name, frame.x(cutoff), frame.y(min(share, 1.0)))
        for name, shares in drawn.items()
        for cutoff, ratio, share in zip(curve.cutoffs.tolist(), lowest, shares.tolist(), strict=True)
        if math.isfinite(ratio)
    ]
    return Curves(
        frame=frame,
        paths=() if few else tuple(paths),
        dots=tuple(dots) if few else (),
        x_title="cutoff",
        y_title="lowest ratio",
        label="The lowest selection ratio of any group at each cutoff.",
        level=(frame.y(min_ratio), f"{min_ratio:g}"),
    )


def _lowest(ratios: FloatArray) -> FloatArray:
    """The lowest of the groups' numbers at each cutoff; none where nobody is selected."""
    known = ~np.isnan(ratios).all(axis=0)
    found = np.full(ratios.shape[1], np.nan)
    found[known] = np.nanmin(ratios[:, known], axis=0)
    return found


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A name with its MCDP and interval; places are percentages of the width."""

    name: str
    value: float
    low: float
    high: float
    text: str
    interval: str
    p_value: str
    note: str
    clear: bool

    def place(self, number: float, top: float) -> str:
        """Where a number is."""
        return f"{100.0 * number / top:.2f}%"


@dataclass(frozen=True, kw_only=True)
class Dots:
    """Dots on one scale from 0 to `top`, with the bound where there is one."""

    epsilon: float
    top: float
    bound: float | None
    rows: tuple[Dot, ...]
    left: int
    small: bool = False


def pair_dots(document: Document, name: str) -> Dots:
    """The pairs of a model from the worst on, at its smallest epsilon."""
    audit = document.audits[name]
    rows = []
    for pair in audit.pairs[:MOST_DOTS]:
        among = "" if pair.label is None else f", label {pair.label}"
        clear = pair.significant_at(0, by_test=audit.has_test)
        rows.append(
            Dot(
                name=pair_name(audit, pair) + among,
                value=pair.mcdp[0],
                low=pair.intervals[0].low,
                high=pair.intervals[0].high,
                text=percent(pair.mcdp[0]),
                interval=interval_text(pair.intervals[0]),
                p_value=p_value_at(audit, 0, None if pair.p_values is None else pair.p_values[0]),
                note=_note(clear, pair.too_small),
                clear=clear,
            )
        )
    found = _on_one_scale(document, audit.findings[0].epsilon, rows, len(audit.pairs) - len(rows))
    return replace(found, small=any(pair.too_small for pair in audit.pairs))


def model_dots(document: Document) -> Dots:
    """The models from the worst on, each with MCDP of its worst pair at its smallest epsilon."""
    rows = []
    for name, audit in document.audits.items():
        finding, clear = audit.findings[0], audit.verdict.status == "found"
        text, interval, p_value = numbers_of(audit, 0)
        rows.append(
            Dot(
                name=name,
                value=finding.mcdp,
                low=finding.interval.low,
                high=finding.interval.high,
                text=text,
                interval=interval,
                p_value=p_value,
                note=_note(clear, audit.verdict.status == "undecided"),
                clear=clear,
            )
        )
    rows.sort(key=lambda row: -row.value)
    return _on_one_scale(document, document.first.findings[0].epsilon, rows, 0)


def _note(clear: bool, too_small: bool) -> str:
    if clear:
        return "more than chance"
    return "too small to judge" if too_small else "could be chance"


def _on_one_scale(document: Document, epsilon: float, rows: Sequence[Dot], left: int) -> Dots:
    bound = document.max_mcdp
    largest = max([*(row.high for row in rows), bound or 0.0])
    top = min(1.0, math.ceil(10.0 * largest) / 10.0) or 0.1
    return Dots(epsilon=epsilon, top=top, bound=bound, rows=tuple(rows), left=left)
