"""Nothing that is shown rests on fewer people than the limit."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
import oracles
from localparity.counts import Comparison
from localparity.counts._disclosure import all_disclosed, in_steps, shown_counts, suppressed
from strategies import epsilons, people


def counts_of(scores, groups, **more):
    return lp.ScoreCounts.from_predictions(
        lp.Predictions.from_arrays(more.pop("y", None), scores, sensitive_features=groups, **more)
    )


scores_of_groups = st.lists(
    st.tuples(st.integers(0, 30).map(lambda n: n / 30), st.sampled_from("ab")), min_size=12, max_size=80
).filter(lambda rows: min(sum(group == name for _, group in rows) for name in "ab") >= 4)


@given(rows=scores_of_groups, limit=st.integers(1, 4))
def test_every_step_has_enough_people_and_the_error_is_stated(rows, limit):
    scores, groups = map(np.array, zip(*rows, strict=True))
    counts = counts_of(scores, groups)
    shown = lp.counts.disclosed(counts, min_group_size=limit)
    assert shown.size == counts.size
    for key, atoms in shown.atoms.items():
        assert atoms.rows.min() >= limit
        at = np.linspace(0, 1, 61)
        off = np.abs(atoms.shares_at_or_below(at) - counts.atoms[key].shares_at_or_below(at)).max()
        assert off <= shown.rank_error + 1e-12
    exact, coarse = lp.mcdp(counts), lp.mcdp(shown)
    assert abs(exact - coarse) <= 2 * shown.rank_error + 1e-12


@given(
    seed=st.integers(0, 99),
    cutoffs=st.lists(st.integers(0, 60).map(lambda n: n / 60), min_size=2, max_size=2),
)
def test_steps_differ_around_the_cutoffs_alone(seed, cutoffs):
    """Audits of the same people with other epsilons have other cutoffs; little follows from their differences."""
    scores = np.random.default_rng(seed).integers(0, 200, 400) / 200
    atoms = counts_of(scores, ["a", "b"] * 200).atoms["a", None]
    told = {0}
    for cutoff in cutoffs:
        shown = in_steps(atoms, 10, [cutoff])
        assert shown.rows.min() >= 10
        told |= set(np.cumsum(shown.rows).tolist())
        below = int((scores[::2] <= cutoff).sum())
        assert below in told or min(below, 200 - below) < 10
    assert (np.diff(sorted(told)) < 10).sum() <= 2 * len(cutoffs)


def test_a_limit_of_one_changes_nothing():
    counts = counts_of([0.1, 0.4, 0.6], ["a", "a", "b"])
    assert lp.counts.disclosed(counts, min_group_size=1) is counts


def test_whole_scores_stay_whole_and_shared_scores_stay_where_they_are():
    counts = counts_of([1] * 8 + [2, 4, 5] + [3] * 12, ["a"] * 11 + ["b"] * 12, score_range=(1, 10))
    shown = lp.counts.disclosed(counts)
    assert shown.atoms["a", None].scores.tolist() == [2.0]
    assert shown.atoms["b", None].scores.tolist() == [3.0]
    assert shown.atoms["b", None].rows.tolist() == [12]


def test_a_score_that_many_share_takes_its_few_neighbours():
    """560 people within 0.0001 would otherwise be drawn next to the score that nearly all of them have."""
    scores = np.concatenate([[0.0011] * 3, [0.0012] * 557, np.linspace(0.1, 0.9, 441)])
    shown = lp.counts.disclosed(counts_of([*scores, *[0.5] * 12], ["a"] * 1001 + ["b"] * 12))
    first = shown.atoms["a", None]
    assert (first.scores[0], first.rows[0]) == (0.0012, 560)
    assert shown.rank_error <= 10 / 1001


def test_weights_stay_with_their_people():
    rng = np.random.default_rng(0)
    weight = rng.random(60) + 0.5
    counts = counts_of(rng.random(60), ["a", "b"] * 30, sample_weight=weight)
    shown = lp.counts.disclosed(counts, min_group_size=5)
    for atoms in shown.atoms.values():
        assert atoms.rows.min() >= 5
    assert shown.atoms["a", None].weights.sum() == pytest.approx(weight[::2].sum())


def test_a_small_group_is_an_error_that_names_it_and_the_way_out():
    counts = counts_of(np.linspace(0, 1, 33), ["a"] * 15 + ["b"] * 15 + ["tiny"] * 3)
    with pytest.raises(ValueError, match=r"min_group_size=10.*'tiny'.*min_group_size=1"):
        lp.counts.disclosed(counts)
    assert lp.counts.disclosed(counts.without(["tiny"])).groups == ("a", "b")


def test_labels_of_few_people_are_not_told_apart():
    rng = np.random.default_rng(1)
    y = np.array([1] * 40 + [0] * 20)
    y[0] = 0
    groups = np.array(["a", "b"] * 20 + ["b"] * 20)
    counts = counts_of(rng.random(60), groups, y=y)
    assert not all_disclosed(counts, 10)
    shown = lp.counts.disclosed(counts)
    assert {label for _, label in shown.atoms} == {None}
    shown = lp.counts.disclosed(counts, Comparison("equal_opportunity"))
    assert {label for _, label in shown.atoms} == {1}
    enough = counts_of(rng.random(60), ["a", "b"] * 30, y=[0, 0, 1, 1] * 15)
    assert all_disclosed(enough, 10)
    assert {label for _, label in lp.counts.disclosed(enough).atoms} == {0, 1}


def test_people_with_several_rows_count_once():
    rng = np.random.default_rng(2)
    person = np.repeat(np.arange(24), 5)
    counts = counts_of(rng.random(120), np.where(person < 12, "a", "b"), cluster=person)
    shown = lp.counts.disclosed(counts)
    assert min(atoms.rows.min() for atoms in shown.atoms.values()) >= 50
    few = counts_of(rng.random(120), np.where(person < 5, "a", "b"), cluster=person)
    with pytest.raises(ValueError, match=r"min_group_size=10.*'a'"):
        lp.counts.disclosed(few)


_LINES = [(0, "f"), (0, "m"), (1, "x"), (1, "y"), (1, "z")]


@given(
    sizes=st.lists(st.integers(0, 30), min_size=6, max_size=6),
    limit=st.integers(2, 12),
)
def test_no_total_less_the_cells_shown_tells_of_few_people(sizes, limit):
    people = dict(zip(product("fm", "xyz"), sizes, strict=True))
    hidden = suppressed(people, limit)
    assert all(cell in hidden for cell, size in people.items() if 0 < size < limit)
    lines = [[cell for cell in people if cell[axis] == value] for axis, value in _LINES]
    for line in lines:
        together = sum(people[cell] for cell in line if cell in hidden)
        assert together == 0 or together >= limit or all(cell in hidden or not people[cell] for cell in line)
    # A second table with the same totals, and the same cells shown, in which a small cell differs.
    unknown = [cell for cell in people if cell in hidden]
    for small in (cell for cell in unknown if people[cell] < limit):
        totals = np.array([[cell in line for cell in unknown] for line in lines], dtype=float)
        free = [k for k in range(len(unknown)) if unknown[k] != small]
        other = np.linalg.lstsq(totals[:, free], -totals[:, unknown.index(small)], rcond=None)[0]
        moved = totals[:, free] @ other + totals[:, unknown.index(small)]
        whole = all(cell in hidden or not size for cell, size in people.items())
        assert np.abs(moved).max() < 1e-9 or whole


def follows(people, hidden):
    """The hidden cells that the totals and the cells shown determine."""
    unknown = sorted(hidden)
    lines = [
        [cell[axis] == value for cell in unknown] for axis in (0, 1) for value in {c[axis] for c in people}
    ]
    totals = np.array(lines, dtype=float)
    free = np.linalg.svd(totals)[2][np.linalg.matrix_rank(totals) :]
    return {cell for cell, moves in zip(unknown, np.abs(free).sum(axis=0), strict=True) if moves < 1e-9}


def test_what_is_left_of_a_line_after_cells_that_follow_is_not_few_people():
    """Women of two small groups: a third cell of their line that follows from its column hides nothing."""
    people = {("f", "a"): 2, ("f", "n"): 4, ("f", "o"): 67, ("f", "h"): 103, ("f", "c"): 567}
    people |= {("m", "a"): 30, ("m", "n"): 14, ("m", "o"): 310, ("m", "h"): 534, ("m", "c"): 1887}
    hidden = suppressed(people)
    left = [cell for cell in hidden - follows(people, hidden) if cell[0] == "f"]
    assert sum(people[cell] for cell in left) >= 10


@given(sizes=st.lists(st.integers(0, 40), min_size=8, max_size=8), limit=st.integers(2, 12))
def test_no_line_less_what_follows_tells_of_few_people(sizes, limit):
    people = dict(zip(product("fm", "wxyz"), sizes, strict=True))
    hidden = suppressed(people, limit)
    if not hidden or all(cell in hidden or not size for cell, size in people.items()):
        return
    known = follows(people, hidden)
    for axis, value in {(axis, cell[axis]) for cell in people for axis in (0, 1)}:
        left = sum(people[cell] for cell in hidden - known if cell[axis] == value)
        assert left == 0 or left >= limit


@given(st.data(), st.booleans(), st.integers(2, 5))
def test_bounds_of_what_is_shown_hold_the_definition(data: st.DataObject, gridded: bool, limit: int) -> None:
    drawn = data.draw(people(max_size=14))
    limit = min(limit, int(np.bincount(drawn.groups).min()))
    epsilon = data.draw(epsilons(drawn.grid))
    predictions = lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups)
    counts = lp.ScoreCounts.from_predictions(predictions)
    if gridded:
        counts = lp.counts.bounded(counts, max_scores=1, level=data.draw(st.integers(1, 6)))
    shown = lp.counts.disclosed(counts, min_group_size=limit)
    a, b = drawn.samples()
    lower, upper = lp.gap_curve(shown).bounds()
    at = float(epsilon)
    for low, high, value in (
        (lower.mcdp(at), upper.mcdp(at), oracles.mcdp(a, b, epsilon)),
        (lower.abcc(), upper.abcc(), oracles.abcc(a, b)),
    ):
        assert low - 1e-12 <= float(value) <= high + 1e-12


def test_people_beyond_the_first_and_the_last_mean() -> None:
    predictions = lp.Predictions.from_arrays(None, [0.1, 0.9, 0.5, 0.5], sensitive_features=list("aabb"))
    counts = lp.ScoreCounts.from_predictions(predictions)
    shown = lp.counts.disclosed(counts, min_group_size=2)
    assert lp.mcdp_bounds(shown, epsilon=0.1) == lp.results.Interval(0.0, 0.0, 1.0)
    assert lp.mcdp(counts, epsilon=0.1) == 0.5


def test_no_step_goes_across_a_cutoff_with_enough_people_on_both_sides() -> None:
    counts = counts_of(np.arange(40) / 40, np.arange(40) % 2)
    cutoffs = (0.3, 0.31, 0.99)  # few people are between the first two, and above the last
    shown = shown_counts(counts, Comparison(), 5, cutoffs)
    for key, atoms in shown.atoms.items():
        before = counts.atoms[key]
        assert atoms.rows.min() >= 5
        assert atoms.shares_at_or_below(np.array([0.3])) == before.shares_at_or_below(np.array([0.3]))
        assert atoms.shares_at_or_below(np.array([0.99])) == 1.0
    assert 0.0 < shown.rank_error < 0.5
    assert shown_counts(counts, Comparison(), 1, cutoffs).rank_error == 0.0
