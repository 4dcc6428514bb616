"""What carries a gap: the part that goes away when the groups are weighted to be alike in some features.

Let Z be some features and F_g(y | z) the distribution of the scores of group g among people with Z = z. The
gap that remains is the one between the standardised distributions

    F*_g(y) = the mean over everyone of F_g(y | Z),

in which each group has everyone's distribution of Z. Its largest absolute value is the remaining MCDP(0).

People are put into cells: of one feature, its categories or quantiles; of several, quantiles of the score
that a model predicts from them. A row of group g weighs 1 / P(g | Z), which a second model predicts (one
feature's cells need none), and weights are scaled so that each group has everyone's share of every cell. No
model predicts people it was fitted on. An error of one model matters only as far as the other is wrong too.

The influence of each row on F*_g is known, so the errors of the curves are close to a Gaussian process. Its
largest value is simulated, and intervals follow from it. They allow for the weights being estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations, islice
from math import factorial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from localparity._progress import foretold
from localparity._text import group_text, outward_points, points, whole_percent
from localparity._types import (
    ArrayLike,
    BoolArray,
    Criterion,
    FloatArray,
    Groups,
    IntArray,
    ScoreRange,
    Seed,
)
from localparity._validation import InputError, as_frame, as_probability, as_rng, setting
from localparity.counts._comparison import Comparison
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.counts._score_counts import ScoreCounts
from localparity.metrics import Interval, mcdp
from localparity.metrics._gap_curve import each_gap_curve
from localparity.predictions import Predictions
from localparity.uncertainty import mcdp_interval

if TYPE_CHECKING:
    from localparity.models._encoding import FeatureColumn

MOST_ROWS = 200_000
"""Of more people than this, as many are drawn at random."""
LEAST_GROUP = 50
"""Smaller groups are left out, unless told otherwise."""
MOST_WITHOUT_COUNTERPART = 0.1
"""The groups do not overlap where a larger share of one of them has no counterpart in another."""
LEAST_EFFECTIVE_SHARE = 0.05
"""Nor where the weights leave less than this of a group's effective size."""

_LEAST_CLUSTERS = 20
_ROWS_BY_CELL, _MOST_CELLS = 10, 100
_ROWS_BY_QUANTILE, _MOST_QUANTILES = 20, 50
_ROWS_BY_FINER, _MOST_FINER = 200, 250
_RARE, _RARE_TO_MODELS = 10, 25
_MODEL_CELLS, _ROWS_BY_PART, _MOST_PARTS = 250, 5_000, 4
_LEAST_PROBABILITY, _MANY_PEOPLE = 0.05, 10_000
_LEAST_CUTOFFS, _MOST_CUTOFFS, _MOST_NUMBERS = 16, 64, 2e7
_DRAWS = 4000
_FOLDS = 5
_ALIKE_RANKS = 0.999
_COARSE_CELLS, _SEARCH_ROWS = 8, 20_000
_LARGEST_SET = 3
_REDRAWS = 3


@dataclass(frozen=True, kw_only=True)
class ExplainedGap:
    """What remains of a gap among people who are alike in some features.

    Attributes
    ----------
    features : tuple of str
        The features.
    group_auc : Interval
        How well they tell a group from the others: the area under the ROC curve, of the group told best.
    without_counterpart : float
        The share of a group's people to whom nobody in some other group is alike, of the group where it is
        largest. They are left out.
    effective_share : float
        The effective size of the weighted groups over their size, of the group where it is smallest.
    remaining : Interval or None
        MCDP(0) when each group is weighted to everyone's distribution of the features; None where the groups
        do not overlap.
    explained : Interval or None
        How much less that is than the MCDP(0) of the same people without weights; negative where it is more.
    reason : str or None
        Why there is no number.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> age, sex = census.data[["age"]], census.sensitive_features
    >>> lp.explain(census.score, age, sensitive_features=sex, random_state=0).features[0].name
    'age'
    """

    features: tuple[str, ...]
    group_auc: Interval
    without_counterpart: float
    effective_share: float
    remaining: Interval | None = None
    explained: Interval | None = None
    reason: str | None = None

    @property
    def name(self) -> str:
        """The features, joined."""
        return " + ".join(self.features)

    @property
    def short_name(self) -> str:
        """The features, or how many they are."""
        return self.name if len(self.features) <= _LARGEST_SET else f"all {len(self.features)} features"

    @property
    def sentence(self) -> str:
        """What remains, in words."""
        if self.remaining is None:
            return f"{self.short_name}: {self.reason}."
        share = whole_percent(self.without_counterpart)
        left_out = f" Up to {share} of a group has no counterpart and is left out."
        return (
            f"Among people alike in {self.short_name}, the gap is {_size(self.remaining)}."
            f"{left_out if self.without_counterpart >= 0.005 else ''}"
        )


