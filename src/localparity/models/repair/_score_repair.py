"""Scores moved until their local disparity is within a bound."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from localparity._io._sealed import Files
from localparity._scale import score_resolution
from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, ScoreRange, Seed
from localparity._validation import (
    Grouping,
    InputError,
    as_count,
    as_groups,
    as_number,
    as_score_range,
    setting,
)
from localparity.counts import Comparison
from localparity.counts._atoms import Atoms
from localparity.counts._score_counts import (
    ScoreCounts,
    Stratum,
    copies_of,
    strata_of,
    warn_of_copies,
    without_copies,
)
from localparity.metrics import mcdp, mcdp_bounds
from localparity.metrics._gap_curve import gap_curves
from localparity.metrics._within import within_bound
from localparity.models._bound import Bound, OutOfReachError, round_up
from localparity.models._folder import as_json, restore_groups
from localparity.models._rows import ADVICE, TrainingRows, coded_predictions, describe_counts, describe_rows
from localparity.models.repair._base import NAMES, RepairTransformer, clipped_scores
from localparity.models.repair._maps import Corridor, Distribution, ScoreMap, checked_map, map_rows
from localparity.models.repair._sql import group_maps_sql
from localparity.predictions import check_predictions
from localparity.uncertainty._bands import band_radius, repair_radii
from localparity.uncertainty._resampling import Draws

_WIDTHS = (*(2.0**-halving for halving in range(13)), 0.0)
_BISECTIONS = 20


class GroupMaps(NamedTuple):
    """Each group's map, and MCDP of the people fitted on after it."""

    maps: dict[Group, ScoreMap]
    mcdp: float


def gap_error(counts: ScoreCounts) -> float:
    """Return by how much a gap between counted groups may be off, before increasing maps and after.

    On a grid no distribution is above the true one, so that two groups' errors do not add up, as of sketches.
    """
    return counts.rank_error if counts.cells is not None else 2.0 * counts.rank_error


def find_maps(counts: ScoreCounts, *, aim: float, epsilon: float, criterion: Criterion) -> GroupMaps:
    """Return the maps of least movement that bring MCDP(epsilon) to `aim`, else those that leave least.

    For one label, or for everyone, the corridor of that width is the answer, unless more people share a score
    than fit into it. One map cannot follow two labels, so for equalized odds the widest corridor that does is
    sought.
    """
    strata = strata_of(counts, Comparison(criterion))
    corridor = corridor_of(list(strata.values()), counts.score_range)
    groups = list(next(iter(strata.values())))

    def maps_within(width: float) -> GroupMaps:
        maps = dict(zip(groups, corridor.maps(width, epsilon), strict=True))
        return GroupMaps(maps, mcdp(mapped(counts, maps), epsilon=epsilon, criterion=criterion))

    return _widest(maps_within, aim, aim if len(strata) == 1 else 1.0)


