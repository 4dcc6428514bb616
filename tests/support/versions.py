"""The tests in other environments than the developer's: ``make test-versions`` runs them all, every night.

Each environment is a folder under `.venvs`, made anew when pyproject.toml or its constraints change. Tests that need
what is not in an environment are skipped there, those of the core never are (`CORE`).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMANDS = "Scripts" if os.name == "nt" else "bin"
PINS, LOWEST = ROOT / "constraints.txt", ROOT / "constraints-lowest.txt"

CORE = (
    "tests/_io/",
    "tests/_validation/test_validation.py",
    "tests/auditing/",
    "tests/cli/test_cli.py",
    "tests/cli/test_pipe.py",
    "tests/counts/",
    "tests/metrics/",
    "tests/test_package.py",
    "tests/test_predictions.py",
    "tests/uncertainty/",
)
"""What needs no extra: a test here that cannot import one fails, others are skipped then."""

_TOOLS = ("pytest", "pytest-xdist", "hypothesis")
# Wheels of torch without CUDA are not everywhere, so only the developer's environment has the extra `train`.
_EXTRAS = (
    "arrow",
    "boost",
    "data",
    "excel",
    "images",
    "mlflow",
    "report",
    "sketch",
    "spark",
)


@dataclass(frozen=True)
class Environment:
    """What is installed: extras of the package, other packages, under which constraints, on which Python."""

    extras: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    pins: Path | None = PINS
    newest_python: bool = False


_ALL = {"extras": _EXTRAS, "others": ("fairlearn", "optuna", "polars")}
ENVIRONMENTS = {
    "no-extras": Environment(),
    "lowest-core": Environment(pins=LOWEST),
    "lowest": Environment(**_ALL, pins=LOWEST),
    "newest": Environment(**_ALL, pins=None),
    "newest-python": Environment(**_ALL, newest_python=True),
}


def lower_bounds(pyproject: str) -> dict[str, str]:
    """The lowest version of each requirement that users install, by its name."""
    project = tomllib.loads(pyproject)["project"]
    wanted = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    found = (re.fullmatch(r"([\w-]+)>=([\d.]+)", each) for each in wanted)
    return {match[1]: match[2] for match in found if match}


def python_of(minor: int) -> str | None:
    """A Python 3 of this minor version that can be found and runs: this one, among pyenv's or on the path."""
    if minor == sys.version_info.minor:
        return sys.executable
    folders = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin"), reverse=True)
    on_the_path = shutil.which(f"python3.{minor}")
    for found in [*(str(each / "python") for each in folders), *filter(None, [on_the_path])]:
        # Pyenv puts commands on the path that say only that it is not switched on.
        if subprocess.run([found, "--version"], capture_output=True).returncode == 0:
            return found
    return None


def newest_python() -> str | None:
    """The newest Python after this one that can be found and runs."""
    return next(filter(None, map(python_of, range(20, sys.version_info.minor, -1))), None)


def named_pythons(pyproject: str) -> list[int]:
    """The minor versions of Python 3 that a release is said to run on."""
    return [int(minor) for minor in re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', pyproject)]


def pythons() -> dict[str, str | None]:
    """The Pythons that a release is tried on: those that pyproject.toml names, None for one that is not here."""
    named = named_pythons((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {f"3.{minor}": python_of(minor) for minor in named}


def prepared(name: str, python: str) -> Path:
    """The interpreter of an environment, which is made where it is not there as wanted."""
    wanted = ENVIRONMENTS[name]
    pins = [] if wanted.pins is None else ["--constraint", str(wanted.pins)]
    package = f"{ROOT}[{','.join(wanted.extras)}]" if wanted.extras else str(ROOT)
    install = ["--editable", package, *wanted.others, *_TOOLS, *pins]
    sources = [ROOT / "pyproject.toml", *([wanted.pins] if wanted.pins else [])]
    content = "\n".join([python, *install, *(path.read_text(encoding="utf-8") for path in sources)])
    folder, mark = ROOT / ".venvs" / name, hashlib.sha256(content.encode()).hexdigest()
    found = folder / COMMANDS / "python"
    if not (folder / "made").exists() or (folder / "made").read_text(encoding="utf-8") != mark:
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        quietly = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([found, "-m", "pip", "install", *quietly, *install], check=True)
        (folder / "made").write_text(mark, encoding="utf-8")
    return found


def run(name: str, *, only_core: bool) -> bool:
    """Whether the tests pass in an environment; without its Python they do not run, and that is said."""
    python = newest_python() if ENVIRONMENTS[name].newest_python else sys.executable
    if python is None:
        print(f"{name}: not run, there is no Python newer than {sys.version.split()[0]} here", flush=True)
        return True
    found = prepared(name, python)
    version = subprocess.run([found, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    print(f"{name}: {version}, {'the tests of the core' if only_core else 'all tests'}", flush=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    # Spark would start the first Python on the path.
    environment["PYSPARK_PYTHON"] = str(found)
    environment.pop("LOCALPARITY_NO_SKIPS", None)
    options = ["-q", "-n", "auto", "-m", "not slow", "-p", "no:cacheprovider", "--no-header", "-r", "fE"]
    if ENVIRONMENTS[name].pins == LOWEST:
        # What old versions warn of beside newer ones is not for us to mend.
        for kind in ("DeprecationWarning", "pytest.PytestUnraisableExceptionWarning"):
            options += ["-W", f"ignore::{kind}"]
    tests = CORE if only_core else ("tests",)
    return (
        subprocess.run([found, "-m", "pytest", *options, *tests], cwd=ROOT, env=environment).returncode == 0
    )


def main() -> None:
    """Run the tests in the environments that are named, or in all of them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *ENVIRONMENTS], metavar="|".join(ENVIRONMENTS))
    parser.add_argument("--core", action="store_true", help="only the tests of the core")
    parser.add_argument(
        "--pythons", action="store_true", help="only list what `make dist` tries a release on"
    )
    given = parser.parse_args()
    if given.pythons:
        for version, found in pythons().items():
            print(f"Python {version}: {found or 'not tried, there is none here'}")
        return
    passed = {name: run(name, only_core=given.core) for name in given.names or ENVIRONMENTS}
    sys.exit(", ".join(name for name, well in passed.items() if not well) or None)


if __name__ == "__main__":
    main()
