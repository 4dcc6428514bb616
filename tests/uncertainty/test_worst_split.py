"""The worst split against every split in rational arithmetic, and its test against a planted one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import localparity as lp
import oracles
from localparity.uncertainty._splits import OrderedPeople


@given(st.integers(2, 24), st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32), st.integers(1, 3))
def test_is_the_worst_of_all_splits(rows: int, n_scores: int, n_values: int, seed: int, least: int) -> None:
    rng = np.random.default_rng(seed)
    steps, ages = rng.integers(0, n_scores + 1, rows), rng.integers(0, n_values + 1, rows)
    people = OrderedPeople(steps / (n_scores + 1), ages.astype(float), least)
    expected, _ = oracles.worst_split(
        [Fraction(int(s), n_scores + 1) for s in steps], [Fraction(int(a)) for a in ages], Fraction(0), least
    )
    assume(expected >= 0)
    assert people.splits.size
    size, gap = people.worst_split()
    assert gap == pytest.approx(float(expected), abs=1e-12)
    at = people.values[list(people.ends).index(size)]
    assert lp.mcdp(None, steps / (n_scores + 1), sensitive_features=ages <= at) == pytest.approx(
        gap, abs=1e-12
    )
    # The clearest split: the largest over its spread at parity.
    sides = [ages <= split for split in people.splits]
    spreads = [np.sqrt(1 / side.sum() + 1 / (rows - side.sum())) for side in sides]
    gaps = [lp.mcdp(None, steps / (n_scores + 1), sensitive_features=side) for side in sides]
    size, clearest = people.clearest_split()
    assert clearest == pytest.approx(max(np.array(gaps) / spreads), abs=1e-12)
    index = [side.sum() for side in sides].index(size)
    assert gaps[index] / spreads[index] == pytest.approx(clearest, abs=1e-12)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["independent", "planted", "slope"])
def test_many_people(kind: str) -> None:
    rng = np.random.default_rng(0)
    age = rng.random(1500)
    lift = {"independent": 0.0, "planted": 0.1 * (age > 0.7), "slope": 0.2 * age}[kind]
    scores = 0.8 * rng.random(1500) + lift
    people = OrderedPeople(scores, age, 150)
    every = [lp.mcdp(None, scores, sensitive_features=age <= split) for split in people.splits[::5]]
    size, gap = people.worst_split()
    assert gap >= max(every)
    assert gap == pytest.approx(
        lp.mcdp(None, scores, sensitive_features=age <= np.sort(age)[size - 1]), abs=1e-12
    )


@pytest.mark.compiled
def test_a_planted_split_is_found_with_its_place() -> None:
    rng = np.random.default_rng(1)
    age = rng.integers(18, 90, 3000)
    scores = 100.0 * np.clip(rng.beta(3, 3, 3000) + 0.15 * (age > 55), 0, 1)
    found = lp.worst_split(
        lp.Predictions.from_arrays(None, scores, sensitive_features=age, score_range=(0, 100)),
        min_group_size=300,
        n_resamples=99,
        random_state=0,
    )
    assert abs(found.split - 55) <= 1
    assert found.p_value == 0.01
    assert found.least == 300
    assert found.mcdp == lp.mcdp(None, scores, sensitive_features=age <= found.split, score_range=(0, 100))
    assert found.sizes == (np.count_nonzero(age <= found.split), np.count_nonzero(age > found.split))
    assert found.window.higher == f"> {found.split:g}"
    assert 20 < found.window.low < found.window.high < 80
    assert found.curve.mcdp(0.05) < found.mcdp
    assert found.test is not None
    assert found.test.null_quantiles[0.99] < found.mcdp


def test_the_worse_label_is_told() -> None:
    scores, labels = [0.1, 0.2, 0.3, 0.4, 0.2, 0.3, 0.6, 0.9], [0, 0, 0, 0, 1, 1, 1, 1]
    found = lp.worst_split(
        lp.Predictions.from_arrays(labels, scores, sensitive_features=[1, 2, 1, 2, 1, 1, 2, 2]),
        criterion="equalized_odds",
        min_group_size=1,
        n_resamples=5,
        random_state=0,
    )
    assert (found.split, found.mcdp, found.sizes, found.window.label) == (1.0, 1.0, (2, 2), 1)
    assert found.window.higher == "> 1"
    assert 1 / 6 <= found.p_value <= 1.0
    assert found.test is not None
    assert found.test.statistic == found.mcdp


@pytest.mark.compiled
@pytest.mark.parametrize("criterion", ["equal_opportunity", "predictive_equality", "equalized_odds"])
def test_labels(criterion: Any) -> None:
    rng = np.random.default_rng(2)
    labels, age = rng.integers(0, 2, 3000), rng.normal(50, 10, 3000)
    scores = np.clip(rng.beta(3, 3, 3000) + 0.2 * labels * (age > 45), 0, 1)
    rows = lp.Predictions.from_arrays(labels, scores, sensitive_features=age)
    found = lp.worst_split(rows, criterion=criterion, min_group_size=150, n_resamples=99, random_state=0)
    if criterion == "predictive_equality":
        assert found.p_value > 0.05
        assert found.window.label == 0
    else:
        assert found.p_value == 0.01
        assert found.window.label == 1
        assert abs(found.split - 45) < 2
        assert found.mcdp == lp.mcdp(
            labels, scores, sensitive_features=age <= found.split, criterion="equal_opportunity"
        )


def test_it_is_seeded_does_not_depend_on_the_number_of_jobs_and_may_leave_the_test_out() -> None:
    rng = np.random.default_rng(0)
    scores, age = rng.random(200), rng.random(200)
    rows = lp.Predictions.from_arrays(None, scores, sensitive_features=age)
    one = lp.worst_split(rows, random_state=3, n_resamples=50)
    assert one.test == lp.worst_split(rows, random_state=3, n_jobs=2, n_resamples=50).test
    assert one.test != lp.worst_split(rows, random_state=4, n_resamples=50).test
    without = lp.worst_split(rows, n_resamples=0)
    assert without.test is None
    assert np.isnan(without.p_value)
    assert without.split == one.split


@pytest.mark.compiled
def test_the_level_is_kept_under_independence_and_the_search_is_counted_in() -> None:
    rng = np.random.default_rng(0)
    p_values, clearest, plain = [], [], []
    for seed in range(150):
        scores, age = rng.random(120).round(2), rng.integers(20, 60, 120)
        found = lp.worst_split(
            lp.Predictions.from_arrays(None, scores, sensitive_features=age),
            n_resamples=39,
            random_state=seed,
        )
        p_values.append(found.p_value)
        clearest.append((found.clearest or found).p_value)
        naive = lp.permutation_test(
            None, scores, sensitive_features=age <= found.split, n_resamples=39, random_state=seed
        )
        plain.append(naive.p_value)
    for each in (p_values, clearest):
        assert np.mean(np.array(each) <= 0.1) <= 0.1 + 3.5 * np.sqrt(0.09 / 150)
    assert np.mean(np.array(plain) <= 0.1) > 0.3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature": ["a", "b", "c", "d"]}, "feature must be numbers"),
        ({"feature": [1.0, np.nan, 2.0, 3.0]}, "feature .*nan at row 1"),
        ({"feature": [1.0, 2.0]}, "feature has 2 rows, y_score has 4"),
        ({"feature": [1.0, 1.0, 1.0, 1.0]}, "feature leaves 1 of 4 rows"),
        ({"feature": [1, 1, 1, 2], "min_group_size": 2}, "leaves 2 of 4 rows.*min_group_size"),
        ({"n_resamples": -1}, "n_resamples .*got -1"),
        (
            {"criterion": "equal_opportunity"},
            "criterion='equal_opportunity' needs y_true",
        ),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    rows = lp.Predictions.from_arrays(None, [0.1, 0.2, 0.3, 0.4], sensitive_features=[1, 2, 3, 4])
    with pytest.raises(ValueError, match=message):
        lp.worst_split(rows, **{"min_group_size": 1, **options})


def test_a_label_without_anybody_is_named() -> None:
    with pytest.raises(ValueError, match="no rows with y_true = 1"):
        lp.worst_split(
            lp.Predictions.from_arrays([0, 0], [0.1, 0.2], sensitive_features=[1, 2]),
            criterion="equal_opportunity",
        )


def test_a_label_without_a_split_is_named() -> None:
    with pytest.raises(ValueError, match="of 2 rows with y_true = 1"):
        lp.worst_split(
            lp.Predictions.from_arrays([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], sensitive_features=[1, 2, 3, 3]),
            criterion="equalized_odds",
            min_group_size=1,
        )


def test_a_split_is_said_exactly() -> None:
    age = np.repeat([1234567.0, 7654321.25], 20)
    found = lp.worst_split(
        lp.Predictions.from_arrays(None, np.linspace(0.0, 1.0, 40), sensitive_features=age), n_resamples=0
    )
    assert found.curve.groups == ("<= 1234567", "> 1234567")
    tenths = lp.worst_split(
        lp.Predictions.from_arrays(None, np.linspace(0.0, 1.0, 40), sensitive_features=age / 1e7),
        n_resamples=0,
    )
    assert float(tenths.curve.groups[0].removeprefix("<= ")) == 1234567.0 / 1e7


def test_a_feature_stands_beside_the_groups_or_is_them() -> None:
    rng = np.random.default_rng(5)
    scores, age, labels = rng.random(80).round(2), rng.integers(20, 60, 80), rng.integers(0, 2, 80)
    options: dict[str, Any] = {"criterion": "equalized_odds", "n_resamples": 0, "min_group_size": 6}
    rows = lp.Predictions.from_arrays(labels, scores, sensitive_features=age)
    expected = lp.worst_split(rows, **options)
    assert min(expected.sizes) >= 6
    others = lp.Predictions.from_arrays(labels, scores, sensitive_features=labels)
    found = lp.worst_split(others, age, **options)
    assert (found.split, found.mcdp, found.sizes) == (expected.split, expected.mcdp, expected.sizes)
    weighted = lp.Predictions.from_arrays(None, scores, sensitive_features=age, sample_weight=labels + 1)
    with pytest.raises(ValueError, match="weights"):
        lp.worst_split(weighted)
    with pytest.raises(ValueError, match="must be Predictions, got ScoreCounts"):
        lp.worst_split(lp.ScoreCounts.from_predictions(rows))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sensitive_features must be numbers"):
        lp.worst_split(lp.Predictions.from_arrays(None, [0.1, 0.2], sensitive_features=["a", "b"]))


@pytest.mark.compiled
def test_few_people_on_a_side_do_not_hide_a_clear_split() -> None:
    """A real split in the middle is clear; the largest MCDP is that of the few oldest."""
    rng = np.random.default_rng(3)
    age = rng.uniform(20, 80, 2000)
    scores = np.clip(rng.beta(3, 3, 2000) + 0.08 * (age > 50), 0, 1)
    found = lp.worst_split(
        lp.Predictions.from_arrays(None, scores, sensitive_features=age), n_resamples=99, random_state=0
    )
    assert found.least == 10
    assert min(found.sizes) < 100
    assert found.p_value > 0.05
    clearest = found.clearest
    assert clearest is not None
    assert abs(clearest.split - 50) < 3
    assert clearest.p_value == 0.01
    assert clearest.mcdp < found.mcdp
    assert clearest.clearest is None
    many = lp.worst_split(
        lp.Predictions.from_arrays(None, scores, sensitive_features=age), min_group_size=500, n_resamples=0
    )
    assert many.least == 500
    assert min(many.sizes) >= 500
