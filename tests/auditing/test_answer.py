"""The answer of an audit: the library's numbers, in sentences that claim no more than they do."""

from __future__ import annotations

import math
import os
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import localparity as lp
from localparity._text import cutoffs_text, outward_points, points, round_number_in
from localparity.auditing._answer import answer_of
from localparity.results import Answer
from typed_commands import run


def people(shift: float, rows: int = 2000, *, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    groups = np.array(["old", "young"])[np.arange(rows) % 2]
    return np.clip(rng.normal(0.5 + shift * (groups == "old"), 0.1), 0, 1), groups


def audit_of(shift: float, rows: int = 2000, **options: Any) -> lp.Audit:
    scores, groups = people(shift, rows)
    asked = {"sensitive_features": groups, "n_resamples": 99, "random_state": 0}
    return lp.audit(None, scores, **{**asked, **options})


def compas(**options: Any) -> lp.Audit:
    path = Path(os.environ.get("LOCALPARITY_DATA", "")) / "compas" / "compas.csv"
    if not path.is_file():
        pytest.skip("LOCALPARITY_DATA has no compas/compas.csv")
    asked = {"score": "decile_score", "score_range": (1, 10), "n_resamples": 499, "random_state": 0}
    return lp.Audit.read(path, **{**asked, **options})


def test_shares_are_those_of_the_rows_above_the_cutoff() -> None:
    scores, groups = people(0.1)
    answer = audit_of(0.1).answer
    assert answer.status == "disparity"
    assert answer.cutoff is not None
    for row in answer.groups:
        own = scores[groups == row.name]
        assert row.share_above == pytest.approx((own > answer.cutoff).mean(), abs=1e-12)
        assert row.people == own.size
        assert row.low is not None
        assert row.high is not None
        assert row.low <= row.share_above <= row.high
    assert answer.first is not None
    assert answer.second is not None
    assert answer.first.share_above is not None
    assert answer.second.share_above is not None
    difference = answer.first.share_above - answer.second.share_above
    assert difference == pytest.approx(answer.gap, abs=1e-3)
    assert answer.gap == audit_of(0.1).findings[0].mcdp


@pytest.mark.parametrize("epsilon", [0.0, 0.02, 0.1])
def test_the_cutoff_is_one_where_the_gap_is_mcdp(epsilon: float) -> None:
    scores, groups = people(0.1)
    answer = audit_of(0.1, epsilons=[epsilon]).answer
    assert answer.cutoff is not None
    above = [(scores[groups == name] > answer.cutoff).mean() for name in ("old", "young")]
    assert above[0] - above[1] == pytest.approx(
        lp.mcdp(None, scores, sensitive_features=groups, epsilon=epsilon), abs=1e-3
    )
    if epsilon:
        low, high = map(float, re.findall(r"from (\S+) to (\S+)$", answer.headline)[0])
        curve = lp.gap_curve(lp.Predictions.from_arrays(None, scores, sensitive_features=groups))
        least = float(re.findall(r"at least (\d+) points", answer.headline)[0])
        assert np.abs(curve(np.linspace(low, high, 1001))).min() >= least / 100.0
        assert high - low >= 2 * epsilon - 2e-3


def test_compas_by_race_reads_as_people_say_it() -> None:
    answer = compas(group="race", label="two_year_recid").answer
    assert answer.about == ("compas.csv", "7,214 people", "decile_score 1-10", "by race")
    assert answer.headline == (
        "African-American people are 24 points more likely than Caucasian people to score above 4"
    )
    assert (answer.rates, answer.cutoff) == ("59% against 35%", 4.0)
    assert answer.sure == "True gap 18 to 27 points (95%). Chance: fewer than 1 in 499."
    assert answer.by_outcome == (
        "two_year_recid = 0: 45% against 23% above 4",
        "two_year_recid = 1: 72% against 52% above 4",
    )
    assert answer.states == {"clear": 6, "differs, size unknown": 2, "not shown": 7}
    assert [row.low for row in answer.pairs[:6]] == sorted(
        (row.low for row in answer.pairs[:6]), reverse=True
    )
    assert [row.name for row in answer.groups if row.few] == ["Native American", "Asian"]
    assert answer.pairs[-1].too_small


def test_a_bound_of_another_pair_names_both() -> None:
    verdict = answer_of(compas(group="race"), 0.3).verdict
    assert verdict == (
        "Undecided at the bound of 30 points: Native American (18 people) and Other (377) differ by 52 "
        "points (3 to 77). The estimate fails. Clearest gap: African-American and Caucasian, 24 points "
        "(18 to 27)."
    )


def test_a_bound_that_is_exceeded_names_a_pair_that_shows_it() -> None:
    """The largest gap alone was named, of 18 people and with 3 to 77 points at a bound of 10."""
    verdict = answer_of(compas(group="race"), 0.1).verdict or ""
    assert "bound of 10 points: Native American (18 people) and Other (377) differ by 52 points" in verdict
    assert verdict.endswith("Clearly above it: African-American and Other, 38 points (26 to 44).")


def test_who_is_not_assessed_is_all_that_leaves_a_bound_undecided() -> None:
    """A gate passed with "undecided" and an interval that lay within the bound."""
    audit = three_groups()
    verdict = answer_of(audit, 0.2, not_assessed="allow").verdict or ""
    missed = "Not assessed, which is allowed: c (fewer than 10 people)."
    assert verdict.startswith(f"Undecided at the bound of 20 points. {missed} The others are within it: ")
    assert verdict.count("Not assessed") == 1


@pytest.mark.parametrize(
    ("shift", "bound", "start", "word"),
    [(0.1, 0.05, "Above", "above"), (0.1, 0.9, "Within", "within"), (0.0, 0.05, "Undecided at", "undecided")],
)
def test_a_verdict_says_what_is_known_of_the_bound(shift: float, bound: float, start: str, word: str) -> None:
    audit = audit_of(shift)
    answer = answer_of(audit, bound)
    assert answer.bound is not None
    assert (answer.bound.verdict, answer.bound.passes) == (word, audit.passes(bound))
    assert audit.verdict(bound) == word
    assert (answer.verdict or "").startswith(f"{start} the bound of {points(bound)}: ")
    assert audit.answer.verdict is None


def test_a_bound_that_may_be_exceeded_by_chance_says_so() -> None:
    """Twenty people of a third group failed a gate with a p-value of 0.4, and no word of it."""
    rng = np.random.default_rng(4)
    groups = np.repeat(["old", "young", " young"], [1000, 1000, 20])
    audit = lp.audit(None, rng.random(2020), sensitive_features=groups, n_resamples=99, random_state=0)
    answer, lower = answer_of(audit, 0.1), answer_of(audit, 0.1, "lower").bound
    assert answer.bound is not None
    assert lower is not None
    assert (answer.bound.passes, answer.bound.could_be_chance) == (False, True)
    assert "(20 people)" in (answer.verdict or "")
    assert "That could be chance." in (answer.verdict or "")
    assert (lower.passes, lower.could_be_chance) == (True, False)


def test_constant_scores_have_no_p_value() -> None:
    """Nothing was tested, and chance alone would show as much in 100.00% of audits, said one page."""
    options: dict[str, Any] = {"sensitive_features": ["a", "b"] * 50, "n_resamples": 99, "random_state": 0}
    with pytest.warns(UserWarning, match="is score_range right"):
        audit = lp.audit(None, [0.5] * 100, **options)
    assert audit.answer.headline == "Cannot be told: the scores are all the same"
    assert audit.answer.sure == "Nothing was tested."
    assert {line.split()[-1] for line in repr(audit).splitlines()[3:]} == {"-"}


def test_a_headline_starts_with_a_capital_and_reads_as_a_sentence() -> None:
    """Groups of a file are called black, f and Male; a headline said "f people" and "Male people"."""
    scores = np.concatenate([np.linspace(0.4, 1.0, 300), np.linspace(0.0, 0.6, 300)])
    starts = {
        ("black", "asian"): "Black people",
        ("f", "m"): "People of group f",
        ("Male", "Female"): "Males",
    }
    for names, start in starts.items():
        options: dict[str, Any] = {"sensitive_features": np.repeat(names, 300), "n_resamples": 19}
        assert lp.audit(None, scores, **options).answer.headline.startswith(f"{start} are ")


def test_shares_with_a_decimal_stand_beside_a_gap_with_one() -> None:
    """A page said "3 points, 49.0% against 45.5%"."""
    scores = np.repeat([0.0, 1.0, 0.0, 1.0], [545, 456, 560, 441])
    groups = np.repeat(["old", "young"], 1001)
    answer = lp.audit(None, scores, sensitive_features=groups, n_resamples=0).answer
    assert answer.rates.startswith(
        "Largest gap: 1.5 points between old and young, 45.6% against 44.1% above "
    )


def test_nothing_found_says_what_could_have_been() -> None:
    audit = audit_of(0.0)
    answer, (pair,) = audit.answer, audit.pairs
    assert answer.status == "none found"
    assert pair.detectable is not None
    assert (
        f"In groups of these sizes, measured gaps up to {points(pair.detectable)} could be chance."
        in answer.sure
    )
    assert answer.rates.startswith(f"Largest gap: {points(pair.mcdp[0])} between ")
    assert answer.low == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_resamples": 0}, "nothing was tested"),
        ({"rows": 8}, "there are too few people"),
        ({"epsilons": [0.6]}, "the scores span no window of epsilon 0.6"),
    ],
)
def test_what_cannot_be_told_says_why(options: dict[str, Any], words: str) -> None:
    answer = audit_of(0.0, **options).answer
    assert (answer.status, answer.headline) == ("undecided", f"Cannot be told: {words}")


