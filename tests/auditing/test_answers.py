"""The six questions, answered."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.auditing._wording import Answers, shown_finding
from typed_commands import run

QUESTIONS = [
    "Is there a disparity?",
    "How large, and where?",
    "For whom?",
    "How sure is that?",
    "Is it within the bound?",
    "What now?",
]


def audit_of(shift: float, *, rows: int = 2000, groups: int = 2, **options: Any) -> lp.Audit:
    rng = np.random.default_rng(0)
    codes = np.arange(rows) % groups
    scores = np.clip(rng.normal(0.5 + shift * (codes == 0), 0.1), 0, 1)
    names = np.array(["old", "young", "other", "more"])[codes]
    asked = {"sensitive_features": names, "n_resamples": 99, "random_state": 0}
    return lp.audit(None, scores, **{**asked, **options})


def shorts(answers: Answers) -> list[str]:
    assert [answer.question for answer in answers.answers] == QUESTIONS
    return [answer.short for answer in answers.answers]


def test_a_disparity_above_the_bound() -> None:
    audit = audit_of(0.1, higher_is="better")
    answers = Answers.of(audit, 0.05)
    found = shorts(answers)
    assert (found[0], found[4]) == ("Yes", "No")
    assert found[1] == f"{100 * audit.findings[0].mcdp:.1f} points"
    assert found[2] == "old (1,000 people) and young (1,000 people)"
    assert audit.findings[2].window.sentence_for("better") in answers.answers[1].text
    assert answers.answers[2].text == (
        "young has the lower scores there, and a higher score is the better outcome."
    )
    interval = audit.findings[0].interval
    assert found[3] == f"{100 * interval.low:.1f} to {100 * interval.high:.1f} points"
    assert "in fewer than 1 in 99 audits (p-value <= 0.01)" in answers.answers[3].text
    assert [step.command.split()[1] for step in answers.steps] == ["repair", "train", "monitor"]
    assert all("--max-mcdp 0.05" in step.command for step in answers.steps)


def test_a_disparity_within_the_bound_is_watched() -> None:
    answers = Answers.of(audit_of(0.1), 0.9)
    assert shorts(answers)[4] == "Yes"
    assert [step.command.split()[1] for step in answers.steps] == ["monitor", "repair"]
    assert Answers.of(audit_of(0.1), 0.0).steps[0].command.split()[1] == "repair"


def test_no_disparity_and_no_bound() -> None:
    answers = Answers.of(audit_of(0.0))
    found = shorts(answers)
    assert (found[0], found[4]) == ("None found", "No bound was set")
    assert "may still be there" in answers.answers[0].text
    assert [step.command.split()[1] for step in answers.steps] == ["monitor"]


def test_too_few_people_and_no_test() -> None:
    few = Answers.of(audit_of(0.0, rows=8))
    assert shorts(few)[0] == "Cannot be told"
    assert few.steps[0].command == "localparity plan --group-sizes 4,4 --mcdp 0.05"
    untested = Answers.of(audit_of(0.0, n_resamples=0))
    assert untested.answers[3].text.endswith("It was not tested.")


def test_several_pairs_and_labels_are_counted_and_named() -> None:
    audit = audit_of(0.1, groups=3)
    assert (
        "Of 3 pairs compared, 2 pairs differ by more than chance explains."
        in Answers.of(audit).answers[2].text
    )
    rng = np.random.default_rng(0)
    codes = np.arange(900) % 3
    labelled = lp.audit(
        np.arange(900) // 3 % 2,
        np.clip(rng.normal(0.5 + 0.2 * (codes == 0), 0.1), 0, 1),
        sensitive_features=codes,
        criterion="equal_opportunity",
        compare="to_overall",
        n_resamples=19,
        random_state=0,
    )
    answers = Answers.of(labelled).answers
    assert answers[2].short == "0 (150 people) and everyone (450 people) among people with label 1"
    assert answers[1].text.startswith("Among people with label 1, with a threshold")


def test_the_window_that_is_shown_is_near_five_hundredths() -> None:
    assert shown_finding(audit_of(0.1)).epsilon == 0.05
    assert shown_finding(audit_of(0.1, epsilons=[0, 0.2])).epsilon == 0.0
    assert shown_finding(audit_of(0.1, epsilons=[0.01, 0.04, 0.3])).epsilon == 0.04
    audit = audit_of(0.1, epsilons=[0.02])
    assert audit.findings[0].window.sentence in Answers.of(audit).answers[1].text
    assert "the largest difference between them that lasts over 0.04" in Answers.of(audit).answers[3].text


def test_commands_name_the_file_and_the_columns_as_a_shell_takes_them() -> None:
    files = (lp.results.SourceFile("my scores; rm.csv", None),)
    columns = {"score": "p", "group": ["sex", "a b"], "label": "y", "target": "hired"}
    provenance = lp.results.Provenance(call="", date="", files=files, columns=columns)
    steps = Answers.of(replace(audit_of(0.1), provenance=provenance)).steps
    words = shlex.split(steps[0].command)
    assert words[:3] == ["localparity", "repair", "my scores; rm.csv"]
    assert words[3:9] == ["--target", "hired", "--group", "sex", "--group", "a b"]
    assert "--score p " in steps[-1].command


@pytest.mark.parametrize(
    ("score_range", "criterion"), [((-1, 10), "demographic_parity"), ((0, 1), "equal_opportunity")]
)
def test_the_command_that_watches_runs_as_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score_range: tuple[float, float], criterion: Any
) -> None:
    rng = np.random.default_rng(0)
    low, high = score_range
    lines = [f"{low + (high - low) * rng.random():.3f},{'ab'[i % 2]},{i // 2 % 2}\n" for i in range(400)]
    (tmp_path / "scores.csv").write_text("p,g,y\n" + "".join(lines))
    monkeypatch.chdir(tmp_path)
    asked = {"score_range": score_range, "criterion": criterion, "n_resamples": 0}
    audit = lp.Audit.read("scores.csv", score="p", group="g", label="y", **asked)
    words = shlex.split(Answers.of(audit, 1.0).steps[-1].command)
    assert words[:2] == ["localparity", "monitor"]
    done = run(*words[1:])
    assert done.returncode == 0
    assert done.stderr.startswith("no alarm: ")


@pytest.mark.parametrize("command", ["repair", "train", "monitor", "plan"])
def test_the_commands_exist_with_their_options(command: str) -> None:
    import typer

    from localparity.cli._app import app

    found = typer.main.get_command(app).get_command(None, command)  # type: ignore[attr-defined]
    if command == "monitor":
        found = found.get_command(None, "append")
    options = {option for param in found.params for option in param.opts}
    audits = [audit_of(0.1), audit_of(0.0, rows=8)]
    steps = [step.command.split() for audit in audits for step in Answers.of(audit).steps]
    (words, *_) = (words for words in steps if words[1] == command)
    assert {word for word in words if word.startswith("--")} <= options


def test_a_wrong_way_to_decide_is_named() -> None:
    found = lp.audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    wrong: dict[str, Any] = {"decide_by": "mean", "min_group_size": 1}
    with pytest.raises(ValueError, match=r"decide_by must be .* got 'mean'"):
        found.to_json(max_mcdp=0.1, **wrong)
