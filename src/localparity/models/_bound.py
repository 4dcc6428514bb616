r"""A bound on MCDP(epsilon): how scores do on held-out rows, which strength is within it, what is promised.

A bound that was selected for is tested by fixed-sequence testing: several settings are tested on the same
people, at one error rate for all of them. The settings and their order are fixed before the test rows are
looked at, the one that is most likely within the bound first. A setting is accepted if an upper bound of its
true MCDP, which holds with probability :math:`1 - \alpha`, is within `max_mcdp`. The first that is not
accepted ends the sequence.

Every test has the whole :math:`\alpha`. Take the first in the order whose true MCDP is above `max_mcdp`: no
setting above it can be accepted unless that one is, and then its upper bound is below its true MCDP, which
happens with probability :math:`\alpha` at most. So with probability :math:`1 - \alpha` all accepted settings
are within `max_mcdp` together, and any of them may be taken, whatever the test rows say of their accuracy.

`max_mcdp` is all that is promised of the setting taken: its own upper bound was chosen with it, out of
several, and is not reported. That of a first setting that is refused may be: if its true MCDP is above
`max_mcdp`, that bound and any acceptance fail only where its upper bound does; if not, a bound above
`max_mcdp` holds, and an acceptance fails with probability :math:`\alpha` at most, as before.

It is assumed that the test rows are an independent sample of the population, and that nothing before the test
looked at them: not the fits, nor early stopping, nor the choice of the settings and of their order.

References: Angelopoulos, Bates, Candès, Jordan and Lei (2021), "Learn then Test: Calibrating Predictive
Algorithms to Achieve Risk Control", arXiv:2110.01052. Bauer (1991), "Multiple testing in clinical trials",
Statistics in Medicine 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from localparity._text import capitalised
from localparity._types import Criterion, FloatArray, IntArray, Seed
from localparity._validation import (
    InputError,
    InputWarning,
    as_bounded_epsilon,
    as_fraction,
    as_probability,
    setting,
)
from localparity.counts import Comparison
from localparity.metrics import Interval, mcdp
from localparity.metrics._within import within_bound
from localparity.models._rows import DECISION_CUTOFF, TrainingRows
from localparity.predictions import Predictions
from localparity.uncertainty import impact_ratio_curve, mcdp_interval, permutation_test

_GUESS = 0.2
_DOUBLINGS = 5
# Of the bound: what a fit aims at, what is close enough below it, and what is far above it.
_AIM, _CLOSE, _FAR = 0.95, 0.85, 1.3
_LEAST_GOAL = 1e-3
_LARGEST_STEP = 4.0
# How many fits make the first test safer, by how much stronger they are, and than what at least.
_SAFER, _SAFER_STEP, _LEAST_STRENGTH = 2, 3.0, 0.05

# How much of the bound chance may take among the people of a test, and how many of all are held out at most.
_CHANCE, _MOST_HELD_OUT = 0.75, 0.5
_EXPECTED = 0.87  # the mean of Kolmogorov's distribution: what groups that are alike are expected to measure

# Draws of others, to say what is expected of them: at most and at least, and the rows times groups of all.
_DRAWS, _FEW_DRAWS, _DRAWN = 200, 10, 2e7

_ALL, _RATES_OF_RATIO = (0.0, 1.0), (0.05, 1.0)  # of a bound on MCDP, and of one on ratios

_AMONG = {
    "demographic_parity": "",
    "equal_opportunity": " of people with label 1",
    "predictive_equality": " of people with label 0",
    "equalized_odds": " of people with either label",
}


class OutOfReachError(InputError):
    """A bound that no repair of these people meets, or is known to meet."""


class BoundNotMetWarning(InputWarning):
    """No strength that was tried is within the bound, or with a confidence known to be.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", BoundNotMetWarning)  # a fit that misses its bound raises
    """


@dataclass(frozen=True)
class Measured:
    """How a model's scores do on people that it was not fitted on.

    Attributes
    ----------
    rows, average_precision, mcdp : int and float
        How many rows there are, average precision and MCDP(epsilon).
    interval : Interval, optional
        MCDP(epsilon) with its interval: two-sided by the bootstrap in an audit, one-sided in a test of a
        bound. None where only the estimate counts.
    noise_floor : float, optional
        MCDP(epsilon) expected under parity, with these scores; None outside of an audit.
    auc, accuracy, brier, calibration_error : float, optional
        The area under the ROC curve, the share of people that `predict` is right about, the Brier score, and
        how far scores are from the outcomes on average over ten equal parts of the people; None outside of an
        audit.

    Examples
    --------
    >>> Measured(rows=200, average_precision=0.74, mcdp=0.04).at_most
    0.04
    """

    rows: int
    average_precision: float
    mcdp: float
    interval: Interval | None = None
    noise_floor: float | None = None
    auc: float | None = None
    accuracy: float | None = None
    brier: float | None = None
    calibration_error: float | None = None

    @property
    def at_most(self) -> float:
        """The upper end of the interval; without one, MCDP(epsilon) itself."""
        return self.mcdp if self.interval is None else self.interval.high


class Bound(NamedTuple):
    """The most that MCDP(epsilon) may be, among whom, and with which confidence in the population."""

    max_mcdp: float
    epsilon: float = 0.0
    criterion: Criterion = "demographic_parity"
    confidence: float | None = None
    selection_rates: tuple[float, float] = _ALL
    min_ratio: float | None = None

    @classmethod
    def checked(
        cls, max_mcdp: Any, epsilon: Any, criterion: Criterion, confidence: float | None = None
    ) -> Bound:
        """Return a bound, or raise a ValueError."""
        Comparison(criterion)
        if confidence is not None:
            as_probability(confidence)
        return cls(as_fraction(max_mcdp, "max_mcdp"), as_bounded_epsilon(epsilon), criterion, confidence)

    @classmethod
    def of(cls, estimator: Any) -> Bound:
        """Return the bound that an estimator's parameters state, or raise a ValueError."""
        bound = cls.checked(estimator.max_mcdp, estimator.epsilon, estimator.criterion, estimator.confidence)
        rates, ratio = (getattr(estimator, name, None) for name in ("selection_rates", "min_ratio"))
        return bound if rates is None and ratio is None else bound._where(rates, ratio)

    def _where(self, rates: Any, ratio: Any) -> Bound:
        """Return the bound at selection rates, or on the ratio there, or raise a ValueError."""
        if self.epsilon > 0.0:
            name = "selection_rates" if ratio is None else "min_ratio"
            raise InputError(f"must be 0 with {setting(name)}, got {self.epsilon:g}", "epsilon")
        ratio = None if ratio is None else as_probability(ratio, "min_ratio")
        if rates is None:
            return self._replace(min_ratio=ratio, selection_rates=_RATES_OF_RATIO)
        name = "selection_rates"
        if not isinstance(rates, tuple | list) or len(rates) != 2:
            raise InputError(f"must be two numbers, got {rates!r}", name)
        low, high = (as_fraction(rate, name) for rate in rates)
        if low >= high or (ratio is not None and low == 0.0):
            above = "0 < low < high" if ratio is not None else "low < high"
            raise InputError(f"must have {above}, got {(low, high)}", name)
        return self._replace(min_ratio=ratio, selection_rates=(low, high))

    @property
    def limit(self) -> float:
        """The most that the MCDP, or one less the lowest ratio, may be."""
        return self.max_mcdp if self.min_ratio is None else 1.0 - self.min_ratio

    @property
    def setting(self) -> str:
        """The argument that states the bound, with its value."""
        ratio = self.min_ratio
        return setting(max_mcdp=self.max_mcdp) if ratio is None else setting(min_ratio=ratio)

    def value(self, disparity: float) -> float:
        """Return a disparity as the bound states it: itself, or the ratio."""
        return disparity if self.min_ratio is None else 1.0 - disparity

    def reachable(self, disparity: float) -> str:
        """Return the bound that such a disparity is within, in words."""
        if self.min_ratio is None:
            return f"{setting('max_mcdp')} >= {round_up(disparity):g}"
        return f"{setting('min_ratio')} <= {1.0 - round_up(disparity):g}"

    @property
    def where(self) -> str:
        """At which cutoffs the bound holds, as words that follow; empty for all."""
        low, high = self.selection_rates
        if self.selection_rates == _ALL:
            return ""
        return f" at cutoffs that select {100.0 * low:g}% to {100.0 * high:g}% of the people fitted on"

    @property
    def among(self) -> str:
        """Who is compared, as words that follow a noun; empty for everyone."""
        return _AMONG[self.criterion]

    @property
    def by_class(self) -> bool:
        """Whether people are compared by label, so that those held out are drawn by class too."""
        return Comparison(self.criterion).needs_labels

    @property
    def measure_name(self) -> str:
        """What is bounded, in words."""
        return f"MCDP({self.epsilon:g}){self.among}{self.where}"

    @property
    def claim(self) -> str:
        """What holds of scores within the bound."""
        if self.min_ratio is None:
            return f"{self.measure_name} is at most {self.max_mcdp:.4g}"
        return f"the ratio of selection rates{self.among} is at least {self.min_ratio:.4g}{self.where}"

    def disparity(self, people: Predictions, cutoffs: tuple[float, float]) -> float:
        """Return what the bound limits, of people at cutoffs between two."""
        people = _narrowed(people, cutoffs)
        if self.min_ratio is None:
            return mcdp(people, epsilon=self.epsilon, criterion=self.criterion)
        return 1.0 - self._lowest_ratio(people, None)

    def known(self, people: Predictions, cutoffs: tuple[float, float]) -> float:
        """Return what that is at most in the population of the people of a test."""
        people = _narrowed(people, cutoffs)
        return (
            self.upper(people).high
            if self.min_ratio is None
            else 1.0 - self._lowest_ratio(people, self.confidence)
        )

    def _lowest_ratio(self, people: Predictions, confidence: float | None) -> float:
        """Return the lowest ratio of selection rates at all cutoffs, or its lower end.

        Two labels share the error of a confidence.
        """
        odds: tuple[Criterion, ...] = ("equal_opportunity", "predictive_equality")
        criteria = odds if self.criterion == "equalized_odds" else (self.criterion,)
        lowest = 1.0
        for criterion in criteria:
            shared = None if confidence is None else 1.0 - (1.0 - confidence) / len(criteria)
            curve = impact_ratio_curve(people, criterion=criterion, confidence=shared)
            selects = curve.rates.any(axis=0)
            ratios = curve.ratios if shared is None else curve.ratio_bands[0]
            lowest = min(lowest, float(ratios[:, selects].min(initial=1.0)))
        return lowest

    def of_others(self, people: Predictions, cutoffs: tuple[float, float]) -> str:
        """Return what is expected of as many others as these people, that scores were fitted to, in words.

        Others are drawn from each group, by label where labels are compared. It is a rough guide: how much a
        fit adapts to its people is unknown, and what others exceeded the bound by was from half to one and a
        half times what is said (results/others.md and a slow test).
        """
        rng, keys = np.random.default_rng(0), people.group_codes.astype(np.int64)
        if self.by_class and people.labels is not None:
            keys = 2 * keys + people.labels
        order = np.argsort(keys, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(keys))[:-1])
        values = np.empty(int(np.clip(_DRAWN / (order.size * len(members)), _FEW_DRAWS, _DRAWS)))
        for draw in range(values.size):
            rows = np.concatenate([own[rng.integers(0, max(own.size, 1), own.size)] for own in members])
            values[draw] = self.disparity(_taken(people, rows), cutoffs)
        expected = self.value(float(values.mean()))
        return (
            f" As a rough guide, about {expected:.3f} is expected of as many others from the same population."
        )

    def is_met(self, measured: Measured) -> bool:
        """Whether scores are within the bound; with a confidence, whether they are known to be."""
        return within_bound(measured.at_most, self.max_mcdp)

    def share_held_out(
        self,
        least: float,
        groups: IntArray,
        labels: FloatArray | IntArray,
        *,
        most: float = _MOST_HELD_OUT,
    ) -> float:
        """Return the share of rows to test on: `least`, or more up to `most` where the bound needs as many.

        Of groups that are alike, n_a and n_b people are expected to measure 0.87 sqrt(1 / n_a + 1 / n_b), and
        what is known of them is half a normal quantile of such roots above. It looks at sizes alone, so that
        the test holds as if the share had been given.
        """
        assert self.confidence is not None
        off = _EXPECTED + 0.5 * NormalDist().inv_cdf(self.confidence)
        needed = 0.0
        for label in Comparison(self.criterion).labels:
            sizes = np.sort(np.bincount(groups if label is None else groups[labels == label]))[:2]
            needed = max(needed, float((1.0 / np.maximum(sizes, 1)).sum()))
        limit = self.max_mcdp if self.min_ratio is None else self.limit * self.selection_rates[0]
        needed *= (off / max(_CHANCE * limit, _LEAST_GOAL)) ** 2
        return min(max(least, needed), max(least, most))

    def upper(self, people: Predictions) -> Interval:
        """Return MCDP(epsilon) of the people of a test, and what it is at most in their population."""
        assert self.confidence is not None
        return mcdp_interval(
            people,
            epsilon=self.epsilon,
            criterion=self.criterion,
            confidence=self.confidence,
            side="upper",
            random_state=0,
        )

    def measure(self, rows: TrainingRows, scores: FloatArray) -> Measured:
        """Return how scores of rows do; with a confidence, with the interval that is tested."""
        people, interval = rows.predictions(scores), None
        if self.confidence is None:
            disparity = mcdp(people, epsilon=self.epsilon, criterion=self.criterion)
        else:
            interval = self.upper(people)
            disparity = interval.estimate
        return Measured(rows.size, _average_precision(rows, scores), disparity, interval)

    def audit(
        self, rows: TrainingRows, scores: FloatArray, confidence: float, n_resamples: int, seed: Seed
    ) -> Measured:
        """Return how scores of rows do, with a two-sided interval and the noise floor."""
        people = rows.predictions(scores, always_weighted=True)
        interval = mcdp_interval(
            people,
            epsilon=self.epsilon,
            criterion=self.criterion,
            confidence=confidence,
            method="bootstrap",
            n_resamples=n_resamples,
            random_state=seed,
        )
        null = permutation_test(
            people, epsilon=self.epsilon, criterion=self.criterion, n_resamples=n_resamples, random_state=seed
        )
        precision, labels, weights = _average_precision(rows, scores), rows.labels, rows.weights
        right = np.average((scores > DECISION_CUTOFF) == (labels > 0.5), weights=weights)
        return Measured(
            rows.size,
            precision,
            interval.estimate,
            interval,
            null.null_mean,
            _auc(rows, scores),
            float(right),
            float(np.average((scores - labels) ** 2, weights=weights)),
            calibration_error(labels, scores, weights),
        )

    def promise(self, people: int, *, tested: bool, weighted: bool = False) -> str:
        """Return what holds and for whom: people that scores were tested on, or else fitted on."""
        claim = self.claim
        if self.confidence is None:
            return (
                f"{capitalised(claim)} among the {people:,} people fitted on; nothing is promised for others "
                "without a confidence."
            )
        about = "of about " if weighted else ""
        who, condition = "fitted on", "their scores were not computed on rows that the model was trained on"
        if tested:
            who, condition = "held out", "were not used to fit the model"
        return (
            f"With probability {about}{self.confidence:g}, {claim} in the population that the {people:,} "
            f"people {who} were drawn from, if they are an independent sample of it and {condition}."
        )

    def promise_of_test(self, rows: TrainingRows) -> str:
        """Return what holds of scores that passed the test on these rows."""
        return self.promise(rows.size, tested=True, weighted=bool((rows.weights != 1.0).any()))


