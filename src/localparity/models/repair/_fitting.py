"""The maps that bring counted scores within a bound, and what is left of their disparity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from localparity._types import Criterion, Group
from localparity.counts import Comparison
from localparity.counts._atoms import Atoms
from localparity.counts._score_counts import ScoreCounts, Stratum, strata_of
from localparity.metrics import mcdp
from localparity.models.repair._band import Band, Distribution
from localparity.models.repair._score_map import ScoreMap

_WIDTHS = (*(2.0**-halving for halving in range(13)), 0.0)
_BISECTIONS = 20

Maps = dict[Group, ScoreMap]
"""Each group's map."""

Measure = Callable[[Mapping[Group, ScoreMap]], float]
"""MCDP of the people fitted on once their scores have gone through the maps."""


@dataclass(frozen=True)
class Repair:
    """Each group's map, and MCDP of the people fitted on after it."""

    maps: Maps
    mcdp: float


def unmoved(counts: ScoreCounts, criterion: Criterion) -> Maps:
    """Maps that leave every score where it is."""
    stratum = next(iter(strata_of(counts, Comparison(criterion)).values()))
    ends = np.array(counts.score_range)
    return {group: ScoreMap(ends, ends, counts.score_range) for group in stratum}


def find_repair(
    counts: ScoreCounts, *, aim: float, epsilon: float, criterion: Criterion, measure: Measure | None = None
) -> Repair:
    """The maps of least movement that bring MCDP(epsilon) to `aim`; where none does, those that leave least.

    Without a `measure` the people's groups are known. Of one label, or of everyone, the band of that width is
    then the answer, unless scores are shared by more people than fit into it. One map cannot follow two
    labels, so for equalized odds, and for groups that are not known, the widest band is sought that does.
    """
    strata = strata_of(counts, Comparison(criterion))
    band = band_of(list(strata.values()), counts.score_range)
    groups = list(next(iter(strata.values())))

    def measure_counts(maps: Mapping[Group, ScoreMap]) -> float:
        return mcdp(mapped(counts, maps), epsilon=epsilon, criterion=criterion)

    def repair_within(width: float) -> Repair:
        maps = dict(zip(groups, band.maps(width, epsilon), strict=True))
        return Repair(maps, (measure or measure_counts)(maps))

    direct = measure is None and len(strata) == 1
    return _widest(repair_within, aim, aim if direct else 1.0)


def _widest(repair_within: Callable[[float], Repair], aim: float, widest: float) -> Repair:
    """Of bands up to a width, the repair into the widest found that meets the aim, else that leaves least.

    What is left need not fall with the width, so every repair is measured, and only one that was is returned.
    The widths do not depend on the aim, so what is left at the least is within reach of any higher aim.
    """
    tried = repair_within(widest)
    if tried.mcdp <= aim or widest == 0.0:
        return tried
    least = None
    too_wide = widest
    for width in (width for width in _WIDTHS if width < widest):
        tried = repair_within(width)
        if tried.mcdp <= aim:
            return _widen(repair_within, aim, (width, tried), too_wide)
        if least is None or tried.mcdp < least.mcdp:
            least = tried
        too_wide = width
    assert least is not None
    return least


def _widen(
    repair_within: Callable[[float], Repair], aim: float, met: tuple[float, Repair], too_wide: float
) -> Repair:
    """By bisection, the repair into the widest band between one that meets the aim and one that does not."""
    width, best = met
    for _ in range(_BISECTIONS):
        middle = 0.5 * (width + too_wide)
        tried = repair_within(middle)
        if tried.mcdp <= aim:
            width, best = middle, tried
        else:
            too_wide = middle
    return best


def band_of(strata: list[Stratum], score_range: tuple[float, float]) -> Band:
    """The band of the groups, each with its share of the people; of two labels, each counts one half."""
    if len(strata) == 1:
        distributions = [_distribution(atoms) for atoms in strata[0].values()]
    else:
        distributions = [_mean_distribution([stratum[group] for stratum in strata]) for group in strata[0]]
    totals = np.sum(
        [[float(atoms.weights.sum()) for atoms in stratum.values()] for stratum in strata], axis=0
    )
    return Band(distributions, totals / totals.sum(), score_range)


def _distribution(atoms: Atoms) -> Distribution:
    below = atoms.below()
    return Distribution(atoms.scores, np.asarray(below[1:] / below[-1], dtype=np.float64))


def _mean_distribution(parts: list[Atoms]) -> Distribution:
    scores = np.unique(np.concatenate([part.scores for part in parts]))
    return Distribution(scores, np.mean([part.shares_at_or_below(scores) for part in parts], axis=0))


def mapped(counts: ScoreCounts, maps: Mapping[Group, ScoreMap]) -> ScoreCounts:
    """The same people with their scores repaired."""
    atoms = {}
    for (group, label), found in counts.atoms.items():
        moved = maps[group](found.scores)
        if (np.diff(moved) > 0.0).all():
            atoms[group, label] = replace(found, scores=moved)
        else:
            atoms[group, label] = Atoms.gather(moved, found.rows, found.units)
    return replace(counts, atoms=atoms)
