"""Repair where the groups are unknown at prediction, and P(group | x) stands for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.models import ScoreRepair


def test_unknown_groups() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 4000)
    scores = np.clip(0.2 * groups + rng.beta(2, 4, 4000), 0, 1)
    sure = np.where(groups == 1, 0.98, 0.02)
    shares = np.column_stack([1 - sure, sure])
    repair = ScoreRepair(max_mcdp=0.05).fit(scores, sensitive_features=groups, group_probabilities=shares)
    found = repair.transform(scores, group_probabilities=shares)
    assert lp.mcdp(None, found, sensitive_features=groups) == repair.mcdp_ <= 0.05
    assert "nothing can be promised for others when the groups are unknown" in repair.promise_
    known = np.column_stack([groups == 0, groups == 1]).astype(float)
    certain = ScoreRepair(max_mcdp=0.05).fit(scores, sensitive_features=groups, group_probabilities=known)
    assert (
        lp.mcdp(None, certain.transform(scores, group_probabilities=known), sensitive_features=groups) <= 0.05
    )
    guess = np.full((4000, 2), 0.5)
    with pytest.raises(
        ValueError, match=r"max_mcdp=0.05.* group_probabilities leaves at least 0.* groups at prediction"
    ):
        ScoreRepair(max_mcdp=0.05).fit(scores, sensitive_features=groups, group_probabilities=guess)


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([0.5, 0.5], "group_probabilities .* 0, 1, got shape \\(2,\\)"),
        ([["a", "b"]], "group_probabilities must be numbers"),
        ([[0.5, 0.5]], "group_probabilities has 1 rows, scores has 4"),
        (
            [[0.5, 0.5]] * 3 + [[0.9, 0.5]],
            "group_probabilities .*\\[0.9, 0.5\\] at row 3",
        ),
        ([[0.5, 0.5]] * 3 + [[1.5, -0.5]], "group_probabilities .*\\[1.5, -0.5\\] at row 3"),
        ([[0.5, 0.5], [np.nan, 1]] * 2, "group_probabilities.*nan at row 1"),
    ],
)
def test_wrong_probabilities(probabilities: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScoreRepair(max_mcdp=0.9).fit(
            [0.1, 0.2, 0.3, 0.4], sensitive_features=[0, 0, 1, 1], group_probabilities=probabilities
        )


def test_groups_and_probabilities_do_not_mix() -> None:
    shares = [[0.9, 0.1]] * 2 + [[0.1, 0.9]] * 2
    fitted = ScoreRepair(max_mcdp=1.0).fit(
        [0.1, 0.2, 0.3, 0.4], sensitive_features=[0, 0, 1, 1], group_probabilities=shares
    )
    with pytest.raises(ValueError, match="sensitive_features must be None"):
        fitted.transform([0.1], sensitive_features=[0])
    with pytest.raises(ValueError, match=r"group_probabilities.*None"):
        fitted.transform([0.1])
    with pytest.raises(ValueError, match=r"confidence.*0.9"):
        ScoreRepair(confidence=0.9).fit(
            [0.1, 0.2, 0.3, 0.4], sensitive_features=[0, 0, 1, 1], group_probabilities=shares
        )
