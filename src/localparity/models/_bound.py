"""The most accurate model whose disparity is within a bound, by a search over strengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from localparity._types import Criterion, FloatArray
from localparity._validation import as_fraction, as_probability
from localparity.metrics import mcdp
from localparity.models._rows import TrainingRows
from localparity.uncertainty import mcdp_interval

_FIRST_STRENGTH = 0.1
_DOUBLINGS = 8
_HALVINGS = 4


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
            f"{trials[-1].strength:g}, the lowest validation {compared} is {chosen.bounded:.4f}, at strength "
            f"{chosen.strength:g}; that model is kept"
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


AnyModel = TypeVar("AnyModel")


def search_strength(
    train_at: Callable[[float], tuple[AnyModel, Trial]],
) -> tuple[AnyModel, list[Trial], Trial]:
    """Double the strength until the bound is met, then bisect; return the model, all trials and its own.

    `train_at` trains from a new start at each strength: networks that started from the model of another
    strength came out worse on Adult and Bank, in as many steps and in fewer.

    Examples
    --------
    >>> def train_at(strength):
    ...     value = 0.4 / (1.0 + strength)
    ...     return strength, Trial(strength, 1.0 - strength, value, value, met=value < 0.2)
    >>> _, trials, chosen = search_strength(train_at)
    >>> round(chosen.strength, 2)
    1.05
    """
    found = [train_at(0.0)]
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
    return found[chosen][0], trials, trials[chosen]


def choose(trials: Sequence[Trial]) -> int:
    """Return the place of the most accurate trial within the bound, else of the one with the least MCDP."""
    met = [place for place, trial in enumerate(trials) if trial.met]
    if met:
        return max(met, key=lambda place: trials[place].average_precision)
    return min(range(len(trials)), key=lambda place: trials[place].bounded)
