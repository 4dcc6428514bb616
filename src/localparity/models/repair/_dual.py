"""A score whose every threshold selects the best set that a bound on the groups' selection rates allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from localparity._progress import foretold
from localparity._types import ArrayLike, Criterion, FloatArray, Group, IntArray
from localparity._validation import Grouping, InputError, as_numbers, check_rows, setting
from localparity.counts import Comparison
from localparity.metrics._gap_curve import GapCurve, gap_curves
from localparity.metrics._within import within_bound
from localparity.models._rows import TrainingRows, coded_predictions
from localparity.models.repair import _kernels
from localparity.predictions import Predictions


class BlindRows(NamedTuple):
    """Scores P(y = 1 | x), P(group | x) for each label compared, and the true labels, groups and weights.

    `probabilities` has shape (n_labels, n_rows, n_groups): for a criterion that compares people by label they
    are probabilities given that label. Labels that nothing needs are 0.
    """

    scores: FloatArray
    probabilities: FloatArray
    labels: IntArray
    groups: IntArray
    weights: FloatArray

    def split(
        self, fraction: float, seed: int, names: tuple[Group, ...], *, by_class: bool
    ) -> tuple[IntArray, IntArray]:
        """Return the indexes of the rows to fit on and of those held out, as `TrainingRows.split` does."""
        labels, classes = self.labels.astype(np.float64), np.array([0, 1])
        rows = TrainingRows(None, labels, self.groups, self.weights, classes, names)
        return rows.split(fraction, seed, by_class=by_class)

    def take(self, indexes: IntArray) -> BlindRows:
        """Return some of the rows."""
        labels, groups, weights = self.labels[indexes], self.groups[indexes], self.weights[indexes]
        return BlindRows(self.scores[indexes], self.probabilities[:, indexes], labels, groups, weights)


class GroupFeatures(NamedTuple):
    """What the multipliers of a group-blind score are applied to, one column for each constraint.

    The column of a group is P(label, group | x) / P(label, group): the density of the group's people who are
    compared, relative to that of everyone. Its mean over everyone is 1.
    """

    labels: tuple[int | None, ...]
    compared: tuple[int, ...]
    masses: FloatArray

    @classmethod
    def learn(
        cls, rows: BlindRows, labels: tuple[int | None, ...], compared: tuple[int, ...]
    ) -> GroupFeatures:
        """Return the features of the groups compared, with the masses that the rows' probabilities have."""
        plain = cls(labels, compared, np.ones(len(labels) * len(compared)))
        masses = np.average(plain(rows.scores, rows.probabilities), axis=0, weights=rows.weights)
        return plain._replace(masses=np.maximum(masses, np.finfo(np.float64).tiny))

    def __call__(self, scores: FloatArray, probabilities: FloatArray) -> FloatArray:
        """Return the features of rows, of shape (n_rows, n_constraints)."""
        chances = {None: np.ones_like(scores), 0: 1.0 - scores, 1: scores}
        columns = [
            chances[label] * table[:, group]
            for label, table in zip(self.labels, probabilities, strict=True)
            for group in self.compared
        ]
        return np.column_stack(columns) / self.masses

    @property
    def strata(self) -> IntArray:
        """The index of each constraint's label."""
        return np.repeat(np.arange(len(self.labels)), len(self.compared))

    def constraints(self, rows: BlindRows) -> IntArray:
        """Return the constraint that each row counts for; -1 for none."""
        among = np.full(int(rows.groups.max()) + 1, -1)
        among[list(self.compared)] = np.arange(len(self.compared))
        groups = among[rows.groups]
        if self.labels == (None,):
            return groups
        strata = np.array([self.labels.index(label) if label in self.labels else -1 for label in (0, 1)])
        strata = strata[rows.labels]
        return np.where((groups >= 0) & (strata >= 0), strata * len(self.compared) + groups, -1)


