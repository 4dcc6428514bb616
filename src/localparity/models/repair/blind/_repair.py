"""Scores brought within a bound where the group is unknown at prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_is_fitted

from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, IntArray, Seed
from localparity._validation import (
    as_choice,
    as_count,
    as_epsilon,
    as_fraction,
    as_number,
    as_probability,
    as_scores,
)
from localparity.counts import Comparison
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._within import within_bound
from localparity.models._copies import without_copies
from localparity.models._fitted_on import describe_rows
from localparity.models._folder import Files, FolderMixin, plain, restore_groups
from localparity.models._rows import as_seed
from localparity.models._sequence import accept_in_order, upper_bound
from localparity.models.repair._promise import NAMES
from localparity.models.repair._score_map import ScoreMap
from localparity.models.repair._sql import as_dialect
from localparity.models.repair.blind._features import (
    BlindRows,
    GroupFeatures,
    as_group_probabilities,
    compared_curves,
    compared_predictions,
    least_sizes,
)
from localparity.models.repair.blind._nested_score import Dual, NestedScore
from localparity.models.repair.blind._output import OUTPUTS, calibrated_scale, original_scale
from localparity.models.repair.blind._promise import out_of_reach, promise_sentence, untested
from localparity.models.repair.blind._search import Trial, find_within
from localparity.models.repair.blind._sql import blind_sql
from localparity.models.repair.blind._stored import parse_masses, parse_scale, parse_score
from localparity.predictions import check_predictions

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
            raise ValueError(
                f"at least two groups must have min_group_size={self.min_group_size} of the people compared, "
                f"got groups of {', '.join(f'{size:,}' for size in least)}"
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
