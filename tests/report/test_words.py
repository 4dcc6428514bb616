"""The verdict says no more than the numbers do."""

from __future__ import annotations

import numpy as np
import pytest

import localparity as lp
from localparity.report._words import pair_text, percent, verdict


def audit_of(shift: float, *, n_resamples: int = 100) -> lp.Audit:
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], 400)
    scores = np.clip(rng.random(800) * 0.5 + shift * (groups == "b"), 0.0, 1.0)
    return lp.audit(
        None, scores, sensitive_features=groups, n_resamples=n_resamples, random_state=0, epsilons=[0.02, 0.1]
    )


def test_a_certain_disparity() -> None:
    audit = audit_of(0.2)
    found = verdict(audit)
    first = audit.findings[0]
    assert first.test is not None
    assert found.certain
    assert found.headline == f"There is a disparity: MCDP(0.02) is {percent(first.mcdp)}."
    assert found.where == first.window.sentence
    assert f"from {percent(first.interval.low)} to {percent(first.interval.high)}" in found.how_sure
    assert f"p-value against parity is {first.test.p_value:.4f}" in found.how_sure
    assert f"would measure {percent(first.test.null_mean)} on average" in found.how_sure


def test_a_name_from_right_to_left_keeps_to_itself() -> None:
    assert pair_text(("שלום", "Male")) == "\u2068שלום\u2069 and Male"


def test_chance() -> None:
    found = verdict(audit_of(0.0))
    assert not found.certain
    assert found.headline.startswith("No disparity can be told from chance: MCDP(0.02) is ")


@pytest.mark.parametrize(("shift", "certain"), [(0.3, True), (0.0, False)])
def test_without_a_test_the_interval_decides(shift: float, certain: bool) -> None:
    found = verdict(audit_of(shift, n_resamples=0))
    assert found.certain == certain
    assert "no test against parity was made" in found.how_sure
