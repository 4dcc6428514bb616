"""The frontier: the best average precision that group-blind scores reach at each bound."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from localparity._text import percent
from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, IntArray, Seed
from localparity._validation import as_count, as_epsilon, as_fraction, as_probability
from localparity.counts import Comparison
from localparity.models._rows import TrainingRows, as_seed
from localparity.models.repair._dual import (
    BlindRows,
    Dual,
    GroupFeatures,
    compared_curves,
    compared_predictions,
)
from localparity.models.repair._group_blind import GroupBlindClassifier, blind_rows
from localparity.models.repair._maps import original_scale
from localparity.uncertainty import permutation_test
from localparity.uncertainty._bands import check_resamples
from localparity.uncertainty._resampling import Draws, critical_value, repeat

if TYPE_CHECKING:
    from localparity.report.displays._models import FrontierDisplay


@dataclass(frozen=True)
class Frontier:
    """The best average precision that group-blind scores reach at each bound, on some people.

    A yardstick for other models measured on the same people. It is an estimate from below: better models of
    the class and of the group reach more. Models that look at the group at prediction may lie beyond it.

    Attributes
    ----------
    max_mcdp : tuple of float
        The bounds that the scores aim for.
    mcdp, average_precision : tuple of float
        MCDP(epsilon) and average precision of the scores, among people they were not fitted on.
    low, high : tuple of float
        A band around the average precision. With probability `confidence` it covers, at all bounds together,
        that of the same scores in the population, if the people are an independent sample of it. It does not
        cover how the fitted scores and their MCDP vary.
    noise_floor : float
        MCDP(epsilon) expected under parity among these people.
    epsilon, criterion, confidence
        The half-width of the windows, who is compared, and the confidence of the band.
    rows, left_out : int and tuple
        The number of people measured, and the groups too small to take part.

    Examples
    --------
    >>> bounds, reached, band = (0.0, 0.1), (0.7, 0.78), ((0.68, 0.76), (0.72, 0.8))
    >>> frontier = Frontier(bounds, (0.02, 0.1), reached, *band, 0.02, 0.0, "demographic_parity", 0.95, 2000)
    >>> frontier.describe(0.06, 0.71)
    'gives up 3.0 points of AP more than needed at its MCDP'
    """

    max_mcdp: tuple[float, ...]
    mcdp: tuple[float, ...]
    average_precision: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    noise_floor: float
    epsilon: float
    criterion: Criterion
    confidence: float
    rows: int
    left_out: tuple[Group, ...] = ()

    @property
    def least_mcdp(self) -> float:
        """The least MCDP(epsilon) that is reached."""
        return min(self.mcdp)

    def average_precision_at(self, max_mcdp: float) -> float:
        """Return the best average precision within a bound, on lines between what was reached.

        Parameters
        ----------
        max_mcdp : float
            The bound. Below `least_mcdp`, and above the MCDP of the plain scores, the nearest counts.

        Returns
        -------
        float
        """
        return float(np.interp(as_fraction(max_mcdp, "max_mcdp"), *self.envelope()[:2]))

    def least_mcdp_at(self, average_precision: float) -> float | None:
        """Return the least MCDP at which an average precision is reached, on lines between what was reached.

        Parameters
        ----------
        average_precision : float
            What to reach.

        Returns
        -------
        float or None
            None where it is not reached.
        """
        mcdp, best, *_ = self.envelope()
        target = as_fraction(average_precision, "average_precision")
        if target > best[-1]:
            return None
        place = int(np.searchsorted(best, target))
        return float(
            mcdp[0]
            if place == 0
            else np.interp(target, best[place - 1 : place + 1], mcdp[place - 1 : place + 1])
        )

    def shortfall(self, mcdp: float, average_precision: float) -> float:
        """Return the average precision that a model gives up beyond what its MCDP needs.

        Parameters
        ----------
        mcdp, average_precision : float
            MCDP(epsilon) and average precision of the model on the people of the frontier.

        Returns
        -------
        float
            Below 0 where the model is better than the frontier.
        """
        return self.average_precision_at(mcdp) - as_fraction(average_precision, "average_precision")

    def describe(self, mcdp: float, average_precision: float) -> str:
        """Return the shortfall in words.

        Parameters
        ----------
        mcdp, average_precision : float
            As in `shortfall`.

        Returns
        -------
        str
        """
        points = round(100.0 * self.shortfall(mcdp, average_precision), 1)
        if mcdp < self.least_mcdp:
            than = f"the strongest group-blind repair, which leaves an MCDP of {percent(self.least_mcdp)}"
        else:
            than = "needed at its MCDP"
        if points > 0.0:
            return f"gives up {points:.1f} points of AP more than {than}"
        if points < 0.0:
            than = than if mcdp < self.least_mcdp else "the frontier at its MCDP"
            return f"has {-points:.1f} points of AP more than {than}"
        return f"gives up no more AP than {than}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def plot(self, ax: Any = None) -> FrontierDisplay:
        """Draw average precision against MCDP, with the band.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; None makes new ones.

        Returns
        -------
        FrontierDisplay
        """
        from localparity.report.displays._models import FrontierDisplay

        return FrontierDisplay(self).plot(ax)

    def __repr__(self) -> str:
        ends = [(self.mcdp[place], self.average_precision[place]) for place in (0, -1)]
        told = " to ".join(f"AP {100 * ap:.1f}% at {100 * mcdp:.1f} points" for mcdp, ap in ends)
        return f"Frontier({told}, {self.rows:,} people)"

    def _repr_html_(self) -> str:
        """The frontier for a notebook."""
        from localparity.report.page._notebook import frontier_html

        return frontier_html(self)

    def envelope(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return MCDP in increasing order, the best average precision up to it, and the ends of its band."""
        order = np.argsort(self.mcdp, kind="stable")
        best, low, high = np.maximum.accumulate(
            np.array([self.average_precision, self.low, self.high])[:, order], axis=1
        )
        return np.asarray(self.mcdp)[order], best, low, high


