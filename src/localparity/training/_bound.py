"""The most accurate model whose disparity is within a bound, by a search over strengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from localparity.training._networks import Network

_FIRST_STRENGTH = 0.1
_DOUBLINGS = 8
_HALVINGS = 4


class BoundNotMetWarning(UserWarning):
    """No strength that was tried brought the validation MCDP within the bound."""


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
    """

    strength: float
    average_precision: float
    mcdp: float
    bounded: float
    met: bool


TrainAt = Callable[[float, Network | None], tuple[Network, Trial]]


def search_strength(train_at: TrainAt) -> tuple[Network, list[Trial], int]:
    """Double the strength until the bound is met, then halve the interval in between.

    Each model starts from that of the next lower strength.

    Parameters
    ----------
    train_at : callable
        Trains at a strength, starting from a network where there is one, and says how it went.

    Returns
    -------
    network : Network
        The most accurate that meets the bound; where none does, the one with the least disparity.
    trials : list of Trial
        In the order in which they were tried.
    chosen : int
        Which of the trials the network belongs to.

    Examples
    --------
    >>> from torch import nn
    >>> def train_at(strength, start):
    ...     value = 0.4 / (1.0 + strength)
    ...     trial = Trial(strength, 1.0 - strength, value, value, met=value < 0.2)
    ...     return Network(nn.Identity(), nn.Linear(1, 1)), trial
    >>> _, trials, chosen = search_strength(train_at)
    >>> round(trials[chosen].strength, 2)
    1.05
    """
    found: list[tuple[Network, Trial]] = [train_at(0.0, None)]
    strength = _FIRST_STRENGTH
    while not found[-1][1].met and len(found) <= _DOUBLINGS:
        found.append(train_at(strength, found[-1][0]))
        strength *= 2.0
    if found[-1][1].met and len(found) > 1:
        (below, low), (_, high) = found[-2:]
        ends = [low.strength, high.strength]
        for _ in range(_HALVINGS):
            network, trial = train_at(sum(ends) / 2.0, below)
            found.append((network, trial))
            ends[int(trial.met)] = trial.strength
    trials = [trial for _, trial in found]
    chosen = choose(trials)
    return found[chosen][0], trials, chosen


def choose(trials: list[Trial]) -> int:
    """The most accurate trial that meets the bound, else the one with the least disparity."""
    met = [place for place, trial in enumerate(trials) if trial.met]
    if met:
        return max(met, key=lambda place: trials[place].average_precision)
    return min(range(len(trials)), key=lambda place: trials[place].bounded)
