"""The plugin in real runs of pytest: what fails, what it says, and what the report has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import localparity as lp
from localparity.integrations.pytest import assert_mcdp
from typed_commands import run

pytest_plugins = ["pytester"]

jsonschema = pytest.importorskip("jsonschema")

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "reference" / "audit.schema.json").read_text())

TESTS = """
import numpy as np
import pytest
from localparity.integrations.pytest import assert_mcdp as imported

SCORES = np.linspace(0, 1, 101)
APART = np.where(SCORES > 0.5, "high", "low")
ALIKE = np.where(np.arange(101) % 2, "odd", "even")

def test_alike(assert_mcdp):
    found = assert_mcdp(None, SCORES, sensitive_features=ALIKE)
    assert found.passes(0.1)

def test_apart(assert_mcdp):
    assert_mcdp(None, SCORES, sensitive_features=APART, max_mcdp=0.25, epsilon=0.1)

@pytest.mark.parametrize("use", [imported])
def test_imported(use):
    use(None, SCORES, sensitive_features=ALIKE)
    use(None, SCORES, sensitive_features=ALIKE, epsilon=0.05)

def test_of_something_else():
    pass
"""


def test_the_page_shows_what_a_failure_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "integrations" / "pytest.rst").read_text(encoding="utf-8")
    shown = page[page.index("AssertionError: ") : page.index("The same function can be imported")]
    census = lp.datasets.make_census(5000, random_state=0, as_frame=False)
    with pytest.raises(AssertionError) as failed:
        assert_mcdp(None, census.score, sensitive_features=census.sensitive_features, max_mcdp=0.1)
    said = str(failed.value).split()
    assert [word for word in shown.split() if word != "E"] == ["AssertionError:", *said]


@pytest.mark.parametrize("processes", [0, 2])
def test_a_run_fails_readably_and_reports_its_audits(pytester: pytest.Pytester, processes: int) -> None:
    pytester.makepyfile(TESTS)
    report = pytester.path / "deep" / "audits.json"
    result = pytester.runpytest_subprocess(f"-n{processes}", f"--localparity-report={report}")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*assert_mcdp(None, SCORES, sensitive_features=APART, max_mcdp=0.25, epsilon=0.1)",
            "E*Above the bound of 25 points: high (50 people) and low (51) differ by 80 points (* to *).",
            "E*High people are at least 80 points more likely than low people to score above every cutoff *",
            "E*. True gap * to * points (95%). Chance: fewer than 1 in 1,000.",
        ]
    )
    assert "bound_lines" not in result.stdout.str()  # of the traceback, the line of the test is shown
    result.stdout.fnmatch_lines(["*localparity: 4 audits in *audits.json*"])
    found = json.loads(report.read_text())
    jsonschema.validate(found, SCHEMA)
    names = [audit["name"].partition("::")[2] for audit in found["audits"]]
    assert names == ["test_alike", "test_apart", *["test_imported[assert_mcdp]"] * 2]
    assert [audit["bound"]["passes"] for audit in found["audits"]] == [True, False, True, True]


def test_markdown_for_a_pull_request_and_no_report_without_audits(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    pytester.runpytest_inprocess("-k", "alike", "--localparity-report=audits.md").assert_outcomes(
        passed=1, deselected=3
    )
    text = (pytester.path / "audits.md").read_text()
    assert text.startswith("# test\\_markdown")
    assert "Undecided at the bound of 10 points" in text
    result = pytester.runpytest_inprocess("-k", "else", "--localparity-report=audits.md")
    result.stdout.fnmatch_lines(["*localparity: 0 audits*"])
    assert not (pytester.path / "audits.md").exists()
    refused = pytester.runpytest_inprocess("--localparity-report=audits.pdf")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*--localparity-report must end in .json or .md, got audits.pdf"])


def test_pytest_starts_without_loading_anything_of_ours() -> None:
    code = (
        "import sys, localparity.integrations.pytest; "
        "print(sorted(name for name in sys.modules if name.startswith('localparity') or name == 'numpy'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(
        ["localparity", "localparity._lazy", "localparity.integrations", "localparity.integrations.pytest"]
    )


def test_small_groups_are_left_out_as_in_the_command() -> None:
    scores, groups = np.linspace(0, 1, 63), np.repeat(["a", "b", "few"], [30, 30, 3])
    asked: dict[str, Any] = {"sensitive_features": groups, "max_mcdp": 1, "n_resamples": 0}
    found = assert_mcdp(None, scores, **asked, not_assessed="allow")
    assert [left.group for left in found.left_out] == ["few"]
    with pytest.raises(AssertionError, match=r"Not assessed, which fails: few \(fewer than 10 people\)"):
        assert_mcdp(None, scores, **asked)
    assert_mcdp(None, scores, **asked, required_groups=["a", "b"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[float], list[str]]:
    sizes = draw(st.lists(st.integers(10, 25), min_size=2, max_size=3))
    groups = [name for name, size in zip("abc", sizes, strict=False) for _ in range(size)]
    grid = st.integers(0, 20).map(lambda score: score / 20)
    return draw(st.lists(grid, min_size=len(groups), max_size=len(groups))), groups


@pytest.mark.filterwarnings("ignore:the scores lie between")
@given(
    tables(),
    st.integers(0, 20).map(lambda bound: bound / 20),
    st.sampled_from([0.0, 0.05]),
    st.sampled_from(["estimate", "upper", "lower"]),
)
@settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_python_and_the_command_never_disagree(
    tmp_path_factory: pytest.TempPathFactory,
    table: tuple[list[float], list[str]],
    max_mcdp: float,
    epsilon: float,
    decide_by: Any,
) -> None:
    scores, groups = table
    file = tmp_path_factory.mktemp("scores") / "scores.csv"
    rows = zip(scores, groups, strict=True)
    file.write_text("p,group\n" + "".join(f"{score},{group}\n" for score, group in rows))
    options = ["--epsilon", epsilon, "--max-mcdp", max_mcdp, "--decide-by", decide_by, "--resamples", 0]
    words = ["audit", file, "--score", "p", "--group", "group", "--format", "junit", *options]
    done = run(*words, PYTHONWARNINGS="ignore")
    try:
        asserted = {"max_mcdp": max_mcdp, "epsilon": epsilon, "decide_by": decide_by, "n_resamples": 0}
        assert_mcdp(None, scores, sensitive_features=groups, **asserted)
        outcome, told = 0, None
    except AssertionError as error:
        outcome, told = 1, str(error).splitlines()[0]
    except ValueError:
        outcome, told = 2, None
    assert done.returncode == outcome
    if told is not None:
        assert f"fail: {told.removesuffix('.')}".casefold() in done.stderr.casefold()
        assert 'failures="1"' in done.stdout
    if outcome < 2:
        found = lp.audit(None, scores, sensitive_features=groups, epsilons=[epsilon], n_resamples=0)
        assert found.passes(max_mcdp, decide_by=decide_by) == (outcome == 0)
