"""The hook for pre-commit, run by pre-commit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import localparity

pytest.importorskip("pre_commit")

ROOT = Path(__file__).parents[2]
GIT = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")

CONFIG = """
repos:
  - repo: {hooks}
    rev: {commit}
    hooks:
      - id: localparity-audit
        language: system  # the environment of these tests, in place of a new one
        args: [--score=p, --group=sex, --max-mcdp=0.5, --resamples=0]
"""


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *GIT, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository of scores whose configuration names the hook's repository."""
    hooks, project = tmp_path / "hooks", tmp_path / "project"
    for folder in (hooks, project):
        folder.mkdir()
        git(folder, "init", "--quiet")
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    git(hooks, "add", "--all")
    git(hooks, "commit", "--quiet", "--message", "hooks")
    config = CONFIG.format(hooks=hooks, commit=git(hooks, "rev-parse", "HEAD"))
    (project / ".pre-commit-config.yaml").write_text(config)
    return project


def run_hooks(project: Path) -> subprocess.CompletedProcess[str]:
    git(project, "add", "--all")
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(project.parent / "cache"),
        "PYTHONPATH": str(Path(localparity.__file__).parents[1]),
    }
    words = [sys.executable, "-m", "pre_commit", "run", "--color=never"]
    return subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_a_commit_with_scores_above_the_bound_is_stopped(project: Path) -> None:
    for name, apart in (("apart.csv", True), ("alike.csv", False), ("notes.txt", True)):
        rows = (f"{i / 100},{'fm'[i > 50 if apart else i % 2]}\n" for i in range(101))
        (project / name).write_text("p,sex\n" + "".join(rows))
    done = run_hooks(project)
    assert done.returncode == 1
    assert "fail: apart.csv: Above the bound of 50 points: m (50 people) and f (51)" in done.stdout
    assert "pass: alike.csv" in done.stdout
    assert "notes.txt" not in done.stdout
    (project / "apart.csv").unlink()
    done = run_hooks(project)
    assert (done.returncode, "Passed" in done.stdout) == (0, True)
