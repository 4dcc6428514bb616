"""Scores moved until their local disparity is within a bound."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_is_fitted

from localparity._scale import score_resolution
from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, ScoreRange, Seed
from localparity._validation import (
    InputError,
    as_count,
    as_epsilon,
    as_fraction,
    as_groups,
    as_number,
    as_probability,
    as_score_range,
    as_scores,
    setting,
)
from localparity.counts import Comparison
from localparity.counts._atoms import Atoms
from localparity.counts._copies import copies_of, warn_of_copies, without_copies
from localparity.counts._score_counts import ScoreCounts, Stratum, strata_of
from localparity.metrics import mcdp, mcdp_bounds
from localparity.models._folder import Files, FolderMixin, plain, restore_groups
from localparity.models._rows import ADVICE, describe_counts, describe_rows
from localparity.models.repair._base import NAMES, check_reached, margin_of, promise_sentence
from localparity.models.repair._maps import Band, Distribution, ScoreMap, checked_map, map_rows
from localparity.models.repair._sql import as_dialect, group_maps_sql
from localparity.predictions import check_predictions

# The maps that bring counted scores within a bound, and the disparity that they leave.


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


_FILE = "maps.npy"
_MEASURED = ("unrepaired_mcdp_", "mcdp_", "margin_")


class ScoreRepair(FolderMixin, BaseEstimator):  # type: ignore[misc]
    r"""Bring MCDP(epsilon) of any scores within a bound, moving as few of them as little as possible.

    Wherever the groups' cumulative distributions are further apart than the bound, they are drawn towards
    their Wasserstein barycentre until they are not; everywhere else scores stay as they are, except that
    scores which would become equal are kept apart. Each group's scores go through one increasing map, so
    that ranks within a group never change. A score that `fit` did not see goes through the same map, on a
    straight line between its neighbours. `RepairedClassifier` does the same around a classifier.

    `promise_` says what holds. Without a `confidence`, the bound holds exactly for the people fitted on. With
    one, it holds with that probability for the population that they were drawn from, at any size and whatever
    the distributions, if they are an independent sample and their scores were not computed on rows that the
    model was trained on. The same holds for equal opportunity
    and predictive equality: a group's map is made for its people of one label and applied to all of them, so
    no label is needed to predict. For equalized odds one map has to serve both labels, and a low bound may be
    out of reach, which is an error that names the lowest found.

    If the group is unknown at prediction, or must not be used there, see `GroupBlindRepair`.

    Parameters
    ----------
    max_mcdp : float
        The most that MCDP(epsilon) may be after the repair. With 0 the groups' distributions coincide up to
        ties: two groups of 3 and 2 people cannot do so exactly, and `mcdp_` is what is left.
    epsilon : float
        The half-width of the windows, as a fraction of the score range. Gaps above the bound on stretches too
        short for a window are left alone.
    confidence : float, optional
        The probability with which the bound holds in the population, under the conditions that `promise_`
        names; with weights approximately, each group counting as its effective size.
    criterion : str
        Who is compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds".
    score_range : tuple of float
        The lowest and the highest score there can be.
    random_state : int, Generator or None
        Seeds the resampling behind a `confidence` for weighted rows.

    Attributes
    ----------
    groups_ : tuple
        The groups' names.
    maps_ : dict of ScoreMap
        Each group's map.
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

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"sensitive_features": True}

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
        self._check_parameters()
        if isinstance(scores, ScoreCounts):
            given = {"y": y, "sensitive_features": sensitive_features, "sample_weight": sample_weight}
            return self._fit_counts(scores, given)
        needs_labels = Comparison(self.criterion).needs_labels
        if needs_labels and y is None:
            raise InputError(f"{setting(criterion=self.criterion)} needs y, got None")
        predictions = check_predictions(
            y if needs_labels else None,
            scores,
            sensitive_features,
            sample_weight=sample_weight,
            score_range=self.score_range,
            names=NAMES,
        )
        self.groups_: tuple[Group, ...] = predictions.groups
        self._fitted_on = describe_rows(
            predictions.codes, predictions.groups, predictions.scores, predictions.labels, predictions.weights
        )
        self._learn(ScoreCounts.from_predictions(predictions))
        return self

    def _fit_counts(self, counts: ScoreCounts, arrays: Mapping[str, Any]) -> ScoreRepair:
        """`fit`, from counts, in place of which there must be no arrays."""
        for name, given in arrays.items():
            if given is not None:
                raise InputError("must be None with ScoreCounts, which have it already", name)
        if counts.clusters is not None:
            raise InputError("must be of independent rows, got counts with clusters", "counts")
        if as_score_range(self.score_range) != counts.score_range:
            raise InputError(
                f"is {self.score_range}, that of the counts is {counts.score_range}", "score_range"
            )
        self.groups_ = counts.groups
        self._fitted_on = describe_counts(counts)
        self._learn(counts)
        return self

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
        low, high = as_score_range(self.score_range)
        given = as_scores(scores, (low, high), "scores").values
        clipped = np.clip(given.astype(np.float64, copy=False), low, high)
        return map_rows(clipped, as_groups(sensitive_features, clipped.size, at_least=1), self.maps_)

    def to_sql(
        self, dialect: str = "duckdb", *, score: str = "score", group: str | Sequence[str] = "group"
    ) -> str:
        """Return the repaired score as an SQL expression, to be computed where the scores are.

        It stands wherever a column can stand, and gives what `transform` gives. It is NULL where the score is
        NULL or outside of `score_range`, and where the group is NULL or one that `fit` did not see, which are
        errors in `transform`.

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
        return group_maps_sql(as_dialect(dialect), score, columns, self.maps_)

    def _check_parameters(self) -> None:
        """Raise a ValueError for parameters that are wrong."""
        as_fraction(self.max_mcdp, "max_mcdp")
        as_epsilon(self.epsilon)
        low, high = as_score_range(self.score_range)
        if not np.isfinite(high - low):
            raise InputError(f"must be no longer than float64 holds, got ({low}, {high})", "score_range")
        Comparison(self.criterion)
        if self.confidence is not None:
            as_probability(self.confidence)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "maps_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    def _learn(self, counts: ScoreCounts) -> None:
        """Find the maps, or raise a ValueError where there are none.

        `transform` returns double precision, and is measured as such, whatever the precision of the scores.
        Maps are increasing, so that what is unknown of a gap on a grid stays as it was: it is aimed below.
        """
        bound, epsilon = as_fraction(self.max_mcdp, "max_mcdp"), as_epsilon(self.epsilon)
        copies = copies_of(counts)
        warn_of_copies(copies, ADVICE, stacklevel=4)
        counts = without_copies(counts, copies)
        self.unrepaired_mcdp_ = mcdp_bounds(counts, epsilon=epsilon, criterion=self.criterion).high
        error = gap_error(counts)
        resolution = score_resolution(np.dtype(np.float64), counts.score_range)
        counts = replace(counts, resolution=resolution, rank_error=0.0, cells=None)
        as_returned = mcdp(counts, epsilon=epsilon, criterion=self.criterion)
        self.margin_ = 0.0
        if self.confidence is not None:
            self.margin_ = margin_of(counts, self.criterion, self.confidence, self.random_state)
        aim = bound - self.margin_ - error
        if as_returned <= aim:
            found = GroupMaps(identity_maps(counts, self.criterion), as_returned)
        else:
            found = find_maps(counts, aim=max(aim, 0.0), epsilon=epsilon, criterion=self.criterion)
            check_reached(self, counts, found.mcdp + error)
        self.maps_, self.mcdp_ = found.maps, found.mcdp + error
        self.promise_ = promise_sentence(self, counts)

    def _dump(self) -> tuple[dict[str, Any], Files]:
        maps = list(self.maps_.values())
        sizes = [one.knots.size for one in maps]
        numbers = np.hstack([[one.knots, one.values] for one in maps]).astype("<f8")
        learned = {
            "groups": plain(self.groups_, "sensitive_features"),
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
