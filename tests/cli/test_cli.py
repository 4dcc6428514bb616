"""The commands as people type them."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import localparity as lp
from typed_commands import BARE, _run, only_audit, run


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    census = lp.datasets.make_census(1500, random_state=0, as_frame=False)
    columns = census.data | {"p": census.score, "sex": census.sensitive_features, "y": census.target}
    path = tmp_path_factory.mktemp("scores") / "scores.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return path


def test_a_table_on_the_terminal(scores: Path) -> None:
    found = run("audit", scores, "--score", "p", "--group", "sex", "--resamples", 50)
    assert (found.returncode, found.stderr) == (0, "")
    for text in ("Female", "Male", "DISPARITY", "points", "share above", "--report page.html"):
        assert text in found.stdout
    verbose = run("audit", scores, "--score", "p", "--group", "sex", "--resamples", 50, "--verbose")
    assert verbose.stdout.startswith(found.stdout.rstrip())
    for text in ("MCDP", "95% interval", "p-value", "ABCC", "delta-DP", "sha256"):
        assert text in verbose.stdout


def test_json_has_the_numbers_of_the_library(scores: Path) -> None:
    options = ["--score", "p", "--group", "sex", "--label", "y", "--resamples", 20, "--json"]
    found = run("audit", scores, *options, "--criterion", "equalized_odds", "--epsilon", "0,0.03")
    assert found.returncode == 0
    plain = json.loads(found.stdout)
    assert (plain["format"], plain["version"]) == ("localparity-audit", 5)
    assert (plain["audits"][0]["name"], plain["audits"][0]["provenance"]["seed"]) == (str(scores), 0)
    predictions = lp.Predictions.read(scores, score="p", group="sex", label="y")
    audit = lp.audit(
        lp.ScoreCounts.from_predictions(predictions),
        epsilons=[0, 0.03],
        criterion="equalized_odds",
        min_group_size=10,
        n_resamples=20,
        random_state=0,
    )
    assert only_audit(found.stdout) == only_audit(audit.to_json())


def test_intersections_weights_and_left_out_groups(scores: Path) -> None:
    groups = ["--group", "sex", "--group", "occupation", "--min-group-size", 60]
    found = run("audit", scores, "--score", "p", *groups, "--weight", "age", "--resamples", 19)
    assert found.returncode == 0, found.stderr
    for text in ("Female × care", "Left out (fewer than 60 people): Female × trades", "--pairs all"):
        assert text in " ".join(found.stdout.split())


@pytest.mark.parametrize(
    ("options", "code", "verdict"),
    [
        (["--max-mcdp", 0.9], 0, "pass: Within the bound of 90 points: "),
        (["--max-mcdp", 0.0], 1, "fail: Above the bound of 0 points: "),
        (["--max-mcdp", 0.3, "--decide-by", "upper"], 1, "fail: Undecided at the bound of 30 points: "),
        (["--max-mcdp", 0.3, "--decide-by", "upper"], 1, "The upper end fails."),
        (["--max-mcdp", 0.28, "--decide-by", "lower"], 0, "pass: Undecided at the bound of 28 points: "),
        (["--max-mcdp", 0.28, "--decide-by", "lower"], 0, "The lower end passes."),
        (["--max-mcdp", 0.9, "--epsilon", 0.3, "--json"], 0, "pass: Within the bound of 90 points: "),
        (["--max-mcdp", 0.3, "--epsilon", 0.499], 2, "MCDP(0.499) is 0 whatever the groups"),
        (["--max-mcdp", 0.3, "--epsilon", 1.5], 2, "MCDP(1.5) is 0 whatever the groups"),
        (["--epsilon", 1.5, "--json"], 0, ""),
    ],
)
def test_a_bound_decides_the_exit_code(scores: Path, options: list[object], code: int, verdict: str) -> None:
    found = run("audit", scores, "--score", "p", "--group", "sex", "--resamples", 0, *options)
    assert found.returncode == code
    assert verdict in found.stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_terminal_shows_a_verdict_once(scores: Path, options: list[str]) -> None:
    """It stood on the screen twice: in the answer, and in the line for logs."""

    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    asked = ["audit", scores, "--score", "p", "--group", "sex", "--resamples", 0, "--max-mcdp", 0.0]
    assert _run([*asked, *options], {}, screen, screen) == 1
    found = " ".join(screen.getvalue().split())
    assert found.count("FAIL ") + found.count("fail: ") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--score", "q", "--group", "sex"], "named 'q'; there is 'age', "),
        (["--score", "p", "--group", "sexx"], "named 'sexx'; did you mean 'sex'?"),
        (["--score", "p"], "--group: must name the column of the groups"),
        (
            ["--score", "p", "--group", "sex", "--epsilon", "wide"],
            "--epsilon: must be numbers separated by commas, got 'wide'",
        ),
        (["--score", "p", "--group", "sex", "--epsilon", "-1"], "--epsilon must be >= 0 and finite, got -1"),
        (
            ["--score", "p", "--group", "sex", "--epsilon", "0,nan"],
            "--epsilon must be >= 0 and finite, got nan",
        ),
        (["--score", "p", "--group", "sex", "--score-range", "1"], "two numbers LOW,HIGH"),
        (["--score", "p", "--group", "sex", "--score-range", "5,6"], "--score-range (5.0, 6.0)"),
        (
            ["--score", "p", "--group", "sex", "--criterion", "equal_opportunity"],
            "--criterion equal_opportunity needs --label",
        ),
        (["--score", "p", "--group", "sex", "--criterion", "fair"], "'fair' is not one of"),
        (
            ["--score", "p", "--group", "sex", "--max-mcdp", "7"],
            "--max-mcdp must be between 0 and 1, got 7",
        ),
        (["--score", "occupation", "--group", "sex"], "column 'occupation' of"),
        (["--score", "p", "--group", "sex", "--speed", "7"], "No such option: --speed"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(scores: Path, options: list[str], message: str) -> None:
    found = run("audit", scores, *options)
    assert found.returncode == 2
    assert found.stderr.startswith("error: ")
    assert found.stderr.count("\n") == 1
    assert message in found.stderr
    assert found.stdout == ""


@pytest.mark.parametrize(
    "criterion", ["demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds"]
)
def test_a_real_table_in_one_command(data_folder: Path, criterion: str) -> None:
    columns = [
        "--score",
        "decile_score",
        "--group",
        "race",
        "--label",
        "two_year_recid",
        "--score-range",
        "1,10",
    ]
    path = data_folder / "compas" / "compas.csv"
    found = run("audit", path, *columns, "--criterion", criterion, "--resamples", 20, COLUMNS="80")
    assert (found.returncode, found.stderr) == (0, "")
    sizes = {
        "demographic_parity": ["3,696", "2,454"],
        "equal_opportunity": ["1,901", "966"],
        "predictive_equality": ["1,795", "1,488"],
        "equalized_odds": ["1,795", "1,488"],
    }
    for size in sizes[criterion]:
        assert size in found.stdout
    lines = found.stdout.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80


def test_a_group_that_is_markup_is_only_a_name(tmp_path: Path) -> None:
    path = tmp_path / "[bold]odd.csv"
    path.write_text("p,g\n" + 10 * "0.1,[red]a[/red]\n0.2,[/nonsense]\n")
    found = run("audit", path, "--score", "p", "--group", "g", "--resamples", 5)
    assert found.returncode == 0, found.stderr
    assert "[red]a[/red]" in found.stdout
    assert "[bold]odd.csv" in found.stdout


def test_demo_tells_the_truth(tmp_path: Path) -> None:
    found = run("demo", "--rows", 3000, "--report", tmp_path / "demo.html")
    assert found.returncode == 0
    assert f"MCDP(0) is {100 * lp.datasets.census_mcdp(0):.2f}%, inside the interval" in found.stdout
    assert "localparity audit" in found.stdout


def test_version_and_help() -> None:
    assert run("--version").stdout == f"localparity {lp.__version__}\n"
    assert "audit" in run("--help").stdout
    bare = run()
    assert (bare.returncode, bare.stderr) == (2, "")


@pytest.mark.parametrize(("bound", "code"), [("0.9", 0), ("0.0", 1)])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_who_leaves_changes_neither_the_page_nor_the_exit_code(
    scores: Path, tmp_path: Path, bound: str, code: int, form: list[str]
) -> None:
    page = tmp_path / "page.html"
    options = [
        "--score",
        "p",
        "--group",
        "sex",
        "--resamples",
        "0",
        "--max-mcdp",
        bound,
        "--report",
        str(page),
    ]
    reader, writer = os.pipe()
    os.close(reader)
    found = subprocess.run(
        [sys.executable, "-m", "localparity", "audit", str(scores), *options, *form],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=BARE,
    )
    os.close(writer)
    assert found.returncode == code, found.stderr
    assert "Broken pipe" not in found.stderr
    assert "<!doctype html>" in page.read_text(encoding="utf-8")


def test_a_list_can_be_given_again_and_help_can_always_be_asked_for(scores: Path) -> None:
    groups = ["--group", "sex", "--group", "occupation"]
    assert run("audit", scores, "--score", "p", *groups, "--resamples", 0).returncode == 0
    assert run("audit", "--score", "p", "--score", "q", "--help").returncode == 0
