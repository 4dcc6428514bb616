"""Scores brought within a bound where the group is unknown at prediction."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from localparity._io._sealed import Files
from localparity._progress import Forecast
from localparity._text import capitalised, group_text
from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, IntArray, Seed
from localparity._validation import (
    InputError,
    as_count,
    as_number,
    as_probability,
    require,
    setting,
)
from localparity.counts import Comparison
from localparity.metrics._within import within_bound
from localparity.models._bound import Bound, OutOfReachError, accept_in_order, cutoffs_between
from localparity.models._encoding import SharedTable, with_categories
from localparity.models._folder import as_json, dump_classes, restore_classes, restore_groups
from localparity.models._rows import TrainingRows, as_seed, assign_folds, describe_rows, drop_copies
from localparity.models.repair._base import (
    NAMES,
    RepairingClassifier,
    RepairTransformer,
    check_wrapped,
    clipped_scores,
    dump_parts,
    fit_wrapped,
    parse_part,
)
from localparity.models.repair._dual import (
    AimedScore,
    BlindRows,
    Dual,
    GroupFeatures,
    NestedScore,
    as_group_probabilities,
    compared_groups,
    compared_predictions,
    find_within,
    least_sizes,
)
from localparity.models.repair._maps import ScoreMap, calibrated_scale, checked_map, original_scale
from localparity.predictions import check_predictions

_STEPS = 6
# A test needs people more than the repair does: what the strongest leaves hardly depends on how many it is
# fitted on (results/promised.md).
_MOST_HELD_OUT = 0.7
_MEASURED = ("unrepaired_mcdp_", "mcdp_")


class GroupBlindRepair(RepairTransformer):
    r"""Bring MCDP(epsilon) within a bound with the best scores that do not look at the group.

    It takes P(y = 1 | x), a model's scores, and P(group | x) of rows that the models were not fitted on.
    Among the sets of people at one selection rate q whose groups' rates differ by at most a bound, the one
    with the most positives is

    .. math:: \{x : P(y = 1 | x) - \sum_g \lambda_g(q) \, P(g | x) / P(g) > t(q)\}

    The multipliers and the threshold solve a convex problem at each of 121 rates. The repaired score ranks
    people by the share of rates at which they are selected, which makes the sets nested.
    `GroupBlindClassifier` does the same around classifiers.

    Without a `confidence`, the bound holds for the people fitted on, and `promise_` says about what is
    expected of as many others. With one, part of the rows is held out:
    repairs are tested there from the strongest on, and the weakest before the first that is not known to be
    within the bound is kept (fixed-sequence testing; Angelopoulos et al. 2021, "Learn then Test").

    Parameters
    ----------
    max_mcdp : float
        The most that MCDP(epsilon) may be after the repair.
    epsilon, criterion
        The half-width of the windows, and who is compared, as in `ScoreRepair`.
    confidence : float, optional
        The probability with which the bound holds in the population that the rows are an independent sample
        of; with weights approximately.
    selection_rates : tuple of two floats, optional
        The bound holds at the cutoffs that select such a share of the people fitted on, from the lowest to
        the highest; (0, 0.05) is the top five percent. By default all; with `min_ratio`, from 0.05.
    min_ratio : float, optional
        In place of `max_mcdp`, the least that the ratio of two groups' selection rates may be at each of
        these cutoffs.
    min_group_size : int
        Groups with fewer of the people compared are scored like everyone but take no part in the bound;
        `left_out_` names them.
    validation_fraction, random_state
        The share of the rows that is held out where a `confidence` is asked for, or more, up to 70%, where a
        bound this low needs as many; and the seed that draws it.

    Attributes
    ----------
    groups_, left_out_ : tuple
        All groups in sorted order, and those too small to take part.
    unrepaired_mcdp_, mcdp_, promise_
        As in `ScoreRepair`.
    cutoffs_ : tuple of float
        The lowest and the highest repaired score at which the bound holds.
    score_, scale_ : NestedScore and ScoreMap, or None
        The multipliers and thresholds, and the map of ranks to repaired scores; None where nothing moves.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(4000, random_state=0)
    >>> women = census.data["occupation"].map({"care": 0.78, "office": 0.55, "technical": 0.4, "trades": 0.1})
    >>> chances = np.column_stack([women, 1.0 - women])  # the groups in sorted order: Female, Male
    >>> sex, repair = census.sensitive_features, lp.models.GroupBlindRepair(max_mcdp=0.1)
    >>> repair = repair.fit(census.score, sensitive_features=sex, group_probabilities=chances)
    >>> blind = repair.transform(census.score, group_probabilities=chances)
    >>> lp.mcdp(None, blind, sensitive_features=sex) <= 0.1
    True
    """

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "group_probabilities": True}
    __metadata_request__transform: ClassVar = {"group_probabilities": True}
    score_: NestedScore | None
    scale_: ScoreMap | None
    cutoffs_: tuple[float, float]

    def __init__(
        self,
        max_mcdp: float = 0.05,
        *,
        epsilon: float = 0.0,
        confidence: float | None = None,
        criterion: Criterion = "demographic_parity",
        selection_rates: tuple[float, float] | None = None,
        min_ratio: float | None = None,
        min_group_size: int = 30,
        validation_fraction: float = 0.3,
        random_state: Seed = None,
    ) -> None:
        self.max_mcdp = max_mcdp
        self.epsilon = epsilon
        self.confidence = confidence
        self.criterion = criterion
        self.selection_rates = selection_rates
        self.min_ratio = min_ratio
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
            Labels 0 and 1. With them, repaired scores are P(y = 1 | score); without, they keep the
            distribution of all scores together.
        sensitive_features, sample_weight
            The group and the weight of each row, as in `ScoreRepair.fit`.
        group_probabilities : array-like of shape (n_samples, n_groups)
            P(group | x) of each row, the groups in sorted order. For a criterion that compares people by
            label these are probabilities given the label; for equalized odds one table may stand for both
            labels, or two of them, of shape (2, n_samples, n_groups), for label 0 first.

        Returns
        -------
        GroupBlindRepair
            The fitted repair.
        """
        bound, comparison = self._check_all(), Comparison(self.criterion)
        if y is None and comparison.needs_labels:
            raise InputError(f"{setting(criterion=self.criterion)} needs {setting('y')}, got None")
        people = check_predictions(y, scores, sensitive_features, sample_weight=sample_weight, names=NAMES)
        n_rows, names = people.scores.size, people.groups
        rows = BlindRows(
            np.clip(people.scores.astype(np.float64), 0.0, 1.0),
            as_group_probabilities(group_probabilities, n_rows, names, len(comparison.labels)),
            np.zeros(n_rows, np.int64) if people.labels is None else people.labels.astype(np.int64),
            people.group_codes.astype(np.int64),
            np.ones(n_rows) if people.weights is None else people.weights,
        )
        columns = rows.scores, rows.labels, rows.groups, rows.weights
        indexes = drop_copies(np.moveaxis(rows.probabilities, 1, 0), *columns)
        rows = rows if indexes is None else rows.take(indexes)
        probabilities = np.moveaxis(rows.probabilities, 1, 0)
        self._fitted_on = describe_rows(rows.groups, names, *rows._replace(probabilities=probabilities))
        fitted, tested = rows, None
        if bound.confidence is not None:
            seed = as_seed(self.random_state)
            least, most = self.validation_fraction, _MOST_HELD_OUT
            share = bound.share_held_out(least, rows.groups, rows.labels, most=most)
            parts = rows.split(share, seed, names, by_class=bound.by_class)
            fitted, tested = map(rows.take, parts)
        return self._fit_rows(fitted, tested, names, labelled=people.labels is not None)

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
        clipped, n_labels = clipped_scores(scores, (0.0, 1.0)), len(self.features_.labels)
        return self._repaired(
            clipped, as_group_probabilities(group_probabilities, clipped.size, self.groups_, n_labels)
        )

    @property
    def left_out_(self) -> tuple[Group, ...]:
        """The groups too small to take part."""
        return tuple(name for code, name in enumerate(self.groups_) if code not in self.features_.compared)

    def _check_all(self) -> Bound:
        as_count(self.min_group_size, "min_group_size")
        as_probability(self.validation_fraction, "validation_fraction")
        return Bound.of(self)

    def _repaired(self, scores: FloatArray, probabilities: FloatArray) -> FloatArray:
        """Return the repaired scores of checked rows."""
        ranks = self._ranks(scores, probabilities)
        return ranks if self.scale_ is None else self.scale_(ranks)

    def _ranks(self, scores: FloatArray, probabilities: FloatArray) -> FloatArray:
        """Return the ranks that the scale is for; scores themselves where nothing is repaired."""
        return scores if self.score_ is None else self.score_(scores, self.features_(scores, probabilities))

    def _fit_rows(
        self, fitted: BlindRows, tested: BlindRows | None, groups: tuple[Group, ...], *, labelled: bool = True
    ) -> Self:
        """Find the repair on the rows fitted on; with a confidence, choose it on those held out."""
        bound, people = Bound.of(self), fitted if tested is None else tested
        if tested is not None and bound.min_ratio is not None and (people.weights != 1.0).any():
            raise InputError(f"must be None for {bound.setting} with weights", "confidence")
        sizes = least_sizes(people.groups, people.labels, bound.criterion, len(groups))
        compared = compared_groups(sizes, self.min_group_size)
        self.groups_, self._labelled = groups, labelled
        self.features_ = GroupFeatures.learn(fitted, Comparison(bound.criterion).labels, compared)
        plain = self._take(fitted, None)
        self.unrepaired_mcdp_ = self.mcdp_
        names = {groups[code]: int(sizes[code]) for code in compared}
        needs_repair = not within_bound(plain, bound.limit)
        dual = Dual.of(fitted, self.features_, bound.selection_rates, relative=bound.min_ratio is not None)
        aim = dual.widest()
        if needs_repair:
            unrepaired = AimedScore(aim, plain, None)
            best, least = find_within(dual, partial(self._take, fitted), bound.limit, unrepaired)
            if best is None:
                raise _out_of_reach(bound, least, names)
            aim = best.aim
            self._take(fitted, best.score)
        if tested is not None:
            self._test(dual, fitted, tested, np.linspace(0.0, aim, _STEPS + 1), needs_repair)
        self.promise_ = self._promise(bound, people, names, tested=tested is not None)
        return self

    def _test(
        self, dual: Dual, fitted: BlindRows, tested: BlindRows, aims: FloatArray, needs_repair: bool
    ) -> None:
        """Keep the weakest repair before the first that is not known to be within the bound."""
        bound = Bound.of(self)

        def tries() -> Iterator[tuple[NestedScore | None, float]]:
            start = None
            for index, aim in enumerate(aims):
                score = None
                if index < len(aims) - 1 or needs_repair:
                    score = dual.solve(float(aim), start)
                    start = score.multipliers[1:-1]
                self._take(fitted, score)
                repaired = self._repaired(tested.scores, tested.probabilities)
                people = compared_predictions(tested, repaired, self.features_.compared)
                yield score, bound.known(people, self.cutoffs_)

        accepted, refused = accept_in_order(tries(), lambda tried: within_bound(tried[1], bound.limit))
        if not accepted:
            raise self._not_known_within(bound, refused[0][1], tested)
        self._take(fitted, accepted[-1][0])

    def _take(self, fitted: BlindRows, score: NestedScore | None) -> float:
        """Take a score with its scale and cutoffs on the rows fitted on, and return what the bound is on."""
        self.score_, self.scale_ = score, None
        repaired = ranks = self._ranks(fitted.scores, fitted.probabilities)
        if self._labelled:
            self.scale_ = calibrated_scale(ranks, fitted.labels, fitted.weights)
        elif score is not None:
            self.scale_ = original_scale(ranks, fitted.scores, fitted.weights)
        if self.scale_ is not None:
            repaired = self.scale_(ranks)
        bound = Bound.of(self)
        self.cutoffs_ = cutoffs_between(repaired, fitted.weights, bound.selection_rates)
        people = compared_predictions(fitted, repaired, self.features_.compared)
        self.mcdp_ = bound._replace(min_ratio=None).disparity(people, self.cutoffs_)
        return self.mcdp_ if bound.min_ratio is None else bound.disparity(people, self.cutoffs_)

    def _promise(self, bound: Bound, people: BlindRows, sizes: dict[Group, int], *, tested: bool) -> str:
        weighted = bool((people.weights != 1.0).any())
        sentence = bound.promise(people.scores.size, tested=tested, weighted=weighted)
        if bound.confidence is None:
            repaired = self._repaired(people.scores, people.probabilities)
            among = compared_predictions(people, repaired, self.features_.compared)
            sentence += bound.of_others(among, self.cutoffs_)
            sentence += "".join(f" {capitalised(of_group)}." for of_group in _of_chance(bound, sizes))
        if self.left_out_:
            names = ", ".join(map(group_text, self.left_out_))
            sentence += f" Groups of fewer than {self.min_group_size} people take no part: {names}."
        return sentence

    def _not_known_within(self, bound: Bound, upper: float, tested: BlindRows) -> OutOfReachError:
        """Return the error for a bound that the people held out do not support."""
        sizes = least_sizes(tested.groups, tested.labels, bound.criterion, len(self.groups_))
        listed = ", ".join(f"{sizes[code]:,}" for code in self.features_.compared)
        return OutOfReachError(
            f"{bound.setting} is out of reach: with {setting(confidence=bound.confidence)}, the strongest "
            f"repair is only known to be within {bound.value(upper):.4f} from held-out groups of {listed}"
            f"{bound.among}; use {bound.reachable(upper)}, or more rows"
        )

    def _dump(self) -> tuple[dict[str, Any], Files]:
        score = None if self.score_ is None else [part.tolist() for part in self.score_]
        scale = None if self.scale_ is None else [self.scale_.knots.tolist(), self.scale_.values.tolist()]
        learned = {
            "groups": as_json(self.groups_, "sensitive_features"),
            "compared": list(self.features_.compared),
            "masses": self.features_.masses.tolist(),
            "cutoffs": list(self.cutoffs_),
            "score": score,
            "scale": scale,
            "promise": self.promise_,
            **{name: getattr(self, name) for name in _MEASURED},
        }
        return learned, {}

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        self.groups_ = restore_groups(learned["groups"])
        compared = tuple(range(len(self.groups_))[code] for code in learned["compared"])
        labels = Comparison(self.criterion).labels
        masses = _finite(learned["masses"], (len(labels) * len(compared),), "masses")
        if not (masses > 0.0).all():
            raise ValueError(f"masses must be > 0, got {masses.min()}")
        self.features_ = GroupFeatures(labels, compared, masses)
        low, high = _finite(learned["cutoffs"], (2,), "cutoffs").tolist()
        self.cutoffs_ = low, high
        self.score_ = None
        if learned["score"] is not None:
            rates, multipliers, thresholds, ends = learned["score"]
            size = len(rates)
            self.score_ = NestedScore(
                _finite(rates, (size,), "rates"),
                _finite(multipliers, (size, masses.size), "multipliers"),
                _finite(thresholds, (size,), "thresholds"),
                np.array([range(size)[as_count(end, "ends", at_least=0)] for end in ends[:2]]),
            )
        self.scale_ = None
        if learned["scale"] is not None:
            knots, heights = learned["scale"]
            columns = _finite(knots, (len(knots),), "knots"), _finite(heights, (len(knots),), "values")
            self.scale_ = checked_map(*columns, (0.0, 1.0))
        for name in _MEASURED:
            setattr(self, name, as_number(learned[name], name))
        self.promise_ = str(learned["promise"])


