"""Groups compared within strata: the strata's own MCDP, the mean of their gaps, and a test that holds its level."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

import localparity as lp
import oracles
from localparity._validation import NO_GROUP
from localparity.uncertainty import _strata
from localparity.uncertainty._resampling import Draws
from localparity.uncertainty._strata import strata_compared
from strategies import People, epsilons, people


def within(scores: Any, groups: Any, strata: Any, **options: Any) -> lp.results.WithinStrata:
    options = {"n_resamples": 0} | options
    return lp.within_strata(
        lp.Predictions.from_arrays(
            options.pop("labels", None),
            scores,
            sensitive_features=groups,
            sample_weight=options.pop("sample_weight", None),
        ),
        strata,
        **options,
    )


@given(people(n_groups=4, max_size=5), st.data())
def test_the_gap_is_the_mean_of_the_gaps_of_the_strata(people: People, data: st.DataObject) -> None:
    """Groups 0 and 1 are the two of one stratum, 2 and 3 those of the other."""
    epsilon = data.draw(epsilons(people.grid))
    found = within(people.scores, people.groups % 2, people.groups // 2, epsilon=[0.0, float(epsilon)])
    a, b, c, d = people.samples()
    shares = [Fraction(len(one) + len(other), len(people.scores)) for one, other in ((a, b), (c, d))]
    scores = sorted({score for score, _ in (*a, *b, *c, *d)})

    def gap(y: Fraction) -> Fraction:
        return shares[0] * oracles.gap(a, b, y) + shares[1] * oracles.gap(c, d, y)

    assert found.standardised[0] == pytest.approx(float(max(abs(gap(y)) for y in scores)), abs=1e-12)
    expected = [[oracles.mcdp(*pair, at) for at in (Fraction(0), epsilon)] for pair in ((a, b), (c, d))]
    for stratum in found.strata:
        assert stratum.mcdp == pytest.approx([float(value) for value in expected[stratum.stratum]], abs=1e-12)
    assert found.overall[0] == pytest.approx(float(oracles.mcdp([*a, *c], [*b, *d], Fraction(0))), abs=1e-12)
    assert (found.left_out, found.rows_left_out, found.p_value) == (0, 0, None)


def simpson(rows: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Women score lower in each job and, as most of them are in the better one, higher overall."""
    rng = np.random.default_rng(seed)
    job = rng.integers(0, 2, rows)
    sex = np.where(rng.random(rows) < np.where(job, 0.8, 0.2), "f", "m")
    noise = 0.1 * rng.standard_normal(rows)
    return np.clip(0.3 + 0.3 * job - 0.08 * (sex == "f") + noise, 0, 1), sex, np.array(["cook", "nurse"])[job]


def test_a_sign_that_turns() -> None:
    found = within(*simpson(2000), n_resamples=99, random_state=0)
    assert found.turned
    assert (found.window.lower, found.overall_window.lower) == ("f", "m")
    assert found.p_value == found.worst_p_value == 0.01
    assert "within strata f has the lower scores, overall m has" in found.sentences[2]
    again = within(*simpson(2000), n_resamples=99, random_state=0, n_jobs=2)
    assert again == found


def test_a_sign_that_chance_may_have_turned_is_not_told() -> None:
    scores, groups = [0.1, 0.9, 0.8, 0.2, 0.3, 0.4], ["a", "b", "a", "b", "a", "b"]
    strata = ["x", "x", "y", "y", "y", "y"]
    found = within(scores, groups, strata, n_resamples=19, random_state=0)
    assert found.p_value > 0.05
    assert not found.turned


def alike_overall(rows: int, seed: int) -> tuple[Any, Any, Any]:
    """Two scores: women have the higher one less often in either job, and as often overall."""
    rng = np.random.default_rng(seed)
    women = rng.random(rows) < 0.5
    job = (rng.random(rows) < np.where(women, 0.75, 0.25)).astype(int)
    high = np.array([[0.3, 0.7], [0.2, 0.7 / 1.5]])[women.astype(int), job]
    return np.where(rng.random(rows) < high, 0.9, 0.1), np.where(women, "f", "m"), job


