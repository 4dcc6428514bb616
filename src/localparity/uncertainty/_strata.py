"""The people of each stratum, the gap within them, and a test that deals groups out within strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from localparity._types import FloatArray, Group, IntArray
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import ScoreCounts
from localparity.metrics._gap_curve import GapCurve, units_of
from localparity.metrics._profile import mcdp_of
from localparity.uncertainty._dealing import Dealer
from localparity.uncertainty._permutation import p_value_of
from localparity.uncertainty._resampling import Draws, repeat

_MOST_THRESHOLDS = 512
"""The test compares the data and the resamples at up to so many thresholds."""

Pair = tuple[Group, Group]
PairKey = tuple[Group | None, int | None, Pair]
"""A stratum, or None for the mean over strata; a label; two groups."""
PairPValues = Mapping[PairKey, float]
Totals = Mapping[tuple[Group, int | None], int]
"""How many rows each group has of each label."""


@dataclass(frozen=True, eq=False)
class StratumPeople:
    """The people of a label in a stratum, by group; groups that are too small are not among them."""

    stratum: Group
    label: int | None
    atoms: Mapping[Group, Atoms]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(found.size for found in self.atoms.values())

    @property
    def weight(self) -> float:
        """How much all rows weigh."""
        return float(sum(found.weights.sum() for found in self.atoms.values()))

    def has(self, pair: Pair) -> bool:
        """Whether both groups of a pair are there."""
        return pair[0] in self.atoms and pair[1] in self.atoms


def people_of(
    counts: ScoreCounts, names: Mapping[Group, tuple[Group, Group]], comparison: Comparison
) -> list[StratumPeople]:
    """The people of each label in each stratum where two groups have enough of them."""
    found = []
    for label in comparison.labels:
        strata: dict[Group, dict[Group, Atoms]] = {}
        for key, (group, stratum) in names.items():
            labels = (label,) if label is not None else (None, 0, 1)
            atoms = Atoms.join(counts.atoms[key, y] for y in labels if (key, y) in counts.atoms)
            if atoms.size >= comparison.min_group_size:
                strata.setdefault(stratum, {})[group] = atoms
        found += [StratumPeople(stratum, label, each) for stratum, each in strata.items() if len(each) > 1]
    return found


def hide_few(people: Sequence[StratumPeople], totals: Totals, limit: int) -> list[StratumPeople]:
    """Leave out more people of a group where those left out are fewer than a limit.

    The total of a group is known from elsewhere: what holds for the few would follow from a difference.
    """
    for (group, label), total in totals.items():
        of_group = [each for each in people if each.label == label and group in each.atoms]
        left_out = total - sum(each.atoms[group].size for each in of_group)
        if of_group and 0 < left_out < limit:
            smallest = min(of_group, key=lambda each: each.atoms[group].size)
            others = {name: atoms for name, atoms in smallest.atoms.items() if name != group}
            kept = [replace(each, atoms=others) if each is smallest else each for each in people]
            return hide_few([each for each in kept if len(each.atoms) > 1], totals, limit)
    return list(people)


def totals_of(
    counts: ScoreCounts, names: Mapping[Group, tuple[Group, Group]], comparison: Comparison
) -> Totals:
    """How many rows each group has of each label that is compared."""
    found: dict[tuple[Group, int | None], int] = {}
    for (key, y), atoms in counts.atoms.items():
        for label in comparison.labels:
            if label is None or label == y:
                cell = (names[key][0], label)
                found[cell] = found.get(cell, 0) + atoms.size
    return found


def joined(counts: ScoreCounts, names: Mapping[Group, tuple[Group, Group]]) -> ScoreCounts:
    """The counts of the groups, strata put together."""
    parts: dict[tuple[Group, int | None], list[Atoms]] = {}
    for (key, label), atoms in counts.atoms.items():
        parts.setdefault((names[key][0], label), []).append(atoms)
    return replace(counts, atoms={key: Atoms.join(found) for key, found in parts.items()})


def together(people: Sequence[StratumPeople]) -> list[StratumPeople]:
    """The people of each label, strata put together."""
    found = []
    for label in dict.fromkeys(each.label for each in people):
        some = [each.atoms for each in people if each.label == label]
        groups = dict.fromkeys(group for atoms in some for group in atoms)
        joined = {group: Atoms.join(atoms[group] for atoms in some if group in atoms) for group in groups}
        found.append(StratumPeople(None, label, joined))
    return found


def pairs_of(people: Sequence[StratumPeople]) -> list[Pair]:
    """The pairs of groups that are together in some stratum."""
    found = (pair for each in people for pair in combinations(sorted(each.atoms, key=str), 2))
    return list(dict.fromkeys(found))


def standardised_curve(counts: ScoreCounts, people: Sequence[StratumPeople], pair: Pair) -> GapCurve:
    """The mean of the strata's gaps of a pair, each with its share of all people compared."""
    some = [each for each in people if each.has(pair)]
    knots = np.unique(np.concatenate([each.atoms[group].scores for each in some for group in pair]))
    shares = np.array([each.weight for each in some]) / sum(each.weight for each in some)
    gap = np.zeros(knots.size)
    for share, each in zip(shares.tolist(), some, strict=True):
        first, second = (each.atoms[group].shares_at_or_below(knots) for group in pair)
        gap += share * (first - second)
    gap[-1] = 0.0  # which rounding may have missed
    first_size, second_size = (float(sum(each.atoms[group].size for each in some)) for group in pair)
    return GapCurve(
        knots,
        gap,
        pair,
        (first_size, second_size),
        label=some[0].label,
        score_range=counts.score_range,
        resolution=counts.resolution,
        exchangeable=False,
    )


