"""The list with checksums names what is tested: every package of the core, in the version of constraints.txt."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
RENEW = "renew it with `make requirements.txt`"


def pins(name: str) -> dict[str, str]:
    """The version of each package, by its normal name."""
    found = re.findall(r"^([\w.-]+)==([\w.+]+)", (ROOT / name).read_text(), re.MULTILINE)
    return {normal(package): version for package, version in found}


def normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def test_the_list_with_checksums_has_the_tested_versions() -> None:
    listed, tested = pins("requirements.txt"), pins("constraints.txt")
    # Packages that only other systems need are in no environment that the tests run in.
    assert {
        name: version for name, version in listed.items() if tested.get(name, version) != version
    } == {}, RENEW
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    assert {normal(re.match(r"[\w.-]+", each)[0]) for each in needed} <= listed.keys(), RENEW  # type: ignore[index]


def test_every_package_of_the_list_has_checksums() -> None:
    text = (ROOT / "requirements.txt").read_text()
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 10
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
