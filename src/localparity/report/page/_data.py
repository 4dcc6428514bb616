"""What the page's sliders and charts need of each model, as plain dictionaries and packed numbers."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._types import FloatArray, Group
from localparity._validation import even_thresholds, fractions_of, reach_of
from localparity.counts._comparison import CRITERIA, Comparison, group_text, labels_of
from localparity.counts._score_counts import Stratum, strata_of, with_everyone
from localparity.metrics import GapCurve, Window
from localparity.metrics._gap_curves import curve_between, gap_curves
from localparity.report._thin import MOST_POINTS, thin_steps
from localparity.uncertainty._bands import band_radii
from localparity.uncertainty._resampling import Draws

if TYPE_CHECKING:
    from localparity.audit._audit import Audit

Pair = tuple[Group, Group]

# What keeps a page under three megabytes, whatever it is made from.
MOST_VIEWS = 800
_MOST_CURVE_POINTS = 16_000
_MOST_WINDOWS = 50_000
_MOST_RATES = 60_000
_MOST_LISTED = 1000

_FULL_SCALE = 2**32 - 1
# The widest range whose whole numbers fractions of that scale still tell apart, with some room.
_MOST_WHOLE = 1e9

# Positions of the slider for epsilon, from the finest to the coarsest; the last one is fine near 0 only.
_EPSILON_GRIDS = (
    np.arange(500) / 1000,
    np.arange(100) / 200,
    np.concatenate([np.arange(11) / 100, np.arange(6, 25) / 50]),
)


@dataclass(frozen=True)
class Plan:
    """How fine the page is, for all its models together.

    Attributes
    ----------
    epsilons : ndarray
        The positions of the slider for epsilon.
    steps : int
        How many steps the slider for the threshold has.
    points : int
        The most points of a curve besides the thresholds.
    pairs, listed : int
        The most pairs of a model on the sliders and in the table; further ones, the least bad, stay out.
    """

    epsilons: FloatArray
    steps: int
    points: int
    pairs: int
    listed: int


def plan_page(audits: Mapping[str, Audit]) -> Plan:
    """The finest page that stays small: fewer views leave room for finer sliders and curves."""
    labels = sum(len(_labels_shown(audit)) for audit in audits.values())
    pairs = max(1, MOST_VIEWS // labels)
    views = sum(len(_labels_shown(audit)) * min(pairs, len(_pairs(audit))) for audit in audits.values())
    sides = sum(len(_labels_shown(audit)) * len(_groups(audit, pairs)) for audit in audits.values())
    grid = next(grid for grid in _EPSILON_GRIDS if views * grid.size <= _MOST_WINDOWS)
    asked = [finding.epsilon for audit in audits.values() for finding in audit.findings]
    epsilons = np.union1d(grid, asked)
    steps = next((steps for steps in (1000, 200) if sides * steps <= _MOST_RATES), 50)
    points = min(_MOST_CURVE_POINTS // views, MOST_POINTS - 1010)
    listed = min(pairs, max(1, _MOST_LISTED // sum(len(audit.findings) for audit in audits.values())))
    return Plan(epsilons, steps, points, pairs, listed)


def model_data(name: str, audit: Audit, plan: Plan) -> dict[str, Any]:
    """One model: its criteria, its sides (a group under a label) and its views (a pair under a label)."""
    counts = audit.counts
    labels = _labels_shown(audit)
    low, high = counts.score_range
    thresholds = even_thresholds(counts.score_range, plan.steps)
    if audit.threshold is not None:
        thresholds = np.union1d(thresholds, [audit.threshold])
    reach = reach_of(thresholds, counts.resolution, counts.score_range)
    pairs, groups = _pairs(audit)[: plan.pairs], _groups(audit, plan.pairs)
    radii = _radii_shown(audit, labels)
    sides: list[dict[str, Any]] = []
    views: list[dict[str, Any]] = []
    for label in labels:
        stratum = _stratum(audit, label)
        place = {group: len(sides) + i for i, group in enumerate(groups)}
        sides += [{"rates": pack(1.0 - stratum[group].shares_at_or_below(reach))} for group in groups]
        for number, pair in enumerate(pairs):
            view = _view_data(curve_between(counts, stratum, pair, label), stratum, radii[label, pair], plan)
            views.append(view | {"pair": number, "label": label, "sides": [place[group] for group in pair]})
    return {
        "name": name,
        "range": [low, high],
        "thresholds": thresholds.tolist(),
        "threshold": audit.threshold,
        "criterion": audit.comparison.criterion,
        "higher_is": audit.higher_is,
        "start": _start(audit, pairs),
        "overall": audit.comparison.compare == "to_overall",
        "criteria": [name for name in CRITERIA if set(labels_of(name)) <= set(labels)],
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


def pack(fractions: FloatArray) -> str:
    """Fractions in [0, 1] as base64 of 32-bit whole numbers, each within 1.2e-10 of the truth.

    Examples
    --------
    >>> pack(np.array([0.0, 1.0]))
    'AAAAAP////8='
    """
    whole = np.rint(np.clip(fractions, 0.0, 1.0) * _FULL_SCALE).astype("<u4")
    return base64.b64encode(whole.tobytes()).decode("ascii")


def _view_data(curve: GapCurve, stratum: Stratum, radius: float, plan: Plan) -> dict[str, Any]:
    """A pair under a label: MCDP and the worst window at each epsilon, the band, and the curve's extremes.

    The page joins these points to the rates at the thresholds, which all pairs of a group share.
    """
    windows = curve.worst_windows(plan.epsilons)
    low, high = curve.score_range
    points = curve.knots[thin_steps(curve.knots, curve.gap, plan.points)]
    return {
        "mcdp": pack(np.array([window.gap for window in windows])),
        "low": pack(fractions_of(np.array([window.low for window in windows]), curve.score_range)),
        "high": pack(fractions_of(np.array([window.high for window in windows]), curve.score_range)),
        "whole": curve.whole and high - low < _MOST_WHOLE,
        "sign": "".join(_sign(window) for window in windows),
        "radius": radius + 2.0 * curve.rank_error,
        "x": pack(fractions_of(points, curve.score_range)),
        "a": pack(stratum[curve.groups[0]].shares_at_or_below(points)),
        "b": pack(stratum[curve.groups[1]].shares_at_or_below(points)),
    }


def _start(audit: Audit, pairs: Sequence[Pair]) -> int:
    """The pair that the page opens on: the worst (-1), or the clearest where the worst is too small."""
    worst = audit.worst_pair(audit.findings[0])
    clearest = audit.most_significant.groups
    return pairs.index(clearest) if worst.too_small and clearest in pairs else -1


def _radii_shown(audit: Audit, labels: Sequence[int | None]) -> dict[tuple[int | None, Pair], float]:
    """How far the true gap of each pair may be off, under each label that the page shows.

    The bands of all pairs and labels of one criterion hold together; those of the audit's criterion are the
    audit's own.
    """
    found = {(pair.label, pair.groups): pair.radius for pair in audit.pairs}
    others = [label for label in labels if label not in labels_of(audit.comparison.criterion)]
    for criterion in CRITERIA:
        # Of the other labels, everyone by themselves and those with a label together.
        if set(labels_of(criterion)) not in ({None} & {*others}, {*others} - {None}):
            continue
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
        found |= {(curve.label, curve.groups): radius for curve, radius in zip(curves, radii, strict=True)}
    return found


def _sign(window: Window) -> str:
    """Who is more often at or below: the first group (+), the second (-), neither (0), each in turn (x)."""
    if window.gap == 0.0:
        return "0"
    if window.lower is None:
        return "x"
    return "+" if window.lower == window.groups[0] else "-"


def _labels_shown(audit: Audit) -> tuple[int | None, ...]:
    """The labels whose people the page compares: the criterion's and, where there is room, all others."""
    if not audit.counts.labelled or 3 * len(_pairs(audit)) > MOST_VIEWS:
        return labels_of(audit.comparison.criterion)
    shown = [
        label
        for name in CRITERIA
        if not audit.counts.small_groups(Comparison(name))
        for label in labels_of(name)
    ]
    return tuple(dict.fromkeys(shown))


def _pairs(audit: Audit) -> list[Pair]:
    """The pairs, the worst first."""
    return list(dict.fromkeys(pair.groups for pair in audit.pairs))


def _groups(audit: Audit, most_pairs: int) -> list[Group]:
    """The groups of the worst pairs."""
    return list(dict.fromkeys(group for pair in _pairs(audit)[:most_pairs] for group in pair))


def _stratum(audit: Audit, label: int | None) -> Stratum:
    name = next(name for name in CRITERIA if labels_of(name) == (label,))
    stratum = strata_of(audit.counts, Comparison(name))[label]
    return with_everyone(stratum) if audit.comparison.compare == "to_overall" else stratum
