"""Models of several classes, against audits of each class by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp

RNG = np.random.default_rng(0)
SEX = np.repeat(["f", "m"], 150)
SCORES = RNG.dirichlet([2, 2, 2], 300)
SCORES[SEX == "f"] = RNG.dirichlet([2, 2, 5], 150)
NAMES = ["a", "b", "c"]
OPTIONS: dict[str, Any] = {"sensitive_features": SEX, "random_state": 0, "n_resamples": 199}


def holm(p_values: dict[str, float]) -> dict[str, float]:
    """By its definition: the largest of (m - i) p(i) up to each, at most 1."""
    ordered = sorted(p_values.items(), key=lambda each: each[1])
    return {
        name: min(1.0, max((len(ordered) - i) * ordered[i][1] for i in range(place + 1)))
        for place, (name, _) in enumerate(ordered)
    }


@pytest.mark.parametrize(
    "given",
    [
        {"y_score": SCORES, "classes": NAMES},
        {"y_score": pd.DataFrame(SCORES, columns=NAMES)},
        {"y_score": dict(zip(NAMES, SCORES.T, strict=True))},
    ],
)
def test_each_class_is_audited_and_adjusted(given: dict[str, Any]) -> None:
    found = lp.audit_classes(None, **given, **OPTIONS)
    raw = {}
    for name, scores in zip(NAMES, SCORES.T, strict=True):
        alone = lp.audit(None, scores, confidence=1 - 0.05 / 3, **OPTIONS)
        assert found.audits[name].findings == alone.findings
        assert alone.findings[0].test is not None
        raw[name] = alone.findings[0].test.p_value
    assert found.p_values == pytest.approx(holm(raw))
    assert found.p_value == min(found.p_values.values())
    assert found.worst == "c"
    assert "Of 3 classes, c differs most" in repr(found)


def test_labels_say_who_is_of_a_class() -> None:
    labels = RNG.choice(NAMES, 300)
    found = lp.audit_classes(labels, SCORES, classes=NAMES, criterion="equal_opportunity", **OPTIONS)
    alone = lp.audit(
        (labels == "b").astype(int),
        SCORES[:, 1],
        criterion="equal_opportunity",
        confidence=1 - 0.05 / 3,
        **OPTIONS,
    )
    assert found.audits["b"].findings == alone.findings


def test_without_a_test_there_is_no_p_value() -> None:
    found = lp.audit_classes(None, SCORES, **OPTIONS | {"n_resamples": 0})
    assert np.isnan(found.p_value)
    assert list(found.audits) == [0, 1, 2]
    assert "no test was made" in found.sentence


@pytest.mark.parametrize(
    ("y_true", "scores", "classes", "message"),
    [
        (None, SCORES[:, 0], None, r"y_score must have shape \(n_samples, n_classes\), got \(300,\)"),
        (None, SCORES[:, :1], None, "y_score must have two classes or more, got 1"),
        (None, SCORES, ["a", "b"], "classes must name each of 3 columns"),
        (None, SCORES, ["a", "b", "b"], "classes must name each of 3 columns"),
        (["z"] * 300, SCORES, NAMES, "y_true must be one of the classes 'a', 'b', 'c', got 'z'"),
    ],
)
def test_what_are_no_classes(y_true: Any, scores: Any, classes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.audit_classes(y_true, scores, classes=classes, **OPTIONS)


@pytest.mark.slow
def test_the_joint_p_value_is_seldom_small_under_parity() -> None:
    rng, small, repeats = np.random.default_rng(1), 0, 300
    for _ in range(repeats):
        scores = rng.dirichlet([1, 1, 1, 1], 60)
        found = lp.audit_classes(
            None,
            scores,
            sensitive_features=rng.permutation(np.repeat(["a", "b"], [50, 10])),
            n_resamples=99,
            random_state=rng,
            epsilons=[0],
        )
        small += found.p_value <= 0.05
    assert small / repeats <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / repeats)


def test_the_least_p_value_of_several_classes_is_a_bound() -> None:
    rng = np.random.default_rng(0)
    sex = np.repeat(["f", "m"], 300)
    scores = np.concatenate([rng.dirichlet([1, 8], 300), rng.dirichlet([8, 1], 300)])
    found = lp.audit_classes(None, scores, sensitive_features=sex, n_resamples=99, random_state=0)
    assert found.sentence.endswith("is <= 0.02.")
