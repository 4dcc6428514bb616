"""The wheel and the sdist build, install without any extra into a fresh environment, and work there.

The sdist is tried on this Python, the wheel on every one that pyproject.toml names and this machine has.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import pytest

from versions import COMMANDS, pythons

ROOT = Path(__file__).parents[2]
PINS = ROOT / "constraints.txt"
QUIETLY = ("--quiet", "--disable-pip-version-check")
SCORES = "p,sex\n" + 4 * "0.1,f\n0.3,f\n0.5,f\n0.4,m\n0.6,m\n0.9,m\n"
FOUND = "67 points more likely than f people to score above"
AUDIT = ("audit", "scores.csv", "--score", "p", "--group", "sex", "--resamples", 50)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that LOCALPARITY_DIST names, as `make dist` does, else one that is built here."""
    if "LOCALPARITY_DIST" in os.environ:
        return ROOT / os.environ["LOCALPARITY_DIST"]
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


def environment(python: str, folder: Path) -> Path:
    run(python, "-m", "venv", folder)
    return folder / COMMANDS / "python"


def from_sdist(built: Path, folder: Path) -> Path:
    found, (sdist,) = environment(sys.executable, folder), built.glob("*.tar.gz")
    run(found, "-m", "pip", "install", *QUIETLY, "--constraint", PINS, sdist)
    return found


def from_wheel(python: str, built: Path, folder: Path) -> Path:
    """The wheel needs nothing that the list with checksums does not have, on any Python."""
    found, (wheel,) = environment(python, folder), built.glob("*.whl")
    run(found, "-m", "pip", "install", *QUIETLY, "--require-hashes", "-r", ROOT / "requirements.txt")
    run(found, "-m", "pip", "install", *QUIETLY, "--no-index", wheel)
    return found


WAYS = {
    "sdist": from_sdist,
    **{
        f"wheel, Python {version}": partial(from_wheel, found)
        for version, found in pythons().items()
        if found
    },
}


@pytest.fixture(scope="module", params=WAYS)
def python(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with nothing but the package and what it needs."""
    return WAYS[request.param](built, tmp_path_factory.mktemp("fresh"))


def run(*command: object, cwd: Path | None = None) -> str:
    found = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_what_is_in_them(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    in_wheel = zipfile.ZipFile(wheel).namelist()
    with tarfile.open(sdist) as archive:
        in_sdist = [name.partition("/")[2] for name in archive.getnames()]
    for file in (ROOT / "src").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert str(file.relative_to(ROOT / "src")) in in_wheel
            assert str(file.relative_to(ROOT)) in in_sdist
    assert not [name for name in in_wheel if name.startswith("tests")]
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "pyproject.toml", "tests/oracles.py"):
        assert name in in_sdist


def test_it_weighs_what_the_page_on_installing_says(python: Path) -> None:
    page = ROOT / "docs" / "start" / "install.rst"
    (said,) = re.findall(r"takes (\d+) MB", page.read_text(encoding="utf-8"))
    code = (
        "from importlib.metadata import distributions as d\n"
        "paths = {p for each in d() if each.name not in ('pip', 'setuptools') for p in map(each.locate_file, each.files)}\n"
        "print(sum(path.stat().st_size for path in paths if path.exists()) / 1e6)"
    )
    assert float(run(python, "-c", code)) == pytest.approx(int(said), rel=0.1)


def test_it_knows_its_version(python: Path, built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    version = wheel.name.split("-")[1]
    assert run(python.with_name("localparity"), "--version", cwd=tmp_path) == f"localparity {version}\n"
    code = "import localparity as lp; print(lp.__version__)"
    assert run(python, "-c", code, cwd=tmp_path) == f"{version}\n"


def test_it_works_without_extras(python: Path, tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text(SCORES)
    assert FOUND in run(python.with_name("localparity"), *AUDIT, cwd=tmp_path)
    code = (
        "import importlib.util as util, localparity as lp; "
        "optional = ('torch', 'pandas', 'matplotlib', 'pyspark', 'datasketches', 'pytest'); "
        "assert not any(map(util.find_spec, optional)); "
        "print(lp.mcdp(None, [0.2, 0.6], sensitive_features=['a', 'b']))"
    )
    assert run(python, "-c", code, cwd=tmp_path).strip() == "1.0"


def test_a_missing_extra_is_named(python: Path, tmp_path: Path) -> None:
    code = (
        "import localparity as lp; "
        "people = lp.Predictions.from_arrays(None, [0.2, 0.6], sensitive_features=['a', 'b']); "
        "lp.gap_curve(people).plot()"
    )
    found = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 1
    assert "localparity[report]" in found.stderr


def test_a_bundle_verifies_on_another_python(python: Path, tmp_path: Path) -> None:
    """In an environment with nothing but the package, and the other way round."""
    (tmp_path / "scores.csv").write_text(SCORES + 300 * "0.25,f\n0.5,f\n0.5,m\n0.75,m\n")
    here, there = (sys.executable, "-m", "localparity"), (python.with_name("localparity"),)
    for makes, checks in ((here, there), (there, here)):
        assert "DISPARITY" in run(*makes, *AUDIT, "--out", "audit.zip", "--force", cwd=tmp_path)
        assert "yes: the bundle agrees with itself" in run(*checks, "verify", "audit.zip", cwd=tmp_path)
        again = run(*checks, "verify", "audit.zip", "--data", "scores.csv", cwd=tmp_path)
        assert "yes: the bundle is what the data gives" in again


def test_it_writes_a_page(python: Path, tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text(SCORES)
    assert FOUND in run(python.with_name("localparity"), *AUDIT, "--report", "audit.html", cwd=tmp_path)
    assert FOUND in (tmp_path / "audit.html").read_text(encoding="utf-8")
