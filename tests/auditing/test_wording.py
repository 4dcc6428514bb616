"""The sentences of an audit say no more than the numbers do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity._text import pair_text
from localparity.auditing._wording import assumptions_of


def audit_of(shift: float, **options: Any) -> lp.Audit:
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], 400)
    scores = np.clip(rng.random(800) * 0.5 + shift * (groups == "b"), 0.0, 1.0)
    options = {"n_resamples": 100, "random_state": 0, "epsilons": [0.02, 0.1], **options}
    return lp.audit(None, scores, sensitive_features=groups, **options)


def test_which_group_is_better_off_depends_on_what_a_score_means() -> None:
    assert audit_of(0.2, higher_is="better").answer.headline.endswith(", which is the better outcome")
    worse = audit_of(0.2, higher_is="worse")
    assert worse.answer.headline.endswith(", which is the worse outcome")
    assert "worse outcome" in worse.to_dict()["findings"][0]["window"]["sentence"]


def test_a_name_from_right_to_left_keeps_to_itself() -> None:
    assert pair_text(("שלום", "Male")) == "\u2068שלום\u2069 and Male"


@pytest.mark.parametrize(("shift", "status"), [(0.3, "disparity"), (0.0, "undecided")])
def test_without_a_test_the_interval_decides(shift: float, status: str) -> None:
    answer = audit_of(shift, n_resamples=0).answer
    assert answer.status == status
    assert answer.sure.endswith("Not tested.")


@pytest.mark.parametrize(
    "options", [{"confidence": 0.9995}, {"n_resamples": 10}, {"confidence": 0.999, "n_resamples": 500}]
)
def test_nothing_is_called_chance_by_fewer_resamples_than_the_level_needs(options: dict[str, Any]) -> None:
    """Two groups that do not overlap were called chance where no p-value could have been small enough."""
    apart = audit_of(0.5, **options)
    assert not apart.has_test
    assert apart.answer.status == "disparity"
    alike = audit_of(0.0, **options).answer
    assert alike.status == "undecided"
    assert alike.headline == "Cannot be told: nothing was tested"
    assert "resamples are too few for a test" in alike.sure


@pytest.mark.parametrize("method", ["finite_sample", "bootstrap"])
def test_nothing_is_called_chance_while_an_interval_excludes_0(method: str) -> None:
    statuses = set()
    for shift in np.linspace(0.0, 0.12, 9):
        audit = audit_of(shift, confidence=0.9, method=method)
        (pair,) = audit.pairs
        assert pair.p_values is not None
        for p_value, interval in zip(pair.p_values, pair.intervals, strict=True):
            assert interval.low == 0.0 or p_value <= 0.1
            assert audit.answer.status == "disparity" or p_value > 0.1
        statuses.add(audit.answer.status)
    assert statuses == {"disparity", "none found"}


def test_too_few_people() -> None:
    audit = lp.audit(None, [0.1, 0.2, 0.8, 0.9], sensitive_features=list("aabb"), random_state=0)
    assert audit.answer.headline == "Cannot be told: there are too few people"
    assert audit.answer.sure.endswith("In groups of these sizes, any measured gap could be chance.")
    assert all(group.too_small for group in audit.groups)
    assert audit.pairs[0].detectable is None


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
            assert audit.answer.epsilon == 0.2
            assert "to score above every cutoff from" in audit.answer.headline
            assert audit.answer.gap == audit.findings[1].mcdp
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
    assert any("for several models" in sentence for sentence in audit.assumptions)


def test_labels_are_named() -> None:
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 2, 800), np.repeat(["a", "b"], 400)
    scores = rng.random(800) ** np.where((groups == "a") & (labels == 1), 3.0, 1.0)
    found = lp.audit(labels, scores, sensitive_features=groups, criterion="equalized_odds", random_state=0)
    assert found.answer.headline.endswith(", among people with label = 1")
    assert found.answer.states["clear"] == 1
    weighted = lp.audit(
        labels,
        scores,
        sensitive_features=groups,
        sample_weight=np.where(np.arange(800) % 100, 1.0, 200.0),
        criterion="equalized_odds",
        random_state=0,
    )
    assert any("a with label 0" in sentence for sentence in weighted.assumptions)


def test_a_pair_that_is_alike_is_not_found_because_others_differ() -> None:
    """Dealing all groups out says what a pair would measure were all alike, which 20,000 people at 0.5 are not."""
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        scores = np.concatenate([rng.random(200), rng.random(200), np.full(20_000, 0.5)])
        groups = np.repeat(["a", "b", "c"], [200, 200, 20_000])
        audit = lp.audit(
            None, scores, sensitive_features=groups, epsilons=[0.0], n_resamples=99, random_state=0
        )
        (alike,) = [pair for pair in audit.pairs if set(pair.groups) == {"a", "b"}]
        found += alike.significant_at(0, by_test=True)
        assert audit.answer.status == "disparity"
    assert found <= 60 * 0.05 + 3.5 * np.sqrt(60 * 0.05 * 0.95)


def test_a_disparity_from_everyone_at_a_wider_window_is_placed() -> None:
    rng = np.random.default_rng(7)
    scores = np.concatenate([rng.random(60), np.clip(rng.random(60) + 0.17, 0, 1) * 0.999])
    audit = lp.audit(
        None,
        scores,
        sensitive_features=np.repeat(["a", "b"], 60),
        epsilons=[0, 0.1],
        compare="to_overall",
        n_resamples=99,
        random_state=0,
    )
    assert "eople overall" in audit.answer.headline


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_tested_is_what_is_measured(dtype: Any) -> None:
    """Scores of few bits at the bottom of a range that these bits cannot hold."""
    rng = np.random.default_rng(22)
    scores = (0.1 + rng.integers(0, 3, 60) / 2).astype(np.float32)
    scores[:10] = np.float32(0.1)
    given = scores if dtype == np.float32 else scores.astype(float).round(6)
    options: dict[str, Any] = {"epsilons": [0.3], "score_range": (0.1, 1.1), "n_resamples": 99}
    found = lp.audit(None, given, sensitive_features=np.repeat(["a", "b"], 30), random_state=0, **options)
    assert found.pairs[0].p_values == (0.01,)


def test_a_sketch_is_not_called_a_disparity_for_its_own_error() -> None:
    pytest.importorskip("datasketches")
    rng = np.random.default_rng(0)
    sketch = lp.monitoring.ScoreSketch(k=64)
    sketch.update(
        lp.Predictions.from_arrays(None, rng.random(100_000), sensitive_features=rng.integers(0, 2, 100_000))
    )
    counts = sketch.counts()
    assert lp.mcdp(counts) > 0.01
    found = lp.audit(counts, epsilons=[0.0], n_resamples=99, random_state=0)
    assert found.answer.status == "none found"


def test_a_p_value_of_one_tenth_is_small_enough_at_nine_tenths() -> None:
    found = audit_of(0.2, confidence=0.9, n_resamples=9, epsilons=[0.0])
    assert found.pairs[0].p_values == (0.1,)
    assert found.answer.status == "disparity"


def test_what_can_be_told_from_chance_is_what_the_test_tells() -> None:
    for seed in range(150):
        rng = np.random.default_rng(seed)
        scores, groups = rng.random(100), np.repeat(["a", "b"], 50)
        audit = lp.audit(None, scores, sensitive_features=groups, n_resamples=199, random_state=seed)
        (pair,) = audit.pairs
        assert pair.p_values is not None
        assert pair.detectable is not None
        assert (pair.mcdp[0] > pair.detectable + 1e-12) == (pair.p_values[0] <= 0.05)


def test_a_small_group_that_differs_is_not_called_too_small() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.random(4000) * 0.9, rng.uniform(0.95, 1.0, 8)])
    groups = np.repeat(["a", "b", "t"], [2000, 2000, 8])
    found = lp.audit(None, scores, sensitive_features=groups, random_state=0, epsilons=[0.0]).answer
    assert found.status == "disparity"
    assert not any(row.too_small for row in found.pairs if "t" in (row.higher, row.lower))


def test_it_is_said_where_the_test_rejects_parity_and_the_interval_reaches_0() -> None:
    rng = np.random.default_rng(3)
    scores = np.concatenate([rng.random(150), rng.random(150) ** 0.85])
    audit = lp.audit(
        None, scores, sensitive_features=np.repeat(["a", "b"], 150), epsilons=[0.0], random_state=0
    )
    (pair,) = audit.pairs
    assert pair.p_values is not None
    assert pair.p_values[0] <= 0.05 < pair.intervals[0].high
    assert pair.intervals[0].low == 0.0
    assert audit.answer.sure.startswith("They differ, but by how much is not known: 0 to ")
    assert audit.answer.states["differs, size unknown"] == 1
    assert audit.assumptions[2] == "Intervals and p-values hold for this pair and epsilon."


@pytest.mark.parametrize(
    ("groups", "epsilons", "options", "words"),
    [
        (2, [0.0, 0.1], {}, "Lower ends and p-values allow for 2 epsilons. Each upper end holds at one"),
        (
            3,
            [0.0],
            {},
            "allow for 3 pairs. Each upper end holds for one pair, or for the worst, at one epsilon",
        ),
        (3, [0.0, 0.1], {"method": "bootstrap"}, "Intervals and p-values allow for 3 pairs and 2 eps"),
        (3, [0.0], {"n_resamples": 0}, "Lower ends allow for 3 pairs"),
    ],
)
def test_over_what_numbers_hold_together_is_said(
    groups: int, epsilons: list[float], options: dict[str, Any], words: str
) -> None:
    scores = np.random.default_rng(0).random(120)
    options = {"n_resamples": 19, "random_state": 0, **options}
    audit = lp.audit(None, scores, sensitive_features=np.arange(120) % groups, epsilons=epsilons, **options)
    assert any(words in sentence for sentence in audit.assumptions)