def frontier(
    X: Any,
    y: ArrayLike,
    *,
    sensitive_features: Groups,
    sample_weight: ArrayLike | None = None,
    estimator: Any = None,
    group_estimator: Any = None,
    epsilon: float = 0.0,
    criterion: Criterion = "demographic_parity",
    n_bounds: int = 12,
    cv: int = 5,
    confidence: float = 0.95,
    n_resamples: int = 200,
    random_state: Seed = None,
) -> Frontier:
    """Return the best average precision that group-blind scores reach at each bound on MCDP(epsilon).

    The class and the group are predicted once for every row, by classifiers that were not fitted on it.
    Repairs, as in `GroupBlindRepair` and from the strongest to none, are fitted on one half of the rows and
    score the other, and the other way round: no row is measured under a repair that was fitted on it.

    Parameters
    ----------
    X, y, sensitive_features, sample_weight
        The rows, their classes, groups and weights, as in `LocalParityClassifier.fit`.
    estimator, group_estimator, cv
        Predict the class and the group, and the number of folds, as in `GroupBlindClassifier`.
    epsilon : float
        The half-width of the windows. The scores are the best for epsilon 0, and measured at this one.
    criterion : str
        Who is compared, as in `mcdp`.
    n_bounds : int
        The number of bounds, from 0 to the gap of the plain scores.
    confidence : float
        The probability with which the band holds at all bounds together.
    n_resamples, random_state
        The number of resamples behind the band and the noise floor; the same seed gives the same frontier.

    Returns
    -------
    Frontier

    Examples
    --------
    >>> import localparity as lp
    >>> from sklearn.linear_model import LogisticRegression
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> plain = LogisticRegression(max_iter=1000)
    >>> frontier = lp.models.frontier(
    ...     census.data[["age", "education_years", "hours_per_week"]],
    ...     census.target,
    ...     sensitive_features=census.sensitive_features,
    ...     estimator=plain,
    ...     group_estimator=plain,
    ...     n_bounds=4,
    ...     random_state=0,
    ... )
    >>> frontier.average_precision_at(0.1) <= frontier.average_precision_at(0.3)
    True
    """
    settings = FrontierSettings(
        as_epsilon(epsilon),
        criterion,
        as_count(n_bounds, "n_bounds", at_least=2),
        as_probability(confidence),
        n_resamples,
        as_seed(random_state),
    )
    model = GroupBlindClassifier(
        estimator, group_estimator, criterion=criterion, cv=as_count(cv, "cv"), random_state=settings.seed
    )
    model._check_all()
    rows = model._prepare(model._as_rows(X, y, sensitive_features, sample_weight))
    compared, people = model._compared(rows), model._fit_predictors(rows, settings.seed)
    aims = path_aims(people, compared, criterion, settings.n_bounds)
    scores = np.empty((aims.size, people.scores.size))
    halves = rows.split(0.5, settings.seed)
    for one, other in (halves, halves[::-1]):
        scores[:, other] = score_path(aims, people.take(one), people.take(other), compared, criterion)
    left_out = tuple(name for code, name in enumerate(rows.group_names) if code not in compared)
    return settings.measure(aims, scores, people, compared, left_out)


