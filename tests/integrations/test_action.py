"""The GitHub Action: its steps as GitHub runs them, with bash and the inputs in the environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import localparity
from policies import CHANGES, changed, write_scores

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
INSTALL, AUDIT = ACTION["runs"]["steps"]

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def run_audit(folder: Path, **inputs: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the step as GitHub does; what it printed, and the summary of the job."""
    given = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    variables = {
        name: given[re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1]]  # type: ignore[index]
        for name, value in AUDIT["env"].items()
    }
    summary = folder / "summary.md"
    summary.write_text("before\n")
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(localparity.__file__).parents[1]),
        "GITHUB_STEP_SUMMARY": str(summary),
        "OMP_NUM_THREADS": "1",
    }
    # https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax, `shell: bash`
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", AUDIT["run"]]
    done = subprocess.run(
        command, cwd=folder, env=environment | variables, capture_output=True, text=True, check=False
    )
    return done, summary.read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("checkout")
    rows = "".join(f"{i / 100},{'fm'[i > 50]},{'xy'[i % 2]}\n" for i in range(101))
    for name in ("scores.csv", "--max-mcdp=1 $(touch hacked).csv"):
        (found / name).write_text(f"p,sex,region\n{rows}")
    return found


ASKED: dict[str, Any] = {"files": "scores.csv", "score": "p", "group": "sex", "options": "--resamples=0\n"}


def test_it_fails_above_the_bound_and_writes_the_summary(folder: Path) -> None:
    done, summary = run_audit(folder, **ASKED, max_mcdp="0.5")
    assert done.returncode == 1
    assert "fail: Above the bound of 50 points: m (50 people) and f (51)" in done.stderr
    assert summary.startswith("before\n# Local disparity by sex\n")
    assert "- Above the bound of 50 points: m (50 people) and f (51)" in summary
    done, summary = run_audit(folder, **{**ASKED, "group": "region\n"}, max_mcdp="0.5")
    assert (done.returncode, "# Local disparity by region" in summary) == (0, True)


def test_nothing_in_an_input_runs_or_becomes_an_option(folder: Path) -> None:
    named = "--max-mcdp=1 $(touch hacked).csv"
    done, summary = run_audit(folder, **{**ASKED, "files": named}, max_mcdp="0.5")
    assert done.returncode == 1  # audited as a file, with the bound that was given
    assert "bound of 50 points" in summary
    wrong = '"; touch hacked; "$(touch hacked)`touch hacked`'
    asked = dict.fromkeys(["score", "group", "max_mcdp", "epsilon", "decide_by"], wrong)
    done, _ = run_audit(folder, **ASKED | asked)
    assert done.returncode == 2
    assert not (folder / "hacked").exists()


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=() if key == "max_mcdp" else pytest.mark.slow) for key in sorted(CHANGES)]
)
def test_a_policy_decides_as_in_the_command(key: str, tmp_path: Path) -> None:
    write_scores(tmp_path)
    (tmp_path / "localparity.toml").write_text(changed(key))
    done, summary = run_audit(tmp_path, policy="localparity.toml")
    words = ["audit", "--policy", "localparity.toml", "--format", "markdown"]
    same = subprocess.run(
        [sys.executable, "-m", "localparity", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == same.returncode < 2, done.stderr
    assert done.stderr == same.stderr
    assert _numbers(summary.removeprefix("before\n")) == _numbers(same.stdout)


def _numbers(summary: str) -> list[str]:
    """The lines but those of the call and the time."""
    return [
        line for line in summary.splitlines() if not line.startswith(("- Call", "- Date", "localparity "))
    ]


def test_scripts_read_inputs_from_variables_alone() -> None:
    assert "${{" not in INSTALL["run"] + AUDIT["run"]
    assert set(re.findall(r"inputs\.([\w-]+)", str(AUDIT["env"]))) == set(ACTION["inputs"])
    assert all("description" in each for each in ACTION["inputs"].values())
