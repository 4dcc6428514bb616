r"""Whether a model dominates a baseline: a surely lower MCDP, and accuracy that is not worse within a margin.

Both score the same people, whom neither was trained on. A model is said to dominate where three intervals of
paired differences, the model less the baseline, say so: MCDP(0) ends below 0, and average precision and the
share of people that are decided rightly both begin at or above the margin below 0. A false claim needs one
of three ends to be wrong, and that of a statement that is false; so the claim has the error of one end, not
of three (an intersection-union test; Berger 1982, "Multiparameter hypothesis testing and acceptance
sampling", Technometrics 24). Several models share the error: each end of K of them is wrong with probability
:math:`\alpha / K`, so that some claim is false with probability :math:`\alpha` at most, whichever of them is
then taken.

The interval of MCDP is that of `compare_scores`. Average precision and accuracy are smooth in the weights of
people, so that their differences spread as sums of independent terms: what each person's weight adds to them,
found by leaving people out (the jackknife). Student's quantile allows for few people of the rarer class.
Where two models decide nearly everyone alike, nobody who differs may be among the people at hand: two people
are added, half a person in each of the four cells of the paired table (Agresti and Min 2005, "Simple improved
confidence intervals for comparing matched proportions", Statistics in Medicine 24). All of it holds in large
samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from localparity._types import Criterion, FloatArray
from localparity.metrics import Interval
from localparity.models._bound import Measured
from localparity.models._rows import DECISION_CUTOFF, TrainingRows
from localparity.uncertainty import compare_scores

_ROUNDING = 1e-12


@dataclass(frozen=True)
class PairedDifferences:
    """A model less a baseline on the same people, each difference with an interval.

    Attributes
    ----------
    mcdp : Interval
        Of MCDP(0): below 0 where the model treats the groups more alike.
    average_precision, accuracy : Interval
        Of average precision, and of the share of people decided rightly at one half.

    Examples
    --------
    >>> from localparity.results import Interval
    >>> lower, alike = Interval(-0.12, -0.09, -0.06, 0.98), Interval(-0.006, 0.001, 0.007, 0.98)
    >>> differences = PairedDifferences(lower, alike, alike)
    >>> differences.dominates(margin=0.01), differences.dominates(margin=0.0)
    (True, False)
    """

    mcdp: Interval
    average_precision: Interval
    accuracy: Interval

    def dominates(self, margin: float) -> bool:
        """Return whether MCDP is surely lower and accuracy is not lower by more than a margin.

        Parameters
        ----------
        margin : float
            How much lower average precision and accuracy may be.

        Returns
        -------
        bool
        """
        return self.mcdp.high < 0.0 and self.keeps_accuracy(margin)

    def keeps_accuracy(self, margin: float) -> bool:
        """Return whether average precision and accuracy are surely not lower by more than a margin.

        Parameters
        ----------
        margin : float
            As in `dominates`.

        Returns
        -------
        bool
        """
        return min(self.average_precision.low, self.accuracy.low) >= -margin - _ROUNDING


@dataclass(frozen=True)
class Baseline:
    """The model that alternatives are looked for to, and what they are held to.

    Attributes
    ----------
    validation, test : Measured
        How its scores do on the validation and on the test part.
    margin : float
        How much lower average precision and accuracy may be and count as not worse.
    alternatives : int
        How many alternatives share the error.
    confidence : float
        The probability with which no alternative is wrongly said to dominate.

    Examples
    --------
    >>> measured = Measured(rows=500, average_precision=0.74, mcdp=0.18)
    >>> Baseline(measured, measured, margin=0.01, alternatives=5, confidence=0.95).test.mcdp
    0.18
    """

    validation: Measured
    test: Measured
    margin: float
    alternatives: int
    confidence: float

    @property
    def error(self) -> float:
        """The probability with which an end of an alternative's interval is wrong."""
        return (1.0 - self.confidence) / self.alternatives


