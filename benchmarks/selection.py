"""How often a bound is promised after a search, and how often wrongly; `make promises` makes the table.

People come from a population that is known: a census, whose truth is measured on 60,000 others, or models
whose MCDP is given. Fits are counted in whole ones; a short fit is an eighth.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score

import localparity as lp
from benchmarks._commit import current_commit
from known_truth import Fall, KnownTruthClassifier, draw_people
from localparity.models._base import BoundedClassifier

RESULTS = Path(__file__).parents[1] / "results" / "selection.md"
ROWS, BOUND, CONFIDENCE, SAFE = 3000, 0.2, 0.9, 0.08


class Draw(NamedTuple):
    """One fit.

    Attributes
    ----------
    met, above : bool
        Whether the bound was met, and whether the model kept is above it in the population all the same.
    is_safe : bool
        Whether the first model to be tested is well within the bound in the population.
    fits : float
        How many fits it took.
    truth, average_precision : float
        Of the model kept, in the population.
    """

    met: bool
    above: bool
    is_safe: bool
    fits: float
    truth: float
    average_precision: float


class Design(NamedTuple):
    """A classifier on people of a kind, and how often it is fitted."""

    what: str
    draw: Callable[[int], Draw]
    draws: int = 200


@cache
def census() -> Any:
    """The people who stand for the population."""
    return lp.datasets.make_census(60_000, random_state=10**6)


def on_census(kind: type[BoundedClassifier], **options: Any) -> Callable[[int], Draw]:
    """Fits of a classifier to 3,000 people of the census."""

    class Recorded(kind):  # type: ignore[misc, valid-type]
        def _train(self, backend: Any, strength: float, title: str, *, short: bool = False) -> Any:
            model = super()._train(backend, strength, title, short=short)
            self.made.append((strength, short, model))
            return model

    def draw(seed: int) -> Draw:
        everyone, people = census(), lp.datasets.make_census(ROWS, random_state=seed)
        model = Recorded(max_mcdp=BOUND, confidence=CONFIDENCE, random_state=seed, **options)
        model.made = []
        model.fit(people.data, people.target, sensitive_features=people.sensitive_features)
        features = model._read_features(everyone.data)

        def scores_at(strength: float) -> Any:
            whole = (one for at, short, one in model.made if at == strength and not short)
            return next(whole).scores(features)

        def truth_at(strength: float) -> float:
            return lp.mcdp(None, scores_at(strength), sensitive_features=everyone.sensitive_features)

        truth = truth_at(model.strength_)
        return Draw(
            model.bound_met_,
            model.bound_met_ and truth > BOUND,
            truth_at(next(iter(model.trials_))) < SAFE,
            sum(0.125 if short else 1.0 for _, short, _ in model.made),
            truth,
            float(average_precision_score(everyone.target, scores_at(model.strength_))),
        )

    return draw


def known(fall: Fall) -> Callable[[int], Draw]:
    """Fits of models whose truth is given."""

    def draw(seed: int) -> Draw:
        people = draw_people(ROWS, np.random.default_rng([18, seed]))
        model = KnownTruthClassifier(fall, max_mcdp=BOUND, confidence=CONFIDENCE, random_state=seed).fit(
            **people
        )
        truth, first = model.true_mcdp_, fall(next(iter(model.trials_)))
        return Draw(model.bound_met_, model.bound_met_ and truth > BOUND, first < SAFE, np.nan, truth, np.nan)

    return draw


LIGHTGBM, XGBOOST = lp.models.LocalParityLGBMClassifier, lp.models.LocalParityXGBClassifier
DESIGNS = [
    Design("LightGBM, 30 trees", on_census(LIGHTGBM, n_estimators=30, n_jobs=1)),
    Design(
        "LightGBM, up to 60 trees, early stopping", on_census(LIGHTGBM, n_estimators=60, patience=5, n_jobs=1)
    ),
    Design("XGBoost, 30 trees", on_census(XGBOOST, n_estimators=30, n_jobs=1)),
    Design("known: every strength at 0.2001", known(Fall(0.2001, 0.2001)), 1000),
    Design("known: from 0.3 down to 0.2001", known(Fall(0.3, 0.2001)), 1000),
    Design("known: from 0.3 down to 0.19", known(Fall(0.3, 0.19)), 1000),
    Design("known: from 0.3 down to 0.02", known(Fall(0.3, 0.02)), 1000),
]


def _draw(place: int, seeds: range) -> list[Draw]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [DESIGNS[place].draw(seed) for seed in seeds]


def simulate(place: int, draws: int | None = None, jobs: int = 2) -> list[Draw]:
    """The draws of a design."""
    draws = draws or DESIGNS[place].draws
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        parts = [pool.submit(_draw, place, range(start, draws, 8)) for start in range(8)]
        return [drawn for part in parts for drawn in part.result()]


def share(values: list[bool]) -> str:
    """The share of cases, with its Monte Carlo error, and how many there are."""
    if not values:
        return "-"
    found = float(np.mean(values))
    spread = max(found * (1.0 - found), 1.0 / len(values))
    return f"{found:.1%} ± {sqrt(spread / len(values)):.1%} of {len(values)}"


HEADING = """\
# A bound that is promised after a search

`python -m benchmarks.selection` at {commit}: `max_mcdp={bound}` with `confidence={confidence}`, fitted to
{rows:,} people, of whom a fifth are held out for the test. The truth is MCDP(0) of 60,000 other people of the
census, or given. The bound is met where some strength passes the test; that it is met and the truth of the
model kept above it may happen in 10% of all fits. The first model to be tested is called safe where its truth
is below {safe}. Shares are given with their Monte Carlo errors.

| models | met | met, first safe | met, and the truth above | fits | truth where met | AP where met |
|---|---|---|---|---|---|---|
"""


def row(what: str, found: list[Draw]) -> str:
    """A line of the table."""
    met = [drawn for drawn in found if drawn.met]
    means = [np.mean([drawn.fits for drawn in found])]
    means += [np.mean([one[place] for one in met]) if met else np.nan for place in (4, 5)]
    shown = ("-" if np.isnan(mean) else form.format(mean) for mean, form in zip(means, FORMS, strict=True))
    shares = (
        share([drawn.met for drawn in found]),
        share([drawn.met for drawn in found if drawn.is_safe]),
        share([drawn.above for drawn in found]),
    )
    return f"| {' | '.join([what, *shares, *shown])} |\n"


FORMS = ("{:.1f}", "{:.3f}", "{:.1%}")


def main() -> None:
    """Simulate, and write the table."""
    lines = [
        HEADING.format(commit=current_commit(), bound=BOUND, confidence=CONFIDENCE, rows=ROWS, safe=SAFE)
    ]
    for place, design in enumerate(DESIGNS):
        lines.append(row(design.what, simulate(place)))
        print(lines[-1], end="", flush=True)
    RESULTS.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