def _average_precision(rows: TrainingRows, scores: FloatArray) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(rows.labels, scores, sample_weight=rows.weights))


def _auc(rows: TrainingRows, scores: FloatArray) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(rows.labels, scores, sample_weight=rows.weights))


_PARTS = 10


def calibration_error(labels: FloatArray, scores: FloatArray, weights: FloatArray) -> float:
    """Return the mean distance of scores and outcomes over ten parts of the people, in order of score.

    People of one score are in one part.
    """
    _, places = np.unique(scores, return_inverse=True)
    masses = np.bincount(places, weights)
    middles = (np.cumsum(masses) - 0.5 * masses) / masses.sum()
    parts = np.minimum((_PARTS * middles).astype(np.int64), _PARTS - 1)[places]
    return float(np.abs(np.bincount(parts, weights * (scores - labels))).sum() / masses.sum())


def cutoffs_between(
    scores: FloatArray, weights: FloatArray, rates: tuple[float, float]
) -> tuple[float, float]:
    """Return the lowest and the highest cutoff above which a share of people between two rates is."""
    distinct, places = np.unique(scores, return_inverse=True)
    masses = np.bincount(places, weights)
    above = 1.0 - np.cumsum(masses) / masses.sum()
    low, high = rates
    first = 0.0 if high >= 1.0 else float(distinct[int(np.argmax(above <= high))])
    enough = distinct[above >= low]
    last = 1.0 if low <= 0.0 else float(enough[-1]) if enough.size else 0.0
    return first, max(first, last)


