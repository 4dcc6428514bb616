"""Logistic loss and the smoothed maximal gap, as boosters take them: a gradient and a Hessian."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import combinations, pairwise
from os import cpu_count
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from localparity._types import ArrayLike, Criterion, FloatArray, Groups
from localparity._validation import (
    Grouping,
    InputError,
    as_epsilon,
    as_groups,
    as_labels,
    as_numbers,
    as_strength,
    as_temperature,
    as_vector,
    as_weights,
    check_indexes,
    check_rows,
)
from localparity.counts._comparison import Comparison, check_sizes
from localparity.models.trees import _kernels
from localparity.models.trees._smoothed_gap import Maximum, Smoother, largest, soft_maximum


class GroupCells(NamedTuple):
    """The cell of each row, a group or a group's rows of one label, and the pairs of cells compared.

    Rows that the criterion does not compare share one last cell.
    """

    codes: NDArray[np.int32]
    pairs: list[tuple[int, int]]
    totals: FloatArray

    @classmethod
    def of(cls, grouping: Grouping, labels: FloatArray, weights: FloatArray, criterion: Criterion) -> Self:
        """Return the cells of rows; a group without rows to compare is a ValueError."""
        comparison, groups = Comparison(criterion), grouping.codes.astype(np.int64)
        n_groups = len(grouping.names)
        compared = n_groups * len(comparison.labels)
        codes = np.full(groups.size, compared, dtype=np.int32)
        pairs: list[tuple[int, int]] = []
        for first, label in zip(range(0, compared, n_groups), comparison.labels, strict=True):
            among = np.ones(groups.size, dtype=bool) if label is None else labels == label
            sizes = np.bincount(groups[among & (weights > 0.0)], minlength=n_groups)
            check_sizes(comparison, grouping.names, sizes.tolist(), label)
            codes[among] = groups[among] + first
            pairs += combinations(range(first, first + n_groups), 2)
        totals = np.bincount(codes, weights=weights, minlength=compared + 1)
        return cls(codes, pairs, totals.astype(np.float64))


TEMPERATURE = 100.0
"""Every tree sees all rows, so the sigmoid can be steeper than where a batch of rows is smoothed."""
LARGEST_TEMPERATURE = 4096.0
_SHARPNESS = 8.0
_MOST_PARTS, _LEAST_ROWS = 8, 25_000

Result = TypeVar("Result")


class MCDPObjective:
    r"""Logistic loss plus strength x the maximal local disparity of smoothed distributions.

    .. math::
        \sum_i w_i \log(1 + e^{-\tilde y_i z_i}) + \lambda W \max_{y_0} \min_{|y - y_0| \le \epsilon}
        |\tilde F_a(y) - \tilde F_b(y)|, \qquad
        \tilde F_g(y) = \frac{1}{W_g} \sum_{i \in g} w_i \sigma(\tau (y - \sigma(z_i)))

    for the worst pair of groups, where :math:`\tilde y_i` is -1 or 1, W the sum of the weights and
    :math:`\lambda` the strength, as for `LocalParityClassifier`, where the loss is a mean. Pass it to
    ``xgboost.train(..., obj=objective)`` or ``lightgbm.train({"objective": objective, ...}, ...)``, with the
    rows in the order given here.

    Where the gap is largest is found in every round, over all rows, and held constant in the derivatives,
    which by the envelope theorem gives the gradient of the maximum. The penalty's Hessian is then diagonal
    but of either sign; boosters get its absolute value added to that of the logistic loss. That bounds the
    Hessian from above and keeps every step downhill. How the thresholds move with one row adds to its second
    derivative a share of one over the rows, which is left out.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels 0 and 1 of the training rows.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row; of several columns, the combinations that occur.
    strength, temperature : float
        The weight of the penalty, and the steepness of the sigmoid that replaces a step, up to 4096.
    epsilon : float
        The half-width of the windows. Above 0 the penalty is the true maximum; at 0 it is the p-norm of the
        gap over all thresholds with the power 8, which does not jump from one maximum to another.
    criterion : str
        Who is compared, as in `mcdp`; for equalized odds the worse of the two labels counts.
    sample_weight : array-like of shape (n_samples,), optional
        Weights that are not negative; boosters do not apply theirs to a custom objective.

    Examples
    --------
    >>> import localparity as lp
    >>> objective = lp.models.MCDPObjective(
    ...     [0, 1, 0, 1], sensitive_features=["a", "a", "b", "b"], strength=0.5
    ... )
    >>> gradient, hessian = objective([-1.0, 0.5, 1.0, 2.0])
    >>> gradient.round(2), bool((hessian > 0).all())
    (array([ 0.27, -0.94,  1.2 , -0.12]), True)
    """

    def __init__(
        self,
        y_true: ArrayLike,
        *,
        sensitive_features: Groups,
        strength: float = 0.2,
        temperature: float = TEMPERATURE,
        epsilon: float = 0.0,
        criterion: Criterion = "demographic_parity",
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self.strength = as_strength(strength)
        self.temperature = as_temperature(temperature, at_most=LARGEST_TEMPERATURE)
        self.epsilon = as_epsilon(epsilon)
        arrays = {"y_true": y_true, "sensitive_features": sensitive_features, "sample_weight": sample_weight}
        check_indexes(arrays)
        rows = as_vector(y_true, "y_true").size
        self._labels = as_labels(y_true, rows).astype(np.float64)
        self._weights = np.ones(rows) if sample_weight is None else as_weights(sample_weight, rows)
        known = isinstance(sensitive_features, Grouping)
        grouping = sensitive_features if known else as_groups(sensitive_features, rows)
        self._cells = GroupCells.of(grouping, self._labels, self._weights, criterion)
        self._smoother = Smoother(self.temperature)

    def __call__(self, margins: ArrayLike, data: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the positive Hessian at each row's margin; the data set is ignored."""
        margins, cells = self._check(margins), self._cells
        pulls = np.zeros(cells.totals.size)
        if self.strength == 0.0:
            scores, bump = logistic(margins), np.zeros((1, 4))
        else:
            scores, (first, second), maximum = self._worst(margins)
            bump = self._smoother.bump(maximum.thresholds, maximum.shares).cubics()
            weight = self.strength * float(cells.totals.sum())
            pulls[first], pulls[second] = weight / cells.totals[first], -weight / cells.totals[second]
        derivatives = np.empty(scores.size), np.empty(scores.size)

        def fill(rows: slice) -> None:
            here = scores[rows], self._labels[rows], self._weights[rows], cells.codes[rows]
            _kernels.derivatives(*here, pulls, bump, *(column[rows] for column in derivatives))

        each_part(fill, scores.size)
        return derivatives

    def _at(self, strength: float) -> MCDPObjective:
        """Return the same objective at another strength."""
        other = copy(self)
        other.strength = as_strength(strength)
        return other

    def _check(self, margins: Any) -> Any:
        # As boosters give them, margins need neither a copy nor a check.
        plain = isinstance(margins, np.ndarray) and margins.ndim == 1 and margins.dtype.kind == "f"
        checked = margins if plain else as_numbers(margins, "margins")
        check_rows("margins", checked.size, self._labels.size, of="y_true")
        return checked

    def _worst(self, margins: Any) -> tuple[FloatArray, tuple[int, int], Maximum]:
        """Return the scores, and the pair of cells whose disparity is the largest, with that disparity."""
        cells, smoother = self._cells, self._smoother
        scores = np.empty(margins.size)

        def count(rows: slice) -> FloatArray:
            scores[rows] = logistic(margins[rows])
            counted = scores[rows], self._weights[rows], cells.codes[rows]
            return _kernels.bin_moments(*counted, cells.totals.size, smoother.bins, self.temperature)

        moments = np.sum(each_part(count, margins.size), axis=0)
        if not np.isfinite(moments[:, :, 1]).all():
            raise InputError(f"must be finite, got nan at row {int(np.argmax(np.isnan(margins)))}", "margins")
        shares = moments[:-1] / cells.totals[:-1, None, None]
        distributions = smoother.distributions(shares)
        maxima = {pair: self._maximum(distributions.difference(*pair)) for pair in cells.pairs}
        worst = max(maxima, key=lambda pair: maxima[pair].value)
        return scores, worst, maxima[worst]

    def _maximum(self, gap: Any) -> Maximum:
        return (
            largest(gap, self.epsilon) if self.epsilon else soft_maximum(gap, self._smoother.grid, _SHARPNESS)
        )


def each_part(work: Callable[[slice], Result], rows: int) -> list[Result]:
    """Return what a function gives for each part of the rows; the parts do not depend on the threads."""
    parts = max(1, min(_MOST_PARTS, rows // _LEAST_ROWS))
    ends = [rows * part // parts for part in range(parts + 1)]
    slices = [slice(*pair) for pair in pairwise(ends)]
    if parts == 1:
        return [work(slices[0])]
    with ThreadPoolExecutor(min(parts, cpu_count() or 1)) as executor:
        return list(executor.map(work, slices))


def logistic(margins: Any) -> FloatArray:
    """Return the logistic function of margins."""
    scores: FloatArray = np.negative(margins, dtype=np.float64)
    with np.errstate(over="ignore"):
        np.exp(scores, out=scores)
    scores += 1.0
    np.reciprocal(scores, out=scores)
    return scores
