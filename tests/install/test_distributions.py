"""The wheel and the sdist build, install without any extra into a fresh environment, and work there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from versions import COMMANDS

ROOT = Path(__file__).parents[2]
PINS = ROOT / "constraints.txt"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that LOCALPARITY_DIST names, as `make dist` does, else one that is built here."""
    if "LOCALPARITY_DIST" in os.environ:
        return ROOT / os.environ["LOCALPARITY_DIST"]
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module", params=["*.whl", "*.tar.gz"])
def python(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with nothing but the package and what it needs."""
    (distribution,) = built.glob(request.param)
    folder = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", folder)
    found = folder / COMMANDS / "python"
    quietly = ("--quiet", "--disable-pip-version-check", "--constraint", PINS)
    run(found, "-m", "pip", "install", *quietly, distribution)
    return found


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


def test_it_weighs_what_the_readme_says(python: Path) -> None:
    (said,) = re.findall(r"takes (\d+) MB", (ROOT / "README.md").read_text(encoding="utf-8"))
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
    scores = 4 * "0.1,f\n0.3,f\n0.5,f\n0.4,m\n0.6,m\n0.9,m\n"
    (tmp_path / "scores.csv").write_text("p,sex\n" + scores)
    command = python.with_name("localparity")
    options = ["--score", "p", "--group", "sex", "--resamples", 50]
    assert "66.67%" in run(command, "audit", "scores.csv", *options, cwd=tmp_path)
    code = (
        "import importlib.util as util, localparity as lp; "
        "optional = ('torch', 'pandas', 'matplotlib', 'pyspark', 'datasketches', 'pytest'); "
        "assert not any(map(util.find_spec, optional)); "
        "print(lp.mcdp(None, [0.2, 0.6], sensitive_features=['a', 'b']))"
    )
    assert run(python, "-c", code, cwd=tmp_path).strip() == "1.0"


def test_a_missing_extra_is_named(python: Path, tmp_path: Path) -> None:
    code = "import localparity as lp; lp.gap_curve(None, [0.2, 0.6], sensitive_features=['a', 'b']).plot()"
    found = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 1
    assert "localparity[report]" in found.stderr