def _narrowed(people: Predictions, cutoffs: tuple[float, float]) -> Predictions:
    """Return people with scores that are told apart at cutoffs between two alone."""
    low, high = cutoffs
    if (low, high) == (0.0, 1.0):
        return people
    scores = np.maximum(people.scores, low)
    return replace(people, scores=np.where(scores > high, 1.0, scores))


def _taken(people: Predictions, rows: IntArray) -> Predictions:
    """Return some rows of people."""
    labels = None if people.labels is None else people.labels[rows]
    weights = None if people.weights is None else people.weights[rows]
    scores, codes = people.scores[rows], people.group_codes[rows]
    return replace(people, scores=scores, group_codes=codes, labels=labels, weights=weights)


def round_up(value: float) -> float:
    """Return a number rounded up to four decimals."""
    near = round(value, 4)
    return near if near >= value else (math.floor(1e4 * value) + 1) / 1e4


AnySetting = TypeVar("AnySetting")


def accept_in_order(
    settings: Iterable[AnySetting], is_within: Callable[[AnySetting], bool]
) -> tuple[list[AnySetting], list[AnySetting]]:
    """Return the settings before the first that is not within the bound, and that one, if there is one.

    Settings after it are not asked for, so that an iterator need not make them.
    """
    accepted: list[AnySetting] = []
    for one in settings:
        if not is_within(one):
            return accepted, [one]
        accepted.append(one)
    return accepted, []