def test_scores_that_are_all_the_same_have_no_cutoff() -> None:
    answer = lp.audit(
        None, [0.0, 1.0, 0.0, 1.0], sensitive_features=["a", "a", "b", "b"], n_resamples=0
    ).answer
    assert (answer.cutoff, answer.first) == (None, None)
    assert [row.share_above for row in answer.groups] == [None, None]


@pytest.mark.parametrize(("unknown", "status"), [(0.2, "disparity"), (0.8, "undecided")])
def test_people_without_a_group_are_said_first_where_they_are_most(unknown: float, status: str) -> None:
    scores, groups = people(0.1)
    known = np.where(np.random.default_rng(0).random(groups.size) < unknown, None, groups)
    audit = lp.audit(
        None, scores, sensitive_features=known, missing_groups="bound", n_resamples=99, random_state=0
    )
    answer = audit.answer
    assert answer.status == status
    assert audit.unknown_groups is not None
    bounds = audit.unknown_groups.bounds[0]
    assert f"anywhere from {outward_points(bounds.low, bounds.high)}" in (answer.unknown or "")
    assert answer.headline.startswith("Cannot be told: ") is (status == "undecided")


def test_labels_of_few_people_are_not_told_apart() -> None:
    scores, groups = people(0.1)
    for rare, lines in ((9, 0), (10, 2)):
        labels = np.zeros(scores.size, dtype=int)
        labels[np.flatnonzero(groups == "old")[:rare]] = 1
        labels[np.flatnonzero(groups == "young")[:50]] = 1
        rows = lp.Predictions.from_arrays(labels, scores, sensitive_features=groups)
        assert len(lp.audit(rows, n_resamples=0).answer.by_outcome) == lines


