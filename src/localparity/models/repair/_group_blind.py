"""Scores brought within a bound where the group is unknown at prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.isotonic import isotonic_regression
from sklearn.utils import TransformerTags, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, IntArray, Seed
from localparity._validation import (
    InputError,
    as_choice,
    as_count,
    as_epsilon,
    as_fraction,
    as_number,
    as_probability,
    as_scores,
    require,
    setting,
)
from localparity.counts import Comparison
from localparity.counts._comparison import group_text
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._within import within_bound
from localparity.models._encoding import SharedTable, with_categories
from localparity.models._folder import (
    Files,
    FolderMixin,
    dump_classes,
    plain,
    restore_classes,
    restore_groups,
)
from localparity.models._rows import (
    TrainingRows,
    TwoClassMixin,
    as_seed,
    check_training_rows,
    describe_rows,
    without_copies,
)
from localparity.models._sequence import accept_in_order, promise_for_population, upper_bound
from localparity.models.repair._base import (
    AMONG,
    NAMES,
    check_wrapped,
    dump_parts,
    fit_wrapped,
    parse_part,
    round_up,
)
from localparity.models.repair._dual import (
    BlindRows,
    Dual,
    GroupFeatures,
    NestedScore,
    Trial,
    as_group_probabilities,
    compared_curves,
    compared_predictions,
    find_within,
    least_sizes,
)
from localparity.models.repair._maps import ScoreMap, checked_map
from localparity.models.repair._sql import Dialect, Stage, as_dialect, score_stage
from localparity.predictions import check_predictions

# The two models that a group-blind score is made of: of the class, and of the group.


class Ingredients(NamedTuple):
    """A classifier of the class, and one of the group for each label compared.

    The classifiers of the group predict codes from 0 to `n_groups` - 1.
    """

    estimator: Any
    group_estimators: tuple[Any, ...]
    codes: tuple[IntArray, ...]
    n_groups: int

    @classmethod
    def fit(
        cls, pair: tuple[Any, Any], rows: TrainingRows, labels: tuple[int | None, ...], *, weighted: bool
    ) -> Ingredients:
        """Fit copies of a pair of classifiers, that of the group among the people of each label."""
        targets = rows.classes[rows.labels.astype(np.int64)]
        estimator = fit_wrapped(pair[0], rows, targets, weighted=weighted)
        fitted = []
        for label in labels:
            among = rows if label is None else rows.take(np.flatnonzero(rows.labels == label))
            if np.unique(among.groups).size < 2:
                raise ValueError(
                    "each fold must leave rows of two groups or more to fit the group_estimator on"
                )
            fitted.append(fit_wrapped(pair[1], among, among.groups, weighted=weighted))
        codes = tuple(np.asarray(one.classes_, dtype=np.int64) for one in fitted)
        return cls(estimator, tuple(fitted), codes, len(rows.group_names))

    @classmethod
    def fitted(cls, estimator: Any, group_estimator: Any, rows: TrainingRows, n_labels: int) -> Ingredients:
        """Take fitted classifiers as they are; that of the group has the groups' names as its classes."""
        check_is_fitted(estimator)
        check_is_fitted(group_estimator)
        classes, wanted = np.asarray(estimator.classes_).tolist(), rows.classes.tolist()
        if classes != wanted:
            raise InputError(f"must predict {wanted}, got {classes}", "estimator")
        names, found = list(rows.group_names), np.asarray(group_estimator.classes_).tolist()
        if set(found) != set(names):
            raise InputError(f"must predict {names}, got {found}", "group_estimator")
        codes = np.array([names.index(name) for name in found])
        return cls(estimator, (group_estimator,) * n_labels, (codes,) * n_labels, len(names))

    @classmethod
    def restored(
        cls, estimator: Any, group_estimators: tuple[Any, ...], codes: list[list[int]], n_groups: int
    ) -> Ingredients:
        """Take the parts that a folder had, or raise a ValueError where they do not belong together."""
        for one, known in zip(group_estimators, codes, strict=True):
            if not set(known) <= set(range(n_groups)) or not len(one.classes_) == len(known) == len(
                set(known)
            ):
                raise InputError(f"must be {len(one.classes_)} of {n_groups} groups, got {known}", "codes")
        return cls(
            estimator, group_estimators, tuple(np.array(one, dtype=np.int64) for one in codes), n_groups
        )

    def predict(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return P(y = 1 | x), and P(group | x) of shape (n_labels, n_samples, n_groups)."""
        table = X if isinstance(X, SharedTable) else SharedTable(X)
        found = self.estimator.predict_proba(table.of(self.estimator))[:, 1]
        scores = np.asarray(found, dtype=np.float64)
        probabilities = np.zeros((len(self.group_estimators), scores.size, self.n_groups))
        for label, (estimator, codes) in enumerate(zip(self.group_estimators, self.codes, strict=True)):
            probabilities[label][:, codes] = estimator.predict_proba(table.of(estimator))
        return scores, probabilities


def mean_prediction(fitted: list[Ingredients], X: Any) -> tuple[FloatArray, FloatArray]:
    """Return the means of what several pairs of models predict."""
    table = SharedTable(X)
    scores, probabilities = zip(*(one.predict(table) for one in fitted), strict=True)
    return np.mean(scores, axis=0), np.mean(probabilities, axis=0)


def blind_rows(rows: TrainingRows, scores: FloatArray, probabilities: FloatArray) -> BlindRows:
    """Return rows with their predictions, as the repair takes them."""
    return BlindRows(scores, probabilities, rows.labels.astype(np.int64), rows.groups, rows.weights)


def assign_folds(rows: TrainingRows, folds: int, seed: int) -> IntArray:
    """Return the fold of each row, at random among the people of each group and class."""
    cells = 2 * rows.groups + rows.labels.astype(np.int64)
    order = np.random.default_rng(seed).permutation(cells.size)
    order = order[np.argsort(cells[order], kind="stable")]
    found = np.empty(cells.size, dtype=np.int64)
    found[order] = np.arange(cells.size) % folds
    return found


def cross_fit(
    pair: tuple[Any, Any],
    rows: TrainingRows,
    labels: tuple[int | None, ...],
    folds: IntArray,
    *,
    weighted: bool,
) -> tuple[list[Ingredients], BlindRows]:
    """Return a pair of models for each fold, fitted without it, and what they predict for it."""
    fitted = []
    scores = np.empty(rows.labels.size)
    probabilities = np.empty((len(labels), rows.labels.size, len(rows.group_names)))
    for fold in range(int(folds.max()) + 1):
        inside = np.flatnonzero(folds == fold)
        one = Ingredients.fit(pair, rows.take(np.flatnonzero(folds != fold)), labels, weighted=weighted)
        scores[inside], probabilities[:, inside] = one.predict(rows.take(inside).features)
        fitted.append(one)
    return fitted, blind_rows(rows, scores, probabilities)


# What a group-blind repair promises, and the messages for a bound out of reach.


def promise_sentence(repair: GroupBlindRepair, fitted: FloatArray, tested: FloatArray | None) -> str:
    """Return what holds after a repair and for whom: `fitted` and `tested` are the weights of people."""
    what = f"MCDP({repair.epsilon:g}){AMONG[repair.criterion]} is at most {repair.max_mcdp:.4g}"
    if repair.confidence is None or tested is None:
        sentence = f"{what} among the {fitted.size:,} people fitted on; nothing is promised for others "
        sentence += "without a confidence."
    else:
        sentence = promise_for_population(what, repair.confidence, tested)
    if repair.left_out_:
        names = ", ".join(map(group_text, repair.left_out_))
        sentence += f" Groups of fewer than {repair.min_group_size} people take no part: {names}."
    return sentence


def out_of_reach(repair: GroupBlindRepair, least: float) -> ValueError:
    """Return the error for a bound that no repair of the people fitted on meets."""
    return InputError(
        f"{setting(max_mcdp=repair.max_mcdp)} is out of reach: group-blind scores leave at least {least:.4f} "
        f"among the people fitted on; use {setting('max_mcdp')} >= {round_up(least):g}, more rows, or a "
        "group-aware repair, which needs the group at prediction"
    )


def untested(repair: GroupBlindRepair, upper: float, tested: BlindRows) -> ValueError:
    """Return the error for a bound that the people held out do not support."""
    sizes = least_sizes(tested.groups, tested.labels, repair.criterion, len(repair.groups_))
    named = zip(repair.groups_, sizes, strict=True)
    shown = ", ".join(f"{size:,}" for group, size in named if group not in repair.left_out_)
    return InputError(
        f"{setting(max_mcdp=repair.max_mcdp)} is out of reach: with {setting(confidence=repair.confidence)}, "
        f"the strongest repair is only known to be within {upper:.4f} from held-out groups of "
        f"{shown}{AMONG[repair.criterion]}; use {setting('max_mcdp')} >= {round_up(upper):g}, or more rows"
    )


# What a group-blind repair keeps in a file, checked as it is read.


def parse_masses(values: Any, size: int) -> FloatArray:
    """Return the masses of the constraints, or raise a ValueError."""
    masses = _finite(values, (size,), "masses")
    if not (masses > 0.0).all():
        raise ValueError(f"masses must be > 0, got {masses.min()}")
    return masses


def parse_score(values: Any, n_constraints: int) -> NestedScore | None:
    """Return the multipliers and thresholds, None where there are none, or raise a ValueError."""
    if values is None:
        return None
    rates, multipliers, thresholds = values
    size = len(rates)
    return NestedScore(
        _finite(rates, (size,), "rates"),
        _finite(multipliers, (size, n_constraints), "multipliers"),
        _finite(thresholds, (size,), "thresholds"),
    )


def parse_scale(values: Any) -> ScoreMap | None:
    """Return the map from ranks to scores, None where there is none, or raise a ValueError."""
    if values is None:
        return None
    knots, heights = values
    shape = (len(knots),)
    return checked_map(_finite(knots, shape, "knots"), _finite(heights, shape, "values"), (0.0, 1.0))


def _finite(values: Any, shape: tuple[int, ...], name: str) -> FloatArray:
    """Return numbers from a file as an array of a shape, or raise a ValueError."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise InputError(f"must be finite numbers of shape {shape}, got shape {array.shape}", name)
    return array


# Group-blind scores as SQL: the features, the rank and the scale, as stages of an expression.


_ENDS = np.array([0.0, 1.0])
_TOLERANCE = 1e-6
"""By how much the probabilities of a row may miss the sum of 1, as in `as_group_probabilities`."""


def blind_sql(
    repair: GroupBlindRepair,
    dialect: Dialect,
    score: str,
    group_probabilities: Sequence[str] | Sequence[Sequence[str]],
) -> str:
    """Return the expression of the repaired score, given the names of the columns."""
    tables = _as_tables(group_probabilities, repair.groups_, len(repair.features_.labels))
    names = {f"p{at}_{group}": name for at, table in enumerate(tables) for group, name in enumerate(table)}
    stages = [score_stage(dialect, score, names), _checked(dialect, tables)]
    if repair.score_ is not None:
        stages.append(_features(dialect, repair.features_, len(tables)))
        stages += [_margins(dialect, repair.score_), _rank(dialect, repair.score_)]
    scale = ScoreMap(_ENDS, _ENDS) if repair.scale_ is None else repair.scale_
    return dialect.follow(stages, {"x.s IS NOT NULL": scale})


def _as_tables(
    columns: Sequence[str] | Sequence[Sequence[str]], groups: tuple[Group, ...], n_labels: int
) -> list[list[str]]:
    """Return the columns of each table of probabilities, one table for all labels or one for each."""
    parts = list(columns)
    tables = (
        [[str(part) for part in parts]]
        if all(isinstance(part, str) for part in parts)
        else list(map(list, parts))
    )
    if any(len(table) != len(groups) for table in tables) or len(tables) not in (1, n_labels):
        listed = ", ".join(map(repr, groups))
        raise InputError(f"must name a column for each of {listed}, got {columns!r}", "group_probabilities")
    return tables


def _checked(dialect: Dialect, tables: Sequence[Sequence[str]]) -> Stage:
    """Return the score, NULL where it or a probability is wrong, and the probabilities over their sum."""
    conditions = [f"x.s >= {dialect.number(0.0)} AND x.s <= {dialect.number(1.0)}"]
    shares: dict[str, str] = {}
    for at, table in enumerate(tables):
        given = [f"x.p{at}_{group}" for group in range(len(table))]
        numbers = [f"CAST({name} AS {dialect.double})" for name in given]
        total = f"({' + '.join(numbers)})"
        conditions += [f"{name} >= 0" for name in given]
        conditions.append(f"abs({total} - 1) <= {dialect.number(_TOLERANCE)}")
        shares |= {f"q{at}_{group}": f"{number} / {total}" for group, number in enumerate(numbers)}
    return {"s": f"CASE WHEN {' AND '.join(conditions)} THEN x.s END", **shares}


def _features(dialect: Dialect, features: GroupFeatures, tables: int) -> Stage:
    """Return the columns that the multipliers are applied to."""
    chances = {None: "", 0: "(1 - x.s) * ", 1: "x.s * "}
    columns: dict[str, str] = {"s": "x.s"}
    for at, label in enumerate(features.labels):
        for group in features.compared:
            place = len(columns) - 1
            share = f"{chances[label]}x.q{min(at, tables - 1)}_{group}"
            columns[f"f{place}"] = f"{share} / {dialect.number(features.masses[place])}"
    return columns


def _margins(dialect: Dialect, nested: NestedScore) -> Stage:
    """Return by how much a row is selected at each rate."""
    columns = {"s": "x.s"}
    for at, (multipliers, threshold) in enumerate(zip(nested.multipliers, nested.thresholds, strict=True)):
        terms = [f" - {dialect.number(size)} * x.f{place}" for place, size in enumerate(multipliers)]
        columns[f"m{at}"] = f"x.s - {dialect.number(threshold)}{''.join(terms)}"
    return columns


def _rank(dialect: Dialect, nested: NestedScore) -> Stage:
    """Return the share of rates at which a row is selected, in place of its score."""
    parts = [
        f"CASE WHEN x.m{at} > 0 AND x.m{at + 1} > 0 THEN {width} "
        f"WHEN x.m{at} > 0 THEN {width} * x.m{at} / (x.m{at} - x.m{at + 1}) "
        f"WHEN x.m{at + 1} > 0 THEN {width} * x.m{at + 1} / (x.m{at + 1} - x.m{at}) "
        f"ELSE {dialect.number(0.0)} END"
        for at, width in enumerate(map(dialect.number, np.diff(nested.rates)))
    ]
    rank = dialect.between(" + ".join(parts), dialect.number(0.0), dialect.number(1.0))
    return {"s": f"CASE WHEN x.s IS NOT NULL THEN {rank} END"}


# The scale of repaired scores: an increasing map of ranks to what users read.


OUTPUTS = ("original", "calibrated")
_LEVELS = 1000


def original_scale(ranks: FloatArray, scores: FloatArray, weights: FloatArray) -> ScoreMap:
    """Return the map under which ranks have the distribution of the scores, up to ties."""
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    tails = np.geomspace(1e-5, levels[0], 20, endpoint=False)
    levels = np.concatenate([tails, levels, 1.0 - tails[::-1]])
    return _ascending(_quantiles(ranks, weights, levels), _quantiles(scores, weights, levels))


def calibrated_scale(ranks: FloatArray, labels: IntArray, weights: FloatArray) -> ScoreMap:
    """Return the map of ranks to P(y = 1 | rank): isotonic regression, with lines between its steps."""
    order = np.argsort(ranks, kind="stable")
    ranks, weights = ranks[order], weights[order]
    values = isotonic_regression(labels[order].astype(np.float64), sample_weight=weights)
    _, steps = np.unique(values, return_inverse=True)
    masses = np.bincount(steps, weights)
    centres = np.bincount(steps, weights * ranks) / masses
    return _ascending(centres, np.bincount(steps, weights * values) / masses)


def _quantiles(values: FloatArray, weights: FloatArray, levels: FloatArray) -> FloatArray:
    """Return weighted quantiles, on lines between the middles of the steps of the distribution."""
    distinct, places = np.unique(values, return_inverse=True)
    masses = np.bincount(places, weights)
    middles = (np.cumsum(masses) - 0.5 * masses) / masses.sum()
    return np.interp(levels, middles, distinct)


def _ascending(knots: FloatArray, values: FloatArray) -> ScoreMap:
    """Return a map through the distinct knots inside (0, 1), the ends of which stay."""
    inside = (knots > 0.0) & (knots < 1.0)
    knots, first = np.unique(knots[inside], return_index=True)
    values = np.clip(np.maximum.accumulate(values[inside][first]), 0.0, 1.0)
    if not knots.size:
        knots = values = np.array([0.5])
    return ScoreMap(knots, values)


_STEPS = 6
_MEASURED = ("unrepaired_mcdp_", "mcdp_")


class GroupBlindRepair(FolderMixin, BaseEstimator):  # type: ignore[misc]
    r"""Bring MCDP(epsilon) within a bound with the best scores that do not look at the group.

    Takes a model's scores, P(y = 1 | x), and the probabilities of each person's groups, P(group | x), both of
    rows that the models were not fitted on. Among the sets of people at one selection rate q whose groups'
    rates differ by at most a bound, the one with the most positives is

    .. math:: \{x : P(y = 1 | x) - \sum_g \lambda_g(q) \, P(g | x) / P(g) > t(q)\}

    The multipliers and the threshold solve a convex problem at each of 121 rates. The repaired score ranks
    people by the share of rates at which they are selected, which makes the sets nested.
    `GroupBlindClassifier` does the same around classifiers.

    `promise_` says what holds. Without a `confidence`, the bound holds for the people fitted on. With one,
    part of the rows is held out: repairs are tested there from the strongest on, and the weakest before the
    first that is not known to be within the bound is kept. It holds in the population with that probability,
    if the rows are an independent sample (fixed-sequence testing; Angelopoulos et al. 2021, "Learn then
    Test").

    Parameters
    ----------
    max_mcdp : float
        The most that MCDP(epsilon) may be after the repair.
    epsilon : float
        The half-width of the windows, as a fraction of the score range.
    confidence : float, optional
        The probability with which the bound holds in the population that the rows are a sample of; with
        weights approximately, as in `mcdp_interval`.
    criterion : str
        Who is compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds".
    output : str
        The scale of the repaired scores: "original" keeps the distribution of all scores together,
        "calibrated" makes them P(y = 1 | score).
    min_group_size : int
        Groups with fewer of the people compared are scored like everyone but take no part in the bound;
        `left_out_` names them.
    validation_fraction : float
        The share of the rows that is held out where a `confidence` is asked for.
    random_state : int, Generator or None
        The same seed holds out the same rows.

    Attributes
    ----------
    groups_, left_out_ : tuple
        All groups in sorted order, and those too small to take part.
    unrepaired_mcdp_, mcdp_ : float
        MCDP(epsilon) of the people fitted on, before and after.
    promise_ : str
        What holds and for whom, in a sentence or two.
    score_ : NestedScore or None
        The multipliers and thresholds; None where nothing had to be repaired.
    scale_ : ScoreMap or None
        From ranks to repaired scores; None where scores stay as they are.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(4000, random_state=0)
    >>> women = census.data["occupation"].map({"care": 0.78, "office": 0.55, "technical": 0.4, "trades": 0.1})
    >>> chances = np.column_stack([women, 1.0 - women])  # the groups in sorted order: Female, Male
    >>> repair = lp.models.GroupBlindRepair(max_mcdp=0.1)
    >>> repair = repair.fit(
    ...     census.score,
    ...     sensitive_features=census.sensitive_features,
    ...     group_probabilities=chances,
    ... )
    >>> blind = repair.transform(census.score, group_probabilities=chances)
    >>> lp.mcdp(None, blind, sensitive_features=census.sensitive_features) <= 0.1
    True
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "sensitive_features": True,
        "group_probabilities": True,
    }
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"group_probabilities": True}

    def __init__(
        self,
        max_mcdp: float = 0.05,
        *,
        epsilon: float = 0.0,
        confidence: float | None = None,
        criterion: Criterion = "demographic_parity",
        output: str = "original",
        min_group_size: int = 30,
        validation_fraction: float = 0.3,
        random_state: Seed = None,
    ) -> None:
        self.max_mcdp = max_mcdp
        self.epsilon = epsilon
        self.confidence = confidence
        self.criterion = criterion
        self.output = output
        self.min_group_size = min_group_size
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def fit(
        self,
        scores: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sensitive_features: Groups,
        group_probabilities: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the repair from scores of rows that the models were not fitted on.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            P(y = 1 | x) of each row.
        y : array-like of shape (n_samples,), optional
            Labels 0 and 1, where the criterion or the output needs them.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; of several columns, the combinations that occur.
        group_probabilities : array-like of shape (n_samples, n_groups)
            P(group | x) of each row, the groups in sorted order. For a criterion that compares people by
            label these are probabilities given the label, for equalized odds of shape (2, n_samples,
            n_groups), for label 0 first; one table may stand for both where x says as much about the
            group under either label.
        sample_weight : array-like of shape (n_samples,), optional
            Weights that are not negative.

        Returns
        -------
        GroupBlindRepair
            The fitted repair.
        """
        self._check_parameters()
        comparison = Comparison(self.criterion)
        if y is None and (comparison.needs_labels or self.output == "calibrated"):
            name = "output" if self.output == "calibrated" else "criterion"
            raise ValueError(f"{name}={getattr(self, name)!r} needs y, got None")
        given = check_predictions(y, scores, sensitive_features, sample_weight=sample_weight, names=NAMES)
        n_rows = given.scores.size
        rows = BlindRows(
            np.clip(given.scores.astype(np.float64), 0.0, 1.0),
            as_group_probabilities(group_probabilities, n_rows, given.groups, len(comparison.labels)),
            None if given.labels is None else given.labels.astype(np.int64),
            given.codes.astype(np.int64),
            np.ones(n_rows) if given.weights is None else given.weights,
        )
        labels = np.zeros(n_rows) if rows.labels is None else rows.labels
        people = rows.scores, labels, rows.groups, rows.weights
        places = without_copies(np.moveaxis(rows.probabilities, 1, 0), *people)
        rows = rows if places is None else rows.take(places)
        self._fitted_on = describe_rows(rows.groups, given.groups, *rows)
        fitted, tested = rows, None
        if self.confidence is not None:
            seed, by_class = as_seed(self.random_state), comparison.needs_labels
            training, held_out = rows.split(self.validation_fraction, seed, given.groups, by_class=by_class)
            fitted, tested = rows.take(training), rows.take(held_out)
        return self._fit_rows(fitted, tested, given.groups)

    def transform(self, scores: ArrayLike, *, group_probabilities: ArrayLike) -> FloatArray:
        """Return the repaired scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            P(y = 1 | x) of each row.
        group_probabilities : array-like of shape (n_samples, n_groups)
            P(group | x) of each row, as at `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        given = as_scores(scores, (0.0, 1.0), "scores").values
        clipped = np.clip(given.astype(np.float64, copy=False), 0.0, 1.0)
        n_labels = len(Comparison(self.criterion).labels)
        return self._repaired(
            clipped, as_group_probabilities(group_probabilities, clipped.size, self.groups_, n_labels)
        )

    def to_sql(
        self,
        dialect: str = "duckdb",
        *,
        score: str = "score",
        group_probabilities: Sequence[str] | Sequence[Sequence[str]],
    ) -> str:
        """Return the repaired score as an SQL expression, to be computed where the scores are.

        It gives what `transform` gives, and NULL where that raises an error for a row: a score outside of
        [0, 1], or probabilities that are negative or do not sum to 1.

        Parameters
        ----------
        dialect, score : str
            As in `ScoreRepair.to_sql`.
        group_probabilities : sequence of str, or two of them
            The columns of P(group | x), the groups in sorted order; two where `transform` takes two tables.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        return blind_sql(self, as_dialect(dialect), score, group_probabilities)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "promise_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    def _check_parameters(self) -> None:
        """Raise a ValueError for parameters that are wrong."""
        as_fraction(self.max_mcdp, "max_mcdp")
        as_epsilon(self.epsilon)
        Comparison(self.criterion)
        as_choice(self.output, "output", OUTPUTS)
        as_count(self.min_group_size, "min_group_size")
        as_probability(self.validation_fraction, "validation_fraction")
        if self.confidence is not None:
            as_probability(self.confidence)

    def _check_groups(self, groups: IntArray, labels: IntArray | None, names: tuple[Group, ...]) -> None:
        """Find the groups that have enough of the people compared, or raise a ValueError."""
        self.groups_ = names
        least = least_sizes(groups, labels, self.criterion, len(names))
        self.left_out_ = tuple(
            name for name, size in zip(names, least, strict=True) if size < self.min_group_size
        )
        if len(names) - len(self.left_out_) < 2:
            raise InputError(
                f"at least two groups must have {setting(min_group_size=self.min_group_size)} of the people "
                f"compared, got groups of {', '.join(f'{size:,}' for size in least)}"
            )

    def _repaired(self, scores: FloatArray, probabilities: FloatArray) -> FloatArray:
        """Return the repaired scores of checked rows."""
        ranks = scores
        if self.score_ is not None:
            ranks = self.score_(scores, self.features_(scores, probabilities))
        return ranks if self.scale_ is None else self.scale_(ranks)

    def _curves(self, rows: BlindRows, scores: FloatArray) -> list[GapCurve]:
        """Return the gap curves of rows that have some scores."""
        return compared_curves(rows, scores, self.features_.compared, self.criterion)

    def _fit_rows(self, fitted: BlindRows, tested: BlindRows | None, groups: tuple[Group, ...]) -> Self:
        """Find the repair on the rows fitted on; with a confidence, choose it on those held out."""
        least = fitted if tested is None else tested
        self._check_groups(least.groups, least.labels, groups)
        compared = tuple(code for code, group in enumerate(groups) if group not in self.left_out_)
        self.features_ = GroupFeatures.learn(fitted, Comparison(self.criterion).labels, compared)
        self.score_: NestedScore | None = None
        self.scale_ = self._scale(fitted, None)
        self.unrepaired_mcdp_ = self.mcdp_ = self._mcdp(fitted)
        needs_repair = not within_bound(self.unrepaired_mcdp_, self.max_mcdp)
        dual = Dual.of(fitted, self.features_)
        weakest = max(curve.mcdp(0.0) for curve in self._curves(fitted, fitted.scores))
        aim = weakest
        if needs_repair:
            best, left = find_within(
                dual, partial(self._take, fitted), self.max_mcdp, Trial(weakest, self.unrepaired_mcdp_)
            )
            if best is None:
                raise out_of_reach(self, left)
            aim = best.aim
            self._take(fitted, best.score)
        if tested is not None:
            self._test(dual, fitted, tested, np.linspace(0.0, aim, _STEPS + 1), needs_repair)
        self.promise_ = promise_sentence(self, fitted.weights, None if tested is None else tested.weights)
        return self

    def _test(
        self, dual: Dual, fitted: BlindRows, tested: BlindRows, aims: FloatArray, needs_repair: bool
    ) -> None:
        """Keep the weakest repair before the first that is not known to be within the bound."""
        confidence = self.confidence
        assert confidence is not None

        def tries() -> Iterator[tuple[NestedScore | None, float]]:
            start = None
            for place, aim in enumerate(aims):
                score = None
                if place < len(aims) - 1 or needs_repair:
                    score = dual.solve(float(aim), start)
                    start = score.multipliers[1:-1]
                self._take(fitted, score)
                repaired = self._repaired(tested.scores, tested.probabilities)
                people = compared_predictions(tested, repaired, self.features_.compared)
                yield score, upper_bound(people, self.epsilon, self.criterion, confidence).high

        accepted, refused = accept_in_order(tries(), lambda tried: within_bound(tried[1], self.max_mcdp))
        if not accepted:
            raise untested(self, refused[0][1], tested)
        self._take(fitted, accepted[-1][0])

    def _take(self, fitted: BlindRows, score: NestedScore | None) -> float:
        """Take a score with the scale that it has on the rows fitted on, and return their MCDP."""
        self.score_, self.scale_ = score, self._scale(fitted, score)
        self.mcdp_ = self._mcdp(fitted)
        return self.mcdp_

    def _scale(self, rows: BlindRows, score: NestedScore | None) -> ScoreMap | None:
        """Return the scale of the repaired scores, None where they stay as they are."""
        ranks = rows.scores
        if score is not None:
            ranks = score(rows.scores, self.features_(rows.scores, rows.probabilities))
        if self.output == "calibrated":
            assert rows.labels is not None
            return calibrated_scale(ranks, rows.labels, rows.weights)
        return None if score is None else original_scale(ranks, rows.scores, rows.weights)

    def _mcdp(self, rows: BlindRows) -> float:
        repaired = self._repaired(rows.scores, rows.probabilities)
        return max(curve.mcdp(self.epsilon) for curve in self._curves(rows, repaired))

    def _dump(self) -> tuple[dict[str, Any], Files]:
        score = None if self.score_ is None else [part.tolist() for part in self.score_]
        scale = None if self.scale_ is None else [self.scale_.knots.tolist(), self.scale_.values.tolist()]
        learned = {
            "groups": plain(self.groups_, "sensitive_features"),
            "compared": list(self.features_.compared),
            "masses": self.features_.masses.tolist(),
            "score": score,
            "scale": scale,
            "promise": self.promise_,
            **{name: getattr(self, name) for name in _MEASURED},
        }
        return learned, {}

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        self.groups_ = restore_groups(learned["groups"])
        compared = tuple(range(len(self.groups_))[place] for place in learned["compared"])
        labels = Comparison(self.criterion).labels
        masses = parse_masses(learned["masses"], len(labels) * len(compared))
        self.left_out_ = tuple(group for code, group in enumerate(self.groups_) if code not in compared)
        self.features_ = GroupFeatures(labels, compared, masses)
        self.score_ = parse_score(learned["score"], masses.size)
        self.scale_ = parse_scale(learned["scale"])
        for name in _MEASURED:
            setattr(self, name, as_number(learned[name], name))
        self.promise_ = str(learned["promise"])


# A classifier whose scores are within a bound without looking at the group.


_SUBSAMPLED = {"feature_fraction": 0.5, "bagging_fraction": 0.8, "bagging_freq": 1, "lambda_l2": 1.0}
"""How the default trees are grown, chosen on validation parts of Adult and Bank."""


class GroupBlindClassifier(FolderMixin, TwoClassMixin, BaseEstimator):  # type: ignore[misc]
    """The most accurate scores within a bound that are made of features alone.

    Two classifiers are fitted, of the class and of the group. Their predictions for rows that they were not
    fitted on go to a `GroupBlindRepair`, which finds the best scores under the bound. The group is needed to
    fit and not to predict.

    Parameters
    ----------
    estimator, group_estimator : classifier, optional
        Predict the class and the group; they must have `predict_proba`. By default boosted trees, which take
        tables as `TableClassifier` does. Probabilities should be calibrated: the repair takes them at their
        word when it trades positives for parity, though never when it measures MCDP.
    max_mcdp, epsilon, confidence, criterion, output, min_group_size
        The bound and what it holds for, as in `GroupBlindRepair`. For a criterion that compares people by
        label, a group estimator is fitted among the people of each label.
    cv : int or "prefit"
        The number of folds. Each pair of classifiers is fitted without one fold and predicts for it. "prefit"
        takes the two as they are, the group estimator with the groups as its classes; pass `fit` other rows
        than they were fitted on.
    ensemble : bool
        Whether new rows get the mean of what all pairs predict. If not, one more pair is fitted on all rows,
        which predicts `cv` times as fast, and a little worse.
    validation_fraction : float
        The share of the rows that is held out where a `confidence` is asked for.
    random_state : int, Generator or None
        The same seed gives the same folds and held-out rows; it seeds the default trees too.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes; scores are probabilities of the second.
    groups_, left_out_ : tuple
        All groups, and those too small to take part in the bound.
    ingredients_ : list of Ingredients
        The fitted pairs of classifiers.
    repair_ : GroupBlindRepair
        The fitted repair.
    mcdp_ : float
        MCDP(epsilon) of the people fitted on, each scored by models that did not see them.
    promise_ : str
        What holds and for whom.

    Examples
    --------
    >>> import localparity as lp
    >>> from sklearn.linear_model import LogisticRegression
    >>> census = lp.datasets.make_census(4000, random_state=0)
    >>> X, sex = census.data[["age", "education_years", "hours_per_week"]], census.sensitive_features
    >>> plain = LogisticRegression(max_iter=1000)
    >>> model = lp.models.GroupBlindClassifier(plain, plain, max_mcdp=0.08, random_state=0)
    >>> model = model.fit(X, census.target, sensitive_features=sex)
    >>> model.predict_proba(X).shape, model.mcdp_ <= 0.08
    ((4000, 2), True)
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    _unsaved: ClassVar[dict[str, Any]] = {"estimator": None, "group_estimator": None}
    _libraries = ("lightgbm",)

    def __init__(
        self,
        estimator: Any = None,
        group_estimator: Any = None,
        *,
        max_mcdp: float = 0.05,
        epsilon: float = 0.0,
        confidence: float | None = None,
        criterion: Criterion = "demographic_parity",
        output: str = "original",
        min_group_size: int = 30,
        cv: int | str = 5,
        ensemble: bool = True,
        validation_fraction: float = 0.3,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.group_estimator = group_estimator
        self.max_mcdp = max_mcdp
        self.epsilon = epsilon
        self.confidence = confidence
        self.criterion = criterion
        self.output = output
        self.min_group_size = min_group_size
        self.cv = cv
        self.ensemble = ensemble
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Groups = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifiers, unless they are fitted, and the repair.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            Two classes, of any kind that can be sorted.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; of several columns, the combinations that occur.
        sample_weight : array-like of shape (n_samples,), optional
            Weights that are not negative; a row of weight 0 counts as absent.

        Returns
        -------
        GroupBlindClassifier
            The fitted classifier.
        """
        repair, seed = self._check_parameters(), as_seed(self.random_state)
        (X,) = indexable(X)
        if self.estimator is None or self.group_estimator is None:
            X = with_categories(X)
        rows = check_training_rows(self, X, y, sensitive_features, sample_weight).with_weight()
        self._fitted_on = rows.describe()
        held_out = None
        if self.confidence is not None:
            by_class = Comparison(self.criterion).needs_labels
            rows, held_out = rows.hold_out(self.validation_fraction, seed, by_class=by_class)
        least = rows if held_out is None else held_out
        repair._check_groups(least.groups, least.labels.astype(np.int64), rows.group_names)
        fitted = self._fit_ingredients(rows, seed, weighted=sample_weight is not None)
        tested = None
        if held_out is not None:
            tested = blind_rows(held_out, *mean_prediction(self.ingredients_, held_out.features))
        self.classes_, self.groups_, self.left_out_ = rows.classes, rows.group_names, repair.left_out_
        self.repair_ = repair._fit_rows(fitted, tested, rows.group_names)
        self.mcdp_, self.promise_ = repair.mcdp_, repair.promise_
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class after the repair.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features, in the columns that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            The second column is the repaired score.
        """
        check_is_fitted(self)
        scores = self.repair_._repaired(*mean_prediction(self.ingredients_, X))
        return np.column_stack([1.0 - scores, scores])

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return int(self._reads_features.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the features, if the classifiers know them."""
        names: NDArray[Any] = self._reads_features.feature_names_in_
        return names

    @property
    def text_features_(self) -> list[str]:
        """The names of the text columns, if the classifiers know them."""
        names: list[str] = self._reads_features.text_features_
        return names

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "promise_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = [one for one in (self.estimator, self.group_estimator) if one is not None]
        inputs = [get_tags(one).input_tags for one in given]
        tags.input_tags.allow_nan = all(one.allow_nan for one in inputs)
        tags.input_tags.sparse = len(given) == 2 and all(one.sparse for one in inputs)
        return tags

    @property
    def _reads_features(self) -> Any:
        """The model that reads a row's features first."""
        return self.ingredients_[0].estimator

    def _check_parameters(self) -> GroupBlindRepair:
        """Return the repair to be fitted, or raise a ValueError for parameters that are wrong."""
        repair = GroupBlindRepair(
            self.max_mcdp,
            epsilon=self.epsilon,
            confidence=self.confidence,
            criterion=self.criterion,
            output=self.output,
            min_group_size=self.min_group_size,
            validation_fraction=self.validation_fraction,
        )
        repair._check_parameters()
        check_wrapped(estimator=self.estimator, group_estimator=self.group_estimator)
        if self.cv == "prefit":
            if self.estimator is None or self.group_estimator is None:
                raise ValueError("cv='prefit' needs a fitted estimator and group_estimator, got None")
        elif as_count(self.cv, "cv") < 2:
            raise InputError(f"must be >= 2 or 'prefit', got {self.cv}", "cv")
        return repair

    def _fit_ingredients(self, rows: TrainingRows, seed: int, *, weighted: bool) -> BlindRows:
        """Fit the pairs of classifiers, and return the rows with what the unseen folds' models predict."""
        labels = Comparison(self.criterion).labels
        if self.cv == "prefit":
            fitted = Ingredients.fitted(self.estimator, self.group_estimator, rows, len(labels))
            self.ingredients_ = [fitted]
            return blind_rows(rows, *fitted.predict(rows.features))
        pair = tuple(
            _trees(seed) if given is None else given for given in (self.estimator, self.group_estimator)
        )
        folds = assign_folds(rows, int(self.cv), seed)
        self.ingredients_, predicted = cross_fit(pair, rows, labels, folds, weighted=weighted)
        if not self.ensemble:
            self.ingredients_ = [Ingredients.fit(pair, rows, labels, weighted=weighted)]
        return predicted

    def _dump(self) -> tuple[dict[str, Any], Files]:
        learned = {
            **dump_classes(self.classes_),
            "codes": [[codes.tolist() for codes in one.codes] for one in self.ingredients_],
            "mcdp": self.mcdp_,
            "promise": self.promise_,
        }
        parts: dict[str, Any] = {"repair": self.repair_}
        groups = [one for pair in self.ingredients_ for one in pair.group_estimators]
        return learned, dump_parts(
            estimator=[pair.estimator for pair in self.ingredients_], group_estimator=groups, **parts
        )

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        self.estimator = self.group_estimator = None
        self.classes_ = restore_classes(learned, two=True)
        self.repair_ = parse_part(files, "repair")
        if not isinstance(self.repair_, GroupBlindRepair):
            raise ValueError(f"repair must be a GroupBlindRepair, got a {type(self.repair_).__name__}")
        self.groups_, self.left_out_ = self.repair_.groups_, self.repair_.left_out_
        self.ingredients_ = []
        place = 0
        for number, codes in enumerate(learned["codes"]):
            groups = tuple(parse_part(files, f"group_estimator/{place + one}") for one in range(len(codes)))
            place += len(codes)
            if len(groups) != len(self.repair_.features_.labels):
                raise ValueError(f"codes must be as many as labels are compared, got {len(groups)}")
            estimator = parse_part(files, f"estimator/{number}")
            self.ingredients_.append(Ingredients.restored(estimator, groups, codes, len(self.groups_)))
        self.mcdp_ = as_number(learned["mcdp"], "mcdp")
        self.promise_ = str(learned["promise"])


def _trees(seed: int) -> Any:
    """Return the trees that predict by default."""
    require("lightgbm", extra="boost")
    from localparity.models.trees import TableClassifier

    return TableClassifier(booster_params=_SUBSAMPLED, random_state=seed)


# Group-blind scores at every strength of repair, from no gap at all to no repair.


class FittedIngredients(NamedTuple):
    """Pairs of classifiers, the rows they were fitted on with predictions of those that did not see them.

    `compared` are the codes of the groups that are large enough to take part.
    """

    pairs: list[Ingredients]
    rows: BlindRows
    compared: tuple[int, ...]

    @classmethod
    def fit(cls, model: GroupBlindClassifier, rows: TrainingRows, seed: int, *, weighted: bool) -> Self:
        """Fit the classifiers that a model has."""
        repair = model._check_parameters()
        repair._check_groups(rows.groups, rows.labels.astype(np.int64), rows.group_names)
        compared = [code for code, name in enumerate(rows.group_names) if name not in repair.left_out_]
        predicted = model._fit_ingredients(rows, seed, weighted=weighted)
        return cls(model.ingredients_, predicted, tuple(compared))


def path_aims(rows: BlindRows, compared: tuple[int, ...], criterion: Criterion, size: int) -> FloatArray:
    """Return bounds from 0 to the gap that the plain scores have, denser where they are small."""
    plain = max(curve.mcdp(0.0) for curve in compared_curves(rows, rows.scores, compared, criterion))
    return np.asarray(plain * np.linspace(0.0, 1.0, size) ** 2)


def score_path(
    aims: FloatArray, fitted: BlindRows, scored: BlindRows, compared: tuple[int, ...], criterion: Criterion
) -> FloatArray:
    """Return the scores, of shape (n_aims, n_rows), of rows under repairs fitted on other rows.

    They have the scale of the plain scores, which the last aim, the largest, leaves as they are.
    """
    features = GroupFeatures.learn(fitted, Comparison(criterion).labels, compared)
    columns, own = (features(rows.scores, rows.probabilities) for rows in (scored, fitted))
    dual = Dual.of(fitted, features)
    found, start = [], None
    for aim in aims[:-1].tolist():
        score = dual.solve(aim, start)
        start = score.multipliers[1:-1]
        scale = original_scale(score(fitted.scores, own), fitted.scores, fitted.weights)
        found.append(scale(score(scored.scores, columns)))
    return np.array([*found, scored.scores])