class Attempt(NamedTuple):
    """A model trained at a strength, and how it does."""

    strength: float
    measured: Measured
    model: Any


class TrainAt(Protocol):
    """Trains at a strength from a new start, for a whole fit or a short one, and says how that does."""

    def __call__(self, strength: float, title: str, *, short: bool = False) -> Attempt:
        """Return the attempt."""


def search_strength(train_at: TrainAt, bound: float) -> list[Attempt]:
    """Look for the weakest strength within a bound, and return the whole fits.

    A short fit is an eighth of a whole one. Two of them, without a penalty and at a middling strength, say
    how fast the logarithm of MCDP falls, and a whole fit is made where it would cross the bound. Unless that
    is close below the bound, a second one follows, corrected by the first; where the first is far above the
    bound, up to five short fits at doubled strengths look for the strength. Where neither meets the bound, a
    third one is made at a higher strength. That is at most 2 7/8 times the work of one fit if the bound is
    met by then, else 3 7/8 times; results/search_cost.md compares it with bisection. Whole fits start anew:
    networks that started from the model of another strength came out worse on Adult and Bank.
    """
    goal = max(_AIM * bound, _LEAST_GOAL)
    plain = train_at(0.0, "short fit 1 of at most 7", short=True)
    strength = 0.0
    if not within_bound(plain.measured.mcdp, bound):
        guess = train_at(_GUESS, "short fit 2 of at most 7", short=True)
        strength = min(_crossing(plain, guess, goal), _LARGEST_STEP * _GUESS)
    first = train_at(_rounded(strength), "fit 1 of at most 3")
    fits, disparity = [first], first.measured.mcdp
    is_within = within_bound(disparity, bound)
    if not (is_within and (strength == 0.0 or disparity >= _CLOSE * bound)):
        if is_within:
            strength = _crossing(plain, first, goal)
        elif strength == 0.0:
            strength = _GUESS
        elif disparity <= _FAR * bound:
            strength = first.strength * (disparity / goal) ** 2
        else:
            strength = _stronger(train_at, first.strength, bound)
        fits.append(train_at(_rounded(strength), "fit 2 of at most 3"))
    nearest = min(fit.measured.mcdp for fit in fits)
    if not within_bound(nearest, bound):
        factor = min(max((nearest / goal) ** 2, 1.25), _LARGEST_STEP)
        strength = factor * max(fit.strength for fit in fits)
        fits.append(train_at(_rounded(strength), "fit 3 of at most 3"))
    return fits