def _widest(maps_within: Callable[[float], GroupMaps], aim: float, widest: float) -> GroupMaps:
    """Return the maps into the widest corridor found that meets the aim, else those that leave least.

    The remaining gap need not fall with the width, so all maps are measured. The widths do not depend on the
    aim, so the least that is left can be reached from any higher aim.
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
    """Bisect for the widest corridor between one that meets the aim and one that does not."""
    width, best = met
    for _ in range(_BISECTIONS):
        middle = 0.5 * (width + too_wide)
        tried = maps_within(middle)
        if tried.mcdp <= aim:
            width, best = middle, tried
        else:
            too_wide = middle
    return best


def corridor_of(strata: list[Stratum], score_range: tuple[float, float]) -> Corridor:
    """Return the corridor of the groups, each with its share of the people; labels count alike."""
    if len(strata) == 1:
        parts = ((atoms.scores, atoms.below()) for atoms in strata[0].values())
        distributions = [Distribution(at, np.asarray(n[1:] / n[-1], np.float64)) for at, n in parts]
    else:
        distributions = [_mean_distribution([stratum[group] for stratum in strata]) for group in strata[0]]
    totals = np.sum(
        [[float(atoms.weights.sum()) for atoms in stratum.values()] for stratum in strata], axis=0
    )
    return Corridor(distributions, totals / totals.sum(), score_range)


def _mean_distribution(parts: list[Atoms]) -> Distribution:
    scores = np.unique(np.concatenate([part.scores for part in parts]))
    return Distribution(scores, np.mean([part.shares_at_or_below(scores) for part in parts], axis=0))


def mapped(counts: ScoreCounts, maps: Mapping[Group, ScoreMap]) -> ScoreCounts:
    """Return the same people with their scores repaired."""
    atoms = {}
    for (group, label), unmoved in counts.atoms.items():
        moved = maps[group](unmoved.scores)
        if (np.diff(moved) > 0.0).all():
            atoms[group, label] = replace(unmoved, scores=moved)
        else:
            atoms[group, label] = Atoms.gather(moved, unmoved.rows, unmoved.units)
    return replace(counts, atoms=atoms)


def margin_of(
    counts: ScoreCounts, criterion: Criterion, confidence: float, random_state: Seed = None
) -> float:
    """Return how much larger MCDP may be in the population than among the people fitted on.

    Maps are increasing, so a repaired gap is off by what the first group's distribution is off at one score,
    less what the second's is off at another: by no more than the widest band of all pairs (and labels).
    """
    comparison = Comparison(criterion)
    pairs, draws = gap_curves(counts, comparison), Draws(1000, random_state)
    return float(repair_radii(counts, comparison, pairs, confidence=confidence, draws=draws).max())


def sufficient_group_size(pairs: int, confidence: float, bound: float) -> int:
    """Return how many people of each group, no two with the same score, let a bound be promised.

    The least n for which the margin of two groups of n people, and one person's share next to it, are within
    the bound; the margin falls with the root of n. `pairs` pairs share the confidence.
    """
    margin = float(band_radius((1.0, 1.0), (1.0 - confidence) / pairs))
    root = 0.5 * (math.sqrt(margin * margin + 4.0 * bound) - margin)
    return math.ceil(1.0 / (root * root))


def check_attained(repair: ScoreRepair, counts: ScoreCounts, attained: float) -> None:
    """Raise a ValueError where even the best repair leaves more than it aims for; say what would work."""
    bound = repair.max_mcdp
    if within_bound(attained + repair.margin_, bound):
        return
    share, who = _largest_tie(counts, repair.criterion)
    if bound == 0.0 and repair.confidence is None and attained <= share:
        return  # the distributions coincide up to ties
    hint = f"use {setting('max_mcdp')} >= {round_up(attained + repair.margin_):g}"
    if repair.confidence is not None and not within_bound(repair.margin_ + share, bound):
        strata = strata_of(counts, Comparison(repair.criterion)).values()
        sizes = ", ".join(f"{atoms.size:,}" for stratum in strata for atoms in stratum.values())
        pairs = sum(math.comb(len(stratum), 2) for stratum in strata)
        costly = setting(confidence=repair.confidence)
        why = f"{costly} takes a margin of {repair.margin_:.4f} for groups of {sizes}"
        if bound > 0.0:
            needed = sufficient_group_size(pairs, repair.confidence, bound)
            hint += f", or fit on {needed:,} people of each group with distinct scores"
    elif len(strata_of(counts, Comparison(repair.criterion))) > 1:
        why = f"one map per group for both labels leaves at least {attained:.4f}"
    else:
        why = f"people who share a score move together and leave at least {attained:.4f}: {who}"
    raise OutOfReachError(f"{setting(max_mcdp=bound)} is out of reach: {why}; {hint}")


def _largest_tie(counts: ScoreCounts, criterion: Criterion) -> tuple[float, str]:
    """Return the largest share of a group at one score, and a phrase that says who they are."""
    ties = []
    for stratum in strata_of(counts, Comparison(criterion)).values():
        for group, atoms in stratum.items():
            most = int(atoms.weights.argmax())
            share = float(atoms.weights[most] / atoms.weights.sum())
            ties.append(
                (share, f"{100 * share:.3g}% of group {group!r} have the score {atoms.scores[most]:g}")
            )
    return max(ties)


def check_labels_given(criterion: Criterion, y: ArrayLike | None) -> None:
    """Raise a ValueError where a criterion needs labels and there are none."""
    if y is None and Comparison(criterion).needs_labels:
        raise InputError(f"{setting(criterion=criterion)} needs {setting('y')}, got None")


_FILE = "maps.npy"
_MEASURED = ("unrepaired_mcdp_", "mcdp_", "margin_")


class ScoreRepair(RepairTransformer):
    r"""Bring MCDP(epsilon) of any scores within a bound, moving as few of them as little as possible.

    Wherever the groups' cumulative distributions are further apart than the bound, they are drawn towards
    their Wasserstein barycentre until they are not; everywhere else scores stay as they are, except that
    scores which would become equal are kept apart. Each group's scores go through one increasing map, so
    ranks within a group never change. A score that `fit` did not see goes on a straight line between its
    neighbours. `RepairedClassifier` does the same around a classifier. Where the group is unknown at
    prediction, or must not be used there, see `GroupBlindRepair`.

    Without a `confidence`, the bound holds exactly for the people fitted on. With one, it holds with that
    probability for the population that they were drawn from, at any size and whatever the distributions, if
    they are an independent sample and their scores were not computed on rows that the model was trained on.
    For equal opportunity and predictive equality a group's map is made for its people of one label and
    applied to all, so no label is needed to predict. For equalized odds one map serves both labels: a low
    bound may be out of reach, which is an error that names the lowest found.

    Parameters
    ----------
    max_mcdp : float
        The most that MCDP(epsilon) may be after the repair. With 0 the groups' distributions coincide up to
        ties: two groups of 3 and 2 people cannot do so exactly, and `mcdp_` is what remains.
    epsilon : float
        The half-width of the windows, as a fraction of the score range. Gaps above the bound on stretches too
        short for a window are left alone.
    confidence : float, optional
        The probability with which the bound holds in the population; with weights approximately, each group
        counting as its effective size.
    criterion : str
        Who is compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds".
    score_range : tuple of float
        The lowest and the highest score there can be.
    random_state : int, Generator or None
        Seeds the resampling behind a `confidence` for weighted rows.

    Attributes
    ----------
    groups_, maps_ : tuple and dict of ScoreMap
        The groups' names, and each group's map.
    unrepaired_mcdp_, mcdp_ : float
        MCDP(epsilon) of the people fitted on, before and after.
    margin_ : float
        How far below `max_mcdp` the repair had to aim for its confidence; 0 without one.
    promise_ : str
        What holds and for whom, in a sentence.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> repair = lp.models.ScoreRepair(max_mcdp=0.05).fit(census.score, sensitive_features=sex)
    >>> repaired = repair.transform(census.score, sensitive_features=sex)
    >>> lp.mcdp(None, repaired, sensitive_features=sex) <= 0.05
    True
    >>> print(repair.promise_)
    MCDP(0) is at most 0.05 among the 2,000 people fitted on; nothing is promised for others without a
    confidence.
    """

    __metadata_request__fit: ClassVar = {"sensitive_features": True}
    __metadata_request__transform: ClassVar = {"sensitive_features": True}

    def __init__(
        self,
        max_mcdp: float = 0.05,
        *,
        epsilon: float = 0.0,
        confidence: float | None = None,
        criterion: Criterion = "demographic_parity",
        score_range: ScoreRange = (0.0, 1.0),
        random_state: Seed = None,
    ) -> None:
        self.max_mcdp = max_mcdp
        self.epsilon = epsilon
        self.confidence = confidence
        self.criterion = criterion
        self.score_range = score_range
        self.random_state = random_state

    def fit(
        self,
        scores: ArrayLike | ScoreCounts,
        y: ArrayLike | None = None,
        *,
        sensitive_features: Groups = None,
        sample_weight: ArrayLike | None = None,
    ) -> ScoreRepair:
        """Learn each group's map.

        Parameters
        ----------
        scores : array-like of shape (n_samples,) or ScoreCounts
            The scores; or, in place of all arguments, those of all rows counted where they are, as by
            `localparity.engines.from_spark`. The bound holds for the rows even if counts are on a grid.
        y : array-like of shape (n_samples,), optional
            Labels 0 and 1, where the criterion needs them.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; of several columns, the combinations that occur.
        sample_weight : array-like of shape (n_samples,), optional
            Weights that are not negative.

        Returns
        -------
        ScoreRepair
            The fitted repair.
        """
        self._check_all()
        if isinstance(scores, ScoreCounts):
            arrays = {"y": y, "sensitive_features": sensitive_features, "sample_weight": sample_weight}
            self._check_counts(scores, arrays)
            self._fitted_on = describe_counts(scores)
            return self._fit_counts(scores)
        check_labels_given(self.criterion, y)
        people = check_predictions(
            y if Comparison(self.criterion).needs_labels else None,
            scores,
            sensitive_features,
            sample_weight=sample_weight,
            score_range=self.score_range,
            names=NAMES,
        )
        self._fitted_on = describe_rows(
            people.group_codes, people.groups, people.scores, people.labels, people.weights
        )
        return self._fit_counts(ScoreCounts.from_predictions(people))

    def _fit_rows(self, rows: TrainingRows, scores: FloatArray) -> ScoreRepair:
        """`fit`, on scores of rows that were checked before."""
        labels = rows.labels.astype(np.uint8) if Comparison(self.criterion).needs_labels else None
        people = coded_predictions(scores, rows.grouping, labels, rows.weights if rows.weighted else None)
        return self._fit_counts(ScoreCounts.from_predictions(people))

    def _check_counts(self, counts: ScoreCounts, arrays: Mapping[str, Any]) -> None:
        """Check counts that are given in place of all arrays."""
        for name, array in arrays.items():
            if array is not None:
                raise InputError("must be None with ScoreCounts, which have it already", name)
        if counts.clusters is not None:
            raise InputError("must be of independent rows, got counts with clusters", "counts")
        if as_score_range(self.score_range) != counts.score_range:
            reason = f"is {self.score_range}, that of the counts is {counts.score_range}"
            raise InputError(reason, "score_range")

    def transform(self, scores: ArrayLike, *, sensitive_features: Groups = None) -> FloatArray:
        """Return the repaired scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            The scores.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row, among those that `fit` saw.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        clipped = clipped_scores(scores, as_score_range(self.score_range))
        return map_rows(clipped, as_groups(sensitive_features, clipped.size, at_least=1), self.maps_)

    def _map(self, scores: FloatArray, grouping: Grouping) -> FloatArray:
        """`transform`, for groups that are encoded already."""
        return map_rows(clipped_scores(scores, as_score_range(self.score_range)), grouping, self.maps_)

    def to_sql(
        self, dialect: str = "duckdb", *, score: str = "score", group: str | Sequence[str] = "group"
    ) -> str:
        """Return the repaired score as an SQL expression, to be computed where the scores are.

        It stands wherever a column can stand, and gives what `transform` gives. It is NULL where `transform`
        raises an error: where the score or the group is NULL, out of range, or one that `fit` did not see.

        Parameters
        ----------
        dialect : str
            "duckdb", "postgres" or "spark".
        score : str
            The column of the scores.
        group : str or sequence of str
            The column of the groups, or one for each part of a group.

        Returns
        -------
        str
            The expression, whose length grows with the number of distinct scores that were moved.

        Examples
        --------
        >>> import duckdb, localparity as lp
        >>> people = lp.datasets.make_census(500, random_state=0)
        >>> scored = people.data.assign(p=people.score, sex=people.sensitive_features)
        >>> repair = lp.models.ScoreRepair(max_mcdp=0.1).fit(scored["p"], sensitive_features=scored["sex"])
        >>> expression = repair.to_sql("duckdb", score="p", group="sex")
        >>> [(highest,)] = duckdb.sql(f"SELECT max({expression}) FROM scored").fetchall()
        >>> highest == float(repair.transform(scored["p"], sensitive_features=scored["sex"]).max())
        True
        """
        check_is_fitted(self)
        columns = (group,) if isinstance(group, str) else tuple(group)
        return group_maps_sql(dialect, score, columns, self.maps_)

    def _check_all(self) -> None:
        Bound.of(self)
        low, high = as_score_range(self.score_range)
        if not np.isfinite(high - low):
            raise InputError(f"must be no longer than float64 holds, got ({low}, {high})", "score_range")

    def _fit_counts(self, counts: ScoreCounts) -> ScoreRepair:
        """Find the maps, or raise a ValueError where there are none.

        `transform` returns double precision, and is measured as such, whatever the precision of the scores.
        Maps are increasing, so that what is unknown of a gap on a grid stays as it was: it is aimed below.
        """
        bound = Bound.of(self)
        copies = copies_of(counts)
        warn_of_copies(copies, ADVICE, stacklevel=3)
        counts = without_copies(counts, copies)
        self.groups_ = counts.groups
        self.unrepaired_mcdp_ = mcdp_bounds(counts, epsilon=bound.epsilon, criterion=bound.criterion).high
        error = gap_error(counts)
        resolution = score_resolution(np.dtype(np.float64), counts.score_range)
        counts = replace(counts, resolution=resolution, rank_error=0.0, cells=None)
        as_returned = mcdp(counts, epsilon=bound.epsilon, criterion=bound.criterion)
        self.margin_ = 0.0
        if bound.confidence is not None:
            self.margin_ = margin_of(counts, bound.criterion, bound.confidence, self.random_state)
        aim = bound.max_mcdp - self.margin_ - error
        if as_returned <= aim:
            ends = np.array(counts.score_range)
            same = ScoreMap(ends, ends, counts.score_range)
            stratum = next(iter(strata_of(counts, Comparison(bound.criterion)).values()))
            repair = GroupMaps(dict.fromkeys(stratum, same), as_returned)
        else:
            repair = find_maps(counts, aim=max(aim, 0.0), epsilon=bound.epsilon, criterion=bound.criterion)
            check_attained(self, counts, repair.mcdp + error)
        self.maps_, self.mcdp_ = repair.maps, repair.mcdp + error
        promised = bound._replace(max_mcdp=max(bound.max_mcdp, self.mcdp_))
        self.promise_ = promised.promise(counts.size, tested=False, weighted=not counts.exchangeable)
        return self

    def _dump(self) -> tuple[dict[str, Any], Files]:
        maps = list(self.maps_.values())
        sizes = [score_map.knots.size for score_map in maps]
        numbers = np.hstack([[score_map.knots, score_map.values] for score_map in maps]).astype("<f8")
        learned = {
            "groups": as_json(self.groups_, "sensitive_features"),
            "knots": sizes,
            "promise": self.promise_,
            **{name: getattr(self, name) for name in _MEASURED},
        }
        return learned, {_FILE: _npy_header(sum(sizes)) + numbers.tobytes()}

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        self.groups_ = restore_groups(learned["groups"])
        self.promise_ = str(learned["promise"])
        for name in _MEASURED:
            setattr(self, name, as_number(learned[name], name))
        sizes, content = [as_count(size, "knots") for size in learned["knots"]], files[_FILE]
        header = _npy_header(sum(sizes))
        if not content.startswith(header) or len(content) != len(header) + 16 * sum(sizes):
            raise ValueError(f"{_FILE} must be float64 of shape (2, {sum(sizes)})")
        numbers = np.frombuffer(content, "<f8", offset=len(header)).astype(np.float64).reshape(2, -1)
        parts = np.split(numbers, np.cumsum(sizes)[:-1], axis=1)
        score_range = as_score_range(self.score_range)
        self.maps_ = {
            group: checked_map(part[0].copy(), part[1].copy(), score_range)
            for group, part in zip(self.groups_, parts, strict=True)
        }


def _npy_header(columns: int) -> bytes:
    """Return how a file of numpy starts that holds float64 of shape (2, columns): no other is read."""
    header = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": (2, columns)}
    np.lib.format.write_array_header_1_0(header, described)
    return header.getvalue()
