"""MCDP and its profile against the definition, scipy, published values and the paper's theorems."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

import localparity as lp
import oracles
from strategies import People, epsilons, people


@given(st.data())
def test_equals_the_definition_in_rational_arithmetic(data: st.DataObject) -> None:
    drawn = data.draw(people())
    epsilon = data.draw(epsilons(drawn.grid))
    expected = float(oracles.mcdp(*drawn.samples(), epsilon))
    measured = lp.mcdp(None, drawn.scores, sensitive_features=drawn.groups, epsilon=float(epsilon))
    assert measured == expected


@given(st.data())
def test_float32_scores_equal_the_definition_too(data: st.DataObject) -> None:
    drawn = data.draw(people())
    epsilon = data.draw(epsilons(drawn.grid))
    expected = float(oracles.mcdp(*drawn.samples(), epsilon))
    scores = drawn.scores.astype(np.float32)
    assert lp.mcdp(None, scores, sensitive_features=drawn.groups, epsilon=float(epsilon)) == expected


@given(st.data())
def test_profile_equals_the_definition_at_every_epsilon(data: st.DataObject) -> None:
    drawn = data.draw(people())
    profile = lp.mcdp_profile(None, drawn.scores, sensitive_features=drawn.groups)
    halves = [Fraction(step, 2 * drawn.grid) for step in (0, 1, 2, 3, 5, drawn.grid, 2 * drawn.grid)]
    at = [*halves, data.draw(epsilons(drawn.grid))]
    expected = [float(oracles.mcdp(*drawn.samples(), epsilon)) for epsilon in at]
    np.testing.assert_array_equal(profile(np.array(at, dtype=float)), expected)


@given(st.data())
def test_weights_many_groups_and_both_comparisons(data: st.DataObject) -> None:
    drawn = data.draw(people(n_groups=4, max_size=4))
    epsilon = data.draw(epsilons(drawn.grid))
    samples = drawn.samples(weighted=True)
    for compare, worst in (("between_groups", oracles.worst_pair), ("to_overall", oracles.worst_to_overall)):
        expected = float(worst(samples, lambda a, b: oracles.mcdp(a, b, epsilon)))
        options = {
            "sensitive_features": drawn.groups,
            "sample_weight": drawn.weights,
            "compare": compare,
        }
        measured = lp.mcdp(None, drawn.scores, epsilon=float(epsilon), **options)
        assert measured == pytest.approx(expected, abs=1e-12)
        assert lp.mcdp_profile(None, drawn.scores, **options)(float(epsilon)) == pytest.approx(
            expected, abs=1e-12
        )


@given(st.data())
def test_criteria_compare_the_people_of_each_label(data: st.DataObject) -> None:
    drawn = data.draw(people())
    epsilon = data.draw(epsilons(drawn.grid))
    by_label = {label: drawn.samples(label=label) for label in (0, 1)}
    expected = {
        label: float(oracles.mcdp(*samples, epsilon))
        for label, samples in by_label.items()
        if len(samples) == 2
    }
    expected_of = {"predictive_equality": [0], "equal_opportunity": [1], "equalized_odds": [0, 1]}
    for criterion, labels in expected_of.items():

        def measure(criterion: str = criterion) -> float:
            return lp.mcdp(
                drawn.labels,
                drawn.scores,
                sensitive_features=drawn.groups,
                epsilon=float(epsilon),
                criterion=criterion,  # type: ignore[arg-type]
            )

        if all(label in expected for label in labels):
            assert measure() == max(expected[label] for label in labels)
        else:
            with pytest.raises(ValueError, match="has no rows with y_true"):
                measure()


@given(st.data())
def test_another_score_range_is_the_same_measure(data: st.DataObject) -> None:
    drawn = data.draw(people())
    epsilon = data.draw(epsilons(drawn.grid))
    ranges = [(300.0, 850.0), (1.0, 10.0), (-1.0, 1.0), (0.0, 2.0), (0.0, 100.0), (0.1, 1.1)]
    low, high = data.draw(st.sampled_from(ranges))
    scores = np.clip(low + (high - low) * drawn.scores, low, high)
    expected = float(oracles.mcdp(*drawn.samples(), epsilon))
    options = {"sensitive_features": drawn.groups, "score_range": (low, high)}
    assert lp.mcdp(None, scores, epsilon=float(epsilon), **options) == expected
    assert lp.abcc(None, scores, **options) == pytest.approx(float(oracles.abcc(*drawn.samples())), abs=1e-12)


def test_the_ends_of_a_range_are_its_ends_in_single_precision_too() -> None:
    scores = np.array([0.1, 1.1, 0.25, 1.1], dtype=np.float32)
    options = {"sensitive_features": ["a", "a", "b", "b"], "score_range": (0.1, 1.1), "epsilon": 0.1}
    assert lp.mcdp(None, scores, **options) == lp.mcdp(None, [0.1, 1.1, 0.25, 1.1], **options) == 0.5


def test_decimal_scores_are_not_fooled_by_binary_fractions() -> None:
    # The gap is 1 on [0.7, 0.8): in binary 0.8 - 0.7 is a little more than 0.1.
    scores, groups = [0.7, 0.8], ["a", "b"]
    assert 0.8 - 0.7 > 0.1
    assert lp.mcdp(None, scores, sensitive_features=groups, epsilon=0.05) == 0.0
    assert lp.mcdp(None, scores, sensitive_features=groups, epsilon=0.049999) == 1.0


def test_a_disparity_at_the_bottom_of_the_range_counts() -> None:
    scores = [0.0, 1.0, 0.15, 1.0]
    assert lp.mcdp(None, scores, sensitive_features=["a", "a", "b", "b"], epsilon=0.1) == 0.5


@pytest.mark.compiled
def test_equals_the_published_predictions_by_brute_force(reference_folder: Path) -> None:
    with (reference_folder / "mcdp.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len({row["file"] for row in rows}) == 62
    for row in rows:
        with np.load(reference_folder / "predictions" / row["file"]) as found:
            scores, groups = found["score"], found["group"]
        expected, epsilon = float(row["mcdp"]), float(row["epsilon"])
        profile = lp.mcdp_profile(None, scores, sensitive_features=groups)
        assert profile(epsilon) == pytest.approx(expected, abs=1e-12)
        if epsilon == 0.05:
            assert lp.mcdp(None, scores, sensitive_features=groups, epsilon=epsilon) == profile(epsilon)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(5))
def test_a_large_sample_agrees_with_scipy_and_with_itself(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, 20_000)
    scores = rng.beta(2 + seed / 10 * groups, 3)
    scores[:2000] = scores[:2000].round(2)
    a, b = scores[groups == 0], scores[groups == 1]
    assert lp.mcdp(None, scores, sensitive_features=groups) == pytest.approx(
        ks_2samp(a, b).statistic, abs=1e-12
    )
    profile = lp.mcdp_profile(None, scores, sensitive_features=groups)
    curve = lp.gap_curve(lp.Predictions.from_arrays(None, scores, sensitive_features=groups))
    at = np.concatenate([profile.epsilons[:: max(1, profile.epsilons.size // 200)], rng.random(100)])
    np.testing.assert_array_equal(profile(at), curve.mcdp_at(at))


# The paper's Theorem 1.


@given(people(), st.floats(0, 2))
def test_range_and_zero_from_epsilon_one_on(drawn: People, epsilon: float) -> None:
    curve = lp.gap_curve(lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups))
    value = float(curve.mcdp_at(np.array([epsilon]))[0])
    assert 0.0 <= value <= 1.0
    if epsilon >= 1.0:
        assert value == 0.0


@given(people())
def test_zero_if_and_only_if_the_distributions_are_equal(drawn: People) -> None:
    a, b = drawn.samples()
    scores = {s for s, _ in (*a, *b)}
    same = all(oracles.cdf(a, s) == oracles.cdf(b, s) for s in scores)
    assert (lp.mcdp(None, drawn.scores, sensitive_features=drawn.groups) == 0.0) == same


@given(people())
def test_copies_of_one_group_have_no_disparity(drawn: People) -> None:
    scores = np.concatenate([drawn.scores, drawn.scores, drawn.scores])
    groups = np.repeat(["a", "b", "b"], drawn.scores.size)
    assert lp.mcdp(None, scores, sensitive_features=groups) == 0.0


@given(people(), st.sampled_from([np.square, np.sqrt, np.sin, np.expm1]))
def test_mcdp_of_zero_does_not_change_under_a_monotone_map(drawn: People, transform: np.ufunc) -> None:
    mapped = transform(drawn.scores) / transform(1.0)
    before = lp.mcdp(None, drawn.scores, sensitive_features=drawn.groups)
    # A map in floating point is monotone, but may join scores that are 1e-16 apart.
    distinct = np.unique(drawn.scores).size == np.unique(mapped).size
    if distinct:
        assert lp.mcdp(None, np.minimum(mapped, 1.0), sensitive_features=drawn.groups) == before


@given(people())
def test_the_profile_falls_in_steps_to_zero(drawn: People) -> None:
    profile = lp.mcdp_profile(None, drawn.scores, sensitive_features=drawn.groups)
    assert profile.epsilons[0] == 0.0
    assert profile.values[-1] == 0.0
    assert (np.diff(profile.epsilons) > 0).all()
    assert (np.diff(profile.values) < 0).all()
    middle = (profile.epsilons[1:] + profile.epsilons[:-1]) / 2
    np.testing.assert_array_equal(profile(middle), profile.values[:-1])
    assert isinstance(profile(0.1), float)


@pytest.mark.compiled
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_the_estimate_converges_at_the_stated_rate(epsilon: float) -> None:
    """Theorem 6 of the appendix: the mean squared error is O(ln n / n)."""
    truth = 0.25 - epsilon**2  # of scores with distribution functions y and y squared
    rng = np.random.default_rng(0)
    sizes = np.array([100, 400, 1600, 6400])
    errors = []
    for size in sizes:
        groups = np.repeat([0, 1], size)
        squared = []
        for _ in range(200):
            scores = rng.random(2 * size) ** np.where(groups, 0.5, 1.0)
            squared.append((lp.mcdp(None, scores, sensitive_features=groups, epsilon=epsilon) - truth) ** 2)
        errors.append(np.mean(squared))
    scaled = np.array(errors) * sizes / np.log(sizes)
    assert scaled.max() <= 1.5 * scaled[0]
    assert errors[-1] < errors[0] / 20


# The worst window.


@given(st.data())
def test_the_worst_window_is_a_run_of_that_gap(data: st.DataObject) -> None:
    drawn = data.draw(people())
    epsilon = data.draw(epsilons(drawn.grid))
    profile = lp.mcdp_profile(None, drawn.scores, sensitive_features=drawn.groups)
    window = profile.worst_window(float(epsilon))
    assert window.gap == profile(float(epsilon))
    if window.gap == 0.0:
        assert (window.low, window.high, window.higher) == (0.0, 1.0, None)
        return
    a, b = drawn.samples()
    scores = sorted({s for s, _ in (*a, *b)})
    inside = [s for s in scores if window.low <= float(s) < window.high]
    gaps = [oracles.gap(a, b, s) for s in inside]
    assert float(min(map(abs, gaps))) == window.gap
    length = Fraction(window.high).limit_denominator(10**6) - Fraction(window.low).limit_denominator(10**6)
    assert length > 2 * epsilon or (window.low == 0.0 and window.high > epsilon)
    if all(g > 0 for g in gaps):
        assert (window.higher, window.lower) == (1, 0)
    elif all(g < 0 for g in gaps):
        assert (window.higher, window.lower) == (0, 1)
    else:
        assert window.higher is window.lower is None


def test_the_worst_window_names_the_worst_pair_and_its_units() -> None:
    scores = [315, 500, 600, 410, 510, 610, 300, 310, 320]
    groups = np.repeat(["a", "b", "c"], 3)
    profile = lp.mcdp_profile(None, scores, sensitive_features=groups, score_range=(300, 850))
    window = profile.worst_window(0.01)
    assert set(window.groups) == {"b", "c"}
    assert (window.low, window.high, window.gap) == (320.0, 410.0, 1.0)
    assert (window.higher, window.lower) == ("b", "c")


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        (-0.1, r"epsilon must be .* got -0\.1"),
        (float("nan"), r"epsilon must be .* got nan"),
        ("wide", r"epsilon must be .* got 'wide'"),
        ([0.1, float("inf")], r"epsilon must be .* got inf"),
    ],
)
def test_a_wrong_epsilon_is_named(epsilon: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.mcdp(None, [0.1, 0.2], sensitive_features=["a", "b"], epsilon=epsilon)  # type: ignore[arg-type]


def test_people_with_another_label_at_the_same_score_hide_no_gap() -> None:
    """The worst pair is found where the last row of a score belongs to someone who is not compared."""
    scores = [0.2, 0.2, 0.2, 0.5, 0.5, 0.5, 0.8, 0.8, 0.8]
    groups = ["a", "b", "c"] * 3
    labels = [1, 1, 0, 1, 0, 1, 0, 1, 1]
    arrays = lp.mcdp(labels, scores, sensitive_features=groups, criterion="equal_opportunity")
    rows = lp.Predictions.from_arrays(labels, scores, sensitive_features=groups)
    counts = lp.ScoreCounts.from_predictions(rows)
    assert arrays == lp.mcdp(counts, criterion="equal_opportunity") == 0.5


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from("abcd"), st.integers(0, 1)), min_size=8, max_size=60
    ),
    criterion=st.sampled_from(["equal_opportunity", "predictive_equality", "equalized_odds"]),
    epsilon=st.sampled_from([0.0, 0.1, 0.2]),
)
def test_arrays_and_counts_agree_among_several_groups_with_labels(
    rows: list[tuple[int, str, int]], criterion: str, epsilon: float
) -> None:
    for group in "abcd":
        rows += [(0, group, 0), (4, group, 1)]
    scores, groups, labels = zip(*rows, strict=True)
    given: Any = {"criterion": criterion, "epsilon": epsilon}
    people = lp.Predictions.from_arrays(labels, np.array(scores) / 4, sensitive_features=groups)
    assert lp.mcdp(people, **given) == lp.mcdp(lp.ScoreCounts.from_predictions(people), **given)