def as_group_probabilities(
    values: ArrayLike, rows: int, groups: tuple[Group, ...], n_labels: int
) -> FloatArray:
    """Return probabilities of shape (n_labels, n_rows, n_groups), normalised.

    One table serves all labels; two of them, one for each label, may be given where two are compared.
    """
    name = "group_probabilities"
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"must be numbers: {error}", name) from error
    if array.ndim == 2:
        array = np.broadcast_to(array, (n_labels, *array.shape))
    if array.ndim != 3 or array.shape[2] != len(groups) or array.shape[0] != n_labels:
        listed = ", ".join(map(repr, groups))
        raise InputError(f"must have a column for each of {listed}, got shape {np.shape(values)}", name)
    check_rows(name, array.shape[1], rows, "scores")
    sums = array.sum(axis=2)
    as_numbers(sums.ravel(), name)
    wrong = (array.min(axis=2) < 0.0) | (np.abs(sums - 1.0) > 1e-6)
    if wrong.any():
        label, row = np.argwhere(wrong)[0]
        raise InputError(f"must be >= 0 and sum to 1, got {array[label, row].tolist()} at row {row}", name)
    return np.asarray(array / sums[:, :, None])


def least_sizes(groups: IntArray, labels: IntArray, criterion: Criterion, n_groups: int) -> IntArray:
    """Return the size of each group among the people compared; with two labels, of the rarer one."""
    sizes = [
        np.bincount(groups if label is None else groups[labels == label], minlength=n_groups)
        for label in Comparison(criterion).labels
    ]
    return np.asarray(np.min(sizes, axis=0))


def compared_groups(sizes: IntArray, min_group_size: int) -> tuple[int, ...]:
    """Return the codes of the groups that are large enough to take part, two at least."""
    codes = np.flatnonzero(sizes >= min_group_size)
    if codes.size < 2:
        raise InputError(
            f"at least two groups must have {setting(min_group_size=min_group_size)} of the people compared, "
            f"got groups of {', '.join(f'{size:,}' for size in sizes)}"
        )
    return tuple(codes.tolist())


def compared_curves(
    rows: BlindRows, scores: FloatArray, compared: tuple[int, ...], criterion: Criterion
) -> list[GapCurve]:
    """Return the gap curves of rows with these scores whose groups are compared."""
    return gap_curves(compared_predictions(rows, scores, compared), Comparison(criterion))


def compared_predictions(
    rows: BlindRows, scores: FloatArray, compared: tuple[int, ...], *, always_weighted: bool = False
) -> Predictions:
    """Return rows with these scores whose groups are compared; weights that are all 1 are left out."""
    among = np.isin(rows.groups, compared)
    weighted = always_weighted or bool((rows.weights != 1.0).any())
    codes = np.searchsorted(compared, rows.groups[among]).astype(np.min_scalar_type(len(compared)))
    weights = rows.weights[among] if weighted else None
    labels = rows.labels[among].astype(np.uint8)
    return coded_predictions(scores[among], Grouping(codes, compared), labels, weights)


RATES: FloatArray = np.concatenate(
    [
        np.geomspace(5e-4, 0.1, 40, endpoint=False),
        np.linspace(0.1, 0.97, 65, endpoint=False),
        1.0 - np.geomspace(0.03, 2e-3, 16),
    ]
)
"""The selection rates whose best sets make up a score: dense where few are, or few are not, selected."""

_BANDWIDTH = 0.01
_ROWS_WITHIN = 30
_SMOOTHING = 1.5
_TOLERANCE = 2e-4


class NestedScore(NamedTuple):
    """For each selection rate the multipliers and the threshold of its set.

    At rate q, rows with ``score - multipliers(q) . features > threshold(q)`` are selected. Between two rates
    both change linearly. The sets of different rates need not be nested; a row's rank is the share of rates
    at which it is selected, the increasing rearrangement of its selections, and ranks' sets are nested.

    `ends` are the places of the lowest and the highest rate that a bound holds at. Above them everyone whom
    the highest selects is selected too, below them nobody whom the lowest does not select.
    """

    rates: FloatArray
    multipliers: FloatArray
    thresholds: FloatArray
    ends: IntArray

    def __call__(self, scores: FloatArray, features: FloatArray) -> FloatArray:
        """Return the rank of each row, in [0, 1]."""
        return _kernels.rank_rows(scores, features, *self)


