"""The lowest versions are those that pyproject.toml allows, and the environments are what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import versions

NOT_TRIED = {"torch"}
"""Torch comes without CUDA in one version only."""


def pinned(path: Path) -> dict[str, tuple[int, ...]]:
    lines = [line.split("==") for line in path.read_text().splitlines() if not line.startswith("#")]
    return {name.lower(): parts(version) for name, version in lines if version.replace(".", "").isdigit()}


def parts(version: str) -> tuple[int, ...]:
    """The numbers of a version, of which 2.0 and 2.0.0 are the same."""
    numbers = [int(part) for part in version.split(".")]
    return tuple(numbers + [0] * (3 - len(numbers)))


def test_the_lowest_versions_are_those_of_pyproject() -> None:
    bounds = versions.lower_bounds((versions.ROOT / "pyproject.toml").read_text())
    lowest = pinned(versions.LOWEST)
    found = {name: lowest.get(name) for name in bounds if name not in NOT_TRIED}
    assert found == {name: parts(bounds[name]) for name in found}


def test_every_requirement_has_a_lower_bound() -> None:
    text = '[project]\ndependencies = ["a>=1.2"]\n[project.optional-dependencies]\nx = ["b-c>=3"]\ny = ["d>=4"]\n'
    assert versions.lower_bounds(text) == {"a": "1.2", "b-c": "3", "d": "4"}


def test_a_release_is_tried_on_the_pythons_that_pyproject_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = versions.named_pythons((versions.ROOT / "pyproject.toml").read_text())
    assert 11 in named  # `requires-python`
    assert named == list(range(11, 11 + len(named)))
    monkeypatch.setattr(versions, "python_of", {11: "/usr/bin/python3.11"}.get)
    monkeypatch.setattr(sys, "argv", ["versions.py", "--pythons"])
    versions.main()
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "Python 3.11: /usr/bin/python3.11"
    assert others == [f"Python 3.{minor}: not tried, there is none here" for minor in named[1:]]


def test_an_environment_that_has_no_python_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(versions, "newest_python", lambda: None)
    assert versions.run("newest-python", only_core=True)
    version = sys.version.split()[0]
    assert (
        capsys.readouterr().out == f"newest-python: not run, there is no Python newer than {version} here\n"
    )
