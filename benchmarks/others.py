"""What `promise_` says of as many others, without a confidence; writes results/others.md.

`python -m benchmarks.others` fits `GroupBlindClassifier` without a confidence to people of the census, and to
people of five groups. What `promise_` expects of as many others is beside what others measure, who are drawn
from the same model. Then people of five groups are fitted with a confidence.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import localparity as lp
from benchmarks._commit import current_commit
from benchmarks.promised import People, _census, _linear
from benchmarks.selection import share
from localparity.models._bound import OutOfReachError

RESULTS = Path(__file__).parents[1] / "results" / "others.md"
OTHERS = 8
SHARES = np.array([0.5, 0.2, 0.15, 0.1, 0.05])
SLOPES = np.array([0.0, 0.3, -0.3, 0.6, -0.5])


def census(rows: int, seed: int) -> People:
    """People of the census, their groups men and women."""
    return _census.__wrapped__(rows, seed)


def regions(rows: int, seed: int) -> People:
    """People of the census, who live in five regions of unlike size and education."""
    people, rng = census(rows, seed), np.random.default_rng([seed, 1])
    years = (people.features["education_years"].to_numpy() - 13.0) / 2.5
    chances = SHARES * np.exp(np.outer(years, SLOPES))
    levels = np.cumsum(chances, axis=1) / chances.sum(axis=1, keepdims=True)
    return people._replace(groups=np.array(list("abcde"))[(rng.random(rows)[:, None] > levels).sum(axis=1)])


class Design(NamedTuple):
    """People, how many, the bound, how many fits, and whether the default models are fitted."""

    what: str
    draw: Callable[[int, int], People]
    rows: int
    bound: float
    fits: int
    default: bool = False


DESIGNS = (
    Design("census", census, 1_000, 0.03, 40),
    Design("census", census, 1_000, 0.1, 40),
    Design("census", census, 4_000, 0.03, 24),
    Design("census", census, 4_000, 0.1, 24),
    Design("census, default models", census, 2_000, 0.05, 8, default=True),
    Design("five groups", regions, 3_000, 0.1, 20),
    Design("five groups", regions, 3_000, 0.2, 20),
)
PROMISED = (
    Design("logistic regressions", regions, 3_000, 0.25, 200),
    Design("default models", regions, 3_000, 0.25, 200, default=True),
)


def fit(design: Design, seed: int, **options: Any) -> Any:
    """Fit once; None where the bound is out of reach."""
    people = design.draw(design.rows, seed)
    models = () if design.default else (_linear(), _linear())
    model = lp.models.GroupBlindClassifier(*models, max_mcdp=design.bound, random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model.fit(people.features, people.labels, sensitive_features=people.groups)
        except OutOfReachError:
            return None


def mcdp(model: Any, people: People) -> float:
    """MCDP(0) of people that the model did not see."""
    return lp.mcdp(None, model.predict_proba(people.features)[:, 1], sensitive_features=people.groups)


def expected(design: Design) -> str:
    """A line of the table: what is said of others, and what they measure."""
    lines = []
    for seed in range(design.fits):
        model = fit(design, seed)
        if model is not None:
            said = re.search(r"about (0\.\d+) is expected", model.promise_)
            others = [
                mcdp(model, design.draw(design.rows, 10**6 + OTHERS * seed + draw)) for draw in range(OTHERS)
            ]
            lines.append([float(said[1]), np.mean(others)])
    said_mean, measured = np.mean(lines, axis=0)
    error = np.std([line[1] for line in lines], ddof=1) / np.sqrt(len(lines))
    return (
        f"| {design.what} | {design.rows:,} | {design.bound} | {len(lines)} of {design.fits} | "
        f"{said_mean:.4f} | {measured:.4f} ± {error:.4f} |\n"
    )


def promised(design: Design) -> str:
    """A line of the other table: how often a promise is made, how often wrongly, and how long a fit takes."""
    start = time.process_time()
    models = [fit(design, seed, confidence=0.9) for seed in range(design.fits)]
    seconds = (time.process_time() - start) / design.fits
    others = design.draw(100_000, 10**6)
    wrong = share([model is not None and mcdp(model, others) > design.bound for model in models])
    made = sum(model is not None for model in models)
    return (
        f"| {design.what} | {design.rows:,} | {design.bound} | {made} of {design.fits} | {wrong} | "
        f"{seconds:.1f} |\n"
    )


HEADING = """\
# What is expected of others, without a confidence

`python -m benchmarks.others` at {commit}: `GroupBlindClassifier` around logistic regressions, unless default
models are named. Without a confidence `promise_` says what MCDP(0) is about
expected of as many others. Beside it is what others measure: eight draws for each fit, ± standard errors
over the fits. Fits whose bound is out of reach say nothing. What is said is drawn from the people fitted on.
It does not know how much the fit adapted to them, which others show, and is a rough guide.

| people | rows | bound | fits | expected, said | of others |
|---|---|---|---|---|---|
"""
WITH = """
With a confidence of 0.9, people of five groups, the smallest about 5%. A promise is wrong where MCDP(0) of
100,000 others is above the bound.

| models | rows | bound | promise made | made, and wrong | CPU seconds a fit |
|---|---|---|---|---|---|
"""


def main() -> None:
    """Fit, and write both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    text = HEADING.format(commit=current_commit())
    for line, designs in ((expected, DESIGNS), (promised, PROMISED)):
        text += WITH if line is promised else ""
        for design in designs:
            text += line(design)
            print(text.splitlines()[-1], flush=True)
            given.out.write_text(text)


if __name__ == "__main__":
    main()