class Dual(NamedTuple):
    """The problems of all rates: scores, features, and what counts for which constraint.

    At rate q the most positives are selected by the set whose multipliers and threshold minimise the dual::

        E[(score - threshold - multipliers . features)+] + q threshold + bound sum(multipliers+)

    where the multipliers of each label sum to 0. Its derivatives, the groups' selected shares, are the mean
    of the share counted, which has no bias, and that by the predicted probabilities, which has less noise.
    The bound of a rate is what a repair aims for times that rate's `scale`, NaN where there is no bound.
    """

    scores: FloatArray
    features: FloatArray
    places: IntArray
    shares: FloatArray
    weights: FloatArray
    strata: IntArray
    scale: FloatArray

    @classmethod
    def of(
        cls,
        rows: BlindRows,
        features: GroupFeatures,
        selection_rates: tuple[float, float] = (0.0, 1.0),
        *,
        relative: bool = False,
    ) -> Dual:
        """Return the problems of rows, at selection rates between two.

        Relative bounds are in proportion to the rate: where all rates are within (1 - r) times their mean,
        their ratio is r at least.
        """
        places = features.constraints(rows)
        counted = places >= 0
        totals = np.bincount(places[counted], rows.weights[counted], minlength=features.masses.size)
        shares = np.where(counted, rows.weights / np.where(counted, totals[places], 1.0), 0.0)
        columns = features(rows.scores, rows.probabilities)
        low, high = np.searchsorted(RATES, selection_rates).tolist()
        scale = np.full(RATES.size, np.nan)
        inside = slice(max(low - 1, 0), high + 1)
        scale[inside] = RATES[inside] if relative else 1.0
        return cls(rows.scores, columns, places, shares, rows.weights, features.strata, scale)

    def widest(self) -> float:
        """Return what to aim for so that nothing is repaired, from there on."""
        order = np.argsort(-self.scores, kind="stable")
        ends = np.flatnonzero(np.diff(self.scores[order], append=-1.0))
        above = np.cumsum(self.weights[order])[ends] / self.weights.sum()
        scale, widest = np.interp(above, RATES, self.scale), 0.0
        for stratum in np.unique(self.strata):
            selected = [
                np.cumsum(np.where(self.places == place, self.shares, 0.0)[order])[ends]
                for place in np.flatnonzero(self.strata == stratum)
            ]
            widest = max(widest, float(np.nanmax(np.ptp(selected, axis=0) / scale, initial=0.0)))
        return widest

    def solve(self, bound: float, start: FloatArray | None = None) -> NestedScore:
        """Return the score whose groups' selection rates differ by at most `bound`, scaled, at every rate.

        The multipliers are smoothed over the rates, whose neighbours differ by noise; `start` are those of
        another bound.
        """
        multipliers = self.solve_rates(bound, start)
        bounded = np.flatnonzero(~np.isnan(self.scale))
        inside = slice(bounded[0], bounded[-1] + 1)
        multipliers[inside] = gaussian_filter1d(multipliers[inside], _SMOOTHING, axis=0, mode="nearest")
        return self._thresholds(multipliers, inside.start, inside.stop - 1)

    def solve_rates(self, bound: float, start: FloatArray | None = None) -> FloatArray:
        """Return each rate's multipliers.

        The rates are solved from both ends to the middle, each from the solution before it, or from `start`.
        At the ends almost nobody, or everybody, is selected.
        """
        sizes = np.bincount(self.places[self.places >= 0], minlength=self.features.shape[1])
        tolerance = max(_TOLERANCE, 0.5 / max(int(sizes.min()), 1))
        widest = max(_BANDWIDTH, _ROWS_WITHIN / self.scores.size)
        multipliers = np.zeros((RATES.size, self.features.shape[1]))
        middle = int(np.searchsorted(RATES, 0.5))
        order = [*range(middle), *range(RATES.size - 1, middle - 1, -1)]
        nearest = multipliers[0]
        for index in foretold(order, RATES.size, "solving selection rates"):
            rate, limit = float(RATES[index]), bound * float(self.scale[index])
            if index == RATES.size - 1:
                nearest = multipliers[index]
            if limit < 1.0:
                bandwidth = min(widest, 0.5 * rate, 0.5 * (1.0 - rate))
                first = nearest if start is None else start[index]
                nearest = _kernels.solve_rate(*self[:-1], first, rate, bandwidth, limit, tolerance)
                multipliers[index] = nearest
        return multipliers

    def _thresholds(self, multipliers: FloatArray, first: int, last: int) -> NestedScore:
        """Add the thresholds, and the rates 0 and 1 at which nobody and everybody is selected.

        Outside of the first and the last place with a bound, those whom these select go before all others.
        """
        thresholds, total = np.empty(RATES.size), self.weights.sum()
        selected: dict[int, NDArray[np.bool_]] = {}
        for place in (*range(first, last + 1), *range(first), *range(last + 1, RATES.size)):
            values = _kernels.margins(self.scores, self.features, multipliers[place])
            ahead = 0.0
            if not first <= place <= last:
                ahead = 1.0 + float(np.ptp(values))
                values += np.where(selected[first if place < first else last], ahead, 0.0)
            threshold = _kernels.find_threshold(values, self.weights, RATES[place] * total)
            if place in (first, last):
                selected[place] = values > threshold
            thresholds[place] = threshold - (ahead if place < first else 0.0)
        farthest = 1.0 + np.abs(multipliers).max() * self.features.sum(axis=1).max()
        ends = first + 1 if first else 0, last + 1 if last < RATES.size - 1 else RATES.size + 1
        return NestedScore(
            np.concatenate([[0.0], RATES, [1.0]]),
            np.vstack([multipliers[:1], multipliers, multipliers[-1:]]),
            np.concatenate([[farthest], thresholds, [-farthest]]),
            np.array(ends),
        )


