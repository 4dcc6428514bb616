"""The most accurate model whose disparity is within a bound, by a search over strengths."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from localparity._types import Criterion, FloatArray
from localparity._validation import as_fraction, as_probability
from localparity.metrics import mcdp
from localparity.uncertainty import mcdp_interval

_FIRST_STRENGTH = 0.1
_DOUBLINGS = 8
_HALVINGS = 4


class BoundNotMetWarning(UserWarning):
    """No strength that was tried brought the validation MCDP within the bound.

    Examples
    --------
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
    """A strength that was tried, and what the validation part says of it.

    Attributes
    ----------
    strength : float
        The strength.
    average_precision, mcdp : float
        Of the validation part.
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


class Judge(NamedTuple):
    """Holds scores of a validation part against a bound on MCDP(epsilon).

    Attributes
    ----------
    labels, groups, weights : ndarray
        Of the validation part.
    max_mcdp : float
        The bound.
    confidence : float or None
        With it, the upper end of the interval of this confidence is held against the bound.
    epsilon : float
        The half-width of the windows.
    criterion : str
        Which people are compared.

    Examples
    --------
    >>> judge = Judge([0, 1, 0, 1], [0, 0, 1, 1], None, 0.4, None, 0.0, "demographic_parity")
    >>> judge(0.1, [0.1, 0.9, 0.2, 0.8]).met
    False
    """

    labels: Any
    groups: Any
    weights: Any
    max_mcdp: float
    confidence: float | None
    epsilon: float
    criterion: Criterion

    def __call__(self, strength: float, scores: FloatArray) -> Trial:
        """What the scores at a strength are worth."""
        from sklearn.metrics import average_precision_score

        asked: dict[str, Any] = {
            "sensitive_features": self.groups,
            "epsilon": self.epsilon,
            "criterion": self.criterion,
            "sample_weight": self.weights,
        }
        disparity = bounded = mcdp(self.labels, scores, **asked)
        if self.confidence is not None:
            bounded = mcdp_interval(
                self.labels, scores, confidence=self.confidence, random_state=0, **asked
            ).high
        precision = float(average_precision_score(self.labels, scores, sample_weight=self.weights))
        return Trial(strength, precision, disparity, bounded, bounded <= self.max_mcdp)


def check_bound(strength: Any, max_mcdp: Any, max_mcdp_confidence: Any) -> None:
    """A bound in place of a strength, and a confidence with a bound only."""
    if max_mcdp is not None:
        as_fraction(max_mcdp, "max_mcdp")
        if strength is not None:
            raise ValueError("strength and max_mcdp are both given where one of them is expected")
    if max_mcdp_confidence is not None:
        as_probability(max_mcdp_confidence, "max_mcdp_confidence")
        if max_mcdp is None:
            raise ValueError("max_mcdp_confidence is given where max_mcdp is None")


Model = TypeVar("Model")
TrainAt = Callable[[float], tuple[Model, Trial]]


def search_strength(train_at: TrainAt[Model]) -> tuple[Model, list[Trial], int]:
    """Double the strength until the bound is met, then halve the interval in between.

    Parameters
    ----------
    train_at : callable
        Trains at a strength, from a new start, and says how it went. From the model of another strength a
        network came out worse on Adult and Bank, in as many steps and in fewer.

    Returns
    -------
    model
        The most accurate that meets the bound; where none does, the one with the least disparity.
    trials : list of Trial
        In the order in which they were tried.
    chosen : int
        Which of the trials the model belongs to.

    Examples
    --------
    >>> def train_at(strength):
    ...     value = 0.4 / (1.0 + strength)
    ...     return strength, Trial(strength, 1.0 - strength, value, value, met=value < 0.2)
    >>> _, trials, chosen = search_strength(train_at)
    >>> round(trials[chosen].strength, 2)
    1.05
    """
    found: list[tuple[Model, Trial]] = [train_at(0.0)]
    strength = _FIRST_STRENGTH
    while not found[-1][1].met and len(found) <= _DOUBLINGS:
        found.append(train_at(strength))
        strength *= 2.0
    if found[-1][1].met and len(found) > 1:
        ends = [trial.strength for _, trial in found[-2:]]
        for _ in range(_HALVINGS):
            found.append(train_at(sum(ends) / 2.0))
            trial = found[-1][1]
            ends[int(trial.met)] = trial.strength
    trials = [trial for _, trial in found]
    chosen = choose(trials)
    return found[chosen][0], trials, chosen


def choose(trials: Sequence[Trial]) -> int:
    """The most accurate trial that meets the bound, else the one with the least disparity."""
    met = [place for place, trial in enumerate(trials) if trial.met]
    if met:
        return max(met, key=lambda place: trials[place].average_precision)
    return min(range(len(trials)), key=lambda place: trials[place].bounded)


def tell_unmet(trials: Sequence[Trial], chosen: Trial, judge: Judge, *, stacklevel: int) -> None:
    """Warn where no trial meets the bound."""
    if chosen.met:
        return
    least = "MCDP" if judge.confidence is None else "upper end of MCDP"
    warnings.warn(
        f"the bound max_mcdp={judge.max_mcdp} was not met: of {len(trials)} strengths up to "
        f"{trials[-1].strength:g}, the least validation {least} is {chosen.bounded:.4f}, at "
        f"strength {chosen.strength:g}; that model is kept",
        BoundNotMetWarning,
        stacklevel=stacklevel + 1,
    )
