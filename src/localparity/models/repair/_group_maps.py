"""The maps that bring counted scores within a bound, and the disparity that they leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

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


class GroupMaps(NamedTuple):
    """Each group's map, and MCDP of the people fitted on after it."""

    maps: dict[Group, ScoreMap]
    mcdp: float


def gap_error(counts: ScoreCounts) -> float:
    """Return by how much a gap between counted groups may be off, before increasing maps and after.

    On a grid no distribution is above the true one, so that the errors of two groups do not add up; those of
    sketches may.
    """
    return counts.rank_error if counts.cells is not None else 2.0 * counts.rank_error


def identity_maps(counts: ScoreCounts, criterion: Criterion) -> dict[Group, ScoreMap]:
    """Return maps that leave every score where it is."""
    stratum = next(iter(strata_of(counts, Comparison(criterion)).values()))
    ends = np.array(counts.score_range)
    return {group: ScoreMap(ends, ends, counts.score_range) for group in stratum}


def find_maps(counts: ScoreCounts, *, aim: float, epsilon: float, criterion: Criterion) -> GroupMaps:
    """Return the maps of least movement that bring MCDP(epsilon) to `aim`, else those that leave least.

    For one label, or for everyone, the band of that width is the answer, unless more people share a score
    than fit into it. One map cannot follow two labels, so for equalized odds the widest band that does is
    sought.
    """
    strata = strata_of(counts, Comparison(criterion))
    band = band_of(list(strata.values()), counts.score_range)
    groups = list(next(iter(strata.values())))

    def maps_within(width: float) -> GroupMaps:
        maps = dict(zip(groups, band.maps(width, epsilon), strict=True))
        return GroupMaps(maps, mcdp(mapped(counts, maps), epsilon=epsilon, criterion=criterion))

    return _widest(maps_within, aim, aim if len(strata) == 1 else 1.0)


def _widest(maps_within: Callable[[float], GroupMaps], aim: float, widest: float) -> GroupMaps:
    """Return the maps into the widest band found that meets the aim, else those that leave least.

    What is left need not fall with the width, so all maps are measured. The widths do not depend on the aim,
    so the least that is left can be reached from any higher aim.
    """
    tried = maps_within(widest)
    if tried.mcdp <= aim or widest == 0.0:
        return tried
    least = None
    too_wide = widest
    for width in (width for width in _WIDTHS if width < widest):
        tried = maps_within(width)
        if tried.mcdp <= aim:
            return _widen(maps_within, aim, (width, tried), too_wide)
        if least is None or tried.mcdp < least.mcdp:
            least = tried
        too_wide = width
    assert least is not None
    return least


def _widen(
    maps_within: Callable[[float], GroupMaps], aim: float, met: tuple[float, GroupMaps], too_wide: float
) -> GroupMaps:
    """Bisect for the widest band between one that meets the aim and one that does not."""
    width, best = met
    for _ in range(_BISECTIONS):
        middle = 0.5 * (width + too_wide)
        tried = maps_within(middle)
        if tried.mcdp <= aim:
            width, best = middle, tried
        else:
            too_wide = middle
    return best


def band_of(strata: list[Stratum], score_range: tuple[float, float]) -> Band:
    """Return the band of the groups, each with its share of the people; two labels count one half each."""
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
    """Return the same people with their scores repaired."""
    atoms = {}
    for (group, label), found in counts.atoms.items():
        moved = maps[group](found.scores)
        if (np.diff(moved) > 0.0).all():
            atoms[group, label] = replace(found, scores=moved)
        else:
            atoms[group, label] = Atoms.gather(moved, found.rows, found.units)
    return replace(counts, atoms=atoms)