_TRIALS = 6
_CLOSE = 0.02
_SHARES = (0.0, 0.03, 0.06, 0.12, 0.25, 0.5)


class AimedScore(NamedTuple):
    """What a repair aimed for, the MCDP that it left, and its score; None where nothing is repaired."""

    aim: float
    mcdp: float
    score: NestedScore | None


Measure = Callable[[NestedScore], float]


def find_within(
    dual: Dual, measure: Measure, limit: float, plain: AimedScore
) -> tuple[AimedScore | None, float]:
    """Return the weakest repair tried that is within the bound, if there is one, and the least MCDP of all.

    MCDP grows almost linearly with what a repair aims for: the search aims for the bound, then ever farther
    below it, and once within it where a line through the nearest tries on both sides meets it. `plain` is the
    aim from which on nothing is repaired, and MCDP there.
    """
    low: AimedScore | None = None
    high, best = plain, None
    aim, start = min(limit, plain.aim), None
    for trial in range(_TRIALS):
        score = dual.solve(aim, start)
        tried = AimedScore(aim, measure(score), score)
        start = score.multipliers[1:-1]
        if within_bound(tried.mcdp, limit):
            low = tried
            if best is None or aim > best.aim:
                best = tried
            if tried.mcdp >= (1.0 - _CLOSE) * limit:
                break
        else:
            high = tried
            if aim == 0.0:
                break
        aim = _next_aim(low, high, limit, trial)
    return (best, best.mcdp) if best is not None else _try_all(dual, measure, limit, plain)


def _try_all(
    dual: Dual, measure: Measure, limit: float, plain: AimedScore
) -> tuple[AimedScore | None, float]:
    """Return the same of aims that do not depend on the bound: what one leaves, any higher bound attains."""
    best, least, start = None, plain.mcdp, None
    for share in _SHARES:
        score = dual.solve(share * plain.aim, start)
        tried = AimedScore(share * plain.aim, measure(score), score)
        start = score.multipliers[1:-1]
        least = min(least, tried.mcdp)
        if within_bound(tried.mcdp, limit):
            best = tried
    return best, least


def _next_aim(low: AimedScore | None, high: AimedScore, limit: float, trial: int) -> float:
    """Return where a line between two tries meets the bound, or an aim below the lowest try."""
    if low is None:
        return max(high.aim - 1.25 * 2.0**trial * (high.mcdp - limit), 0.0)
    rise = high.mcdp - low.mcdp
    part = (limit - low.mcdp) / rise if rise > 0.0 else 0.5
    return low.aim + min(max(part, 0.1), 0.9) * (high.aim - low.aim)
