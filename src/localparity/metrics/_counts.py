"""For each group and label the distinct scores and the weight at each: all that the metrics need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localparity._validation import FloatArray, Group, at_ends, sort_groups, unknown_name
from localparity.metrics._atoms import Atoms
from localparity.metrics._cells import CellGaps, Cells
from localparity.metrics._clusters import ClusteredRows
from localparity.metrics._criteria import check_group_sizes, labels_of
from localparity.metrics._gap_curve import Bounds, GapCurve
from localparity.metrics._groups import EVERYONE, pairs_of
from localparity.metrics._profile import McdpProfile
from localparity.predictions import Predictions

Stratum = dict[Group, Atoms]
"""The people compared with each other: for each group, its scores."""


def with_everyone(stratum: Stratum) -> Stratum:
    """A stratum's groups and, beside them, all of its people together."""
    if EVERYONE in stratum:
        raise ValueError(f"a group is named {EVERYONE!r}, as all people together are; give it another name")
    return {**stratum, EVERYONE: Atoms.join(stratum.values())}


def curve_of_atoms(
    first: Atoms,
    second: Atoms,
    *,
    groups: tuple[Group, Group],
    label: int | None,
    score_range: tuple[float, float],
    resolution: float,
    rank_error: float = 0.0,
    cells: Cells | None = None,
    exchangeable: bool = True,
) -> GapCurve:
    """The gap curve of two groups."""
    # Imported here: numba is not loaded with the package.
    from localparity.metrics import _kernels

    knots, in_first, in_second = _kernels.merge_scores(first.scores, second.scores)
    below_first, below_second = first.below(), second.below()
    total_first, total_second = below_first[-1], below_second[-1]
    whole = below_first.dtype.kind == below_second.dtype.kind == "i"
    whole = whole and float(total_first) * float(total_second) < 2.0**62

    def gap(at_first: NDArray[np.int64], at_second: NDArray[np.int64]) -> FloatArray:
        if whole:
            # Whole numbers over one denominator: equal gaps are equal floats.
            numerator = below_first[at_first] * total_second - below_second[at_second] * total_first
            return np.asarray(numerator / (float(total_first) * float(total_second)))
        shares = below_first[at_first] / total_first - below_second[at_second] / total_second
        return np.asarray(shares, dtype=np.float64)

    known_below = None
    if cells is not None:
        before_first, before_second = (np.append(0, places[:-1]) for places in (in_first, in_second))
        least, most = gap(before_first, in_second), gap(in_first, before_second)
        known_below = CellGaps(cells.lows_of(knots), least, most)
    return GapCurve(
        knots,
        gap(in_first, in_second),
        groups,
        (first.effective_size, second.effective_size),
        label,
        score_range,
        resolution,
        rank_error,
        known_below,
        exchangeable,
    )


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """For each group, and label where a criterion needs it, the distinct scores and the weight at each.

    All metrics come from such a table, it merges by addition, and every engine can make one.

    Attributes
    ----------
    atoms : mapping
        The scores by (group, label); the label is None where labels were not counted.
    score_range : tuple of float
        The range of the scores.
    resolution : float
        Fractions of the range that differ by less count as equal; those of smaller scores are the finer.
    rank_error : float
        The most that a group's cumulative distribution may be off; 0 when the counts are exact.
    cells : Cells or None
        The cells of scores that are only known together; None where every score is known.
    clusters : ClusteredRows or None
        The rows with the cluster of each, where rows are not independent.

    Examples
    --------
    >>> import localparity as lp
    >>> predictions = lp.Predictions.from_arrays(
    ...     None, [0.2, 0.6, 0.4, 0.8], sensitive_features=["a", "a", "b", "b"]
    ... )
    >>> counts = lp.ScoreCounts.from_predictions(predictions)
    >>> counts.groups, counts.mcdp(0.05)
    (('a', 'b'), 0.5)
    >>> counts.merge(counts).size
    8
    """

    atoms: Mapping[tuple[Group, int | None], Atoms]
    score_range: tuple[float, float] = (0.0, 1.0)
    resolution: float = 4.0 * float(np.finfo(np.float64).eps)
    rank_error: float = 0.0
    cells: Cells | None = None
    clusters: ClusteredRows | None = None

    @classmethod
    def from_predictions(cls, predictions: Predictions) -> ScoreCounts:
        """Count the rows of `predictions`, by label where it has labels."""
        codes = predictions.codes.astype(np.int64)
        labels: tuple[int | None, ...] = (None,)
        if predictions.labels is not None:
            labels = (0, 1)
            codes = 2 * codes + predictions.labels
        keys = [(group, label) for group in predictions.groups for label in labels]
        order = np.argsort(codes.astype(np.uint16), kind="stable")  # groups are far fewer than 2**15
        ends = np.cumsum(np.bincount(codes, minlength=len(keys)))
        scores = at_ends(predictions.scores[order], predictions.score_range)
        weights = None if predictions.weights is None else predictions.weights[order]
        atoms = {}
        for key, start, end in zip(keys, np.append(0, ends[:-1]), ends, strict=True):
            part = slice(start, end)
            atoms[key] = Atoms.of_rows(scores[part], None if weights is None else weights[part])
        clusters = None
        if predictions.clusters is not None:
            clusters = ClusteredRows(
                at_ends(predictions.scores, predictions.score_range),
                predictions.codes.astype(np.int64),
                predictions.clusters,
                predictions.groups,
                predictions.labels,
                predictions.weights,
            )
        return cls(atoms, predictions.score_range, predictions.resolution, clusters=clusters)

    @cached_property
    def exchangeable(self) -> bool:
        """Whether all rows are independent and weigh 1."""
        return self.clusters is None and all(atoms.units is None for atoms in self.atoms.values())

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups, in order."""
        return sort_groups({group for group, _ in self.atoms})

    @property
    def labelled(self) -> bool:
        """Whether labels were counted."""
        return all(label is not None for _, label in self.atoms)

    @property
    def size(self) -> int:
        """How many rows were counted."""
        return sum(atoms.size for atoms in self.atoms.values())

    def merge(self, other: ScoreCounts) -> ScoreCounts:
        """The counts of both tables' rows together."""
        if self.score_range != other.score_range:
            raise ValueError(
                f"counts over {self.score_range} cannot merge with counts over {other.score_range}"
            )
        if self.labelled != other.labelled:
            raise ValueError("counts with labels cannot merge with counts without")
        if self.clusters is not None or other.clusters is not None:
            raise ValueError("counts with clusters cannot merge: a cluster may have rows in both")
        if self.sketched != other.sketched and (self.cells or other.cells):
            raise ValueError("counts of a sketch cannot merge with counts on a grid")
        keys = [*self.atoms, *(key for key in other.atoms if key not in self.atoms)]
        atoms = {
            key: Atoms.join(counts.atoms[key] for counts in (self, other) if key in counts.atoms)
            for key in keys
        }
        resolution = max(self.resolution, other.resolution)
        rank_error = max(self.rank_error, other.rank_error)
        merged = ScoreCounts(atoms, self.score_range, resolution, rank_error)
        if self.cells is None and other.cells is None:
            return merged
        cells = self.cells.union(other.cells) if self.cells else other.cells
        assert cells is not None
        return merged.snap(cells)

    @property
    def sketched(self) -> bool:
        """Whether the distributions may be off anywhere, and not only inside cells."""
        return self.rank_error > 0.0 and self.cells is None

    def snap(self, cells: Cells) -> ScoreCounts:
        """The same people, with those inside a cell counted at its high end."""
        atoms = {key: found.snap(cells) for key, found in self.atoms.items()}
        return replace(self, atoms=atoms).on_cells(cells)

    def on_cells(self, cells: Cells | None) -> ScoreCounts:
        """The same table, known to stand for cells, with the error that this makes."""
        if cells is None:
            return replace(self, rank_error=0.0, cells=None)
        worst = max(found.most_inside(cells) for found in self.atoms.values())
        return replace(self, rank_error=worst, cells=cells)

    def without(self, groups: Iterable[Group]) -> ScoreCounts:
        """The counts without some groups."""
        left_out = set(groups)
        atoms = {key: found for key, found in self.atoms.items() if key[0] not in left_out}
        clusters = None if self.clusters is None else self.clusters.without(left_out)
        return replace(self, atoms=atoms, clusters=clusters)

    def strata(
        self, criterion: str = "demographic_parity", *, min_group_size: int = 1
    ) -> dict[int | None, Stratum]:
        """The people that a criterion compares with each other, by their label."""
        found = {label: self._stratum(label, criterion) for label in labels_of(criterion)}
        for label, stratum in found.items():
            sizes = [atoms.size for atoms in stratum.values()]
            check_group_sizes(list(stratum), sizes, label, min_group_size)
        return found

    def small_groups(self, criterion: str, min_group_size: int) -> dict[Group, int]:
        """The groups with fewer of the people compared, under any label, and how many they have."""
        strata = [self._stratum(label, criterion) for label in labels_of(criterion)]
        fewest = {group: min(stratum[group].size for stratum in strata) for group in self.groups}
        return {group: rows for group, rows in fewest.items() if rows < min_group_size}

    def _stratum(self, label: int | None, criterion: str) -> Stratum:
        if label is not None and not self.labelled:
            raise ValueError(f"criterion={criterion!r} compares people by label, and there are no labels")
        return {group: self._atoms_of(group, label) for group in self.groups}

    def _atoms_of(self, group: Group, label: int | None) -> Atoms:
        kept = [atoms for key, atoms in self.atoms.items() if key[0] == group and label in (None, key[1])]
        return Atoms.join(kept)

    def gap_curves(
        self,
        criterion: str = "demographic_parity",
        compare: str = "between_groups",
        *,
        min_group_size: int = 1,
    ) -> list[GapCurve]:
        """The curves of all pairs that are compared."""
        if len(self.groups) < 2:
            named = ", ".join(map(repr, self.groups)) or "none"
            raise ValueError(f"the counts have too few groups ({named}) where two or more are expected")
        curves = []
        for label, stratum in self.strata(criterion, min_group_size=min_group_size).items():
            pairs = pairs_of(list(stratum), compare)
            sides = with_everyone(stratum) if compare == "to_overall" else stratum
            curves += [self.curve_between(sides, pair, label) for pair in pairs]
        return curves

    def gap_curve(self, a: Group, b: Group, criterion: str = "demographic_parity") -> GapCurve:
        """The curve of one pair of groups.

        Examples
        --------
        >>> import localparity as lp
        >>> predictions = lp.Predictions.from_arrays(None, [0.2, 0.6], sensitive_features=["a", "b"])
        >>> lp.ScoreCounts.from_predictions(predictions).gap_curve("b", "a").gap
        array([-1.,  0.])
        """
        strata = self.strata(criterion)
        if len(strata) > 1:
            raise ValueError(
                f"criterion={criterion!r} compares the people of each label apart and has no one curve; "
                "ask for 'equal_opportunity' or 'predictive_equality'"
            )
        ((label, sides),) = strata.items()
        if EVERYONE in (a, b):
            sides = with_everyone(sides)
        for group in (a, b):
            if group not in sides:
                raise unknown_name("group", group, sides)
        return self.curve_between(sides, (a, b), label)

    def curve_between(self, sides: Stratum, pair: tuple[Group, Group], label: int | None) -> GapCurve:
        """The curve of a pair of the groups of a stratum."""
        return curve_of_atoms(
            *(sides[group] for group in pair),
            groups=pair,
            label=label,
            score_range=self.score_range,
            resolution=self.resolution,
            rank_error=self.rank_error,
            cells=self.cells,
            exchangeable=self.exchangeable,
        )

    def profile(self, criterion: str = "demographic_parity", compare: str = "between_groups") -> McdpProfile:
        """MCDP at every epsilon, of the worst pair."""
        return McdpProfile(self.gap_curves(criterion, compare))

    def mcdp(
        self,
        epsilon: float = 0.0,
        criterion: str = "demographic_parity",
        compare: str = "between_groups",
    ) -> float:
        """MCDP(epsilon), of the worst pair."""
        return max(curve.mcdp(epsilon) for curve in self.gap_curves(criterion, compare))

    def mcdp_bounds(
        self,
        epsilon: float = 0.0,
        criterion: str = "demographic_parity",
        compare: str = "between_groups",
    ) -> Bounds:
        """What MCDP(epsilon) of the worst pair lies between; twice the same number when the counts are exact.

        Examples
        --------
        >>> import localparity as lp
        >>> predictions = lp.Predictions.from_arrays(None, [0.2, 0.6], sensitive_features=["a", "b"])
        >>> lp.ScoreCounts.from_predictions(predictions).mcdp_bounds(0.1)
        Bounds(low=1.0, high=1.0)
        """
        found = [curve.mcdp_bounds(epsilon) for curve in self.gap_curves(criterion, compare)]
        return Bounds(max(each.low for each in found), max(each.high for each in found))
