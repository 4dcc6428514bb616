"""Alternatives to a baseline: what dominates it, how sure that is, and every form of the answer alike."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from sklearn.metrics import average_precision_score

import localparity as lp
from localparity.models import _compare, compare
from localparity.models._bound import Bound, Measured
from localparity.models._compare import CompareMethod, CompareSettings
from localparity.models._dominance import BaselineRule, accuracy_differences, average_precision_slopes
from localparity.models._rows import TrainingRows, check_training_rows
from localparity.report._terminal import TerminalComparison
from localparity.results import Baseline, Interval, ModelComparison, Outcome, PairedDifferences

RNG = np.random.default_rng(0)
CENSUS = lp.datasets.make_census(1600, random_state=0)
SEX = CENSUS.sensitive_features
QUICK: dict[str, Any] = {"sensitive_features": SEX, "n_resamples": 50, "random_state": 0, "confidence": 0.9}


@pytest.mark.parametrize("weights", ["equal", "whole"])
@pytest.mark.parametrize("decimals", [1, 6])
def test_slopes_are_what_average_precision_loses_without_a_row(weights: str, decimals: int) -> None:
    for size in (5, 12, 40):
        scores = RNG.random(size).round(decimals)
        labels = np.r_[0.0, 1.0, 1.0, RNG.integers(0, 2, size - 3)]
        drawn = RNG.integers(2, 5, size).astype(float) if weights == "whole" else np.ones(size)
        value, slopes = average_precision_slopes(scores, labels, drawn)
        assert value == pytest.approx(average_precision_score(labels, scores, sample_weight=drawn))
        least = drawn.min()
        for row in range(size):
            lighter = drawn - least * (np.arange(size) == row)
            kept = lighter > 0
            without = average_precision_score(labels[kept], scores[kept], sample_weight=lighter[kept])
            assert slopes[row] == pytest.approx((value - without) / least)


def rows_of(first: Any, labels: Any, weights: Any = None) -> TrainingRows:
    size = len(labels)
    drawn = np.ones(size) if weights is None else np.asarray(weights, float)
    groups = np.arange(size) % 2
    return TrainingRows(
        None, np.asarray(labels, float), groups, drawn, np.array([0, 1]), ("a", "b"), scores=np.asarray(first)
    )


def test_differences_are_those_of_the_two_models_and_none_of_a_model_and_itself() -> None:
    labels, first, second = RNG.integers(0, 2, 300), RNG.random(300), RNG.random(300)
    weights = RNG.integers(1, 4, 300)
    precision, accuracy = accuracy_differences(rows_of(first, labels, weights), second, 0.9)
    expected = [average_precision_score(labels, each, sample_weight=weights) for each in (first, second)]
    rights = [np.average((each > 0.5) == labels, weights=weights) for each in (first, second)]
    assert precision.estimate == pytest.approx(expected[1] - expected[0])
    assert accuracy.estimate == pytest.approx(rights[1] - rights[0])
    assert precision.low < precision.estimate < precision.high
    same, alike = accuracy_differences(rows_of(first, labels, weights), first, 0.9)
    assert (same.low, same.estimate, same.high) == (0.0, 0.0, 0.0)
    assert alike.low < alike.estimate == 0.0 < alike.high  # someone who differs may not be among them


def test_copies_of_everyone_halve_the_width() -> None:
    labels, first, second = RNG.integers(0, 2, 400), RNG.random(400), RNG.random(400)
    one = accuracy_differences(rows_of(first, labels), second, 0.9)
    four = accuracy_differences(rows_of(np.tile(first, 4), np.tile(labels, 4)), np.tile(second, 4), 0.9)
    for few, many in zip(one, four, strict=True):
        assert (few.high - few.low) / (many.high - many.low) == pytest.approx(2.0, rel=0.03)


def test_the_interval_of_accuracy_is_that_of_agresti_and_min() -> None:
    labels = np.r_[np.ones(50), np.zeros(50)]
    first = np.where(np.arange(100) < 40, 0.9, 0.1)
    second = np.where(np.arange(100) < 45, 0.9, 0.1)
    accuracy = accuracy_differences(rows_of(first, labels), second, 0.95)[1]
    better, worse = 5.5, 0.5  # people whom one of the models alone decides rightly, half a person more
    change = (better - worse) / 102
    deviation = np.sqrt((better + worse) / 102 - change**2) / np.sqrt(102)
    assert (accuracy.high - accuracy.low) / 2 == pytest.approx(2.01 * deviation, rel=0.04)


LOWER, OPEN = Interval(-0.2, -0.1, -0.01, 0.98), Interval(-0.2, -0.1, 0.0, 0.98)
KEPT, LOST = Interval(-0.01, 0.0, 0.01, 0.98), Interval(-0.011, 0.0, 0.01, 0.98)


@pytest.mark.parametrize(
    ("mcdp", "precision", "accuracy", "dominates"),
    [
        (LOWER, KEPT, KEPT, True),
        (OPEN, KEPT, KEPT, False),
        (LOWER, LOST, KEPT, False),
        (LOWER, KEPT, LOST, False),
    ],
)
def test_a_model_dominates_where_all_three_say_so(
    mcdp: Interval, precision: Interval, accuracy: Interval, dominates: bool
) -> None:
    assert PairedDifferences(mcdp, precision, accuracy).dominates(0.01) is dominates


def test_the_choice_is_the_least_mcdp_of_those_that_are_accurate_enough() -> None:
    labels = RNG.integers(0, 2, 2000)
    good = np.clip(0.25 + 0.5 * labels + 0.1 * RNG.standard_normal(2000), 0.0, 1.0)
    rows, bad = rows_of(good, labels), RNG.random(2000)
    rule = BaselineRule(0.02, "demographic_parity", 0.9, 50, 0)
    measured = [Measured(2000, 0.5, mcdp) for mcdp in (0.3, 0.2, 0.1)]
    assert rule.choose(rows, [good, good, bad], measured) == 1
    assert rule.choose(rows, [bad, 0.5 * bad + 0.5 * good, bad], measured) == 1  # the most accurate


def test_the_mcdp_is_that_of_the_paired_comparison() -> None:
    labels, first, second = RNG.integers(0, 2, 200), RNG.random(200), RNG.random(200)
    rows = rows_of(first, labels)
    found = BaselineRule(0.02, "equal_opportunity", 0.9, 50, 7).differences(rows, second)
    paired = lp.compare_scores(
        labels, first, second, sensitive_features=rows.groups, criterion="equal_opportunity",
        confidence=0.9, n_resamples=50, random_state=7,
    )  # fmt: skip
    assert found.mcdp == paired.difference


def quick_trees(settings: CompareSettings) -> dict[str, Any]:
    return {"": lp.models.LocalParityLGBMClassifier(0.0, n_estimators=20, **settings.shared())}


@pytest.fixture(scope="module")
def shuffled() -> Any:
    """A baseline that is as accurate as features allow, with a gap that accuracy has no use for."""
    gap = 0.35 * (np.asarray(SEX) == "Male")
    return np.clip(0.6 * CENSUS.score + gap, 0.0, 1.0)


@pytest.fixture(scope="module")
def dominated(shuffled: Any) -> ModelComparison:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compare, "METHODS", {"boosted trees": CompareMethod(quick_trees)})
        return compare(CENSUS.data, CENSUS.target, y_score=shuffled, margin=0.1, **QUICK)


def test_alternatives_are_tested_on_rows_that_nothing_was_chosen_on(
    dominated: ModelComparison, shuffled: Any
) -> None:
    baseline = dominated.baseline
    assert baseline is not None
    rows = check_training_rows(
        None, CENSUS.data.astype({"occupation": "category"}), CENSUS.target, SEX, y_score=shuffled
    )
    rest, test = rows.hold_out(0.25, 0, by_class=False)
    validation = rest.hold_out(1 / 3, 0)[1]
    assert test.scores is not None
    assert validation.scores is not None
    assert baseline.test.mcdp == lp.mcdp(None, test.scores, sensitive_features=test.groups)
    assert baseline.validation.mcdp == lp.mcdp(None, validation.scores, sensitive_features=validation.groups)
    assert (baseline.alternatives, baseline.margin, baseline.confidence) == (2, 0.1, 0.9)
    assert baseline.error == pytest.approx(0.05)
    for outcome in dominated.outcomes:
        groups = {"sensitive_features": test.named_groups} if outcome.repaired else {}
        scores = dominated.models[outcome.name].predict_proba(test.features, **groups)[:, 1]
        rule = BaselineRule(0.1, "demographic_parity", 0.9, 50, 0)
        assert rule.differences(test, scores) == outcome.differences
        assert len(outcome.tried) == len(outcome.settings)


def test_repairs_also_aim_at_shares_of_the_mcdp_of_the_baseline(dominated: ModelComparison) -> None:
    assert dominated.baseline is not None
    repaired = next(outcome for outcome in dominated.outcomes if outcome.repaired)
    wide = 100.0 * 0.75 * dominated.baseline.validation.mcdp
    assert f"repaired to {wide:.3g}%" in repaired.tried
    assert CompareSettings(Bound(0.1), 0, "lightgbm").aims == (0.1, 0.05, 0.0)
    wider = CompareSettings(Bound(0.1), 0, "lightgbm", baseline_mcdp=0.5).aims
    assert wider == (0.375, 0.25, 0.125, 0.1, 0.05, 0.0)


def test_the_best_that_dominates_is_recommended_and_saved(dominated: ModelComparison, tmp_path: Path) -> None:
    assert dominated.dominating
    assert dominated.recommended is dominated.dominating[0]
    assert dominated.recommended.validation.mcdp == min(one.validation.mcdp for one in dominated.dominating)
    dominated.save(tmp_path / "best")
    card = lp.results.ModelCard.read(tmp_path / "best")
    assert card.held_out == dominated.recommended.test
    assert "On test data it has MCDP" in str(card.promise)


def terminal(comparison: ModelComparison) -> str:
    console = Console(width=80, file=io.StringIO())
    console.print(TerminalComparison(comparison, "people.csv"))
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def joined(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("margin", [0.1, 0.0])
def test_terminal_page_and_json_say_the_same(
    dominated: ModelComparison, margin: float, tmp_path: Path
) -> None:
    assert dominated.baseline is not None
    comparison = replace(dominated, baseline=replace(dominated.baseline, margin=margin))
    shown = terminal(comparison)
    assert max(map(len, shown.splitlines())) <= 80
    floor = comparison.recommended.test.noise_floor
    assert floor is not None
    assert f"expected under parity {100.0 * floor:.1f}" in joined(shown)
    comparison.to_html(tmp_path / "page.html", about=["people.csv"])
    page = (tmp_path / "page.html").read_text()
    text = unescape(re.sub(r"<[^>]+>", "", page))
    kept = json.loads(json.dumps(comparison.to_dict()))
    for sentence in comparison.sentences:
        assert sentence in joined(shown)
        assert sentence in text
        assert sentence in kept["recommendation"]
    assert kept["dominating"] == [outcome.name for outcome in comparison.dominating]
    assert len(comparison.dominating) == shown.count("  dominates\n") == page.count("<bdi>dominates</bdi>")
    assert ("DOMINATED" in shown) == bool(comparison.dominating)
    numbers = json.loads(re.search(r'id="numbers">(.*?)</script>', page)[1])  # type: ignore[index]
    assert numbers == kept
    for outcome in comparison.outcomes:
        for setting in outcome.tried:
            assert f"<bdi>{setting or 'as it is'}</bdi>" in page
    assert "compliant" not in text
    with pytest.raises(FileExistsError):
        comparison.to_html(tmp_path / "page.html")


def test_without_a_baseline_the_page_has_the_recommendation(
    dominated: ModelComparison, tmp_path: Path
) -> None:
    plain = replace(dominated, baseline=None)
    assert plain.dominating == ()
    plain.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    text = unescape(re.sub(r"<[^>]+>", "", page))
    assert all(sentence in text for sentence in plain.sentences)
    assert 'id="differences"' not in page
    assert 'id="tried"' in page


def outcome(name: str, mcdp: Interval, accuracy: Interval, *, repaired: bool = False) -> Outcome:
    measured = Measured(2, 0.7, 0.1, Interval(0.05, 0.1, 0.2, 0.95), 0.01, 0.8, 0.75)
    found = PairedDifferences(mcdp, accuracy, accuracy)
    return Outcome(
        name, repaired, "", measured, False, measured, ((0.1, 0.7),), tried=("",), differences=found
    )


def against(*outcomes: Outcome) -> str:
    measured = Measured(2, 0.7, 0.2, Interval(0.1, 0.2, 0.3, 0.95), 0.01, 0.8, 0.75)
    baseline = Baseline(measured, measured, 0.01, len(outcomes), 0.95)
    made = ModelComparison(outcomes, 0.05, 0.0, "demographic_parity", (4, 2, 2), {}, baseline=baseline)
    return made.recommendation


def test_what_is_said() -> None:
    told = against(outcome("first", OPEN, KEPT), outcome("second", LOWER, LOST))
    assert told.startswith(
        "None of 2 alternatives is known to dominate the baseline. MCDP(0) is surely lower for 1 of them; "
        "for 1 surely neither AP nor accuracy is lower by more than 1 point. With probability 0.95"
    )
    assert "an end of an interval is wrong with probability 0.025 at most" in told
    assert "2 settings of 2 methods were tried; of other models nothing is known." in told
    assert "it is assumed that the baseline was not either, which its scores do not show." in told
    told = against(outcome("first", LOWER, KEPT, repaired=True), outcome("second", LOWER, KEPT))
    assert told.startswith(
        "2 of 2 alternatives dominate the baseline: MCDP(0) is surely lower, and neither AP"
    )
    assert (
        "first, repaired, with MCDP 10.00% against 20.00% (-20 to -1 points), AP 70.00% against 70.00% "
        "(-1 to 1 points)" in told
    )
    assert "It needs the group at prediction; without it, the best is second." in told
    told = against(outcome("first", LOWER, KEPT, repaired=True), outcome("second", OPEN, KEPT))
    assert told.startswith("1 of 2 alternatives dominates")
    assert "without it, none is known to dominate." in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_score": CENSUS.score[:-1]}, "y_score has 1599 rows, X has 1600"),
        ({"y_score": CENSUS.score + 1.0}, "y_score must be inside"),
        ({"margin": 1.5}, "margin.*1.5"),
        ({"epsilon": 0.05}, "epsilon must be 0 with y_score, got 0.05"),
        ({"n_resamples": 20}, "n_resamples must be >= .* got 20"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    given = {**QUICK, "y_score": CENSUS.score, **options}
    with pytest.raises(ValueError, match=message):
        compare(CENSUS.data, CENSUS.target, **given)


def test_the_frontier_says_from_which_mcdp_on_an_average_precision_is_reached() -> None:
    line = lp.results.Frontier(
        (0.0, 0.1, 0.2), (0.02, 0.12, 0.2), (0.7, 0.75, 0.74), (0.7,) * 3, (0.8,) * 3, 0.02, 0.0,
        "demographic_parity", 0.95, 9,
    )  # fmt: skip
    assert line.least_mcdp_at(0.6) == 0.02
    assert line.least_mcdp_at(0.7) == 0.02
    assert line.least_mcdp_at(0.725) == pytest.approx(0.07)
    assert line.least_mcdp_at(0.75) == pytest.approx(0.12)
    assert line.least_mcdp_at(0.76) is None
    assert line.average_precision_at(0.07) == pytest.approx(0.725)
