"""Counts merge by addition and give what the rows give."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
from localparity.counts._atoms import Atoms
from localparity.metrics._gap_curve import gap_curves
from scale_rows import assert_same_counts, count_rows
from strategies import People, people


def counts_of(drawn: People, rows: np.ndarray | slice = slice(None)) -> lp.ScoreCounts:
    predictions = lp.Predictions.from_arrays(
        drawn.labels[rows], drawn.scores[rows], sensitive_features=drawn.groups[rows]
    )
    return lp.ScoreCounts.from_predictions(predictions)


@given(people(n_groups=3, max_size=5))
def test_counts_give_what_the_rows_give(drawn: People) -> None:
    counts = counts_of(drawn)
    for compare in ("between_groups", "to_overall"):
        options = {"sensitive_features": drawn.groups, "compare": compare}
        assert lp.mcdp(counts, epsilon=0.05, compare=compare) == lp.mcdp(
            None, drawn.scores, epsilon=0.05, **options
        )
        profile = lp.mcdp_profile(counts, compare=compare)
        np.testing.assert_array_equal(profile.values, lp.mcdp_profile(None, drawn.scores, **options).values)
    assert counts.size == drawn.scores.size


@given(st.data())
def test_merged_parts_are_the_whole_in_any_order(data: st.DataObject) -> None:
    drawn = data.draw(people(n_groups=2, max_size=9))
    whole = counts_of(drawn)
    part = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(drawn.scores), max_size=len(drawn.scores)))
    )
    halves = [rows for rows in (part, ~part) if np.unique(drawn.groups[rows]).size == 2]
    if len(halves) < 2:
        return
    left, right = (counts_of(drawn, rows) for rows in halves)
    for merged in (left.merge(right), right.merge(left)):
        assert merged.groups == whole.groups
        for key, atoms in whole.atoms.items():
            np.testing.assert_array_equal(merged.atoms[key].scores, atoms.scores)
            np.testing.assert_array_equal(merged.atoms[key].rows, atoms.rows)
            np.testing.assert_array_equal(merged.atoms[key].weights, atoms.weights)
            np.testing.assert_array_equal(merged.atoms[key].squares, atoms.squares)


def test_a_group_that_appears_late_merges_in() -> None:
    def counts(groups: list[str]) -> lp.ScoreCounts:
        predictions = lp.Predictions.from_arrays([0, 1], [0.2, 0.4], sensitive_features=groups)
        return lp.ScoreCounts.from_predictions(predictions)

    merged = counts(["a", "b"]).merge(counts(["a", "c"]))
    assert merged.groups == ("a", "b", "c")
    assert merged.size == 4
    with pytest.raises(ValueError, match="group 'b' has no rows with y_true = 0"):
        lp.mcdp(merged, criterion="predictive_equality")
    assert merged.without(["c"]).groups == ("a", "b")
    assert merged.small_groups(lp.Comparison(min_group_size=2)) == {"b": 1, "c": 1}
    # A table that never saw a group under a label has no atoms there at all.
    trimmed = lp.ScoreCounts({key: atoms for key, atoms in merged.atoms.items() if key != ("b", 0)})
    assert trimmed.small_groups(lp.Comparison("predictive_equality")) == {"b": 0, "c": 0}


def test_effective_size_is_the_size_of_equal_weights() -> None:
    scores = np.array([0.1, 0.2, 0.2, 0.3])
    assert count_rows(scores).effective_size == 4.0
    assert count_rows(scores, np.full(4, 2.5)).effective_size == pytest.approx(4.0)
    assert count_rows(scores, np.array([1.0, 0.0, 0.0, 0.0])).effective_size == 1.0
    assert count_rows(scores, np.array([1.0, 0.0, 2.0, 0.0])).size == 2


def test_sizes_too_large_for_exact_numerators_still_agree() -> None:
    scores = np.array([0.1, 0.5])
    rows = np.array([3 * 10**9, 10**9])
    big, other = Atoms(scores, rows, rows), Atoms(scores, rows[::-1], rows[::-1])
    counts = lp.ScoreCounts({("a", None): big, ("b", None): other})
    assert lp.mcdp(counts, epsilon=0.1) == pytest.approx(0.5, abs=1e-15)
    # The difference of the numerators is as large as the product of the sizes here.
    everyone = np.array([4 * 10**9])
    low, high = (Atoms(np.array([score]), everyone, everyone) for score in (0.1, 0.5))
    apart = lp.ScoreCounts({("a", None): low, ("b", None): high})
    assert lp.gap_curve(apart).gap.tolist() == [1.0, 0.0]


def test_one_curve_of_the_counts() -> None:
    predictions = lp.Predictions.from_arrays(
        [0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], sensitive_features=list("aabb")
    )
    counts = lp.ScoreCounts.from_predictions(predictions)
    assert counts.labelled
    assert lp.gap_curve(counts, groups=("a", "everyone")).gap.tolist() == [0.25, 0.5, 0.25, 0.0]
    assert lp.gap_curve(counts, groups=("a", "b"), criterion="equal_opportunity").knots.tolist() == [0.4, 0.8]
    with pytest.raises(ValueError, match="there is no group 'c'"):
        lp.gap_curve(counts, groups=("a", "c"))
    with pytest.raises(ValueError, match="criterion='equalized_odds'"):
        lp.gap_curve(counts, groups=("a", "b"), criterion="equalized_odds")


def test_what_does_not_fit_together_does_not_merge() -> None:
    def counts(labels: list[int] | None, score_range: tuple[float, float]) -> lp.ScoreCounts:
        predictions = lp.Predictions.from_arrays(
            labels, [0.2, 0.4], sensitive_features=["a", "b"], score_range=score_range
        )
        return lp.ScoreCounts.from_predictions(predictions)

    plain = counts(None, (0, 1))
    with pytest.raises(ValueError, match=r"\(0.0, 1.0\) .* \(0.0, 2.0\)"):
        plain.merge(counts(None, (0, 2)))
    with pytest.raises(ValueError, match="counts with labels"):
        plain.merge(counts([0, 1], (0, 1)))
    with pytest.raises(ValueError, match="criterion='equal_opportunity' needs labels"):
        lp.mcdp(plain, criterion="equal_opportunity")


def test_no_group_may_be_named_everyone_where_everyone_is_compared() -> None:
    options = {"sensitive_features": ["everyone", "b"]}
    assert lp.mcdp(None, [0.1, 0.2], **options) == 1.0
    with pytest.raises(ValueError, match="'everyone'"):
        lp.mcdp(None, [0.1, 0.2], compare="to_overall", **options)
    counts = lp.ScoreCounts.from_predictions(lp.Predictions.from_arrays(None, [0.1, 0.2], **options))
    with pytest.raises(ValueError, match="'everyone'"):
        lp.gap_curve(counts, groups=("everyone", "b"))


def test_thousands_of_groups() -> None:
    rng = np.random.default_rng(0)
    groups = np.arange(10_000)
    predictions = lp.Predictions.from_arrays(groups % 2, rng.random(10_000), sensitive_features=groups)
    atoms = lp.ScoreCounts.from_predictions(predictions).atoms
    assert len(atoms) == 20_000
    scores = [atoms[group, group % 2].scores[0] for group in groups.tolist()]
    np.testing.assert_array_equal(scores, predictions.scores)


def test_counts_are_not_changed_and_are_themselves() -> None:
    rows = lp.Predictions.from_arrays(None, [0.1, 0.5], sensitive_features=["a", "b"])
    one, other = lp.ScoreCounts.from_predictions(rows), lp.ScoreCounts.from_predictions(rows)
    with pytest.raises(FrozenInstanceError):
        one.score_range = (0.0, 2.0)
    assert len({one, other}) == 2


def test_a_repr_is_short() -> None:
    rows = lp.Predictions.from_arrays(None, [0.1, 0.2, 0.3], sensitive_features=["a", "b", "b"])
    counts = lp.ScoreCounts.from_predictions(rows)
    assert repr(counts) == "ScoreCounts(3 rows, 2 groups)"
    assert (
        repr(lp.ScoreCounts(counts.atoms, rank_error=0.125))
        == "ScoreCounts(3 rows, 2 groups, rank_error=0.125)"
    )


def test_the_curves_of_many_pairs_are_not_kept() -> None:
    groups = np.arange(26) % 13
    rows = lp.Predictions.from_arrays(None, np.linspace(0, 1, 26), sensitive_features=groups)
    counts = lp.ScoreCounts.from_predictions(rows)
    first, second = (gap_curves(counts, lp.Comparison()) for _ in range(2))
    kept = [one is other for one, other in zip(first, second, strict=True)]
    assert kept == [True] * 64 + [False] * 14
    np.testing.assert_array_equal(first[-1].gap, second[-1].gap)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_table_of_counts_is_the_rows_that_were_counted(dtype: type) -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(300).round(2).astype(dtype), rng.choice(["a", "b", "c"], 300)
    labels, times = rng.integers(0, 2, 300), rng.integers(0, 5, 300)
    times[:3] = 1
    groups[:3] = ["a", "b", "c"]
    scores[0] = -0.0
    found = lp.ScoreCounts.from_table(scores, groups, times, label=labels)
    predictions = lp.Predictions.from_arrays(
        np.repeat(labels, times), np.repeat(scores, times), sensitive_features=np.repeat(groups, times)
    )
    assert_same_counts(found, lp.ScoreCounts.from_predictions(predictions))
    assert found.exchangeable
    asked = {"epsilons": [0.0, 0.05], "n_resamples": 99, "random_state": 0, "criterion": "equalized_odds"}
    assert lp.audit(found, **asked) == lp.audit(predictions, **asked)


def test_counts_are_not_weights() -> None:
    scores, groups, times = (
        np.tile([0.2, 0.4, 0.6], 2),
        np.repeat(["a", "b"], 3),
        np.array([9, 5, 6, 4, 5, 20]),
    )
    counted = lp.mcdp_interval(
        lp.ScoreCounts.from_table(scores, groups, times), method="bootstrap", random_state=0
    )
    weighted = lp.mcdp_interval(
        None, scores, sensitive_features=groups, sample_weight=times, method="bootstrap", random_state=0
    )
    assert counted.estimate == pytest.approx(weighted.estimate)
    assert counted.high - counted.low < weighted.high - weighted.low


def test_tables_of_several_group_columns_and_other_frames() -> None:
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"p": [0.1, 0.9], "sex": ["f", "m"], "old": [True, False], "n": [10, 20]})
    found = lp.ScoreCounts.from_table(table["p"], table[["sex", "old"]], table["n"])
    assert found.groups == (("f", True), ("m", False))
    assert found.size == 30


@pytest.mark.parametrize(
    ("given_counts", "message"),
    [
        ([1, 2.5], "count must be whole numbers >= 0, got 2.5 at row 1"),
        ([-1, 2], "count must be whole numbers >= 0, got -1 at row 0"),
        ([1, float("nan")], "count must be finite, got nan at row 1"),
        ([1, 2, 3], "count has 3 rows, score has 2"),
        ([1, 0], "count must be > 0 in some row of group 'b'"),
        (["many", 1], "count must be numbers"),
    ],
)
def test_counts_that_are_none(given_counts: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.ScoreCounts.from_table([0.1, 0.2], ["a", "b"], given_counts)
    with pytest.raises(ValueError, match="score must be inside score_range"):
        lp.ScoreCounts.from_table([0.1, 2.0], ["a", "b"], [1, 1])


class Walked(dict[Any, Any]):
    """A dict that counts how many of its items were looked at."""

    def __init__(self, items: dict[Any, Any]) -> None:
        super().__init__(items)
        self.looks = 0

    def items(self) -> Any:
        for item in super().items():
            self.looks += 1
            yield item


def test_thousands_of_groups_are_told_apart_in_one_walk_over_the_counts() -> None:
    groups = np.repeat(np.arange(1_000), 2)
    predictions = lp.Predictions.from_arrays(None, np.linspace(0, 1, groups.size), sensitive_features=groups)
    found = lp.ScoreCounts.from_predictions(predictions)
    counts = replace(found, atoms=Walked(found.atoms))
    assert len(counts.small_groups(lp.Comparison(min_group_size=3))) == 1_000
    assert counts.atoms.looks == 1_000


def test_a_table_may_lack_a_label_of_a_group() -> None:
    found = lp.ScoreCounts.from_table([0.1, 0.2, 0.3], ["a", "a", "b"], [2, 1, 4], label=[0, 1, 1])
    assert sorted(found.atoms) == [("a", 0), ("a", 1), ("b", 1)]
    assert found.size == 7
