"""Who is compared with whom."""

from __future__ import annotations

from typing import Any

import pytest

import localparity as lp
from localparity.counts._comparison import check_sizes, require_labels


def test_labels_and_pairs() -> None:
    plain, odds = lp.Comparison(), lp.Comparison("equalized_odds", "to_overall", 5)
    assert (plain.labels, plain.needs_labels) == ((None,), False)
    assert (odds.labels, odds.needs_labels) == ((0, 1), True)
    assert plain.pairs(["a", "b", "c"]) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert odds.pairs(["a", "b"]) == [("a", "everyone"), ("b", "everyone")]
    assert lp.Comparison() == plain != odds
    assert len({plain, lp.Comparison(), odds}) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "fairness"}, "criterion .*got 'fairness'"),
        ({"compare": "pairs"}, "compare .*got 'pairs'"),
        ({"min_group_size": 0}, "min_group_size .*got 0"),
        ({"min_group_size": 2.5}, "min_group_size .*got 2.5"),
    ],
)
def test_it_is_checked_when_it_is_made(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.Comparison(**options)


def test_groups_that_are_too_small_are_named() -> None:
    comparison = lp.Comparison(min_group_size=3)
    check_sizes(comparison, ["a", "b"], [3, 4], None)
    with pytest.raises(ValueError, match="group 'b' has 2 rows, min_group_size is 3"):
        check_sizes(comparison, ["a", "b"], [3, 2], None)
    with pytest.raises(ValueError, match="group 'a' has no rows with y_true = 1"):
        check_sizes(comparison, ["a", "b"], [0, 3], 1)


def test_labels_are_asked_for_where_they_are_needed() -> None:
    require_labels(lp.Comparison(), None)
    with pytest.raises(ValueError, match="criterion='equal_opportunity' needs y_true, got None"):
        require_labels(lp.Comparison("equal_opportunity"), None)
