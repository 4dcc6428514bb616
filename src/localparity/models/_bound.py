"""The most accurate model whose disparity is within a bound, by a search over strengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from localparity._types import Criterion, FloatArray
from localparity._validation import as_fraction, as_probability
from localparity.metrics import mcdp
from localparity.models._rows import TrainingRows
from localparity.uncertainty import mcdp_interval

_GUESS = 0.2
_DOUBLINGS = 5
# Of the bound: what a fit aims at, what is close enough below it, and what is far above it.
_AIM, _CLOSE, _FAR = 0.95, 0.85, 1.3
_LEAST_GOAL = 1e-3
_LARGEST_STEP = 4.0


class BoundNotMetWarning(UserWarning):
    """No strength that was tried brought the validation MCDP within the bound.

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
    """A strength that was tried and how it did on the validation part.

    Attributes
    ----------
    strength : float
        The strength.
    average_precision, mcdp : float
        Average precision and MCDP(epsilon) on the validation part.
    bounded : float
        What was compared with the bound: `mcdp`, or the upper end of its interval.
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

    With a confidence, the upper end of the interval of that confidence is compared.
    """

    rows: TrainingRows
    max_mcdp: float
    epsilon: float
    criterion: Criterion
    confidence: float | None = None

    def __call__(self, strength: float, scores: FloatArray) -> Trial:
        """Return how the scores at a strength do."""
        from sklearn.metrics import average_precision_score

        labels, groups, weights = self.rows.labels, self.rows.groups, self.rows.weights
        options: dict[str, Any] = {
            "sensitive_features": groups,
            "epsilon": self.epsilon,
            "criterion": self.criterion,
            "sample_weight": weights,
        }
        disparity = bounded = mcdp(labels, scores, **options)
        if self.confidence is not None:
            interval = mcdp_interval(labels, scores, confidence=self.confidence, random_state=0, **options)
            bounded = interval.high
        precision = float(average_precision_score(labels, scores, sample_weight=weights))
        return Trial(strength, precision, disparity, bounded, bounded <= self.max_mcdp)

    def describe_failure(self, trials: Sequence[Trial], chosen: Trial) -> str:
        """Return the message for a bound that no trial met."""
        compared = "MCDP" if self.confidence is None else "upper end of MCDP"
        return (
            f"max_mcdp={self.max_mcdp} was not met: of {len(trials)} strengths up to "
            f"{max(trial.strength for trial in trials):g}, the lowest validation {compared} is "
            f"{chosen.bounded:.4f}, at strength {chosen.strength:g}; that model is kept"
        )


def check_bound(strength: float | None, max_mcdp: float | None, confidence: float | None) -> None:
    """Raise a ValueError for a bound with a strength, or a confidence without a bound."""
    if max_mcdp is not None:
        as_fraction(max_mcdp, "max_mcdp")
        if strength is not None:
            raise ValueError(f"pass strength or max_mcdp, not both, got {strength:g} and {max_mcdp:g}")
    if confidence is not None:
        as_probability(confidence)
        if max_mcdp is None:
            raise ValueError(f"confidence={confidence:g} needs max_mcdp, got None")


AnyModel = TypeVar("AnyModel", covariant=True)


class TrainAt(Protocol[AnyModel]):
    """Trains at a strength from a new start, for a whole fit or a short one, and says how that does."""

    def __call__(self, strength: float, title: str, *, short: bool = False) -> tuple[AnyModel, Trial]:
        """Return the model and its trial."""


def search_strength(train_at: TrainAt[AnyModel], bound: float) -> tuple[AnyModel, list[Trial], Trial]:
    """Look for the weakest strength within a bound; return a model, the trials of whole fits and its own.

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
    >>> _, trials, chosen = search_strength(train_at, 0.2)
    >>> [trial.met for trial in trials], chosen.strength
    ([False, True], 1.09)
    """
    goal = max(_AIM * bound, _LEAST_GOAL)
    plain = train_at(0.0, "short fit 1 of at most 7", short=True)[1]
    strength = 0.0
    if not plain.met:
        guess = train_at(_GUESS, "short fit 2 of at most 7", short=True)[1]
        strength = min(_crossing(plain, guess, goal), _LARGEST_STEP * _GUESS)
    found = [train_at(_rounded(strength), "fit 1 of at most 3")]
    first = found[0][1]
    if not (first.met and (strength == 0.0 or first.bounded >= _CLOSE * bound)):
        if first.met:
            strength = _crossing(plain, first, goal)
        elif strength == 0.0:
            strength = _GUESS
        elif first.bounded <= _FAR * bound:
            strength = first.strength * (first.bounded / goal) ** 2
        else:
            strength = _stronger(train_at, first.strength)
        found.append(train_at(_rounded(strength), "fit 2 of at most 3"))
    if not any(trial.met for _, trial in found):
        nearest = min((trial for _, trial in found), key=lambda trial: trial.bounded)
        factor = min(max((nearest.bounded / goal) ** 2, 1.25), _LARGEST_STEP)
        strength = factor * max(trial.strength for _, trial in found)
        found.append(train_at(_rounded(strength), "fit 3 of at most 3"))
    trials = [trial for _, trial in found]
    chosen = choose(trials)
    return found[chosen][0], trials, trials[chosen]


def _crossing(weaker: Trial, stronger: Trial, goal: float) -> float:
    """Return the strength where MCDP is at a goal if its logarithm is linear; infinity if it rises."""
    fall = math.log(weaker.bounded / max(stronger.bounded, _LEAST_GOAL / 2.0))
    return stronger.strength * math.log(weaker.bounded / goal) / fall if fall > 0.0 else math.inf


def _stronger(train_at: TrainAt[AnyModel], strength: float) -> float:
    """Return the first doubled strength at which a short fit meets the bound, else the one nearest to it."""
    short: list[Trial] = []
    while len(short) < _DOUBLINGS and not (short and short[-1].met):
        strength *= 2.0
        title = f"short fit {len(short) + 3} of at most {_DOUBLINGS + 2}"
        short.append(train_at(_rounded(strength), title, short=True)[1])
    return min(short, key=lambda trial: trial.bounded).strength


def _rounded(strength: float) -> float:
    """Return a strength with three digits, as it is shown."""
    return float(f"{strength:.3g}")


def choose(trials: Sequence[Trial]) -> int:
    """Return the place of the most accurate trial within the bound, else of the one with the least MCDP."""
    met = [place for place, trial in enumerate(trials) if trial.met]
    if met:
        return max(met, key=lambda place: trials[place].average_precision)
    return min(range(len(trials)), key=lambda place: trials[place].bounded)
