"""`localparity plan`, as people type it."""

from __future__ import annotations

import json
import subprocess

import pytest

import localparity as lp
import typed_commands
from localparity.cli import plan

QUICK = ["--resamples", 99]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return typed_commands.run("plan", *words, *QUICK)


def test_what_is_found_and_how_many_rows_it_takes() -> None:
    found = run("--group-sizes", "60,90", "--mcdp", 0.5)
    assert found.returncode == 0, found.stderr
    expected = lp.minimum_detectable([60, 90], n_resamples=99, random_state=0).mcdp
    needed = lp.rows_needed([60, 90], mcdp=0.5, n_resamples=99, random_state=0)
    assert "To find: an audit at epsilon 0,0.01,0.05,0.1 reports" in " ".join(found.stdout.split())
    assert expected is not None
    assert f"groups of 60 and 90 people finds an MCDP(0) of {100 * expected:.2f}%" in found.stdout
    assert f"MCDP(0) of 50.00% takes {sum(needed)} people: {needed[0]} and {needed[1]}." in found.stdout


def test_several_groups_have_a_table() -> None:
    found = run("--group-sizes", "50,1,60,60")
    assert found.returncode == 0, found.stderr
    assert "50, 1, 60 and 60 people are too small" in found.stdout
    assert found.stdout.count("too small") == 3
    assert "takes" not in found.stdout


def test_json_has_everything() -> None:
    found = json.loads(run("--group-sizes", "40,50,1", "--mcdp", 0.9, "--power", 0.5, "--json").stdout)
    assert (found["group_sizes"], found["power"], found["confidence"]) == ([40, 50, 1], 0.5, 0.95)
    assert found["detectable_mcdp"] is None
    assert [pair["groups"] for pair in found["pairs"]] == [[0, 1], [0, 2], [1, 2]]
    assert 0.1 < found["pairs"][0]["detectable_mcdp"] < 0.5
    assert found["rows_needed"] == sum(found["group_sizes_needed"])
    assert (found["mcdp"], found["epsilons"]) == (0.9, [0.0, 0.01, 0.05, 0.1])


def test_a_monitor_is_planned_in_periods() -> None:
    words = ("--group-sizes", "200,200", "--mcdp", 0.2, "--monitor", 2)
    found = run(*words)
    assert found.returncode == 0, found.stderr
    needed = lp.monitoring.periods_needed([200, 200], mcdp=0.2, quiet=2, random_state=0)
    assert f"finds an MCDP(0) of 20.00% within {needed} periods" in " ".join(found.stdout.split())
    plain = json.loads(run(*words, "--confidence", 0.9, "--max-mcdp", 0.1, "--json").stdout)
    assert (plain["alarm_rate"], plain["max_mcdp"], plain["quiet_periods"]) == (0.1, 0.1, 2)
    assert plain["periods_needed"] > needed


def test_a_drift_that_no_monitor_finds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lp.monitoring, "periods_needed", lambda *_, **__: None)
    plan.plan("1,1", mcdp=0.001, monitor=0)
    assert "does not find an MCDP(0) of 0.10% within 3,000" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--group-sizes"),
        (["--group-sizes", "30,30", "--monitor", 3], "--monitor"),
        (["--group-sizes", "30,30", "--monitor", -3, "--mcdp", 0.2], "-3"),
        (["--group-sizes", "30,30", "--monitor", 3, "--mcdp", 0.2, "--max-mcdp", 0.2], "above"),
        (["--group-sizes", "300"], "--group-sizes must have at least two sizes, got 1"),
        (["--group-sizes", "300,x"], "'300,x'"),
        (["--group-sizes", "300,2.5"], "got 2.5"),
        (["--group-sizes", "300,inf"], "got inf"),
        (["--group-sizes", "300,0"], "got 0"),
        (["--group-sizes", "1e300,3"], "--group-sizes must have a sum"),
        (["--group-sizes", "30,30", "--power", 1], "--power must be > 0 and < 1, got 1"),
        (["--group-sizes", "30,30", "--epsilon", "0.05"], "--epsilon must contain 0, got [0.05]"),
        (["--group-sizes", "30,30", "--mcdp", 2], "--mcdp must be between 0 and 1, got 2"),
        (["--group-sizes", "30,30", "--mcdp", 0], "--mcdp must be >= 0.0001, got 0"),
        (["--group-sizes", "30,30", "--confidence", 0.999], "--resamples must be >= 999"),
    ],
)
def test_wrong_usage_is_one_line(words: list[object], message: str) -> None:
    found = run(*words)
    assert (found.returncode, found.stdout) == (2, "")
    assert message in found.stderr
    assert found.stderr.count("\n") == 1
