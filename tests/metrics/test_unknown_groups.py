"""The bounds of MCDP over unknown groups, and the breakdown point, are those of trying every assignment."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import localparity as lp
import oracles
from localparity.metrics import _unknown_groups
from strategies import People, epsilons, people

CLOSE = 1e-11


def unknown_groups(people: People, **options: Any) -> lp.results.UnknownGroups:
    """The bounds where the last group is the people without one."""
    last = people.groups.max()
    groups = np.where(people.groups == last, None, people.groups.astype(object))
    weights = options.pop("sample_weight", None)
    return lp.unknown_groups(rows(people.scores, groups, sample_weight=weights), **options)


def rows(scores: Any, groups: Any, y_true: Any = None, **options: Any) -> lp.Predictions:
    return lp.Predictions.from_arrays(y_true, scores, sensitive_features=groups, missing_values=(), **options)


def samples(people: People) -> list[list[tuple[Fraction, Fraction]]]:
    return [list(sample) for sample in people.samples()]


few_people = people(n_groups=3, max_size=4)


@given(few_people, st.data(), st.booleans())
def test_every_assignment_lies_between_the_ends_which_are_exact_at_epsilon_0(
    people: People, data: st.DataObject, weighted: bool
) -> None:
    epsilon = data.draw(epsilons(people.grid))
    options = {"sample_weight": people.weights} if weighted else {}
    found = unknown_groups(people, epsilon=[0.0, float(epsilon)], **options)
    first, second, unknown = (list(sample) for sample in people.samples(weighted=weighted))
    assert (found.unknown, found.known) == (len(unknown), len(first) + len(second))
    for bounds, at in zip(found.bounds, (Fraction(0), epsilon), strict=True):
        every = [float(oracles.mcdp(a, b, at)) for a, b in oracles.every_assignment(first, second, unknown)]
        assert bounds.low <= min(every) + CLOSE
        assert bounds.high >= max(every) - CLOSE
        assert weighted or not bounds.low_exact or abs(bounds.low - min(every)) < CLOSE
        assert not bounds.high_exact or abs(bounds.high - max(every)) < CLOSE
        assert abs(bounds.estimate - float(oracles.mcdp(first, second, at))) < CLOSE
    assert found.bounds[0].high_exact
    assert weighted or found.bounds[0].low_exact


@settings(max_examples=15)
@given(people(n_groups=4, max_size=3), st.data())
def test_more_groups_have_bounds_that_hold(people: People, data: st.DataObject) -> None:
    epsilon = data.draw(epsilons(people.grid))
    found = unknown_groups(people, epsilon=[0.0, float(epsilon)])
    *known, unknown = samples(people)
    for bounds, at in zip(found.bounds, (Fraction(0), epsilon), strict=True):
        every = []
        for chosen in np.ndindex(*(3,) * len(unknown)):
            groups = [[*group] for group in known]
            for person, to in zip(unknown, chosen, strict=True):
                groups[to].append(person)
            every.append(float(oracles.worst_pair(groups, lambda a, b: oracles.mcdp(a, b, at))))  # noqa: B023
        assert bounds.low <= min(every) + CLOSE
        assert bounds.high >= max(every) - CLOSE
        assert not bounds.high_exact or abs(bounds.high - max(every)) < CLOSE
    assert found.bounds[0].high_exact


@given(few_people, st.integers(0, 20))
def test_the_breakdown_point_is_that_of_every_change(people: People, twentieths: int) -> None:
    found = unknown_groups(people).breakdown(twentieths / 20)
    first, second, unknown = samples(people)
    bound = Fraction(twentieths, 20)
    assert found.passes == (oracles.mcdp(first, second, Fraction(0)) <= bound)
    wrong = oracles.every_wrong_group(first, second)
    added = oracles.every_addition(first, second, unknown)
    for number, changes in ((found.wrong, wrong), (found.added, added)):
        fewest = oracles.fewest_changes([first, second], changes, bound)
        if found.exact:
            assert number == fewest
        elif fewest is not None:
            assert number is not None
            assert number <= fewest
    assert found.exact == found.passes


def made(n: int, unknown: float, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b"], n).astype(object)
    scores = rng.beta(2, np.where(groups == "a", 3, 4))
    groups[rng.random(n) < unknown] = None
    return scores.round(3), groups


def test_thousands_of_people_have_both_ends_at_epsilon_0() -> None:
    scores, groups = made(3000, 0.2)
    found = lp.unknown_groups(rows(scores, groups), epsilon=[0, 0.05])
    exact, wide = found.bounds
    assert (exact.low_exact, exact.high_exact, wide.high_exact, wide.low_exact) == (True, True, False, False)
    assert 0.0 < wide.low <= exact.low < exact.estimate < exact.high
    assert wide.high <= exact.high
    for breaks in (found.breakdown(0.05), found.breakdown(0.5)):
        assert 0 < breaks.wrong < 1500
        assert breaks.passes == breaks.exact


def test_a_bound_says_so_where_the_search_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, groups = made(400, 0.3)
    exact = lp.unknown_groups(rows(scores, groups)).bounds[0]
    monkeypatch.setattr(_unknown_groups, "_MOST_TRIED", 0)
    found = lp.unknown_groups(rows(scores, groups)).bounds[0]
    assert (exact.low_exact, found.low_exact) == (True, False)
    assert 0.0 < found.low <= exact.low
    assert "is at least" in found.sentence


def test_both_labels_count_by_themselves() -> None:
    scores = [0.1, 0.2, 0.8, 0.9, 0.4, 0.3, 0.3, 0.6, 0.6, 0.5]
    scores, groups = 5 * scores, 5 * ["a", "a", "b", "b", None, "a", "a", "b", "b", None]
    labels = 5 * [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    both = lp.unknown_groups(rows(scores, groups, labels), criterion="equalized_odds")
    each = [
        lp.unknown_groups(rows(scores, groups, labels), criterion=criterion)
        for criterion in ("predictive_equality", "equal_opportunity")
    ]
    assert both.bounds[0].low == max(found.bounds[0].low for found in each)
    assert (both.unknown, both.known) == (10, 40)
    moves = [found.breakdown(0.3).wrong for found in each]
    assert both.breakdown(0.3).wrong == sum(moves)


def test_the_breakdown_point_in_words() -> None:
    scores, groups = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", None]
    found = lp.unknown_groups(rows(scores, groups))
    above = found.breakdown(0.5)
    assert above.sentences[0] == (
        "MCDP(0) of the known groups is above 50.00%; it would take at least 1 of the 1 people without a group (100.00%) to change that."
    )
    assert (
        above.sentences[1]
        == "It would take at least 1 wrong group among the 5 known ones (20.00%) to change the verdict."
    )
    never = found.breakdown(1.0)
    assert (never.wrong, never.added) == (None, None)
    assert never.sentences == (
        "MCDP(0) of the known groups is within 100.00%; not even all 1 people without a group could change that.",
    )
    known = lp.unknown_groups(rows(scores[:5], groups[:5]))
    assert known.breakdown(0.5).sentences[0].startswith("It would take at least 1 wrong group")
    assert known.bounds[0].low == known.bounds[0].high == known.bounds[0].estimate
    assert found.to_dict()["bounds"][0]["high"] == found.bounds[0].high


def test_so_many_are_enough_in_words() -> None:
    scores, groups = made(400, 0.3)
    first, second = lp.unknown_groups(rows(scores, groups)).breakdown(0.5).sentences
    assert first.endswith("could change that.")
    assert second.endswith("could change the verdict.")


def test_three_groups_have_no_number_of_wrong_ones() -> None:
    scores, groups = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "m", "m", "x", None]
    found = lp.unknown_groups(rows(scores, groups))
    assert found.breakdown(0.1).wrong is None
    assert found.breakdown(1.0).wrong is None
    assert not found.breakdown(0.9).exact


def test_what_cannot_be_answered_is_an_error() -> None:
    scores, groups = [0.1, 0.3, 0.5], ["f", "m", None]
    weighted = lp.unknown_groups(rows(scores, groups, sample_weight=[1.0, 2.0, 0.5]))
    with pytest.raises(ValueError, match="the breakdown point needs rows that all weigh 1"):
        weighted.breakdown(0.1)
    with pytest.raises(ValueError, match="max_mcdp must be between 0 and 1, got 3"):
        weighted.breakdown(3.0)
    rng = np.random.default_rng(0)
    predictions = lp.Predictions.from_arrays(None, rng.random(100), sensitive_features=["a", "b"] * 50)
    counts = lp.counts.bounded(lp.ScoreCounts.from_predictions(predictions), max_scores=10, level=3)
    with pytest.raises(ValueError, match="must have every score"):
        lp.unknown_groups(counts)


def test_windows_as_wide_as_the_scores_leave_nothing() -> None:
    scores, groups = [0.4, 0.42, 0.45, 0.5], ["a", "b", None, "a"]
    bounds = lp.unknown_groups(rows(scores, groups), epsilon=0.3).bounds[0]
    assert (bounds.low, bounds.high) == (0.0, 0.0)
    assert (bounds.low_exact, bounds.high_exact) == (True, True)


def test_rows_without_a_group_are_for_those_who_take_them() -> None:
    people = rows([0.1, 0.3, 0.5], ["f", "m", None])
    for metric in (lp.mcdp, lp.gap_curve, lp.impact_ratio_curve):
        with pytest.raises(lp._validation.InputError, match="rows of unknown group"):
            metric(people)
    with pytest.raises(ValueError, match="must be Predictions or ScoreCounts, got list"):
        lp.unknown_groups([0.1, 0.3])  # type: ignore[arg-type]
    columns = {"sex": ["f", "m", "f"], "job": ["x", None, "x"]}
    found = lp.unknown_groups(
        rows([0.1, 0.3, 0.5, 0.7], {k: [*v, {"sex": "m", "job": "x"}[k]] for k, v in columns.items()})
    )
    assert (found.unknown, found.known) == (1, 3)
