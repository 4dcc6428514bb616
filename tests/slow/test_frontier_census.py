"""Group-blind models come to the frontier of the census, which quadrature knows, as there are more people.

A model is measured in the population: on people who count by their true probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import localparity as lp
from census_frontier import census_frontier, census_probabilities
from localparity.datasets import make_census
from localparity.models import GroupBlindClassifier, GroupBlindRepair
from localparity.models._frontier import FrontierSettings
from localparity.models.repair._dual import BlindRows

pytestmark = pytest.mark.slow

PEOPLE = make_census(50_000, random_state=10**6).data
CHANCE, GROUPS = census_probabilities(PEOPLE)
SIZE = CHANCE.size


def average_precision(scores: np.ndarray) -> float:
    """The average precision in the population, less what these people happen to add to that of the best scores."""
    labels, weights = np.repeat([1, 0], SIZE), np.concatenate([CHANCE, 1.0 - CHANCE])
    found, plain = (
        average_precision_score(labels, np.tile(each, 2), sample_weight=weights) for each in (scores, CHANCE)
    )
    return float(found - plain + census_frontier())


def below_the_frontier(scores: np.ndarray) -> float:
    """How much average precision is missing to the frontier at the scores' own MCDP."""
    codes, weights = np.repeat([0, 1], SIZE), GROUPS.T.ravel()
    disparity = lp.mcdp(None, np.tile(scores, 2), sensitive_features=codes, sample_weight=weights)
    return census_frontier(disparity) - average_precision(scores)


@pytest.mark.parametrize("bound", [0.02, 0.05, 0.1])
def test_exact_probabilities_reach_the_frontier(bound: float) -> None:
    census = make_census(100_000, random_state=0)
    chance, groups = census_probabilities(census.data)
    repair = GroupBlindRepair(bound).fit(
        chance, sensitive_features=census.sensitive_features, group_probabilities=groups
    )
    below = below_the_frontier(repair.transform(CHANCE, group_probabilities=GROUPS))
    assert -0.001 < below < 0.008  # nesting, and the noise of the multipliers


def test_models_of_the_true_form_come_nearer_with_more_people() -> None:
    columns: Any = make_column_transformer(
        (OneHotEncoder(), ["occupation"]),
        (StandardScaler(), ["age", "education_years", "hours_per_week"]),
    )
    model = make_pipeline(columns, LogisticRegression(C=100.0, max_iter=1000))
    distances = []
    for size in (1_000, 5_000, 25_000):
        below = []
        for seed in range(3):
            census = make_census(size, random_state=seed)
            fitted = GroupBlindClassifier(model, model, max_mcdp=0.1, random_state=seed).fit(
                census.data, census.target, sensitive_features=census.sensitive_features
            )
            below.append(below_the_frontier(fitted.predict_proba(PEOPLE)[:, 1]))
        distances.append(float(np.mean(below)))
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.5 * distances[0]
    assert -0.001 < distances[-1] < 0.005


def test_the_band_covers_all_average_precisions_together() -> None:
    def scored(chance: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Three fixed scores, within [0, 1]: the best, and two that favour people who are likely women."""
        return np.stack([(chance + weight * groups[:, 0]) / 1.3 for weight in (0.0, 0.1, 0.3)])

    labels, weights = np.repeat([1, 0], SIZE), np.concatenate([CHANCE, 1.0 - CHANCE])
    truth = [
        average_precision_score(labels, np.tile(scores, 2), sample_weight=weights)
        for scores in scored(CHANCE, GROUPS)
    ]
    settings = FrontierSettings(0.0, "demographic_parity", 3, 0.9, 99, 0)
    draws, missed = 200, 0
    for seed in range(draws):
        census = make_census(1000, random_state=seed)
        chance, groups = census_probabilities(census.data)
        codes = (census.sensitive_features == "Male").astype(np.int64)
        rows = BlindRows(chance, groups[None], census.target, codes, np.ones(1000))
        found = settings.measure(np.zeros(3), scored(chance, groups), rows, (0, 1))
        missed += any(
            not low <= value <= high for low, value, high in zip(found.low, truth, found.high, strict=True)
        )
    assert missed / draws < 0.2
    assert missed / draws > 0.02