@dataclass(frozen=True, kw_only=True)
class ExplainedCurve:
    """The gap of two groups at each cutoff, before and after they are weighted to be alike.

    Attributes
    ----------
    groups : tuple of str
        The two groups, whose gap is largest before.
    cutoffs : tuple of float
        The cutoffs. Between two of them there are at least ten people of each group.
    before, after : tuple of float
        The share of the second group above each cutoff less that of the first.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> age, sex = census.data[["age"]], census.sensitive_features
    >>> curve = lp.explain(census.score, age, sensitive_features=sex, random_state=0).curve
    >>> curve.groups, len(curve.before) == len(curve.cutoffs)
    (('Female', 'Male'), True)
    """

    groups: tuple[str, str]
    cutoffs: tuple[float, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Which features carry a gap.

    "Explained" is an association: the groups differ in these features where their scores differ. It does not
    say what causes the gap, nor whether a feature is a good reason for it.

    Attributes
    ----------
    total : Interval
        MCDP(0) of everyone.
    pair : tuple of str
        Of three groups or more, the two whose gap it is, the one that scores higher there first.
    features : tuple of ExplainedGap
        Each feature by itself, the one that explains most first; those without overlap last.
    sets : tuple of ExplainedGap
        The two and the three features that explain most together, added one at a time, and all features that
        overlap. The intervals do not allow for this choice.
    shares : dict
        What each of the three features adds to what they explain together: its Shapley value, the mean over
        all orders, which are few enough to go through. Empty where a part of them does not overlap.
    allowed : ExplainedGap or None
        The features that were named as allowed, together.
    uses : dict
        With a model, MCDP(0) when a feature is redrawn for everyone, given the other features.
    left_out : dict
        The columns that are not used, each with the reason.
    groups_left_out : tuple of str
        The groups of fewer than `min_group_size` people, who are not compared.
    min_group_size : int
        The fewest people of a group that is compared.
    curve : ExplainedCurve or None
        The gap at each cutoff before and after, among people alike in `chosen`.
    score_range : tuple of float
        The lowest and the highest score there can be.
    rows, sampled_from : int
        How many people were compared, and how many there are.
    confidence : float
        The confidence of each interval.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> why = lp.explain(census.score, census.data, sensitive_features=sex, random_state=0)
    >>> why.features[0].name, why.total.estimate > why.features[0].remaining.estimate
    ('occupation', True)
    """

    total: Interval
    pair: tuple[str, ...]
    features: tuple[ExplainedGap, ...]
    sets: tuple[ExplainedGap, ...]
    shares: Mapping[str, float]
    allowed: ExplainedGap | None
    uses: Mapping[str, float]
    left_out: Mapping[str, str]
    groups_left_out: tuple[str, ...]
    min_group_size: int
    curve: ExplainedCurve | None
    score_range: ScoreRange
    rows: int
    sampled_from: int
    confidence: float

    @property
    def chosen(self) -> ExplainedGap | None:
        """The allowed features; without any, the feature that explains most, if one overlaps."""
        return self.allowed or next((gap for gap in self.features if gap.remaining is not None), None)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The gap and what carries most of it, in words."""
        drawn = f"A random {self.rows:,} of {self.sampled_from:,} people were compared."
        few = f"Left out (fewer than {self.min_group_size:,} people): {', '.join(self.groups_left_out)}."
        gap = f"The gap is {_size(self.total)}."
        if self.pair:
            gap = f"The largest gap is {_size(self.total)}, between {' and '.join(self.pair)}."
        return (
            gap,
            "The groups do not overlap in any feature." if self.chosen is None else self.chosen.sentence,
            *([drawn] if self.rows < self.sampled_from else []),
            *([few] if self.groups_left_out else []),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What each of the best features adds, what has no number, and what all of it is, in words."""
        shares = ", ".join(f"{name} {_number(share)}" for name, share in self.shares.items())
        least = sorted(self.uses.items(), key=lambda item: item[1])[:_LARGEST_SET]
        redrawn = ", ".join(f"{name} {_number(gap)}" for name, gap in least)
        left_out = ", ".join(f"{name} ({reason})" for name, reason in self.left_out.items())
        return (
            *([f"Points that each adds to what they explain together: {shares}."] if shares else []),
            *(
                [f"The model's gap in points with a feature redrawn for everyone: {redrawn}."]
                if redrawn
                else []
            ),
            *(gap.sentence for gap in (*self.features, *self.sets) if gap.remaining is None),
            *([f"Not used: {left_out}."] if left_out else []),
            "Explained is an association, not a cause.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dictionaries and lists."""
        return {**asdict(self), "sentences": list(self.sentences)}

    def __str__(self) -> str:
        return "\n".join((*self.sentences, *(gap.sentence for gap in self.sets)))

    def _repr_html_(self) -> str:
        from localparity.report.page._notebook import explanation_html

        return explanation_html(self)


def _number(gap: float) -> str:
    return points(gap).partition(" ")[0]


def _size(interval: Interval) -> str:
    return f"{points(interval.estimate)} ({outward_points(interval.low, interval.high, unit=False)})"


def explain(
    y_score: ArrayLike,
    X: Any,
    *,
    sensitive_features: Groups,
    y_true: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    criterion: Criterion = "demographic_parity",
    allow: Sequence[str] = (),
    model: Any = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = LEAST_GROUP,
    confidence: float = 0.95,
    random_state: Seed = None,
) -> Explanation:
    """Find which features carry the gap between groups: what remains of it among people alike in them.

    A feature explains a gap as far as the gap goes away when each group is weighted to everyone's
    distribution of the feature. That is an association, not a cause. Which features are a good reason for a
    gap is for the reader to decide.

    Parameters
    ----------
    y_score : array-like
        Scores inside `score_range`.
    X : data frame or array-like of shape (n_samples, n_features)
        The features: numbers and texts, which may be missing. The score, the label, the group, an identifier
        or a constant among them is left out and named.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row.
    y_true : array-like, optional
        Labels, where the criterion needs them.
    sample_weight : array-like, optional
        Weights that are not negative.
    cluster : array-like, optional
        The person or household that each row belongs to; rows are assumed independent without it.
    criterion : str
        Which people are compared. "equalized_odds" is explained one label at a time.
    allow : sequence of str
        Features that you consider a good reason for a gap: `allowed` says what remains among people who are
        alike in all of them.
    model : object, optional
        A function from X to scores, or an estimator with `predict_proba`: `uses` says what the model uses.
    score_range : tuple of float
        The lowest and the highest score there can be.
    min_group_size : int
        Smaller groups are left out.
    confidence : float
        The probability with which each interval holds.
    random_state : int, Generator or None
        The seed.

    Returns
    -------
    Explanation
        What each feature, and the best sets of them, leave of the gap.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> why = lp.explain(census.score, census.data, sensitive_features=sex, random_state=0)
    >>> why.rows, len(why.features) == census.data.shape[1]
    (2000, True)
    """
    confidence, rng = as_probability(confidence), as_rng(random_state)
    if not (model is None or callable(model) or hasattr(model, "predict_proba")):
        raise InputError(f"must be a function or have predict_proba, got {type(model).__name__}", "model")
    comparison = Comparison(criterion, min_group_size=min_group_size)
    if len(comparison.labels) > 1:
        hint = "use 'equal_opportunity' or 'predictive_equality'"
        raise InputError(f"must compare people of one label, got {criterion!r}; {hint}", "criterion")
    predictions = Predictions.from_arrays(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        cluster=cluster,
        score_range=score_range,
    )
    columns = _columns_of(X, len(predictions), allow)
    compared = _compared_rows(predictions, comparison)
    rows = compared if compared.size <= MOST_ROWS else np.sort(rng.choice(compared, MOST_ROWS, replace=False))
    left_out = _unfit(columns, predictions, rows, of_model=model is not None)
    for name in left_out.keys() & set(allow):
        raise InputError(
            f"must be features that can explain a gap; column {name!r} {left_out[name]}", "allow"
        )
    columns = [column for column in columns if column.name not in left_out]
    search = _Search(_People.of(predictions, rows, rng), columns, rows, confidence, rng)
    names = foretold(search.cells, len(search.cells), "weighing features")
    features = sorted((search.gap((name,)) for name in names), key=_rank)
    sets = search.best_sets([gap.features[0] for gap in features if gap.remaining is not None])
    large = np.bincount(predictions.group_codes[compared], minlength=len(predictions.groups)) > 0
    few = [group for group, known in zip(predictions.groups, large.tolist(), strict=True) if not known]
    counts = ScoreCounts.from_predictions(predictions).without(few)
    total = mcdp_interval(counts, criterion=criterion, confidence=confidence, random_state=rng)
    allowed = search.gap(tuple(allow)) if allow else None
    chosen = allowed or next((gap for gap in features if gap.remaining is not None), None)
    return Explanation(
        total=total,
        pair=_worst_pair(counts, criterion),
        features=tuple(features),
        sets=sets,
        shares=search.shares(max((gap.features for gap in sets[: _LARGEST_SET - 1]), key=len, default=())),
        allowed=allowed,
        uses={} if model is None else _uses(model, X, search, rows, score_range),
        left_out=left_out,
        groups_left_out=tuple(map(group_text, few)),
        min_group_size=min_group_size,
        curve=None if chosen is None or chosen.remaining is None else search.curve(chosen.features),
        score_range=predictions.score_range,
        rows=rows.size,
        sampled_from=compared.size,
        confidence=confidence,
    )


def _worst_pair(counts: ScoreCounts, criterion: Criterion) -> tuple[str, ...]:
    """The pair with the largest gap, the group that scores higher there first; nothing of two groups."""
    if len(counts.groups) == 2:
        return ()
    curves = each_gap_curve(counts, Comparison(criterion))
    window = max((curve.worst_window() for curve in curves), key=lambda window: window.gap)
    lower_first = window.higher == window.groups[1]
    return tuple(map(group_text, window.groups[::-1] if lower_first else window.groups))


def _rank(gap: ExplainedGap) -> float:
    return 2.0 if gap.remaining is None else gap.remaining.estimate


# What is compared, and by which columns.


def _columns_of(X: Any, rows: int, allow: Sequence[str]) -> list[FeatureColumn]:
    from sklearn.base import BaseEstimator

    from localparity.models._encoding import table_columns  # which needs scikit-learn

    if getattr(X, "shape", ())[1:] == (0,):
        raise InputError("must have at least one column, got none", "X")
    columns = table_columns(BaseEstimator(), X, reset=True)
    length = len(columns[0].coded.codes)
    if length != rows:
        raise InputError(f"has {length:,} rows, {setting('y_score')} has {rows:,}", "X")
    for name in allow:
        if name not in {column.name for column in columns}:
            raise InputError(f"must be columns of {setting('X')}, got {name!r}", "allow")
    return columns


def _compared_rows(predictions: Predictions, comparison: Comparison) -> IntArray:
    """The rows whose label is compared, of groups that are large enough."""
    compared = np.ones(len(predictions), dtype=bool)
    (label,) = comparison.labels
    if label is not None:
        if predictions.labels is None:
            raise InputError(
                f"must be given with {setting(criterion=comparison.criterion)}, got None", "y_true"
            )
        compared = predictions.labels == label
    least = comparison.min_group_size
    large = np.bincount(predictions.group_codes[compared], minlength=len(predictions.groups)) >= least
    if large.sum() < 2:
        raise InputError(
            f"must have at least two groups of {least} people, got {large.sum()}", "sensitive_features"
        )
    rows = np.flatnonzero(compared & large[predictions.group_codes])
    clusters = rows if predictions.clusters is None else np.unique(predictions.clusters[rows])
    if clusters.size < _LEAST_CLUSTERS:
        raise InputError(f"must have at least {_LEAST_CLUSTERS} values, got {clusters.size}", "cluster")
    return rows


def _unfit(
    columns: Sequence[FeatureColumn], predictions: Predictions, rows: IntArray, *, of_model: bool
) -> dict[str, str]:
    """The columns that cannot explain a gap, each with the reason; a score may follow one of its model's."""
    others = {"label": predictions.labels, "group": predictions.group_codes}
    scores = predictions.scores[rows]
    reasons = {}
    for column in columns:
        values, codes = np.unique(np.asarray(column.coded.codes)[rows], return_inverse=True)
        same = next((what for what, other in others.items() if _is_same(codes, other, rows)), None)
        if values.size == 1:
            reasons[column.name] = "has no values" if _is_empty(column) else "is constant"
        elif not column.is_text and np.array_equal(np.asarray(column.values)[rows], scores):
            reasons[column.name] = "is the score"
        elif same is not None:
            reasons[column.name] = f"is the {same}"
        elif not of_model and _follows(column, rows, scores):
            reasons[column.name] = "follows from the score"
        elif not of_model and _is_nearly(column, rows, scores):
            reasons[column.name] = "is all but the score"
        elif 2 * values.size > rows.size and (column.is_text or _counts_up(column, rows)):
            reasons[column.name] = "looks like an identifier"
    if len(reasons) == len(columns):
        name, reason = next(iter(reasons.items()))
        raise InputError(f"must have a feature that can explain a gap; column {name!r} {reason}", "X")
    return reasons


def _is_empty(column: FeatureColumn) -> bool:
    """Whether all values are missing; such a column is read as numbers."""
    return not column.is_text and bool(np.isnan(np.asarray(column.values, dtype=np.float64)).all())


def _is_same(codes: IntArray, values: Any, rows: IntArray) -> bool:
    """Whether each value has one code and each code one value."""
    if values is None:
        return False
    others = np.unique(values[rows], return_inverse=True)[1]
    width = int(others.max()) + 1
    return bool(np.unique(codes * width + others).size == codes.max() + 1 == width)


def _follows(column: FeatureColumn, rows: IntArray, scores: FloatArray) -> bool:
    """Whether a feature rises or falls with the score, or texts stand for ranges of scores."""
    values = np.asarray(column.coded.codes if column.is_text else column.values)[rows]
    order = np.lexsort((values, scores))
    steps, ties = np.diff(values[order]), np.diff(scores[order]) == 0.0
    if column.is_text:  # in any order, but each in one place
        in_order = np.count_nonzero(steps) < min(np.unique(values).size, rows.size // 2)
    else:
        in_order = (steps >= 0.0).all() or (steps <= 0.0).all()
    return bool(in_order and not steps[ties].any())


def _is_nearly(column: FeatureColumn, rows: IntArray, scores: FloatArray) -> bool:
    """Whether the ranks of a number and of the score have next to the same order, or the opposite one."""
    from scipy.stats import spearmanr

    if column.is_text:
        return False
    numbers = np.asarray(column.values, dtype=np.float64)[rows]
    known = ~np.isnan(numbers)
    if min(np.unique(some[known]).size for some in (numbers, scores)) < 2:
        return False
    return bool(abs(spearmanr(numbers[known], scores[known]).statistic) > _ALIKE_RANKS)


def _counts_up(column: FeatureColumn, rows: IntArray) -> bool:
    """Whether the numbers that are known are whole and no two rows share one."""
    numbers = np.asarray(column.values, dtype=np.float64)[rows]
    numbers = numbers[~np.isnan(numbers)]
    return bool((numbers == np.floor(numbers)).all() and np.unique(numbers).size == numbers.size)


# The people compared, the balance between groups, and the curves that it gives.


class _Balance(NamedTuple):
    """The cell of each row, and one over the probability of its group given its features."""

    cells: IntArray
    inverse: FloatArray


@dataclass(frozen=True, eq=False)
class _People:
    """Scores, how many cutoffs are below each, groups by name and as codes, and weights that sum to 1."""

    scores: FloatArray
    below: IntArray
    codes: IntArray
    weights: FloatArray
    clusters: IntArray | None
    folds: IntArray
    cutoffs: FloatArray
    names: tuple[str, ...]

    @classmethod
    def of(cls, predictions: Predictions, rows: IntArray, rng: np.random.Generator) -> _People:
        """The people of some rows."""
        scores = predictions.scores[rows].astype(np.float64)
        used, codes = np.unique(predictions.group_codes[rows], return_inverse=True)
        weights = np.ones(rows.size) if predictions.weights is None else predictions.weights[rows]
        pairs = used.size * (used.size - 1) // 2
        most = int(np.clip(_MOST_NUMBERS / (rows.size * pairs), _LEAST_CUTOFFS, _MOST_CUTOFFS))
        cutoffs = np.unique(scores)[:-1]
        if cutoffs.size > most:
            cutoffs = np.unique(np.quantile(scores, (np.arange(most) + 0.5) / most))
        clusters = None if predictions.clusters is None else predictions.clusters[rows].astype(np.int64)
        units = np.arange(rows.size) if clusters is None else clusters
        folds = (rng.permutation(int(units.max()) + 1) % _FOLDS)[units]
        below = np.searchsorted(cutoffs, scores)
        names = tuple(group_text(predictions.groups[code]) for code in used)
        return cls(scores, below, codes, weights / weights.sum(), clusters, folds, cutoffs, names)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.names)

    def at(self, rows: BoolArray) -> _People:
        """Some of them."""
        return replace(
            self,
            scores=self.scores[rows],
            below=self.below[rows],
            codes=self.codes[rows],
            weights=self.weights[rows] / self.weights[rows].sum(),
            clusters=None if self.clusters is None else self.clusters[rows],
            folds=self.folds[rows],
        )

    @cached_property
    def ranks(self) -> FloatArray:
        """The place of each score among all of them, from 0 to 1."""
        from scipy.stats import rankdata

        return np.asarray(rankdata(self.scores) / self.scores.size)

    @property
    def shares(self) -> FloatArray:
        """The share of each group in the rows."""
        return np.asarray(np.bincount(self.codes, minlength=self.groups) / self.codes.size)

    def largest_share(self, rows: BoolArray) -> float:
        """The share that some rows have of a group, of the group where it is largest."""
        return float(
            (np.bincount(self.codes, self.weights * rows) / np.bincount(self.codes, self.weights)).max()
        )

    def balanced_weights(self, balance: _Balance) -> FloatArray:
        """The weights with which each group has everyone's share of every cell."""
        own = self.weights * balance.inverse
        key = balance.cells * self.groups + self.codes
        everyone = np.bincount(balance.cells, self.weights)
        return np.asarray(own * everyone[balance.cells] / np.bincount(key, own)[key])

    def mean_weights(self, balances: Sequence[_Balance]) -> FloatArray:
        """The mean of the weights of several balances."""
        return np.asarray(np.mean([self.balanced_weights(balance) for balance in balances], axis=0))

    def weighted_gaps(self, weights: FloatArray) -> FloatArray:
        """The gap of every pair at every cutoff, with weights that sum to 1 in each group."""
        size = self.cutoffs.size + 1
        counts = np.bincount(self.codes * size + self.below, weights, minlength=self.groups * size)
        shares = np.cumsum(counts.reshape(self.groups, size), axis=1)[:, :-1]
        return np.concatenate([first - second for first, second in combinations(shares, 2)])

    def mcdp(self, weights: FloatArray) -> float:
        """MCDP(0) with weights, over every cutoff there is."""
        return float(mcdp(None, self.ranks, sensitive_features=self.codes, sample_weight=weights))

    def gaps(self, balances: Sequence[_Balance]) -> tuple[FloatArray, FloatArray]:
        """The mean gap of every pair at every cutoff, and the influence of each row, or cluster, on it.

        How far the gap of each balance is from the mean stands below, so that it counts as an error too.
        """
        pairs = list(combinations(range(self.groups), 2))
        curves = np.zeros((len(balances), len(pairs) * self.cutoffs.size))
        influence: Any = np.zeros((self.codes.size, curves.shape[1]))
        for curve, balance in zip(curves, balances, strict=True):
            weights = self.balanced_weights(balance)
            groups = [self._curve(code, balance.cells, weights) for code in range(self.groups)]
            curve[:] = np.concatenate([groups[first][0] - groups[second][0] for first, second in pairs])
            influence += np.concatenate(
                [groups[first][1] - groups[second][1] for first, second in pairs], axis=1
            )
        if self.clusters is not None:
            from scipy.sparse import csr_matrix

            ones = np.ones(self.clusters.size)
            influence = csr_matrix((ones, (self.clusters, np.arange(ones.size)))) @ influence
        gaps = curves.mean(axis=0)
        return gaps, np.concatenate([influence / len(balances), (curves - gaps) / np.sqrt(len(balances))])

    def curve(self, before: FloatArray, after: FloatArray) -> ExplainedCurve:
        """The gaps of the pair whose gap is largest before, in steps that rest on enough people."""
        pairs = list(combinations(range(self.groups), 2))
        place = int(np.argmax(np.abs(before))) // self.cutoffs.size
        pair, part = pairs[place], slice(place * self.cutoffs.size, (place + 1) * self.cutoffs.size)
        counts = [
            np.bincount(self.below[self.codes == code], minlength=self.cutoffs.size + 1) for code in pair
        ]
        steps: list[int] = []
        people = np.zeros(2)
        for step, row in enumerate(np.array(counts).T[:-1]):
            people += row
            if people.min() >= DISCLOSURE_LIMIT:
                steps, people = [*steps, step], np.zeros(2)
        rows = (self.cutoffs, before[part], after[part])
        cutoffs, first, second = (tuple(row[steps].tolist()) for row in rows)
        names = (self.names[pair[0]], self.names[pair[1]])
        return ExplainedCurve(groups=names, cutoffs=cutoffs, before=first, after=second)

    def _curve(self, code: int, cells: IntArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A weighted group's share at or below each cutoff, and the influence of each row on it."""
        own = np.flatnonzero(self.codes == code)
        everyone = np.bincount(cells, self.weights)
        sums = np.zeros((everyone.size, self.cutoffs.size + 1))
        np.add.at(sums, (cells[own], self.below[own]), weights[own])
        shares = np.cumsum(sums, axis=1)[:, :-1] / everyone[:, None]
        curve = everyone @ shares
        influence = self.weights[:, None] * (shares - curve)[cells]
        leverage = np.minimum(weights[own] / everyone[cells[own]], 0.9)  # a row is close to its own mean
        steps = (self.below[own, None] <= np.arange(self.cutoffs.size)) - shares[cells[own]]
        influence[own] += (weights[own] / (1.0 - leverage))[:, None] * steps
        return curve, influence


# Intervals, from the largest value of a Gaussian process with the covariance of the gaps.


class _Band:
    """Gaps at the cutoffs, how far off all of them may be at once, and MCDP(0)."""

    def __init__(self, gaps: FloatArray, influence: FloatArray, mcdp: float, normals: FloatArray) -> None:
        values, vectors = np.linalg.eigh(influence.T @ influence)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        self.gaps, self.mcdp = gaps, mcdp
        self._largest = np.abs(normals @ root.T).max(axis=1)

    def error(self, alpha: float) -> float:
        """What no gap is off by, except with probability alpha."""
        return float(np.quantile(self._largest, 1.0 - alpha))

    def signs_where_largest(self, alpha: float) -> FloatArray:
        """The sign of each gap that may be the largest, 0 for the others."""
        sizes = np.abs(self.gaps)
        return np.asarray(np.sign(self.gaps) * (sizes >= sizes.max() - 2.0 * self.error(alpha)))


def _intervals(
    total: _Band, remaining: _Band, explained: _Band, confidence: float
) -> tuple[Interval, Interval]:
    """The intervals of what remains and of what is explained.

    With T and R the two curves of gaps and t a cutoff where abs(T) is largest, max abs(T) - max abs(R) is at
    most abs(T(t)) - abs(R(t)), hence at most sign(T(t)) (T - R)(t); it is also at most the upper end of the
    first less the lower end of the second. From below, likewise. The bounds of a side share its error.
    """
    alpha = 1.0 - confidence
    error, part = remaining.error(0.8 * alpha), alpha / 10.0
    margin, apart = explained.error(4.0 * part), total.error(part) + remaining.error(part)
    difference = total.mcdp - remaining.mcdp
    above, below = total.signs_where_largest(part), remaining.signs_where_largest(part)
    high = min((above * explained.gaps)[above != 0.0].max() + margin, difference + apart)
    low = max((below * explained.gaps)[below != 0.0].min() - margin, difference - apart)
    # The error holds at the cutoffs; the largest gap over every cutoff there is has more noise in it.
    ends = max(float(np.abs(remaining.gaps).max()) - error, 0.0), min(remaining.mcdp + error, 1.0)
    return (
        Interval(ends[0], remaining.mcdp, ends[1], confidence),
        Interval(float(min(low, difference)), difference, float(max(high, difference)), confidence),
    )


# One feature or several: cells, probabilities, overlap.


class _Search:
    """What remains with one feature or several, each computed once."""

    def __init__(
        self,
        people: _People,
        columns: Sequence[FeatureColumn],
        rows: IntArray,
        confidence: float,
        rng: np.random.Generator,
    ) -> None:
        least = int(np.bincount(people.codes).min())
        # With many people, finer cells and the weights of rarer people are known well enough.
        finer = min(least // _ROWS_BY_FINER, _MOST_FINER)
        most = int(np.clip(least // _ROWS_BY_CELL, 2, max(_MOST_CELLS, finer)))
        self.people, self.confidence, self.rng = people, confidence, rng
        parts = int(np.clip(least // _ROWS_BY_PART, 1, _MOST_PARTS))
        self.texts = {column.name for column in columns if column.is_text}
        self.cells: dict[str, IntArray] = {}
        self.inputs: dict[str, list[IntArray]] = {}
        self.rare: dict[str, BoolArray] = {}
        self.rare_to_models: dict[str, BoolArray] = {}
        for column in columns:
            name = column.name
            if column.is_text:
                codes = np.asarray(column.coded.codes)[rows]
                self.cells[name], self.rare[name] = _common_categories(codes, _RARE, codes.size)
                seen, self.rare_to_models[name] = _common_categories(codes, _RARE_TO_MODELS, _MODEL_CELLS)
                self.inputs[name] = [seen]
            else:
                numbers = np.asarray(column.values, dtype=np.float64)[rows]
                self.cells[name] = _number_cells(numbers, most)
                self.inputs[name] = _model_inputs(_number_cells(numbers, parts * _MODEL_CELLS), parts)
        self.quantiles = int(np.clip(least // _ROWS_BY_QUANTILE, 2, max(_MOST_QUANTILES, finer)))
        self.rarest = _LEAST_PROBABILITY * min(1.0, float(np.sqrt(_MANY_PEOPLE / people.codes.size)))
        size = people.groups * (people.groups - 1) // 2 * people.cutoffs.size
        self._normals = rng.standard_normal((_DRAWS, size))
        self._gaps: dict[frozenset[str], ExplainedGap] = {}
        self._curves: dict[frozenset[str], ExplainedCurve] = {}

    def gap(self, names: tuple[str, ...]) -> ExplainedGap:
        """What remains among people who are alike in some features."""
        key = frozenset(names)
        if key not in self._gaps:
            self._gaps[key] = self._measure(names)
        return replace(self._gaps[key], features=names)

    def _measure(self, names: tuple[str, ...]) -> ExplainedGap:
        told = self._told(names)
        alike = self._alike(names, told[-1])
        without, effective = self.people.largest_share(~alike), 0.0
        if without <= MOST_WITHOUT_COUNTERPART:
            people = self.people.at(alike)
            stages = self._balances(names, told, alike)
            effective = _effective_share(people.mean_weights(stages[-1]), people)
        gap = ExplainedGap(
            features=names,
            group_auc=_group_auc(told[-1].mean(axis=0), self.people.codes, self.confidence),
            without_counterpart=without,
            effective_share=effective,
        )
        if without > MOST_WITHOUT_COUNTERPART:
            share = whole_percent(without)
            return replace(gap, reason=f"the groups do not overlap: {share} of a group has no counterpart")
        if effective < LEAST_EFFECTIVE_SHARE:
            share = whole_percent(effective)
            return replace(gap, reason=f"the groups hardly overlap: the weights leave {share} of a group")
        before, after, remaining, explained = self._compare(people, stages)
        self._curves[frozenset(names)] = people.curve(before, after)
        return replace(gap, remaining=remaining, explained=explained)

    def curve(self, names: Sequence[str]) -> ExplainedCurve:
        """The gaps before and after people are alike in some features, which were measured."""
        return self._curves[frozenset(names)]

    def _compare(
        self, people: _People, stages: Sequence[Sequence[_Balance]]
    ) -> tuple[FloatArray, FloatArray, Interval, Interval]:
        """The gaps before and after, and the intervals of what remains and of what is explained.

        How far the gaps after moved since the models were halfway counts as an error: it is about as far as
        models that went on would move them.
        """
        rows, weights = people.codes.size, people.mean_weights(stages[-1])
        plain = _Balance(np.zeros(rows, dtype=np.int64), np.ones(rows))
        (before, before_influence), (after, influence) = people.gaps([plain]), people.gaps(stages[-1])
        moved = people.weighted_gaps(weights) - people.weighted_gaps(people.mean_weights(stages[0]))
        after_influence = np.concatenate([influence, moved[None]])
        mcdps = people.mcdp(people.weights), people.mcdp(weights)
        total = _Band(before, before_influence, mcdps[0], self._normals)
        remaining = _Band(after, after_influence, mcdps[1], self._normals)
        apart = -after_influence
        apart[: len(before_influence) - 1] += before_influence[:-1]
        explained = _Band(before - after, apart, mcdps[0] - mcdps[1], self._normals)
        return before, after, *_intervals(total, remaining, explained, self.confidence)

    def _told(self, names: tuple[str, ...]) -> FloatArray:
        """The probability of each group, as people of other folds tell it: by stage and half."""
        if len(names) == 1:
            return _told_by_cells(self.cells[names[0]], self.people)[None, None]
        return self._predicted(names, self.people.codes)

    def _alike(self, names: tuple[str, ...], told: FloatArray) -> BoolArray:
        """The people to whom somebody in every group is alike."""
        people = self.people
        if len(names) == 1:
            (name,) = names
            alike = _in_all_groups(self.cells[name], people.codes, people.groups)
            return alike & ~self.rare[name] if name in self.texts else alike
        alike = np.asarray((told.mean(axis=0) > self.rarest * people.shares).all(axis=1))
        for name in self.texts.intersection(names):
            alike &= ~self.rare_to_models[name]
        return alike

    def _balances(self, names: tuple[str, ...], told: FloatArray, alike: BoolArray) -> list[list[_Balance]]:
        """One balance for one feature; for several, two by stage, each of two models of different people."""
        people = self.people
        if len(names) == 1:
            cells = np.unique(self.cells[names[0]][alike], return_inverse=True)[1]
            return [[_Balance(cells, np.ones(cells.size))]]
        ranks, codes = self._predicted(names, people.ranks), people.codes[alike]
        own = told[:, :, np.arange(alike.size), people.codes]
        inverse = 1.0 / np.maximum(own, self.rarest * people.shares[people.codes])
        return [
            [
                _Balance(_common_cells(rank[alike], self.quantiles, codes), one_over[alike])
                for rank, one_over in zip(rank_halves[::-1], halves, strict=True)
            ]
            for rank_halves, halves in zip(ranks, inverse, strict=True)
        ]

    def _predicted(self, names: Sequence[str], target: FloatArray | IntArray) -> FloatArray:
        """Predictions of a number, or of the probability of each group, by models of other folds.

        There are two stages, when a model is halfway and when it is done, and two halves in each. With folds
        in a circle, the first half is by a model of the next two folds, the second by one of the two folds
        before. So the first of one target and the second of another were learned from different people.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits

        people, inputs = self.people, {name: self.inputs[name] for name in names}
        features = np.column_stack([column for columns in inputs.values() for column in columns])
        is_class, rounds = target is people.codes, int(np.clip(target.size // 200, 60, 150))
        predicted = np.zeros((2, 2, target.size, people.groups if is_class else 1))
        settings: dict[str, Any] = {
            "max_iter": rounds,
            "learning_rate": 0.2,
            "max_leaf_nodes": 8,
            "min_samples_leaf": 10,
            "early_stopping": False,
            "categorical_features": [name in self.texts for name in names for _ in inputs[name]],
            "random_state": 0,
        }
        make: Any = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
        weights = people.weights * people.weights.size
        with threadpool_limits(1):  # models this small gain nothing from threads, and may wait for them
            for start in range(_FOLDS):
                known = (people.folds - start) % _FOLDS < 2
                model = make(**settings).fit(features[known], target[known], weights[known])
                columns = model.classes_ if is_class else [0]
                predict = model.staged_predict_proba if is_class else model.staged_predict
                for half, fold in enumerate(((start - 1) % _FOLDS, (start + 2) % _FOLDS)):
                    here = people.folds == fold
                    for stage, values in enumerate(
                        islice(predict(features[here]), rounds // 2 - 1, None, rounds // 2)
                    ):
                        told = values.reshape(len(values), -1)[:, : len(columns)]
                        predicted[np.ix_([stage], [half], here, columns)] = told
        return predicted if is_class else predicted[..., 0]

    def best_sets(self, names: Sequence[str]) -> tuple[ExplainedGap, ...]:
        """The best sets of two and three of the features, the best of which is the first, and all of them."""
        sets, chosen = [], tuple(names[:1])
        while len(chosen) < min(_LARGEST_SET, len(names)):
            chosen = min(((*chosen, name) for name in names if name not in chosen), key=self._rough_mcdp)
            sets.append(chosen)
        if len(names) > _LARGEST_SET:
            sets.append(tuple(names))
        return tuple(
            self.gap(features) for features in foretold(sets, len(sets), "weighing sets of features")
        )

    def _rough_mcdp(self, names: tuple[str, ...]) -> float:
        """Roughly what remains, from the product of a few cells of each feature, of some of the people."""
        chosen = np.arange(self.people.codes.size) < _SEARCH_ROWS
        people = self.people.at(chosen)
        joint = np.zeros(people.codes.size, dtype=np.int64)
        for name in names:
            cells = self.cells[name][chosen]
            rates = np.bincount(cells, people.codes == 0) / np.maximum(np.bincount(cells), 1)
            joint = joint * _COARSE_CELLS + _quantile_cells(rates[cells], _COARSE_CELLS)
        alike = _in_all_groups(joint, people.codes, people.groups)
        if people.largest_share(~alike) > MOST_WITHOUT_COUNTERPART:
            return 1.0
        people, cells = people.at(alike), np.unique(joint[alike], return_inverse=True)[1]
        return people.mcdp(people.balanced_weights(_Balance(cells, np.ones(cells.size))))

    def shares(self, names: tuple[str, ...]) -> dict[str, float]:
        """The Shapley values of some features."""
        parts = [part for size in range(1, len(names) + 1) for part in combinations(names, size)]
        worth = {frozenset[str](): 0.0}
        for part in parts:
            explained = self.gap(part).explained
            if explained is None:
                return {}
            worth[frozenset(part)] = explained.estimate
        shares = {}
        for name in names:
            others = [part for part in worth if name not in part]
            orders = [factorial(len(part)) * factorial(len(names) - len(part) - 1) for part in others]
            added = [worth[part | {name}] - worth[part] for part in others]
            shares[name] = float(np.dot(orders, added) / factorial(len(names)))
        return shares

    def redraws(self, name: str) -> Iterator[IntArray]:
        """For each row another one, whose features but `name` predict a feature like this row's."""
        cells, others = self.cells[name], [other for other in self.cells if other != name]
        near = np.zeros(cells.size, dtype=np.int64)
        if others:
            means = np.bincount(cells, self.people.ranks) / np.bincount(cells)
            near = _quantile_cells(self._predicted(others, means[cells])[-1].mean(axis=0), self.quantiles)
        by_cell = np.argsort(near, kind="stable")
        for _ in range(_REDRAWS):
            order = np.empty_like(by_cell)
            order[by_cell] = np.lexsort((self.rng.random(near.size), near))
            yield order


def _common_categories(codes: IntArray, least: int, most: int) -> tuple[IntArray, BoolArray]:
    """The category of each row, the rare ones together, and who is in one of these, alike to nobody known."""
    _, cells, counts = np.unique(codes, return_inverse=True, return_counts=True)
    common = np.argsort(-counts, kind="stable")[:most]
    rare = ~np.isin(cells, common[counts[common] >= least])
    return np.unique(np.where(rare, counts.size, cells), return_inverse=True)[1], rare


def _number_cells(numbers: FloatArray, most: int) -> IntArray:
    """The quantile of each number; missing ones have a cell, too."""
    known, cells = ~np.isnan(numbers), np.full(numbers.size, most)
    cells[known] = _quantile_cells(numbers[known], most)
    return np.unique(cells, return_inverse=True)[1]


def _model_inputs(cells: IntArray, parts: int) -> list[IntArray]:
    """The cells, in columns of as few values as a model can tell apart."""
    if cells.max() <= _MODEL_CELLS:
        return [cells]
    return [(cells + shift) // parts for shift in range(parts)]


def _quantile_cells(values: FloatArray, count: int) -> IntArray:
    """The cell of each value; cells have about as many values each, and equal values share one."""
    ends = np.unique(np.quantile(values, np.arange(1, count) / count))
    return np.searchsorted(ends, values, side="right")


def _told_by_cells(cells: IntArray, people: _People) -> FloatArray:
    """The probability of each group in the cell of each row, from the rows of other folds."""
    size = int(cells.max()) + 1
    key = (people.folds * size + cells) * people.groups + people.codes
    counts = np.bincount(key, minlength=_FOLDS * size * people.groups).reshape(_FOLDS, size, people.groups)
    others = counts.sum(axis=0) - counts + people.shares
    return np.asarray((others / others.sum(axis=2, keepdims=True))[people.folds, cells])


def _in_all_groups(cells: IntArray, codes: IntArray, groups: int) -> BoolArray:
    """The rows in whose cell every group has at least two rows."""
    counts = np.bincount(cells * groups + codes, minlength=(int(cells.max()) + 1) * groups)
    return np.asarray(np.all(counts.reshape(-1, groups) >= 2, axis=1))[cells]


def _common_cells(values: FloatArray, count: int, codes: IntArray) -> IntArray:
    """Quantiles of values, joined with the next ones until every group has two rows in each."""
    cells, groups = _quantile_cells(values, count), int(codes.max()) + 1
    key = cells * groups + codes
    counts = np.bincount(key, minlength=(int(cells.max()) + 1) * groups).reshape(-1, groups)
    joined, here, last = np.zeros(len(counts), dtype=np.int64), np.zeros(groups, dtype=np.int64), 0
    for cell, row in enumerate(counts):
        if (here >= 2).all():
            here, last = np.zeros(groups, dtype=np.int64), last + 1
        joined[cell], here = last, here + row
    if (here < 2).any():
        joined[joined == last] = max(last - 1, 0)
    return joined[cells]


def _effective_share(weights: FloatArray, people: _People) -> float:
    """The effective size with weights over that without the balance, of the group where it is least."""
    sums = [np.bincount(people.codes, values) for values in (weights, weights**2)]
    before = [np.bincount(people.codes, values) for values in (people.weights, people.weights**2)]
    return float(np.minimum((sums[0] ** 2 / sums[1]) / (before[0] ** 2 / before[1]), 1.0).min())


def _group_auc(told: FloatArray, codes: IntArray, confidence: float) -> Interval:
    """The area under the ROC curve of the group told best, with the interval of DeLong et al. (1988)."""
    from scipy.stats import rankdata

    tried = range(1, 2) if told.shape[1] == 2 else range(told.shape[1])
    quantile = NormalDist().inv_cdf(1.0 - (1.0 - confidence) / 2.0 / len(tried))
    areas = []
    for code in tried:
        own, ranks = codes == code, rankdata(told[:, code])
        above = (ranks[own] - rankdata(told[own, code])) / (~own).sum()
        below = (ranks[~own] - rankdata(told[~own, code])) / own.sum()
        error = float(quantile * np.sqrt(above.var() / own.sum() + below.var() / (~own).sum()))
        areas.append((float(above.mean()), error))
    auc, error = max(areas)
    return Interval(max(auc - error, 0.0), auc, min(auc + error, 1.0), confidence)


def _uses(model: Any, X: Any, search: _Search, rows: IntArray, score_range: ScoreRange) -> dict[str, float]:
    """MCDP(0) of a model's scores when each feature is redrawn for everyone."""
    score: Callable[[Any], Any] = model if callable(model) else lambda table: model.predict_proba(table)[:, 1]
    frame: Any = as_frame(X)
    is_frame = hasattr(frame, "columns")
    table: Any = frame[rows] if is_frame else np.asarray(X)[rows]
    uses = {}
    for name in foretold(search.cells, len(search.cells), "weighing features"):
        gaps = []
        for order in search.redraws(name):
            if is_frame:
                changed = table.with_columns(table.get_column(name)[order].alias(name)).to_native()
            else:
                changed = table.copy()
                changed[:, int(name[1:])] = table[order, int(name[1:])]
            scores = np.asarray(score(changed))
            gaps.append(mcdp(None, scores, sensitive_features=search.people.codes, score_range=score_range))
        uses[name] = float(np.mean(gaps))
    return uses
