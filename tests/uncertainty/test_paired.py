"""Two models on the same people, against every swap in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import t

import localparity as lp
import oracles
import strategies
from localparity.predictions import Predictions
from localparity.uncertainty._paired import PairedDraws, SamePeople

RNG = np.random.default_rng(0)
GROUPS = np.repeat(["a", "b", "c"], [40, 50, 30])
LABELS = RNG.integers(0, 2, GROUPS.size)
FIRST = RNG.random(GROUPS.size).round(2)
SECOND = np.clip(FIRST + 0.1 * RNG.standard_normal(GROUPS.size), 0.0, 1.0).round(2)


def compare(first: Any = FIRST, second: Any = SECOND, **options: Any) -> lp.results.PairedComparison:
    given = {"sensitive_features": GROUPS, "n_resamples": 39, "random_state": 0, **options}
    return lp.compare_scores(given.pop("y_true", None), first, second, **given)


def people_of(drawn: strategies.People, second: NDArray[Any], **options: Any) -> SamePeople:
    comparison = lp.Comparison(**options)
    labels = drawn.labels if comparison.needs_labels else None
    models = [
        Predictions.from_arrays(labels, scores, sensitive_features=drawn.groups, sample_weight=drawn.weights)
        for scores in (drawn.scores, second)
    ]
    return SamePeople(models[0], models[1], comparison)


@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 20)])
@given(drawn=strategies.people(n_groups=3, max_size=3), data=st.data())
def test_every_swap_measures_what_rational_arithmetic_does(
    compare: Any, epsilon: Fraction, drawn: strategies.People, data: st.DataObject
) -> None:
    size = drawn.groups.size
    steps = data.draw(st.lists(st.integers(0, drawn.grid), min_size=size, max_size=size))
    exact = [drawn.exact_scores, tuple(Fraction(step, drawn.grid) for step in steps)]
    people = people_of(drawn, np.array(steps) / drawn.grid, compare=compare)
    (stratum,) = people._strata()
    order = np.argsort(drawn.scores, kind="stable")
    worst = oracles.worst_pair if compare == "between_groups" else oracles.worst_to_overall
    for swapped in data.draw(st.lists(st.sampled_from(list(product((0, 1), repeat=size))), max_size=4)):
        models = []
        for model in (0, 1):
            groups: dict[int, list[tuple[Fraction, Fraction]]] = {}
            for row, swap in enumerate(swapped):
                pair = (exact[model ^ swap][row], drawn.exact_weights[row])
                groups.setdefault(int(drawn.groups[row]), []).append(pair)
            samples = [groups[key] for key in sorted(groups)]
            models.append(float(worst(samples, lambda a, b: oracles.mcdp(a, b, epsilon))))
        flips = np.array(swapped, dtype=np.uint8)[order]
        reach = float(epsilon) + (0.5 * people.resolution if epsilon else 0.0)
        assert stratum.swapped(flips, reach) == pytest.approx(models, abs=1e-9)


def test_the_p_value_counts_the_swaps_that_differ_as_much_and_the_data() -> None:
    seen = np.array([0.2, 0.5])
    swapped = np.array([[0.5, 0.2], [0.1, 0.4], [0.3, 0.3], [0.0, 0.4]])
    found = PairedDraws(seen, swapped, swapped, swapped, np.stack([swapped, swapped]))
    assert found.p_value == pytest.approx((1 + 3) / (1 + 4))


def test_the_p_value_is_that_of_every_swap() -> None:
    groups, first, second = ["a", "a", "b", "b"], [0.1, 0.2, 0.3, 0.4], [0.35, 0.15, 0.2, 0.25]
    found = lp.compare_scores(
        None, first, second, sensitive_features=groups, n_resamples=4000, random_state=0
    )
    seen = abs(found.difference.estimate)
    as_much = []
    for swaps in product((False, True), repeat=4):
        scores = np.where(swaps, [second, first], [first, second])
        one, other = (lp.mcdp(None, each, sensitive_features=groups) for each in scores)
        as_much.append(abs(one - other) >= seen - 1e-12)
    assert found.p_value == pytest.approx(np.mean(as_much), abs=0.03)


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("options", [{}, {"sample_weight": 1.0 + LABELS}, {"cluster": np.arange(120) // 2}])
def test_both_mcdps_are_those_of_the_metric(criterion: Any, options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"criterion": criterion, "epsilon": 0.02}
    found = compare(y_true=LABELS, **given, **options)
    weights = {"sample_weight": options.get("sample_weight"), "sensitive_features": GROUPS}
    assert found.first == lp.mcdp(LABELS, FIRST, **given, **weights)
    assert found.second == lp.mcdp(LABELS, SECOND, **given, **weights)
    assert found.difference.estimate == found.second - found.first
    assert found.difference.low < found.difference.estimate < found.difference.high


def test_a_model_does_not_differ_from_itself() -> None:
    found = compare(FIRST, FIRST)
    assert found.p_value == 1.0
    assert found.difference.low <= 0.0 <= found.difference.high
    assert found.difference.confidence == 0.95


def test_models_that_change_places_change_the_sign() -> None:
    one, other = compare(), compare(SECOND, FIRST)
    assert (one.first, one.second) == (other.second, other.first)
    assert one.difference.estimate == -other.difference.estimate


def test_a_seed_seeds_whatever_runs_at_a_time() -> None:
    assert compare(n_jobs=1) == compare(n_jobs=3)
    assert compare(random_state=1) != compare(random_state=2)


def test_rows_of_one_cluster_are_swapped_together() -> None:
    # All rows or none: either way the two models differ as much.
    assert compare(cluster=np.zeros(GROUPS.size)).p_value == 1.0


def test_equal_weights_are_no_weights() -> None:
    plain, weighted = compare(), compare(sample_weight=np.full(GROUPS.size, 2.0))
    assert weighted.p_value == plain.p_value
    assert weighted.difference.high == pytest.approx(plain.difference.high)


def test_a_range_of_scores_is_a_scale() -> None:
    plain, scaled = (
        compare(epsilon=0.1),
        compare(100 * FIRST, 100 * SECOND, epsilon=0.1, score_range=(0, 100)),
    )
    assert (scaled.first, scaled.second, scaled.p_value) == pytest.approx(
        (plain.first, plain.second, plain.p_value)
    )


WEIGHTED = np.array([[0.3, 0.5], [0.2, 0.7], [0.4, 0.6]] * 13)
SEEN = np.array([0.25, 0.5])


def margins(slope: float, chance: tuple[float, float]) -> Any:
    """With a bias of 0.05 and 0.1, where slopes spread as told and chance moves gaps by so much."""
    slopes = np.stack([np.zeros(WEIGHTED.shape), slope * WEIGHTED])
    deviated = np.tile(chance, (len(WEIGHTED), 1))
    return PairedDraws(SEEN, WEIGHTED, WEIGHTED, deviated, slopes).margins(0.9, 11.0)


def reach(times: float) -> float:
    return float(t.ppf(0.95, 10) * np.std(np.diff(WEIGHTED), ddof=1) * np.sqrt(times))


def test_the_interval_allows_for_chance_that_either_mcdp_picked_up() -> None:
    most = np.sqrt(2) + 1
    expected = [0.05 - most * 0.1 - reach(12 / 10), most * 0.05 - 0.1 + reach(12 / 10)]
    # With slopes of 0 the few thresholds that compete are at most the bias off.
    assert margins(0.0, (0.2, 0.4)) == pytest.approx([expected[0], max(expected[1], 0.05)])


def test_the_interval_allows_for_thresholds_that_chance_put_in_order() -> None:
    assert margins(9.0, (0.2, 0.4)) == pytest.approx([-0.1 - 9 * reach(11 / 10), 0.05 + 9 * reach(11 / 10)])


def test_a_model_that_may_be_at_parity_may_owe_its_mcdp_to_chance() -> None:
    plain = margins(0.0, (0.2, 0.4))
    assert margins(0.0, (0.9, 0.4)) == pytest.approx([plain[0], max(plain[1], 0.25)])
    assert margins(0.0, (0.2, 0.9)) == pytest.approx([min(plain[0], -0.5), plain[1]])


def test_deviations_are_how_far_weights_move_the_gap() -> None:
    models = [Predictions.from_arrays(None, each, sensitive_features=GROUPS) for each in (FIRST, SECOND)]
    people = SamePeople(models[0], models[1], lp.Comparison())
    (stratum,) = people._strata()
    weights = np.random.default_rng(0).standard_exponential(GROUPS.size)
    order = np.argsort(FIRST, kind="stable")
    expected = []
    for scores in (FIRST[order], SECOND[order]):
        below = scores[:, None] <= np.unique(scores)
        moved = []
        for group in ("a", "b", "c"):
            rows = GROUPS[order] == group
            of_group = weights[people.clusters][rows]
            moved.append(of_group @ below[rows] / of_group.sum() - below[rows].mean(axis=0))
        expected.append(max(np.abs(moved[a] - moved[b]).max() for a, b in ((0, 1), (0, 2), (1, 2))))
    assert stratum.deviated(weights) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "fewest"),
    [
        ({}, 30.0),
        ({"cluster": np.arange(120) // 2}, 15.0),
        ({"sample_weight": np.where(np.arange(120) % 2, 1.0, 1e-9)}, 15.0),
    ],
)
def test_few_people_make_the_interval_wider(options: dict[str, Any], fewest: float) -> None:
    models = [
        Predictions.from_arrays(None, scores, sensitive_features=GROUPS, **options)
        for scores in (FIRST, SECOND)
    ]
    assert SamePeople(models[0], models[1], lp.Comparison()).fewest == pytest.approx(fewest, rel=1e-6)


def test_a_group_of_one_has_an_interval() -> None:
    found = compare([0.1, 0.5, 0.9], [0.2, 0.5, 0.8], sensitive_features=["a", "b", "b"])
    assert -1.0 <= found.difference.low <= found.difference.high <= 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"second": SECOND[:-1]}, r"second_scores has 119 rows, first_scores has 120"),
        ({"first": FIRST + 1.0}, r"first_scores.*\b2\b|first_scores.*1\."),
        ({"second": np.full(GROUPS.size, np.nan)}, r"second_scores"),
        ({"criterion": "equal_opportunity"}, r"y_true, got None"),
        ({"n_resamples": 5}, r"n_resamples must be >= 19.*got 5"),
        ({"confidence": 1.0}, r"confidence"),
        ({"epsilon": -0.5}, r"epsilon"),
        ({"min_group_size": 35}, r"'c' has 30 rows"),
        ({"sensitive_features": ["a"] * 120}, r"sensitive_features"),
    ],
)
def test_what_cannot_be_compared_is_an_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(**options)