@dataclass(frozen=True, eq=False)
class StratumTest:
    """Groups dealt out at random within strata, and what is measured of each deal.

    Attributes
    ----------
    thresholds : ndarray
        Where distributions are compared, as fractions of the score range.
    people : list of StratumPeople
        The strata.
    cells : list of ndarray
        For each stratum, how many people of each group (rows) lie between a threshold and the one before.
    counts : ScoreCounts
        For the range and the resolution of the scores.
    epsilon : float
        The half-width of windows.
    """

    thresholds: FloatArray
    people: Sequence[StratumPeople]
    cells: list[IntArray]
    counts: ScoreCounts
    epsilon: float

    @classmethod
    def of(cls, counts: ScoreCounts, people: Sequence[StratumPeople], epsilon: float) -> StratumTest:
        """Choose the thresholds: all scores, or as many quantiles of them as are compared."""
        scores = np.unique(np.concatenate([atoms.scores for each in people for atoms in each.atoms.values()]))
        if scores.size > _MOST_THRESHOLDS:
            scores = scores[np.linspace(0, scores.size - 1, _MOST_THRESHOLDS).astype(np.int64)]
        cells = []
        for each in people:
            below = [np.searchsorted(atoms.scores, scores, side="right") for atoms in each.atoms.values()]
            sums = [atoms.below()[at] for atoms, at in zip(each.atoms.values(), below, strict=True)]
            cells.append(np.diff(np.array(sums), axis=1, prepend=0))
        units = units_of(scores, counts.score_range, counts.resolution)
        return cls(units, people, cells, counts, epsilon)

    def p_values(self, draws: Draws) -> tuple[PairPValues, PairPValues]:
        """The adjusted p-values of the standardised gaps, and of the gaps in each stratum.

        That of a pair is how often chance gives as large a gap, studentised, to any pair; in any stratum.
        """
        dealers = [Dealer.of(cells.sum(axis=1), cells.sum(axis=0)) for cells in self.cells]

        def deal(stream: np.random.Generator) -> FloatArray:
            dealt = self.measure([dealer.deal(stream) for dealer in dealers])
            return np.array([max(measured.values()) for measured in dealt])

        null = repeat(deal, draws, 2)
        standardised, within = (
            {key: p_value_of(seen, null[:, column]) for key, seen in measured.items()}
            for column, measured in enumerate(self.measure(self.cells))
        )
        return standardised, within

    def measure(self, cells: Sequence[IntArray]) -> tuple[dict[PairKey, float], dict[PairKey, float]]:
        """The studentised MCDP of each pair's standardised gap, and of its gap in each stratum."""
        shares = [np.cumsum(each, axis=1) / each.sum(axis=1, keepdims=True) for each in cells]
        places = [{group: row for row, group in enumerate(each.atoms)} for each in self.people]
        standardised, within = dict[PairKey, float](), dict[PairKey, float]()
        for label in dict.fromkeys(each.label for each in self.people):
            some = [place for place, each in enumerate(self.people) if each.label == label]
            for pair in pairs_of([self.people[place] for place in some]):
                both = [place for place in some if self.people[place].has(pair)]
                weights = np.array([self.people[place].rows for place in both], dtype=np.float64)
                weights /= weights.sum()
                mean, variance = np.zeros(self.thresholds.size), 0.0
                for weight, place in zip(weights.tolist(), both, strict=True):
                    one, other = (places[place][group] for group in pair)
                    gap = shares[place][one] - shares[place][other]
                    sizes = cells[place].sum(axis=1)
                    spread = 1.0 / sizes[one] + 1.0 / sizes[other]
                    within[self.people[place].stratum, label, pair] = self._mcdp(gap) / np.sqrt(spread)
                    mean += weight * gap
                    variance += weight**2 * spread
                standardised[None, label, pair] = self._mcdp(mean) / np.sqrt(variance)
        return standardised, within

    def _mcdp(self, gap: FloatArray) -> float:
        if self.epsilon <= 0.0:
            return float(np.abs(gap).max())
        at, counts = np.array([self.epsilon]), self.counts
        return float(mcdp_of(self.thresholds, gap, at, counts.resolution, counts.score_range)[0])