def test_a_sign_that_turns_by_chance_overall_is_not_told() -> None:
    """Said of one in two samples when only the difference within strata was tested."""
    opposite, told, runs = 0, 0, 40
    for seed in range(runs):
        found = within(*alike_overall(600, seed), n_resamples=39, random_state=0)
        opposite += found.p_value <= 0.05 and found.window.lower == found.overall_window.higher
        told += found.turned
    assert opposite >= 10
    assert told <= 5


def test_a_sign_that_turns_is_tested_for_the_pair_alone() -> None:
    """A third group differs from both, and is the only one in some strata with one of them."""
    scores, sex, job = simpson(2000)
    others = np.random.default_rng(1).random((2, 300))
    sex = np.concatenate([sex, np.repeat(["x", "x", "m"], 100)])
    job = np.concatenate([job, np.repeat(["cook", "baker", "baker"], 100)])
    found = within(np.concatenate([scores, others[0]]), sex, job, n_resamples=99, random_state=0)
    assert found.window.groups in (("f", "x"), ("m", "x"))
    assert not found.turned
    few = {"n_resamples": 39, "random_state": 0}
    assert within(*simpson(2000), **few).turned
    # With three pairs, 39 resamples are too few for any of them to be significant.
    third = np.where(np.arange(2000) % 10, sex[:2000], "x")
    assert not within(scores, third, job[:2000], **few).turned


def test_no_sign_is_said_to_turn_without_a_test() -> None:
    scores, sex, job = simpson(2000)
    assert not within(scores, sex, job).turned
    assert not within(scores, sex, job, sample_weight=np.ones(2000) * 2.0, n_resamples=19).turned


def test_small_groups_and_strata_are_left_out_and_counted() -> None:
    scores = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    groups = ["a", "b", "a", "b", "c", "a", "a", "b"]
    strata = ["x", "x", "x", "x", "x", "y", "y", "y"]
    found = within(scores, groups, strata, min_group_size=2)
    assert [(each.stratum, each.rows) for each in found.strata] == [("x", 4)]
    assert (found.left_out, found.rows_left_out) == (1, 4)
    assert "4 rows are in no comparison, those of 1 stratum among" in found.sentences[-1]
    with pytest.raises(ValueError, match="no stratum with two groups of at least 3 rows"):
        within(scores, groups, strata, min_group_size=3)


def test_labels_count_by_themselves_and_windows_may_be_wide() -> None:
    scores, sex, job = simpson(400)
    labels = np.arange(400) % 2
    options: dict[str, Any] = {"labels": labels, "epsilon": 0.02, "n_resamples": 19, "random_state": 0}
    both = within(scores, sex, job, criterion="equalized_odds", **options)
    each = [
        within(scores, sex, job, criterion=name, **options)
        for name in ("predictive_equality", "equal_opportunity")
    ]
    assert both.standardised[0] == max(found.standardised[0] for found in each)
    assert {stratum.label for stratum in both.strata} == {0, 1}
    assert len(both.strata) == 4
    assert both.rows_left_out == each[0].rows_left_out == 0


def test_weights_count_and_are_not_tested() -> None:
    scores, sex, job = simpson(200)
    doubled = within(np.tile(scores, 2), np.tile(sex, 2), np.tile(job, 2))
    found = within(scores, sex, job, sample_weight=np.full(200, 2.0), n_resamples=19)
    assert found.standardised == pytest.approx(doubled.standardised)
    assert found.p_value is None


def test_rows_that_weigh_nothing_are_in_no_stratum() -> None:
    scores, sex, job = simpson(200)
    weights = np.where((sex == "f") & (job == "cook"), 0.0, 2.0)
    found = within(scores, sex, job, sample_weight=weights)
    some = weights > 0
    fewer = within(scores[some], sex[some], job[some], sample_weight=weights[some])
    assert found == fewer
    assert [stratum.stratum for stratum in found.strata] == ["nurse"]
    with pytest.raises(ValueError, match="no stratum with two groups of at least 1 rows"):
        within(scores, sex, np.where(sex == "f", "x", "y"), sample_weight=weights)


