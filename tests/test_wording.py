"""The verdict says no more than the numbers do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity._wording import assumptions_of, pair_text, percent


def audit_of(shift: float, **options: Any) -> lp.Audit:
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], 400)
    scores = np.clip(rng.random(800) * 0.5 + shift * (groups == "b"), 0.0, 1.0)
    options = {"n_resamples": 100, "random_state": 0, "epsilons": [0.02, 0.1], **options}
    return lp.audit(None, scores, sensitive_features=groups, **options)


def test_a_disparity() -> None:
    audit = audit_of(0.2)
    found, first, (pair,) = audit.verdict, audit.findings[0], audit.pairs
    assert found.status == "found"
    assert found.headline == f"There is a disparity: MCDP(0.02) is {percent(first.mcdp)} between a and b."
    assert found.where == first.window.sentence
    assert f"from {percent(first.interval.low)} to {percent(first.interval.high)}" in found.how_sure
    assert pair.p_values is not None
    assert f"adjusted p-value against parity is {pair.p_values[0]:.4f}" in found.how_sure
    assert pair.detectable is not None
    assert f"MCDP above {percent(pair.detectable)} can be told from chance" in found.how_sure
    assert found.notes == ()


def test_which_group_is_better_off_depends_on_what_a_score_means() -> None:
    assert "better outcome" in audit_of(0.2, higher_is="better").verdict.where
    worse = audit_of(0.2, higher_is="worse")
    assert "worse outcome" in worse.verdict.where
    assert worse.to_dict()["findings"][0]["window"]["sentence"] == worse.verdict.where


def test_a_name_from_right_to_left_keeps_to_itself() -> None:
    assert pair_text(("שלום", "Male")) == "\u2068שלום\u2069 and Male"


def test_chance() -> None:
    found = audit_of(0.0).verdict
    assert found.status == "not found"
    assert found.headline.startswith("No disparity can be told from chance at these sizes")


@pytest.mark.parametrize(("shift", "status"), [(0.3, "found"), (0.0, "undecided")])
def test_without_a_test_the_interval_decides(shift: float, status: str) -> None:
    found = audit_of(shift, n_resamples=0).verdict
    assert found.status == status
    assert "no test against parity was made" in found.how_sure


@pytest.mark.parametrize(
    "options", [{"level": 0.9995}, {"n_resamples": 10}, {"level": 0.999, "n_resamples": 500}]
)
def test_nothing_is_called_chance_by_fewer_resamples_than_the_level_needs(options: dict[str, Any]) -> None:
    """Two groups that do not overlap were called chance where no p-value could have been small enough."""
    apart = audit_of(0.5, **options)
    assert not apart.tested
    assert apart.verdict.status == "found"
    alike = audit_of(0.0, **options).verdict
    assert alike.status == "undecided"
    assert "was not tested" in alike.headline
    assert "resamples it cannot be small enough" in alike.how_sure


@pytest.mark.parametrize("method", ["dkw", "bootstrap"])
def test_nothing_is_called_chance_while_an_interval_excludes_0(method: str) -> None:
    statuses = set()
    for shift in np.linspace(0.0, 0.12, 9):
        audit = audit_of(shift, level=0.9, method=method)
        (pair,) = audit.pairs
        assert pair.p_values is not None
        for p_value, interval in zip(pair.p_values, pair.intervals, strict=True):
            assert interval.low == 0.0 or p_value <= 0.1
            assert audit.verdict.status == "found" or p_value > 0.1
        statuses.add(audit.verdict.status)
    assert statuses == {"found", "not found"}


def test_too_few_people() -> None:
    found = lp.audit(None, [0.1, 0.2, 0.8, 0.9], sensitive_features=list("aabb"), random_state=0)
    assert found.verdict.status == "undecided"
    assert "too few people" in found.verdict.headline
    assert "not even a gap of 100%" in found.verdict.how_sure
    assert all(group.too_small for group in found.groups)
    assert found.pairs[0].detectable is None


def test_a_disparity_of_wider_windows_only_is_placed_there() -> None:
    """A gap of one sign over a long stretch, small everywhere: windows tell it from chance, points do not."""
    rng = np.random.default_rng(11)
    for _ in range(40):
        scores = np.concatenate([rng.random(300), np.clip(rng.random(300) + 0.055, 0, 1)])
        audit = lp.audit(
            None, scores, sensitive_features=np.repeat(["a", "b"], 300), random_state=0, epsilons=[0.0, 0.2]
        )
        (pair,) = audit.pairs
        assert pair.p_values is not None
        if pair.p_values[1] <= 0.05 < pair.p_values[0]:
            assert "MCDP(0.2)" in audit.verdict.headline
            assert audit.verdict.where == audit.findings[1].window.sentence
            return
    pytest.fail("no case was drawn")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Rows are assumed to be independent"),
        ({"cluster": np.arange(800) // 2}, "clusters are assumed to be independent"),
        ({"sample_weight": np.ones(800)}, "multiplier bootstrap"),
        (
            {"sample_weight": np.where(np.arange(800) % 400, 1.0, 200.0)},
            "Few rows carry most of the weight of a, b",
        ),
        ({"cluster": np.arange(800) % 7}, "Few rows carry most of the weight of a, b"),
    ],
)
def test_what_is_assumed_is_said(options: dict[str, Any], words: str) -> None:
    audit = audit_of(0.1, **options)
    assert any(words in sentence for sentence in assumptions_of(audit))
    assert any("not for several models" in sentence for sentence in audit.assumptions)


def test_labels_are_named() -> None:
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 2, 800), np.repeat(["a", "b"], 400)
    scores = rng.random(800) ** np.where((groups == "a") & (labels == 1), 3.0, 1.0)
    found = lp.audit(labels, scores, sensitive_features=groups, criterion="equalized_odds", random_state=0)
    assert "between a and b among people with label 1" in found.verdict.headline
    assert any("for 1 of 2 pairs, of which this is the largest" in note for note in found.verdict.notes)
    weighted = lp.audit(
        labels,
        scores,
        sensitive_features=groups,
        sample_weight=np.where(np.arange(800) % 100, 1.0, 200.0),
        criterion="equalized_odds",
        random_state=0,
    )
    assert any("a with label 0" in sentence for sentence in weighted.assumptions)