def _out_of_reach(bound: Bound, least: float, sizes: dict[Group, int]) -> OutOfReachError:
    """Return the error for a bound that no repair of the people fitted on meets, and whom chance keeps off.

    `sizes` are the people compared of each group.
    """
    message = (
        f"{bound.setting} is out of reach: group-blind scores leave {bound.value(least):.4f} at best "
        f"among the people fitted on; use {bound.reachable(least)}, more rows, or a "
        "group-aware repair, which needs the group at prediction"
    )
    return OutOfReachError("; ".join([message, *_of_chance(bound, sizes)]))


def _of_chance(bound: Bound, sizes: dict[Group, int]) -> Iterator[str]:
    """Say of each group whom chance keeps off the bound what it makes, and how many people it needs."""
    if bound.epsilon > 0.0 or bound.min_ratio is not None:
        return
    noisy = noisy_groups(sizes, bound.max_mcdp)
    if len(noisy) == len(sizes) == 2:  # what is made of one is made of the other
        del noisy[max(noisy, key=lambda name: sizes[name])]
    for name, (noise, needed) in noisy.items():
        share = f"chance alone makes about {noise:.4f} of it for group {group_text(name)}, of {sizes[name]:,}"
        yield share if needed is None else f"{share}; the bound needs about {needed:,} people of it"