def test_many_scores_are_compared_at_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_strata, "_MOST_THRESHOLDS", 8)
    assert within(*simpson(500), n_resamples=19, random_state=0).p_value == 0.05


def test_counts_on_a_grid_are_refused() -> None:
    rng = np.random.default_rng(0)
    predictions = lp.Predictions.from_arrays(None, rng.random(100), sensitive_features=["a", "b"] * 50)
    counts = lp.counts.bounded(lp.ScoreCounts.from_predictions(predictions), max_scores=10, level=3)
    with pytest.raises(ValueError, match="control_features needs counts of every score"):
        strata_compared(counts, {}, lp.Comparison(), np.zeros(1), None)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_level_holds_where_strata_explain_everything() -> None:
    """Groups are alike within strata and far apart overall; ties, tiny and lopsided strata, wide windows."""
    rejected, runs = np.zeros(2), 800
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        job = rng.integers(0, 4, 150)
        sex = (rng.random(150) < np.array([0.05, 0.3, 0.6, 0.95])[job]).astype(int)
        scores = np.round(np.clip(0.2 * job + 0.2 * rng.random(150), 0, 1), 2)
        options = {"epsilon": [0.0, 0.02][seed % 2], "n_resamples": 39, "random_state": seed}
        found = within(scores, sex, job, **options)
        rejected += [found.p_value <= 0.05, found.worst_p_value <= 0.05]
    error = 3 * np.sqrt(0.05 * 0.95 / runs)
    assert (rejected / runs <= 0.05 + error).all()


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(60, 60, 60), (30, 15, 120), (8, 8, 300)])
def test_a_pair_that_does_not_differ_keeps_its_level_beside_one_that_does(sizes: tuple[int, ...]) -> None:
    """Group c is far from a and b, which are alike, in each of two strata; scores with ties."""
    rejected, runs = np.zeros(2), 1000
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        groups = np.tile(np.repeat(["a", "b", "c"], sizes), 2)
        strata = np.repeat(["x", "y"], groups.size // 2)
        scores = np.round(rng.random(groups.size) * np.where(groups == "c", 0.5, 1.0), 2)
        names = {f"{g}{s}": (g, s) for g in "abc" for s in "xy"}
        keys = np.char.add(groups, strata)
        counts = lp.ScoreCounts.from_table(scores, keys, np.ones(groups.size, int))
        people = _strata.people_of(counts, names, lp.Comparison())
        draws = Draws(39, seed, None)
        standardised, within_each = _strata.stratum_p_values(counts, people, 0.0, draws)
        of_pair = [
            min(p for (_, _, pair), p in found.items() if pair == ("a", "b"))
            for found in (standardised, within_each)
        ]
        rejected += np.array(of_pair) <= 0.05
    assert (rejected / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)).all()


def test_nobody_or_enough_people_of_a_group_are_left_out() -> None:
    """Of group b, two people are alone in a small stratum; the smallest of its other strata goes with them."""
    sizes = {("a", 0): 9, ("b", 0): 2, ("a", 1): 9, ("b", 1): 5, ("a", 2): 9, ("b", 2): 8}
    rows = [key for key, size in sizes.items() for _ in range(size)]
    counts = lp.ScoreCounts.from_table(
        np.linspace(0.0, 1.0, len(rows)), rows_as_text(rows), np.ones(len(rows), int)
    )
    names = {f"{group}{stratum}": (group, stratum) for group, stratum in sizes}
    comparison = lp.Comparison(min_group_size=3)
    for limit, kept in {1: [1, 2], 3: [2], 8: []}.items():
        people = _strata.people_of(counts, names, comparison)
        found = _strata.hide_few(people, _strata.totals_of(counts, names, comparison), limit)
        assert [each.stratum for each in found] == kept


def rows_as_text(rows: list[tuple[str, int]]) -> list[str]:
    return [f"{group}{stratum}" for group, stratum in rows]