class BaselineRule(NamedTuple):
    """How models are chosen by the validation part and tested on the test part, against a baseline."""

    margin: float
    criterion: Criterion
    confidence: float
    n_resamples: int
    seed: int

    def choose(self, rows: TrainingRows, scores: Sequence[FloatArray], measured: Sequence[Measured]) -> int:
        """Return which scores are best: the least MCDP of those that are known to be accurate enough.

        Where none is, the most accurate, by the worse of average precision and accuracy.
        """
        kept = [min(one.low for one in accuracy_differences(rows, each, self.confidence)) for each in scores]
        enough = [place for place, low in enumerate(kept) if low >= -self.margin - _ROUNDING]
        if enough:
            return min(enough, key=lambda place: measured[place].mcdp)
        return int(np.argmax(kept))

    def differences(self, rows: TrainingRows, scores: FloatArray) -> PairedDifferences:
        """Return how scores differ from those of the baseline, on rows that neither was trained on."""
        assert rows.scores is not None
        paired = compare_scores(
            rows.labels,
            rows.scores,
            scores,
            sensitive_features=rows.groups,
            sample_weight=None if (rows.weights == 1.0).all() else rows.weights,
            criterion=self.criterion,
            confidence=self.confidence,
            n_resamples=self.n_resamples,
            random_state=self.seed,
        )
        return PairedDifferences(paired.difference, *accuracy_differences(rows, scores, self.confidence))


def accuracy_differences(
    rows: TrainingRows, scores: FloatArray, confidence: float
) -> tuple[Interval, Interval]:
    """Return the differences of average precision and of accuracy from the baseline's, with intervals."""
    from scipy.stats import t

    assert rows.scores is not None
    labels, weights = rows.labels, rows.weights
    sides = [average_precision_slopes(each, labels, weights) for each in (rows.scores, scores)]
    right = [(each > DECISION_CUTOFF) == (labels > 0.5) for each in (rows.scores, scores)]
    better = np.subtract(*right[::-1], dtype=np.float64)
    change, squares = float(np.average(better, weights=weights)), np.square(weights)
    two_more = float(squares.sum() / weights.sum()) ** 2 * (1.0 + change**2)
    differ = np.sqrt(np.sum(squares * (better - change) ** 2) + two_more) / weights.sum()
    spread = np.sqrt(np.sum(squares * (sides[1][1] - sides[0][1]) ** 2))
    rarer = min(_effective(weights[labels == label]) for label in (0.0, 1.0))
    reach = float(t.ppf(0.5 + 0.5 * confidence, max(rarer - 1.0, 1.0)))

    def interval(estimate: float, deviation: float) -> Interval:
        low, high = np.clip([estimate - reach * deviation, estimate + reach * deviation], -1.0, 1.0).tolist()
        return Interval(low, estimate, high, confidence)

    return interval(sides[1][0] - sides[0][0], float(spread)), interval(change, float(differ))


def _effective(weights: FloatArray) -> float:
    """Return how many people of one weight would be as precise."""
    return float(weights.sum() ** 2 / np.square(weights).sum())


def average_precision_slopes(
    scores: FloatArray, labels: FloatArray, weights: FloatArray
) -> tuple[float, FloatArray]:
    """Return average precision, and how fast it falls as weight is taken from each row.

    As much is taken as the lightest row has. Average precision is the mean, over rows of label 1, of the
    precision of the rows that score as high or higher, which a row counts in where it scores no lower.
    """
    distinct, places = np.unique(-scores, return_inverse=True)
    least = float(weights[weights > 0.0].min())
    positive = np.bincount(places, weights * labels, distinct.size)
    selected = np.cumsum(np.bincount(places, weights, distinct.size))
    right, total = np.cumsum(positive), positive.sum()
    terms = positive * right / selected
    left = selected - least  # none where the row was the only one
    kept = np.divide(1.0, left, out=np.zeros_like(left), where=left > 1e-9 * least)
    # Sums over scores above that of the row, and over the others as they are without the row.
    above = np.append(0.0, np.cumsum(terms))[places]
    below, of_right = (
        np.cumsum(part[::-1])[::-1][places] for part in (positive * right * kept, positive * kept)
    )
    taken = least * labels
    rest = above + below - taken * of_right - taken * ((right[places] - taken) * kept[places])
    value = terms.sum() / total
    return float(value), np.asarray((value - rest / (total - taken)) / least)