@pytest.mark.parametrize("weighted", [False, True])
def test_accuracy_is_scikit_learn_s(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.random(500).round(2), rng.integers(0, 2, 500)
    weights = rng.random(500) if weighted else None
    rows = lp.Predictions.from_arrays(
        labels, scores, sensitive_features=rng.integers(0, 3, 500), sample_weight=weights
    )
    answer = lp.audit(rows, n_resamples=20, confidence=0.9, random_state=0).answer
    assert answer.auc == pytest.approx(roc_auc_score(labels, scores, sample_weight=weights))
    assert answer.average_precision == pytest.approx(
        average_precision_score(labels, scores, sample_weight=weights)
    )
    assert (answer.groups[0].low is None) is weighted


def test_commands_that_fit_need_features() -> None:
    def named(answer: Answer) -> set[str]:
        return {
            step.command.split()[1] for step in answer.next_steps if step.command.startswith("localparity")
        }

    assert "repair" not in named(compas(group="race", label="two_year_recid").answer)
    options = [step.command for step in audit_of(0.1).answer.next_steps][:3]
    assert options == ['audit.to_html("page.html")', "audit.to_json()", "audit.passes(0.10)"]
    assert "audit.passes(0.10)" not in [step.command for step in answer_of(audit_of(0.1), 0.2).next_steps]


def test_intervals_are_rounded_outward_and_runs_inward() -> None:
    rng = np.random.default_rng(0)
    for low, high in np.sort(rng.random((200, 2)), axis=1).tolist():
        ends = [float(end) for end in outward_points(low, high, unit=False).split(" to ")]
        assert ends[0] <= 100 * low + 1e-9
        assert ends[1] >= 100 * high - 1e-9
        cutoffs = [float(text) for text in re.findall(r"[\d.]+", cutoffs_text(low, high, whole=False))]
        assert low <= cutoffs[0] <= cutoffs[-1] < high
        assert low <= round_number_in(low, high) < high
    assert round_number_in(0.1 + 0.2, math.nextafter(0.1 + 0.2, 1.0)) == 0.1 + 0.2


@pytest.mark.parametrize(
    ("score_range", "criterion"), [((-1, 10), "demographic_parity"), ((0, 1), "equal_opportunity")]
)
def test_the_command_that_watches_runs_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score_range: tuple[float, float], criterion: Any
) -> None:
    pytest.importorskip("datasketches")
    rng = np.random.default_rng(0)
    low, high = score_range
    lines = [f"{low + (high - low) * rng.random():.3f},{'ab'[i % 2]},{i // 2 % 2}\n" for i in range(400)]
    (tmp_path / "my scores; rm.csv").write_text("p,a b,y\n" + "".join(lines))
    monkeypatch.chdir(tmp_path)
    asked = {"score_range": score_range, "criterion": criterion, "n_resamples": 0}
    audit = lp.Audit.read("my scores; rm.csv", score="p", group="a b", label="y", **asked)
    words = shlex.split(answer_of(audit, 1.0).next_steps[-1].command)
    assert words[:2] == ["localparity", "monitor"]
    done = run(*words[1:])
    assert done.returncode == 0
    assert done.stderr.startswith("no alarm: ")