def few_and_many() -> tuple[Any, Any, Any]:
    """A few people of c and d are far apart by chance; many of a and b differ, by less."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c", "d"], [200, 200, 3, 3])
    scores = np.concatenate([rng.beta(2, 3, 200), rng.beta(3, 2, 200), [0.3, 0.4, 0.45], [0.5, 0.6, 0.7]])
    return scores, groups, np.full(groups.size, "x")


def test_a_p_value_is_that_of_the_pair_beside_it() -> None:
    found = within(*few_and_many(), n_resamples=199, random_state=0)
    (stratum,) = found.strata
    assert set(stratum.window.groups) == {"c", "d"}
    assert found.worst_p_value == found.p_value == 0.005
    assert stratum.p_value == found.window_p_value > 0.1
    first, second = found.sentences[:2]
    for sentence in (first, second):
        assert "between c and d" in sentence
        assert f"p-value of this pair {stratum.p_value:.4f}" in sentence
        assert "<= 0.005" in sentence


def test_the_p_value_of_a_pair_is_adjusted_for_all() -> None:
    """Against scipy's statistics of groups that numpy deals out."""
    scores, groups, strata = few_and_many()

    def measured(groups: Any) -> dict[Any, float]:
        samples = {name: scores[groups == name] for name in "abcd"}
        return {
            (one, other): ks_2samp(samples[one], samples[other]).statistic
            / np.sqrt(1 / samples[one].size + 1 / samples[other].size)
            for one, other in combinations("abcd", 2)
        }

    rng, resamples = np.random.default_rng(1), 200
    largest = np.array([max(measured(rng.permutation(groups)).values()) for _ in range(resamples)])
    expected = np.mean(largest >= measured(groups)["c", "d"] - 1e-9)
    found = within(scores, groups, strata, n_resamples=999, random_state=0)
    assert found.window.groups == ("c", "d")
    assert found.window_p_value == pytest.approx(expected, abs=4 * np.sqrt(0.25 / resamples))


def test_overall_is_the_mcdp_of_everyone_and_pooled_that_of_the_people_compared() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(300), rng.choice(["a", "b", "c"], 300)
    strata = rng.choice(["x", "y", "z"], 300, p=[0.05, 0.05, 0.9])
    found = within(scores, groups, strata, epsilon=[0.0, 0.01], min_group_size=10)
    assert found.rows_left_out > 0
    every = lp.mcdp(None, scores, sensitive_features=groups, epsilon=[0.0, 0.01])
    assert found.overall == tuple(every)
    kept = strata == "z"
    some = lp.mcdp(None, scores[kept], sensitive_features=groups[kept])
    assert found.pooled[0] == pytest.approx(some, abs=1e-12)
    assert f"overall MCDP(0) is {100 * every[0]:.2f}%" in found.sentences[0]
    assert f"{100 * some:.2f}% among the people compared within strata" in found.sentences[0]


def test_people_without_a_stratum_are_in_none_and_count_overall() -> None:
    counts = lp.ScoreCounts.from_table(np.linspace(0.0, 1.0, 9), ["ax", "bx"] * 4 + ["a?"], np.ones(9, int))
    names: Any = {"ax": ("a", "x"), "bx": ("b", "x"), "a?": ("a", NO_GROUP)}
    found = strata_compared(counts, names, lp.Comparison(), np.zeros(1), Draws(0, 0, None))
    assert (found.rows_left_out, found.rows_without_stratum, found.left_out) == (1, 1, 0)
    assert found.sentences[-1] == "1 row has no stratum and counts overall only."
    groups = ["a", "b"] * 4 + ["a"]
    assert found.overall[0] == lp.mcdp(None, np.linspace(0.0, 1.0, 9), sensitive_features=groups)


def test_counts_have_no_rows_to_compare_within_strata() -> None:
    rows = lp.Predictions.from_arrays(None, [0.1, 0.2, 0.3, 0.4], sensitive_features=[0, 1, 0, 1])
    with pytest.raises(ValueError, match="data must be Predictions, got ScoreCounts"):
        lp.within_strata(lp.ScoreCounts.from_predictions(rows), [0, 0, 0, 0])
