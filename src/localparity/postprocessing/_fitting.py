"""The maps that bring counted scores within a bound, and what is left of their disparity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from localparity._validation import Group, as_number
from localparity.metrics._counts import Atoms, ScoreCounts, Stratum
from localparity.metrics._profile import carried_half_widths
from localparity.postprocessing._band import Band, Distribution
from localparity.postprocessing._score_map import ScoreMap
from localparity.uncertainty._dkw import dkw_radius

_HALVINGS = 12


def as_bound(max_mcdp: Any) -> float:
    """A fraction in [0, 1]."""
    bound = as_number(max_mcdp, "max_mcdp")
    if not 0.0 <= bound <= 1.0:
        raise ValueError(f"max_mcdp is {bound:g} where a fraction in [0, 1] is expected")
    return bound


@dataclass(frozen=True)
class FittedMaps:
    """Each group's map, and MCDP of the people fitted on before and after."""

    maps: dict[Group, ScoreMap]
    unrepaired_mcdp: float
    mcdp: float


def fit_maps(
    counts: ScoreCounts, *, bound: float, epsilon: float, confidence: float | None, criterion: str
) -> FittedMaps:
    """The maps of least movement that bring MCDP(epsilon) of the counted people within a bound."""
    unrepaired = counts.mcdp(epsilon, criterion)
    stratum = next(iter(counts.strata(criterion).values()))
    aim = bound
    if confidence is not None:
        level = 1.0 - (1.0 - confidence) / len(stratum)
        radii = sorted(dkw_radius(atoms.effective_size, level) for atoms in stratum.values())
        aim = bound - radii[-1] - radii[-2]
    if unrepaired <= aim:
        unmoved = {group: ScoreMap(atoms.scores, atoms.scores) for group, atoms in stratum.items()}
        return FittedMaps(unmoved, unrepaired, unrepaired)
    band = band_of(stratum, counts.score_range)
    reach = float(carried_half_widths(np.array([epsilon]), counts.resolution)[0])
    maps = dict(zip(stratum, band.maps(aim, reach), strict=True))
    return FittedMaps(maps, unrepaired, mapped(counts, maps).mcdp(epsilon, criterion))


def band_of(stratum: Stratum, score_range: tuple[float, float]) -> Band:
    """The band of the groups of a stratum, each with its share of the people."""
    below = [atoms.below() for atoms in stratum.values()]
    totals = np.array([float(sums[-1]) for sums in below])
    distributions = [
        Distribution(atoms.scores, (sums[1:] / sums[-1]).astype(np.float64))
        for atoms, sums in zip(stratum.values(), below, strict=True)
    ]
    return Band(distributions, totals / totals.sum(), score_range)


def mapped(counts: ScoreCounts, maps: Mapping[Group, ScoreMap]) -> ScoreCounts:
    """The same people with their scores repaired."""
    atoms = {}
    for (group, label), found in counts.atoms.items():
        moved = maps[group](found.scores)
        if (np.diff(moved) > 0.0).all():
            atoms[group, label] = replace(found, scores=moved)
        else:
            atoms[group, label] = Atoms.gather(moved, found.rows, found.units, found.square_units)
    return replace(counts, atoms=atoms)