def test_a_wrong_way_to_decide_is_named() -> None:
    wrong: dict[str, Any] = {"decide_by": "mean"}
    with pytest.raises(ValueError, match=r"decide_by must be .* got 'mean'"):
        audit_of(0.1).to_json(max_mcdp=0.1, **wrong)


def three_groups(*, missing: int = 0, **options: Any) -> lp.Audit:
    """Two groups alike and five people of a third; some may have no group."""
    rng = np.random.default_rng(0)
    groups = np.array([*["a"] * 3000, *["b"] * 3000, *["c"] * 5, *[None] * missing], dtype=object)
    asked: dict[str, Any] = {"min_group_size": 10, "n_resamples": 0, "random_state": 0, **options}
    return lp.audit(None, rng.random(groups.size), sensitive_features=groups, **asked)


@pytest.mark.parametrize(
    ("required", "names"),
    [
        ((), ("c (fewer than 10 people)",)),
        (("a", "c"), ("c (fewer than 10 people)",)),
        (("a", "d"), ("d (nobody)",)),
        (("a", "b"), ()),
    ],
)
@pytest.mark.parametrize("decide_by", ["estimate", "upper", "lower"])
def test_a_required_group_that_is_not_assessed_is_never_within(
    required: tuple[str, ...], names: tuple[str, ...], decide_by: Any
) -> None:
    audit = three_groups()
    answer = answer_of(audit, 0.2, decide_by, required_groups=required)
    assert answer.bound is not None
    assert answer.bound.not_assessed == names
    assert answer.bound.verdict == ("undecided" if names else "within")
    assert answer.bound.passes == audit.passes(0.2, decide_by=decide_by, required_groups=required)
    assert answer.bound.passes == (not names)
    assert all(name in (answer.verdict or "") for name in names)
    allowed = answer_of(audit, 0.2, decide_by, required_groups=required, not_assessed="allow").bound
    assert allowed is not None
    assert (allowed.verdict, allowed.passes) == (answer.bound.verdict, True)
    above_all = answer_of(audit, 0.0, "estimate", required_groups=required, not_assessed="allow")
    assert ("Not assessed, which is allowed: " in str(above_all.verdict)) == bool(names)
    above = above_all.bound
    assert above is not None
    assert not above.passes


@pytest.mark.parametrize(
    ("missing", "option", "passes"),
    [(2000, "drop", False), (2000, "bound", False), (20, "bound", True), (2000, "group", True)],
)
def test_people_without_a_group_are_not_assessed_unless_they_cannot_change_the_answer(
    missing: int, option: Any, passes: bool
) -> None:
    audit = three_groups(missing=missing, missing_groups=option)
    bound = answer_of(audit, 0.2, required_groups=["a", "b"]).bound
    assert bound is not None
    assert bound.passes == (not bound.not_assessed) == passes
    assert bound.not_assessed == (() if passes else (f"{missing:,} people without a group",))


def test_what_is_not_assessed_has_two_words() -> None:
    with pytest.raises(ValueError, match=r"not_assessed must be .* got 'skip'"):
        three_groups().passes(0.1, not_assessed="skip")  # type: ignore[arg-type]
