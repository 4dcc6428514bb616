"""A policy: each key through the command, the action and the pytest plugin; wrong ones by their line."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import localparity as lp
from localparity.auditing._policy import Policy, PolicyFile, line_of, parse_policy, read_policy
from localparity.cli._app import app
from localparity.integrations.pytest import assert_mcdp
from policies import BASE, CHANGES, NEEDS, NOT_HERE, changed, toml, write_scores


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("policy")
    write_scores(found)
    return found


def audited(*words: object) -> tuple[int, str, Any]:
    done = CliRunner().invoke(app, ["audit", *map(str, words), "--json"])
    return done.exit_code, done.stderr, json.loads(done.stdout) if done.exit_code < 2 else None


def numbers(found: Any) -> Any:
    """Everything but where it comes from."""
    for one in found["audits"]:
        one["provenance"] = {**one["provenance"], "call": "", "date": ""}
        one["answer"]["next_steps"] = []
    return found


def test_every_key_has_a_change() -> None:
    assert {field.name for field in fields(Policy)} == CHANGES.keys() | NOT_HERE


EXTRAS = {"sheet": "python_calamine", "table": "ibis"}
"""What only an extra brings."""


@pytest.mark.parametrize("key", sorted(CHANGES))
def test_a_key_does_what_the_option_does(key: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(EXTRAS.get(key, "localparity"))
    monkeypatch.chdir(folder)
    values = {**BASE, **NEEDS.get(key, {})}
    (folder / "before.toml").write_text(toml(values))
    (folder / "after.toml").write_text(changed(key))
    before, after = (audited("--policy", name) for name in ("before.toml", "after.toml"))
    assert after[0] in (0, 1), after[1]
    typed = audited(*options(values | {key: CHANGES[key]}))
    assert typed[0] == after[0], typed[1]
    assert numbers(typed[2]) == numbers(after[2])
    if key not in ("encoding", "decimal", "normalise_groups", "missing", "person_id"):
        assert before[0] == 2 or numbers(before[2]) != numbers(after[2])
    assert (before[0] == 2) == (key in ("sheet", "table")), before[1]


@pytest.mark.parametrize("key", sorted(CHANGES))
def test_the_plugin_decides_as_the_command(key: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(EXTRAS.get(key, "localparity"))
    monkeypatch.chdir(folder)
    (folder / "plugin.toml").write_text(changed(key))
    code, _, found = audited("--policy", "plugin.toml")
    if code == 1:
        with pytest.raises(AssertionError, match=r"the bound of"):
            assert_mcdp(policy="plugin.toml")
        return
    plain = assert_mcdp(policy="plugin.toml")
    assert [one.mcdp for one in plain.findings] == [one["mcdp"] for one in found["audits"][0]["findings"]]
    highs = [one["interval"]["high"] for one in found["audits"][0]["findings"]]
    assert [one.interval.high for one in plain.findings] == highs


NAMES = {
    "epsilons": "--epsilon",
    "n_resamples": "--resamples",
    "random_state": "--seed",
    "scoring_rates": "--scoring-rates",
    "required_groups": "--require-group",
    "missing_values": "--missing-value",
    "person_id": "--id",
}


def options(values: dict[str, Any]) -> list[str]:
    """The same as options of the command."""
    words = list(values["files"])
    for name, value in values.items():
        option = NAMES.get(name, f"--{name.replace('_', '-')}")
        if name in ("epsilons", "score_range"):
            words += [option, ",".join(map(str, value))]
        elif value is True:
            words.append(option)
        elif name != "files":
            words += [
                word for one in (value if isinstance(value, list) else [value]) for word in (option, str(one))
            ]
    return words


def test_options_become_a_policy_and_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    words = [
        *options(BASE),
        "--decide-by",
        "upper",
        "--epsilon",
        "0.05,0",
        "--write-policy",
        "made.toml",
        "--force",
    ]
    typed = audited(*words)
    assert tomllib.loads(Path("made.toml").read_text()) == {
        **BASE, "epsilons": [0.0, 0.05], "decide_by": "upper",
    }  # fmt: skip
    assert numbers(audited("--policy", "made.toml")[2]) == numbers(typed[2])


def test_what_was_typed_may_not_contradict(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("fixed.toml").write_text(toml(BASE))
    for words, message in (
        (["--max-mcdp", "0.9"], "--max-mcdp: contradicts fixed.toml: line 5 says 0.5"),
        (["--seed", "3"], "--seed: contradicts fixed.toml: its default is 0"),
        (["other.csv"], "FILE: contradicts fixed.toml: line 1 says"),
    ):
        code, stderr, _ = audited("--policy", "fixed.toml", *words)
        assert (code, message in stderr) == (2, True), stderr
    assert audited("--policy", "fixed.toml", "--max-mcdp", "0.5", "--label", "y")[0] == 0
    assert "needs --policy" in audited("scores.csv", "--policy-sha256", "00")[1]
    assert "must name a file" in audited("--score", "p")[1]


def test_a_checksum_fixes_the_policy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("fixed.toml").write_text(toml(BASE))
    known = read_policy("fixed.toml").sha256
    assert audited("--policy", "fixed.toml", "--policy-sha256", known.upper())[0] == 0
    Path("fixed.toml").write_text(toml(BASE | {"max_mcdp": 0.6, "files": ["not there.csv"]}))
    code, stderr, _ = audited("--policy", "fixed.toml", "--policy-sha256", known)
    assert (code, "another" in stderr) == (2, True)


def test_race_by_sex_fails_where_one_cell_is_too_small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    values = {**BASE, "group": ["race", "rare"], "max_mcdp": 1.0, "min_group_size": 4}
    del values["not_assessed"]
    Path("cells.toml").write_text(toml(values))
    code, stderr, found = audited("--policy", "cells.toml")
    assert code == 1
    (audit,) = found["audits"]
    assert audit["bound"]["verdict"] == "undecided"
    assert audit["bound"]["not_assessed"]
    assert all(name in stderr and " × rare (fewer than " in name for name in audit["bound"]["not_assessed"])


def test_a_table_of_pyproject(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("pyproject.toml").write_text("[project]\nname = 'x'\n\n[tool.localparity]\n" + toml(BASE))
    file = read_policy("pyproject.toml")
    assert file.policy == parse_policy(toml(BASE), "p.toml").policy
    assert parse_policy(file.text, "p.toml").policy == file.policy
    assert audited("--policy", "pyproject.toml")[0] == 0
    Path("pyproject.toml").write_text("[tool.localparity]\nscore = 'p'\nmax_mcpd = 0.1\n")
    with pytest.raises(ValueError, match=r"pyproject.toml, line 3: there is no key 'max_mcpd'; .*'max_mcdp'"):
        read_policy("pyproject.toml")
    Path("pyproject.toml").write_text("[tool.other]\n")
    with pytest.raises(ValueError, match=r"has no table \[tool.localparity\]"):
        read_policy("pyproject.toml")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("max_mcdp = 2", "max_mcdp must be between 0 and 1, got 2"),
        ("max_mcdp = true", "max_mcdp must be a number, got True"),
        ('confidence = "high"', "confidence must be a number, got 'high'"),
        ("random_state = 1.5", "random_state must be an integer, got 1.5"),
        ("epsilons = [\n  0.1,\n  -1,\n]", "epsilons must be >= 0"),
        ("score_range = [1, 0]", r"score_range must be \[low, high\]"),
        ('decide_by = "mean"', "decide_by must be one of"),
        ('criterion = "parity"', "criterion must be one of"),
        ("pos_label = []", "pos_label must be a text or a whole number"),
        ("scoring_rates = 1", "scoring_rates must be true or false"),
        ('distribution_date = "May"', "distribution_date must be a date such as 2026-01-31, got 'May'"),
        ("cutoff = true", "cutoff must be a number, got True"),
        ('group = "p"', "'p'"),
        ("required_groups = [1]", "required_groups must be a text or a list of texts"),
        ("[more]", "there is no key 'more'"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(line: str, message: str) -> None:
    text = f'# a policy\nscore = "p"\n\n{line}\n'
    with pytest.raises(ValueError, match=rf"^localparity.toml, line 4: .*{message}"):
        parse_policy(text, "localparity.toml")


def test_what_is_not_toml_is_named_with_its_line() -> None:
    for text in ("score = ", "score = 'p'\nscore = 'q'\n"):
        with pytest.raises(ValueError, match=r"localparity.toml is not TOML: .*\(at "):
            parse_policy(text, "localparity.toml")


KEYS = st.text("abc\n\"'\\ é\u2028\x0b", max_size=4)


@given(st.lists(KEYS, min_size=1, max_size=6), st.data())
def test_a_line_is_where_a_key_begins(values: list[str], data: st.DataObject) -> None:
    lines: list[str] = []
    begins = {}
    for place, value in enumerate(values):
        lines += data.draw(st.lists(st.sampled_from(["", "# no = 1", "  "]), max_size=2))
        begins[f"k{place}"] = len(lines) + 1
        text = json.dumps(value, ensure_ascii=False).replace("\\n", "\\n")
        form = data.draw(st.sampled_from(["{}", "[\n{},\n]", "[\n\n# x\n{}]"]))
        lines += f"k{place} = {form.format(text)}".split("\n")
    for key, line in begins.items():
        assert line_of("\n".join(lines), key) == line


@given(st.lists(st.text(max_size=5).filter(lambda text: max(text, default="a") < "\ud800"), max_size=3))
def test_every_text_survives(names: list[str]) -> None:
    policy = Policy(required_groups=tuple(names), missing_values=tuple(names), n_resamples=0)
    assert PolicyFile.of(policy).policy == policy


def test_a_monitor_reads_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasketches")
    monkeypatch.chdir(folder)
    Path("watch.toml").write_text(toml({**BASE, "max_mcdp": 0.05, "alarm_rate": 0.2, "epsilons": [0.01, 0]}))
    words = ["monitor", "append", "history", "scores.csv", "--policy", "watch.toml"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1, done.stderr
    kept = lp.monitoring.Monitor("history").watched
    assert kept is not None
    assert (kept.epsilon, kept.max_mcdp, kept.alarm_rate) == (0.0, 0.05, 0.2)
    done = CliRunner().invoke(app, [*words, "--max-mcdp", "0.9"])
    assert (done.exit_code, "--max-mcdp: contradicts watch.toml" in done.stderr) == (2, True)
    done = CliRunner().invoke(app, ["monitor", "append", "other", "scores.csv"])
    assert (done.exit_code, "--score" in done.stderr) == (2, True)


def test_the_plugin_takes_scores_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("arrays.toml").write_text(toml({"max_mcdp": 0.5, "n_resamples": 0, "epsilons": [0.1]}))
    scores, groups = np.linspace(0, 1, 100), np.arange(100) % 2
    found = assert_mcdp(None, scores, sensitive_features=groups, policy="arrays.toml")
    assert [one.epsilon for one in found.findings] == [0.1]
    with pytest.raises(ValueError, match=r"max_mcdp must be in arrays.toml"):
        assert_mcdp(None, scores, sensitive_features=groups, policy="arrays.toml", max_mcdp=0.2)
    with pytest.raises(ValueError, match=r"must name files"):
        assert_mcdp(policy="arrays.toml")


def test_the_target_is_that_of_a_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lightgbm")
    pytest.importorskip("pandas")
    monkeypatch.chdir(folder)
    census = lp.datasets.make_census(600, random_state=0)
    people = census.data.select_dtypes("number")
    trees = lp.models.LocalParityLGBMClassifier(0.0, n_estimators=2, random_state=0)
    trees.fit(people, census.target, sensitive_features=census.sensitive_features).save("model")
    people.assign(sex=census.sensitive_features, paid=census.target, other=1 - census.target).to_csv(
        "people.csv"
    )
    values = {"files": ["people.csv"], "group": ["sex"], "n_resamples": 39, "criterion": "equal_opportunity"}
    shown = []
    for name in ("paid", "other"):
        Path("target.toml").write_text(toml({**values, "target": name, "max_mcdp": 0.9}))
        code, stderr, found = audited("--policy", "target.toml", "--model", "model")
        typed = audited(
            "people.csv", *options(values)[1:], "--max-mcdp", "0.9", "--model", "model", "--target", name
        )
        assert (code, typed[0]) == (0, 0), stderr + typed[1]
        assert numbers(found) == numbers(typed[2])
        shown.append(numbers(found)["audits"])
    assert shown[0] != shown[1]
    assert audited("--policy", "target.toml")[0] == 2
    with pytest.raises(ValueError, match="score must be a column, or model"):
        assert_mcdp(policy="target.toml")