def fits_to_test(train_at: TrainAt, bound: float) -> list[Attempt]:
    """Return whole fits in the order in which people who measured none of them are to test them.

    Those with the least `at_most` come first. Unless the first is within the bound by as much again as
    `at_most` is above its MCDP, up to two more fits are made, each at three times the largest strength.
    """
    fits = search_strength(train_at, bound)
    for _ in range(_SAFER):
        first = min((fit.measured for fit in fits), key=lambda measured: measured.at_most)
        if 2.0 * first.at_most - first.mcdp <= bound:
            break
        strength = _SAFER_STEP * max(_LEAST_STRENGTH, *(fit.strength for fit in fits))
        fits.append(train_at(_rounded(strength), f"fit {len(fits) + 1} of at most {3 + _SAFER}"))
    return sorted(fits, key=lambda fit: fit.measured.at_most)


def most_fits(*, tested: bool) -> float:
    """How many whole fits a search takes at most; a short one is an eighth of one."""
    return 3 + (_DOUBLINGS + 2) / 8 + (_SAFER if tested else 0)


def _crossing(weaker: Attempt, stronger: Attempt, goal: float) -> float:
    """Return the strength where MCDP is at a goal if its logarithm is linear; infinity if it rises."""
    high = weaker.measured.mcdp
    fall = math.log(high / max(stronger.measured.mcdp, _LEAST_GOAL / 2.0))
    return stronger.strength * math.log(high / goal) / fall if fall > 0.0 else math.inf


def _stronger(train_at: TrainAt, strength: float, bound: float) -> float:
    """Return the first doubled strength at which a short fit is within a bound, else the nearest to it."""
    fits: list[Attempt] = []
    while len(fits) < _DOUBLINGS and not (fits and within_bound(fits[-1].measured.mcdp, bound)):
        strength *= 2.0
        title = f"short fit {len(fits) + 3} of at most {_DOUBLINGS + 2}"
        fits.append(train_at(_rounded(strength), title, short=True))
    return min(fits, key=lambda fit: fit.measured.mcdp).strength


def _rounded(strength: float) -> float:
    """Return a strength with three digits, as it is shown."""
    return float(f"{strength:.3g}")


def choose(trials: Sequence[Measured], bound: Bound) -> int:
    """Return the index of the most accurate within the bound, else of the one with the least MCDP."""
    met = [index for index, trial in enumerate(trials) if bound.is_met(trial)]
    if met:
        return max(met, key=lambda index: trials[index].average_precision)
    return min(range(len(trials)), key=lambda index: trials[index].at_most)
