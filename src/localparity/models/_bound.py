"""The most accurate model whose disparity is within a bound, by a search over strengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from localparity._types import Criterion, FloatArray
from localparity._validation import InputError, InputWarning, as_fraction, as_probability, setting
from localparity.metrics import mcdp
from localparity.metrics._within import within_bound
from localparity.models._rows import TrainingRows
from localparity.models._sequence import promise_for_population, upper_bound
from localparity.models.repair._base import AMONG, round_up
from localparity.predictions import check_predictions

_GUESS = 0.2
_DOUBLINGS = 5
# Of the bound: what a fit aims at, what is close enough below it, and what is far above it.
_AIM, _CLOSE, _FAR = 0.95, 0.85, 1.3
_LEAST_GOAL = 1e-3
_LARGEST_STEP = 4.0
# Of a sequence: how many fits make its start safer, by how much stronger they are, and than what at least.
_SAFER, _SAFER_STEP, _LEAST_STRENGTH = 2, 3.0, 0.05


class BoundNotMetWarning(InputWarning):
    """No strength that was tried is within the bound, or with a confidence known to be.

    Examples
    --------
    >>> import warnings
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> model = lp.models.LocalParityClassifier(max_mcdp=1e-6, steps=5, random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", lp.models.BoundNotMetWarning)
    ...     model = model.fit(census.data, census.target, sensitive_features=census.sensitive_features)
    >>> model.bound_met_
    False
    """


@dataclass(frozen=True)
class Trial:
    """A strength that was tried and how it did on the validation part; with a confidence, on the test part.

    Attributes
    ----------
    strength : float
        The strength.
    average_precision, mcdp : float
        Average precision and MCDP(epsilon) on that part.
    bounded : float
        What was compared with the bound: `mcdp`; with a confidence, what MCDP(epsilon) in the population is
        at most with that probability.
    met : bool
        Whether it is within the bound.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> model = lp.models.LocalParityClassifier(max_mcdp=0.5, steps=5, random_state=0)
    >>> model = model.fit(census.data, census.target, sensitive_features=census.sensitive_features)
    >>> trial = model.trials_[0]
    >>> trial.strength, trial.bounded == trial.mcdp, trial.met
    (0.0, True, True)
    """

    strength: float
    average_precision: float
    mcdp: float
    bounded: float
    met: bool


class BoundCheck(NamedTuple):
    """Measures scores of some rows and compares their MCDP(epsilon) with a bound.

    With a confidence, what MCDP in the population is at most, with that probability, is compared.
    """

    rows: TrainingRows
    max_mcdp: float
    epsilon: float
    criterion: Criterion
    confidence: float | None = None

    def __call__(self, strength: float, scores: FloatArray) -> Trial:
        """Return how the scores at a strength do."""
        from sklearn.metrics import average_precision_score

        labels, weights = self.rows.labels, self.rows.weights
        weighted = None if (weights == 1.0).all() else weights
        people = check_predictions(labels, scores, self.rows.groups, sample_weight=weighted)
        if self.confidence is None:
            disparity = bounded = mcdp(people, epsilon=self.epsilon, criterion=self.criterion)
        else:
            upper = upper_bound(people, self.epsilon, self.criterion, self.confidence)
            disparity, bounded = upper.estimate, upper.high
        precision = float(average_precision_score(labels, scores, sample_weight=weights))
        met = within_bound(bounded, self.max_mcdp)
        return Trial(strength, precision, disparity, bounded, met)

    def describe_failure(self, trials: Sequence[Trial], chosen: Trial) -> str:
        """Return the message for a bound that no trial met."""
        opening = f"{setting(max_mcdp=self.max_mcdp)} was not met: "
        if self.confidence is None:
            return (
                f"{opening}of {len(trials)} strengths up to {max(trial.strength for trial in trials):g}, "
                f"the lowest validation MCDP is {chosen.mcdp:.4f}, at strength {chosen.strength:g}; that "
                "model is kept"
            )
        return (
            f"{opening}with {setting(confidence=self.confidence)}, the first model to be tested, of strength "
            f"{chosen.strength:g}, is only known to be within {round_up(chosen.bounded):g} from "
            f"{self.rows.labels.size:,} people held out; that model is kept"
        )

    def describe(self, trials: Sequence[Trial], chosen: Trial) -> str:
        """Return what is known of the bound after the choice of a trial, and for whom."""
        if self.confidence is None:
            what = f"MCDP({self.epsilon:g}){AMONG[self.criterion]}"
            relation = "within" if chosen.met else "above"
            return (
                f"On the validation part {what} is {chosen.mcdp:.4f}, {relation} max_mcdp={self.max_mcdp:g}; "
                f"the strength, {chosen.strength:g}, was chosen out of {len(trials)} by that part, so "
                "nothing is promised for other people."
            )
        if chosen.met:
            return self.promise(self.confidence)
        known = self._replace(max_mcdp=round_up(chosen.bounded)).promise(self.confidence)
        return f"max_mcdp={self.max_mcdp:g} was not met. {known}"

    def promise(self, confidence: float) -> str:
        """Return what holds of scores that passed the test on these rows."""
        what = f"MCDP({self.epsilon:g}){AMONG[self.criterion]} is at most {self.max_mcdp:.4g}"
        return promise_for_population(what, confidence, self.rows.weights)


def check_bound(strength: float | None, max_mcdp: float | None, confidence: float | None) -> None:
    """Raise a ValueError for a bound with a strength, or a confidence without a bound."""
    if max_mcdp is not None:
        as_fraction(max_mcdp, "max_mcdp")
        if strength is not None:
            raise InputError(
                f"pass strength or {setting('max_mcdp')}, not both, got {strength:g} and {max_mcdp:g}"
            )
    if confidence is not None:
        as_probability(confidence)
        if max_mcdp is None:
            raise InputError(f"{setting(confidence=confidence)} needs {setting('max_mcdp')}, got None")


AnyModel = TypeVar("AnyModel", covariant=True)


class TrainAt(Protocol[AnyModel]):
    """Trains at a strength from a new start, for a whole fit or a short one, and says how that does."""

    def __call__(self, strength: float, title: str, *, short: bool = False) -> tuple[AnyModel, Trial]:
        """Return the model and its trial."""


def search_strength(train_at: TrainAt[AnyModel], bound: float) -> list[tuple[AnyModel, Trial]]:
    """Look for the weakest strength within a bound, and return the whole fits with their trials.

    A short fit is an eighth of a whole one. Two of them, without a penalty and at a middling strength, say
    how fast the logarithm of MCDP falls, and a whole fit is made at the strength where it would cross the
    bound. Unless that is close below the bound, a second one follows, corrected by the first; where the
    first is far above the bound, up to five short fits at doubled strengths look for the place. Where
    neither meets the bound, a third one is made at a higher strength. That is at most 2 7/8 times the work
    of one fit if the bound is met by then, else 3 7/8 times. Doubling the strength until the bound is met
    and then bisecting takes 6 to 12 fits; results/search_cost.md compares the two.

    Whole fits start anew: networks that started from the model of another strength came out worse on Adult
    and Bank, in as many steps and in fewer.

    Examples
    --------
    >>> def train_at(strength, title, *, short=False):
    ...     value = 0.4 / (1.0 + strength)
    ...     return strength, Trial(strength, 1.0 - strength, value, value, met=value <= 0.2)
    >>> [(trial.strength, trial.met) for _, trial in search_strength(train_at, 0.2)]
    [(0.8, False), (1.09, True)]
    """
    goal = max(_AIM * bound, _LEAST_GOAL)
    plain = train_at(0.0, "short fit 1 of at most 7", short=True)[1]
    strength = 0.0
    if not within_bound(plain.mcdp, bound):
        guess = train_at(_GUESS, "short fit 2 of at most 7", short=True)[1]
        strength = min(_crossing(plain, guess, goal), _LARGEST_STEP * _GUESS)
    found = [train_at(_rounded(strength), "fit 1 of at most 3")]
    first = found[0][1]
    is_within = within_bound(first.mcdp, bound)
    if not (is_within and (strength == 0.0 or first.mcdp >= _CLOSE * bound)):
        if is_within:
            strength = _crossing(plain, first, goal)
        elif strength == 0.0:
            strength = _GUESS
        elif first.mcdp <= _FAR * bound:
            strength = first.strength * (first.mcdp / goal) ** 2
        else:
            strength = _stronger(train_at, first.strength, bound)
        found.append(train_at(_rounded(strength), "fit 2 of at most 3"))
    if not any(within_bound(trial.mcdp, bound) for _, trial in found):
        nearest = min((trial for _, trial in found), key=lambda trial: trial.mcdp)
        factor = min(max((nearest.mcdp / goal) ** 2, 1.25), _LARGEST_STEP)
        strength = factor * max(trial.strength for _, trial in found)
        found.append(train_at(_rounded(strength), "fit 3 of at most 3"))
    return found


def find_sequence(train_at: TrainAt[AnyModel], bound: float) -> list[tuple[AnyModel, Trial]]:
    """Return whole fits in the order in which other rows than those of their trials are to test them.

    The order is that of `bounded`, the least first. `search_strength` finds the weakest fits that may pass a
    test. The first to be tested decides whether anything is accepted. Unless it is within the bound by as
    much again as `bounded` is above its MCDP, up to two more fits are made, each at three times the largest
    strength.

    Examples
    --------
    >>> def train_at(strength, title, *, short=False):
    ...     value = 0.4 / (1.0 + strength)
    ...     return strength, Trial(strength, 1.0 - strength, value, value + 0.03, met=value <= 0.17)
    >>> [strength for strength, _ in find_sequence(train_at, 0.2)]
    [3.27, 1.09, 0.8]
    """
    found = search_strength(train_at, bound)
    for _ in range(_SAFER):
        first = min((trial for _, trial in found), key=lambda trial: trial.bounded)
        if 2.0 * first.bounded - first.mcdp <= bound:
            break
        strength = _SAFER_STEP * max(_LEAST_STRENGTH, *(trial.strength for _, trial in found))
        found.append(train_at(_rounded(strength), f"fit {len(found) + 1} of at most {3 + _SAFER}"))
    return sorted(found, key=lambda each: each[1].bounded)


def _crossing(weaker: Trial, stronger: Trial, goal: float) -> float:
    """Return the strength where MCDP is at a goal if its logarithm is linear; infinity if it rises."""
    fall = math.log(weaker.mcdp / max(stronger.mcdp, _LEAST_GOAL / 2.0))
    return stronger.strength * math.log(weaker.mcdp / goal) / fall if fall > 0.0 else math.inf


def _stronger(train_at: TrainAt[AnyModel], strength: float, bound: float) -> float:
    """Return the first doubled strength at which a short fit is within a bound, else the nearest to it."""
    short: list[Trial] = []
    while len(short) < _DOUBLINGS and not (short and within_bound(short[-1].mcdp, bound)):
        strength *= 2.0
        title = f"short fit {len(short) + 3} of at most {_DOUBLINGS + 2}"
        short.append(train_at(_rounded(strength), title, short=True)[1])
    return min(short, key=lambda trial: trial.mcdp).strength


def _rounded(strength: float) -> float:
    """Return a strength with three digits, as it is shown."""
    return float(f"{strength:.3g}")


def choose(trials: Sequence[Trial]) -> int:
    """Return the place of the most accurate trial within the bound, else of the one with the least MCDP."""
    met = [place for place, trial in enumerate(trials) if trial.met]
    if met:
        return max(met, key=lambda place: trials[place].average_precision)
    return min(range(len(trials)), key=lambda place: trials[place].bounded)