def noisy_groups(sizes: dict[Group, int], max_mcdp: float) -> dict[Group, tuple[float, int | None]]:
    """Return the groups for which chance alone exceeds a bound: what it makes of MCDP(0), and who is needed.

    It is expected between a group and everyone else where they do not differ, in large samples. No size is
    enough where everyone else are too few.
    """
    kolmogorov, total = math.sqrt(0.5 * math.pi) * math.log(2.0), sum(sizes.values())
    noisy: dict[Group, tuple[float, int | None]] = {}
    for name, size in sizes.items():
        noise = kolmogorov * math.sqrt(1.0 / size + 1.0 / (total - size))
        if not within_bound(noise, max_mcdp):
            left = (max_mcdp / kolmogorov) ** 2 - 1.0 / (total - size)
            noisy[name] = noise, math.ceil(1.0 / left) if left > 0.0 else None
    return noisy


def _finite(values: Any, shape: tuple[int, ...], name: str) -> FloatArray:
    """Return numbers from a file as an array of a shape, or raise a ValueError."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise InputError(f"must be finite numbers of shape {shape}, got shape {array.shape}", name)
    return array


class Predictors(NamedTuple):
    """Models of the class and, for each label compared, of the group's code; their means predict."""

    estimators: list[Any]
    group_estimators: tuple[list[Any], ...]
    n_groups: int

    def predict(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return P(y = 1 | x), and P(group | x) of shape (n_labels, n_samples, n_groups)."""
        table = SharedTable(X)
        scores = _mean_probabilities(self.estimators, table, 2)[:, 1]
        groups = [_mean_probabilities(models, table, self.n_groups) for models in self.group_estimators]
        return scores, np.stack(groups)


def _mean_probabilities(models: list[Any], table: SharedTable, n_classes: int) -> FloatArray:
    """Return the means of what several models predict."""
    return np.asarray(np.mean([_probabilities(model, table, n_classes) for model in models], axis=0))


def _probabilities(model: Any, table: SharedTable, n_classes: int) -> FloatArray:
    """Return a model's probabilities of classes, 0 for one that it does not know."""
    found = np.asarray(model.predict_proba(table.of(model)), dtype=np.float64)
    if found.shape[1] == n_classes:
        return found
    probabilities = np.zeros((len(found), n_classes))
    probabilities[:, model.classes_] = found
    return probabilities


def blind_rows(rows: TrainingRows, scores: FloatArray, probabilities: FloatArray) -> BlindRows:
    """Return rows with their predictions, as the repair takes them."""
    return BlindRows(scores, probabilities, rows.labels.astype(np.int64), rows.groups, rows.weights)


def cross_fit(
    pair: tuple[Any, Any], rows: TrainingRows, labels: tuple[int | None, ...], folds: IntArray
) -> tuple[Predictors, BlindRows]:
    """Return fitted copies of a pair of classifiers, and what models that did not see a row predict for it.

    That of the group is fitted among the people of each label.
    """
    n_groups, of_groups, tables = len(rows.group_names), list[list[Any]](), list[FloatArray]()
    everyone = np.ones(rows.size, dtype=bool)
    with Forecast(1 + len(labels), "fitting models") as work:
        estimators, scores = _fit_without_folds(pair[0], rows, everyone, folds)
        work.advance()
        for label in labels:
            among = everyone if label is None else rows.labels == label
            models, table = _fit_without_folds(pair[1], rows, among, folds, n_groups)
            of_groups.append(models)
            tables.append(table)
            work.advance()
    predicted = blind_rows(rows, scores[:, 1], np.stack(tables))
    return Predictors(estimators, tuple(of_groups), n_groups), predicted


def _fit_without_folds(
    estimator: Any, rows: TrainingRows, among: NDArray[np.bool_], folds: IntArray, n_groups: int = 0
) -> tuple[list[Any], FloatArray]:
    """Return models of the class or the group, each fitted without a fold, and what they predict for it.

    The default model does that itself, so that it may choose by all folds together.
    """
    n_classes = n_groups or 2
    models, probabilities = list[Any](), np.zeros((rows.size, n_classes))
    for fold in range(int(folds.max()) + 1):
        indexes = np.flatnonzero(among & (folds != fold))
        if n_groups and np.unique(rows.groups[indexes]).size < 2:
            raise ValueError("each fold must leave rows of two groups or more to fit the group_estimator on")
        if hasattr(estimator, "cross_fit"):
            continue
        part, inside = rows.take(indexes), np.flatnonzero(folds == fold)
        models.append(fit_wrapped(estimator, part.of_groups() if n_groups else part))
        table = SharedTable(rows.take(inside).features)
        probabilities[inside] = _probabilities(models[-1], table, n_classes)
    if hasattr(estimator, "cross_fit"):
        models, weights = [clone(estimator)], np.where(among, rows.weights, 0.0)
        targets = rows.groups if n_groups else rows.targets
        probabilities = models[0].cross_fit(rows.features, targets, folds, weights)
    return models, probabilities


class GroupBlindClassifier(RepairingClassifier):
    """The most accurate scores within a bound that are made of features alone.

    Two classifiers, of the class and of the group, predict for rows that they were not fitted on, and a
    `GroupBlindRepair` finds the best scores under the bound. The group is needed to fit and not to predict.

    Parameters
    ----------
    estimator, group_estimator : classifier, optional
        Predict the class and the group. By default each is a logistic regression blended with LightGBM's
        trees, as much of either as the rows in other folds ask for; it takes texts and missing values. Their
        probabilities should be calibrated: the repair takes them at their word when it trades positives
        for parity, though never when it measures MCDP.
    max_mcdp, epsilon, confidence, criterion, selection_rates, min_ratio, min_group_size
        The bound and what it holds for, as in `GroupBlindRepair`. For a criterion that compares people by
        label, a group estimator is fitted among the people of each label.
    cv : int
        The number of folds. Each classifier is fitted without one fold and predicts for it; new rows get the
        mean of what those of all folds predict.
    validation_fraction : float
        The share of the rows that is held out where a `confidence` is asked for, or more, as in
        `GroupBlindRepair`.
    random_state : int, Generator or None
        The same seed gives the same folds and held-out rows; it seeds the default trees too.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes; scores are probabilities of the second.
    predictors_ : Predictors
        The fitted classifiers, of the class and of the group.
    repair_ : GroupBlindRepair
        The fitted repair.
    groups_, left_out_, mcdp_, promise_
        Those of the repair; each person counts with the score of models that did not see them.

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

    _unsaved: ClassVar[dict[str, Any]] = {"estimator": None, "group_estimator": None}
    _libraries = ("lightgbm",)
    repair_: GroupBlindRepair

    def __init__(
        self,
        estimator: Any = None,
        group_estimator: Any = None,
        *,
        max_mcdp: float = 0.05,
        epsilon: float = 0.0,
        confidence: float | None = None,
        criterion: Criterion = "demographic_parity",
        selection_rates: tuple[float, float] | None = None,
        min_ratio: float | None = None,
        min_group_size: int = 30,
        cv: int = 5,
        validation_fraction: float = 0.3,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.group_estimator = group_estimator
        self.max_mcdp = max_mcdp
        self.epsilon = epsilon
        self.confidence = confidence
        self.criterion = criterion
        self.selection_rates = selection_rates
        self.min_ratio = min_ratio
        self.min_group_size = min_group_size
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @property
    def groups_(self) -> tuple[Group, ...]:
        """All groups."""
        return self.repair_.groups_

    @property
    def left_out_(self) -> tuple[Group, ...]:
        """The groups too small to take part in the bound."""
        return self.repair_.left_out_

    @property
    def mcdp_(self) -> float:
        """MCDP(epsilon) of the people fitted on, each scored by models that did not see them."""
        return self.repair_.mcdp_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        estimators = [one for one in (self.estimator, self.group_estimator) if one is not None]
        inputs = [get_tags(one).input_tags for one in estimators]
        tags.input_tags.allow_nan = all(one.allow_nan for one in inputs)
        tags.input_tags.sparse = len(inputs) == 2 and all(one.sparse for one in inputs)
        return tags

    def _feature_reader(self) -> Any:
        return self.predictors_.estimators[0]

    def _check_all(self) -> Bound:
        bound = self._new_repair(GroupBlindRepair)._check_all()
        check_wrapped(estimator=self.estimator, group_estimator=self.group_estimator)
        as_count(self.cv, "cv", at_least=2)
        return bound

    def _prepare(self, rows: TrainingRows) -> TrainingRows:
        if self.estimator is not None and self.group_estimator is not None:
            return rows
        return rows._replace(features=with_categories(rows.features))

    def _learn(self, rows: TrainingRows) -> None:
        bound, seed, held_out = Bound.of(self), as_seed(self.random_state), None
        if bound.confidence is not None:
            least, most = self.validation_fraction, _MOST_HELD_OUT
            share = bound.share_held_out(least, rows.groups, rows.labels, most=most)
            rows, held_out = rows.hold_out(share, seed, by_class=bound.by_class)
        self._compared(rows if held_out is None else held_out)
        fitted, tested = self._fit_predictors(rows, seed), None
        if held_out is not None:
            tested = blind_rows(held_out, *self.predictors_.predict(held_out.features))
        self.repair_ = self._new_repair(GroupBlindRepair)._fit_rows(fitted, tested, rows.group_names)
        self.classes_ = rows.classes

    def _compared(self, rows: TrainingRows) -> tuple[int, ...]:
        """Return the codes of the groups that take part, or raise a ValueError before anything is fitted."""
        sizes = least_sizes(rows.groups, rows.labels.astype(np.int64), self.criterion, len(rows.group_names))
        return compared_groups(sizes, self.min_group_size)

    def _fit_predictors(self, rows: TrainingRows, seed: int) -> BlindRows:
        """Fit the classifiers, and return the rows with what the unseen folds' models predict."""
        estimator, group_estimator = (
            _stock_model(seed) if one is None else one for one in (self.estimator, self.group_estimator)
        )
        folds = assign_folds(2 * rows.groups + rows.labels.astype(np.int64), self.cv, seed)
        labels = Comparison(self.criterion).labels
        self.predictors_, predicted = cross_fit((estimator, group_estimator), rows, labels, folds)
        return predicted

    def _predict(self, X: Any) -> FloatArray:
        return self.repair_._repaired(*self.predictors_.predict(X))

    def _scores(self, rows: TrainingRows) -> FloatArray:
        return self._predict(rows.features)

    def _dump(self) -> tuple[dict[str, Any], Files]:
        models, of_groups, _ = self.predictors_
        learned = {**dump_classes(self.classes_), "models": [len(models), len(of_groups[0])]}
        return learned, dump_parts(
            estimator=models,
            group_estimator=[one for of_label in of_groups for one in of_label],
            repair=self.repair_,
        )

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        check_wrapped(estimator=self.estimator, group_estimator=self.group_estimator)
        self.classes_ = restore_classes(learned, two=True)
        self.repair_ = self._restore_repair(files, GroupBlindRepair)
        n_labels, n_groups = len(self.repair_.features_.labels), len(self.groups_)
        n_models, n_of_groups = (as_count(count, "models") for count in learned["models"])
        models = [parse_part(files, f"estimator/{place}") for place in range(n_models)]
        places = np.arange(n_labels * n_of_groups).reshape(n_labels, n_of_groups).tolist()
        of_groups = tuple([parse_part(files, f"group_estimator/{one}") for one in row] for row in places)
        for codes in (one.classes_.tolist() for of_label in of_groups for one in of_label):
            if not set(codes) <= set(range(n_groups)):
                raise InputError(f"must predict codes below {n_groups}, got {codes}", "group_estimator")
        self.predictors_ = Predictors(models, of_groups, n_groups)


def _stock_model(seed: int) -> Any:
    """Return the model that predicts by default."""
    require("lightgbm", extra="boost")
    from localparity.models.trees._stock import StockModel

    return StockModel(random_state=seed)
