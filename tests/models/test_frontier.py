"""The frontier: its measure against scikit-learn, its envelope, its words, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

import localparity as lp
from localparity.models import frontier
from localparity.models._frontier import _Ranking
from localparity.results import Frontier

CENSUS = lp.datasets.make_census(3000, random_state=0)
NUMBERS = ["age", "education_years", "hours_per_week"]
PLAIN = LogisticRegression(max_iter=1000)
QUICK: dict[str, Any] = {
    "estimator": PLAIN,
    "group_estimator": PLAIN,
    "n_bounds": 5,
    "n_resamples": 40,
    "random_state": 0,
}


def found_by(**options: Any) -> Frontier:
    given = {"sensitive_features": CENSUS.sensitive_features, **QUICK, **options}
    return frontier(CENSUS.data[NUMBERS], CENSUS.target, **given)


@pytest.fixture(scope="module")
def found() -> Frontier:
    return found_by()


def test_average_precision_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, labels = rng.integers(0, 9, 50) / 9.0, rng.integers(0, 2, 50)
        weights = rng.random(50) * rng.integers(0, 2, 50)
        expected = average_precision_score(labels, scores, sample_weight=weights)
        assert _Ranking.of(scores, labels).average_precision(weights) == pytest.approx(expected)


def test_a_frontier_goes_from_little_disparity_to_the_plain_scores(found: Frontier) -> None:
    assert len(found.mcdp) == 5
    assert found.rows == 3000
    assert found.mcdp[0] < 0.08 < 0.12 < found.mcdp[-1]
    assert found.average_precision[0] < found.average_precision[-1]
    assert all(
        low < middle < high
        for low, middle, high in zip(found.low, found.average_precision, found.high, strict=True)
    )
    assert 0.01 < found.noise_floor < 0.06
    assert json.loads(json.dumps(found.to_dict()))["rows"] == 3000


def test_the_same_seed_gives_the_same_frontier(found: Frontier) -> None:
    assert found_by() == found
    assert found_by(random_state=1) != found


def test_weights_count_as_rows(found: Frontier) -> None:
    assert found_by(sample_weight=np.full(3000, 1.0)).mcdp == pytest.approx(found.mcdp, abs=0.02)
    kept = np.arange(3000) % 2 == 0
    assert found_by(sample_weight=kept.astype(float)).rows == 1500


@pytest.mark.parametrize("criterion", ["equal_opportunity", "equalized_odds"])
def test_criteria_that_compare_people_by_label(criterion: str) -> None:
    made = found_by(criterion=criterion, epsilon=0.02)
    assert made.mcdp[0] < made.mcdp[-1]
    assert (made.criterion, made.epsilon) == (criterion, 0.02)


def test_small_groups_take_no_part() -> None:
    groups = CENSUS.sensitive_features.copy().astype(object)
    groups[:10] = "Other"
    assert found_by(sensitive_features=groups).left_out == ("Other",)


MADE = Frontier(
    max_mcdp=(0.0, 0.05, 0.1),
    mcdp=(0.03, 0.02, 0.1),
    average_precision=(0.72, 0.7, 0.78),
    low=(0.7, 0.68, 0.76),
    high=(0.74, 0.72, 0.8),
    noise_floor=0.02,
    epsilon=0.0,
    criterion="demographic_parity",
    confidence=0.95,
    rows=2000,
)


def test_the_envelope_rises() -> None:
    assert MADE.average_precision_at(0.02) == 0.7
    assert MADE.average_precision_at(0.065) == pytest.approx(0.75)
    assert MADE.average_precision_at(0.0) == 0.7
    assert MADE.average_precision_at(1.0) == 0.78
    worse = replace(MADE, average_precision=(0.6, 0.7, 0.78))
    assert worse.average_precision_at(0.03) == 0.7
    disparity, best, low, high = worse.envelope()
    assert list(disparity) == sorted(MADE.mcdp)
    for part in (best, low, high):
        assert list(part) == sorted(part)


@pytest.mark.parametrize(
    ("mcdp", "precision", "words"),
    [
        (0.1, 0.749, "gives up 3.1 points of AP more than needed at its MCDP"),
        (0.1, 0.8, "has 2.0 points of AP more than the frontier at its MCDP"),
        (0.1, 0.7801, "gives up no more AP than needed at its MCDP"),
        (0.01, 0.6, "gives up 10.0 points of AP more than the strongest group-blind repair"),
    ],
)
def test_what_a_model_gives_up(mcdp: float, precision: float, words: str) -> None:
    assert MADE.describe(mcdp, precision).startswith(words)
    assert MADE.shortfall(mcdp, precision) == pytest.approx(MADE.average_precision_at(mcdp) - precision)


def test_a_line_with_its_band() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    display = MADE.plot()
    assert [text.get_text() for text in display.ax_.texts] == ["frontier (95% band)", "expected under parity"]
    pyplot.close(display.figure_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bounds": 1}, r"n_bounds must be >= 2, got 1"),
        ({"cv": 1}, r"cv must be >= 2, got 1"),
        ({"epsilon": -1.0}, r"epsilon must be .* got -1"),
        ({"criterion": "parity"}, r"criterion .* got 'parity'"),
        ({"confidence": 0.99}, r"n_resamples must be >= 99 .* got 40"),
        ({"estimator": "trees"}, r"estimator must have predict_proba, got a str"),
        ({"sensitive_features": ["a"] * 3000}, r"two groups"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        found_by(**options)


def test_a_model_is_measured_in_fractions() -> None:
    with pytest.raises(ValueError, match=r"max_mcdp .* got 5"):
        MADE.average_precision_at(5)
    with pytest.raises(ValueError, match=r"average_precision .* got 78"):
        MADE.shortfall(0.05, 78)