def frontier_on(
    model: GroupBlindClassifier, training: TrainingRows, test: TrainingRows, settings: FrontierSettings
) -> Frontier:
    """Return the frontier of scores fitted on one part of the rows, measured on all groups of another."""
    model._check_all()
    compared, fitted = model._compared(training), model._fit_predictors(training, settings.seed)
    people = blind_rows(test, *model.predictors_.predict(test.features))
    aims = path_aims(fitted, compared, settings.criterion, settings.n_bounds)
    scores = score_path(aims, fitted, people, compared, settings.criterion)
    return settings.measure(aims, scores, people, tuple(range(len(test.group_names))))


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
    repaired, start = [], None
    for aim in aims[:-1].tolist():
        score = dual.solve(aim, start)
        start = score.multipliers[1:-1]
        scale = original_scale(score(fitted.scores, own), fitted.scores, fitted.weights)
        repaired.append(scale(score(scored.scores, columns)))
    return np.array([*repaired, scored.scores])


class FrontierSettings(NamedTuple):
    """How a frontier is measured."""

    epsilon: float
    criterion: Criterion
    n_bounds: int
    confidence: float
    n_resamples: int
    seed: int

    def measure(
        self,
        aims: FloatArray,
        scores: FloatArray,
        rows: BlindRows,
        compared: tuple[int, ...],
        left_out: tuple[Group, ...] = (),
    ) -> Frontier:
        """Return the frontier of scores, one row for each aim."""
        ranked = [_Ranking.of(row, rows.labels) for row in scores]
        precision = np.array([ranking.average_precision(rows.weights) for ranking in ranked])
        radius = self._radius(ranked, rows.weights, precision)
        curves = [compared_curves(rows, row, compared, self.criterion) for row in scores]
        null = permutation_test(
            compared_predictions(rows, scores[0], compared, always_weighted=True),
            epsilon=self.epsilon,
            criterion=self.criterion,
            n_resamples=self.n_resamples,
            random_state=self.seed,
        )
        return Frontier(
            tuple(aims.tolist()),
            tuple(max(curve.mcdp(self.epsilon) for curve in pairs) for pairs in curves),
            tuple(precision.tolist()),
            tuple(np.maximum(precision - radius, 0.0).tolist()),
            tuple(np.minimum(precision + radius, 1.0).tolist()),
            null.null_mean,
            self.epsilon,
            self.criterion,
            self.confidence,
            rows.scores.size,
            left_out,
        )

    def _radius(self, ranked: list[_Ranking], weights: FloatArray, precision: FloatArray) -> FloatArray:
        """Return how far average precision may be from the estimate, at all bounds together."""
        check_resamples(as_count(self.n_resamples, "n_resamples", at_least=0), self.confidence)

        def resample(rng: np.random.Generator) -> FloatArray:
            drawn = np.bincount(rng.integers(0, weights.size, weights.size), minlength=weights.size)
            return np.array([ranking.average_precision(weights * drawn) for ranking in ranked])

        deviations = repeat(resample, Draws(self.n_resamples, self.seed), len(ranked)) - precision
        spread = deviations.std(axis=0)
        largest = np.abs(deviations / np.where(spread > 0.0, spread, 1.0)).max(axis=1)
        return np.asarray(critical_value(largest, self.confidence) * spread)


class _Ranking(NamedTuple):
    """Rows from the highest score to the lowest, and where each score's rows end."""

    order: IntArray
    ends: IntArray
    positive: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, labels: IntArray) -> _Ranking:
        """Rank rows by their scores."""
        order = np.argsort(-scores, kind="stable")
        ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0.0, True))
        return cls(order, ends, labels[order].astype(np.float64))

    def average_precision(self, weights: FloatArray) -> float:
        """Return the average precision when rows have some weights."""
        ordered = weights[self.order]
        positives = np.cumsum(ordered * self.positive)[self.ends]
        selected = np.cumsum(ordered)[self.ends]
        precision = positives / np.where(selected > 0.0, selected, 1.0)
        return float(np.sum(np.diff(positives, prepend=0.0) * precision) / positives[-1])
