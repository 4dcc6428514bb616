"""`python -m benchmarks.ingredients`: how far the default group-blind model is from the best there can be.

People are drawn from two known models: the census, whose logits are sums of features, and one with
interactions. What a fitted model loses is measured in the population: on quasi-random people who count as a
positive, and as a member of each group, by their true probabilities. Finished runs are read back from
results/ingredients.csv, so that an interrupted sweep resumes.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, qmc
from sklearn.metrics import average_precision_score

import localparity as lp
from census_frontier import census_frontier, census_probabilities
from localparity.datasets import _census

RUNS = Path(__file__).parent.parent / "results" / "ingredients.csv"
FIELDS = ("people", "rows", "seed", "lost", "mcdp", "fit_seconds", "microseconds_a_row")
PLAN = (
    ("census", 5_000, 20),
    ("census", 20_000, 20),
    ("crossed", 20_000, 6),
    ("census", 100_000, 5),
    ("crossed", 100_000, 2),
)
BOUND, MEASURED_ON = 0.05, 2**16
KINDS, PLACES = list("abcdef"), list("wxyz")
OF_KIND = np.array([0.9, -0.6, 0.3, -0.9, 0.6, -0.2])
OF_PLACE = np.array([1.0, -1.0, 0.5, -0.4])
OF_CODE = np.array([0.2, -0.9, 0.7, -0.3, 1.0, -0.7, 0.1, 0.6, -1.0, 0.4])
OF_CODE_IN_GROUP = np.array([-0.5, 0.6, 0.3, -0.7, 0.4, 0.1, -0.4, 0.8, -0.2, -0.3])


def census_people(uniform: np.ndarray) -> pd.DataFrame:
    """People of the census from five uniform numbers each."""
    male = uniform[:, 0] < _census._SHARE_OF_MEN
    occupation = np.empty(len(uniform), dtype=int)
    for is_male, name in ((False, "Female"), (True, "Male")):
        members = male == is_male
        steps = np.cumsum(_census._SHARES[name])[:-1]
        occupation[members] = np.searchsorted(steps, uniform[members, 1])
    return pd.DataFrame(
        {
            "age": 18 + np.floor(uniform[:, 4] * 58).astype(int),
            "education_years": norm.ppf(uniform[:, 2], 13.0, 2.5),
            "hours_per_week": 8.0 * norm.ppf(uniform[:, 3]) + np.where(male, 42.0, 37.0),
            "occupation": np.asarray(_census._OCCUPATIONS)[occupation],
        }
    )


def crossed_people(uniform: np.ndarray) -> pd.DataFrame:
    """Five numbers, two texts and a code from eight uniform numbers each."""
    table = pd.DataFrame(norm.ppf(np.clip(uniform[:, :5], 1e-9, 1.0 - 1e-9)), columns=list("12345"))
    kinds, places = (np.array(names) for names in (KINDS, PLACES))
    kind, place = kinds[(uniform[:, 5] * 6).astype(int)], places[(uniform[:, 6] * 4).astype(int)]
    return table.assign(kind=kind, place=place, code=(uniform[:, 7] * 10).astype(int))


def crossed_probabilities(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """P(y = 1 | x) and P(group | x), whose logits have interactions."""
    one, two, three, four, five = table[list("12345")].to_numpy().T
    kind, place = (
        pd.Categorical(table[name], names).codes for name, names in (("kind", KINDS), ("place", PLACES))
    )
    code = table["code"].to_numpy()
    positive = -1.2 + 0.8 * one + 0.9 * two * four + 0.8 * np.sin(2.0 * five) + OF_PLACE[place] * three
    positive = positive + 0.8 * OF_CODE[code] + 1.2 * ((one > 0.3) & (kind < 2))
    second = 0.2 + 0.9 * one + 0.7 * two * three + 0.6 * OF_KIND[kind] + 0.8 * OF_CODE_IN_GROUP[code]
    second = 1.0 / (1.0 + np.exp(-second - 0.8 * ((four > 0.0) & (place == 0))))
    return 1.0 / (1.0 + np.exp(-positive)), np.column_stack([1.0 - second, second])


class Population:
    """People by their true probabilities, and the best average precision at each MCDP(0)."""

    def __init__(self, name: str) -> None:
        self.name = name
        draw, dimensions = (census_people, 5) if name == "census" else (crossed_people, 8)
        self.people = draw(qmc.Sobol(dimensions, seed=5).random(MEASURED_ON))
        truth = census_probabilities if name == "census" else crossed_probabilities
        self.chance, self.groups = truth(self.people)
        if name == "census":
            self.bounds = np.linspace(0.0, 0.1, 21)
            self.best = np.array([census_frontier(bound) for bound in self.bounds])
        else:
            points = [self.repaired(bound) for bound in (0.02, 0.03, 0.04, 0.045, 0.05, 0.055, 0.06, 0.08)]
            self.bounds, self.best = np.array(sorted(points)).T

    def repaired(self, bound: float) -> tuple[float, float]:
        """MCDP(0) and average precision of the true probabilities, repaired to a bound."""
        repair = lp.models.GroupBlindRepair(bound).fit(
            np.tile(self.chance, 2),
            sensitive_features=np.repeat([0, 1], MEASURED_ON),
            group_probabilities=np.tile(self.groups, (2, 1)),
            sample_weight=self.groups.T.ravel(),
        )
        return self.measure(repair.transform(self.chance, group_probabilities=self.groups))

    def draw(self, rows: int, seed: int) -> tuple[Any, Any, Any]:
        """Features, labels and groups of people to fit on."""
        if self.name == "census":
            census = lp.datasets.make_census(rows, random_state=seed)
            return census.data, census.target, census.sensitive_features
        rng = np.random.default_rng(seed)
        table = crossed_people(rng.random((rows, 8)))
        chance, groups = crossed_probabilities(table)
        labels = (rng.random(rows) < chance).astype(int)
        return table, labels, np.where(rng.random(rows) < groups[:, 1], "b", "a")

    def measure(self, scores: np.ndarray) -> tuple[float, float]:
        """MCDP(0) and average precision of scores."""
        codes, weights = np.repeat([0, 1], MEASURED_ON), self.groups.T.ravel()
        disparity = lp.mcdp(None, np.tile(scores, 2), sensitive_features=codes, sample_weight=weights)
        chances = np.concatenate([self.chance, 1.0 - self.chance])
        precision = average_precision_score(1 - codes, np.tile(scores, 2), sample_weight=chances)
        return float(disparity), float(precision)


def main() -> None:
    """Run what is missing."""
    lines = list(csv.reader(RUNS.open())) if RUNS.exists() else [list(FIELDS)]
    done, populations = {tuple(line[:3]) for line in lines}, dict[str, Population]()
    for name, rows, seeds in PLAN:
        for seed in range(seeds):
            if (name, str(rows), str(seed)) in done:
                continue
            if name not in populations:
                populations[name] = Population(name)
            people = populations[name]
            X, y, groups = people.draw(rows, seed)
            times = [time.process_time()]
            model = lp.models.GroupBlindClassifier(max_mcdp=BOUND, random_state=seed)
            model.fit(X, y, sensitive_features=groups)
            times.append(time.process_time())
            scores = model.predict_proba(people.people)[:, 1]
            times.append(time.process_time())
            disparity, precision = people.measure(scores)
            lost = 100.0 * (np.interp(disparity, people.bounds, people.best) - precision)
            fit, predict = np.diff(times)
            values = [lost, 100.0 * disparity, fit, 1e6 * predict / MEASURED_ON]
            lines.append([name, str(rows), str(seed), *(f"{value:.3f}" for value in values)])
            with RUNS.open("w", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerows(lines)


if __name__ == "__main__":
    main()
