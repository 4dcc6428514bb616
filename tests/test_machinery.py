"""What runs the checks elsewhere, workflow and hooks, runs what the Makefile runs."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
VERSION = tomllib.loads(PYPROJECT)["project"]["version"]
RELEASE = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")


def recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found, target
    return found[1]


def test_the_workflow_runs_the_targets_that_there_are() -> None:
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert re.search(r"run: \.ci/run$", workflow, re.MULTILINE)
    for target in re.findall(r"run: (?:\.ci/run|make) (\w+)$", workflow, re.MULTILINE):
        assert recipe(target)
    assert "run: python -m pip_audit --disable-pip --require-hashes -r requirements.txt\n" in workflow


def test_the_hooks_are_those_of_make_lint() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    tools = re.findall(r"entry: \.venv/bin/(\S+)", hooks)
    assert tools
    assert {f"$(BIN)/{tool}" for tool in tools} <= set(recipe("lint").split())


def test_every_target_is_explained_to_contributors() -> None:
    told = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)
    assert phony
    targets = set(phony[1].replace("\\", " ").split()) - {"clean", "promises"}
    assert {target for target in targets if f"make {target}" not in told} == set()


def test_the_longest_tests_are_those_that_there_are(request: pytest.FixtureRequest) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    units = conftest.LONGEST.split()
    assert [unit for unit in units if unit not in conftest.HOSTS and not (ROOT / unit).is_file()] == []
    files = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    parts = [part for host in conftest.HOSTS.values() for part in host]
    assert [part for part in parts if not any(part in file for file in files)] == []


def test_workflows_name_actions_by_commit() -> None:
    """A tag may be moved to other code, a commit may not."""
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for used in re.findall(r"uses: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used), (
                f"{path.name}: {used}"
            )


@pytest.mark.parametrize(
    ("tag", "heading", "well"),
    [
        ("v{}", "## {} (2026-11-18)", True),
        ("v{}", "## {} (unreleased)", False),
        ("v{}", "## {}0 (2026-11-18)", False),
        ("v{}0", "## {}0 (2026-11-18)", False),
    ],
)
def test_a_tag_is_released_as_the_version_with_its_dated_changelog(
    tag: str, heading: str, well: bool, tmp_path: Path
) -> None:
    (script,) = re.findall(r"- run: \|\n((?: {10}grep.*\n)+)", RELEASE)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading.format(VERSION)}\n")
    words, environment = ["bash", "-e", "-c", script], {**os.environ, "GITHUB_REF_NAME": tag.format(VERSION)}
    assert (subprocess.run(words, cwd=tmp_path, env=environment).returncode == 0) == well


def test_nothing_is_published_that_was_not_tested() -> None:
    assert re.search(r"^  publish:\n    needs: \[build, test\]$", RELEASE, re.MULTILINE)
    assert re.search(r"^  page:\n    needs: publish$", RELEASE, re.MULTILINE)


def test_every_file_names_this_version() -> None:
    named = {
        "CITATION.cff": r"^version: (\S+)$",
        "docs/integrations/continuous_integration.rst": r"(?:localparity@|rev: )v(\S+)$",
        "docs/contributing/release.rst": r"git tag v([\d.]+)``",
    }
    for name, pattern in named.items():
        found = re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert set(found) == {VERSION}, name


def test_a_dated_version_is_cited_with_its_date() -> None:
    (date,) = re.findall(
        rf"^## {re.escape(VERSION)} \((.+)\)$",
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    cited = re.findall(
        r"^date-released: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert cited == ([] if date == "unreleased" else [date])


def test_contributors_get_what_the_makefile_installs() -> None:
    groups = tomllib.loads(PYPROJECT)["dependency-groups"]
    assert set(re.findall(r"\$\(VENV\)/(\w+)\.txt", MAKEFILE)) == set(groups)


def test_the_workflow_tries_every_python_that_is_named() -> None:
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PYPROJECT)
    assert {version for version in named if version not in workflow} == set()
