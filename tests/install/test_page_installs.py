"""Every page's examples run in an environment that has what the page says to install, and nothing more.

Pages for contributors, who have everything, are left out. Pages with the same `pip install` share an environment.
One page alone: pytest -m slow tests/install/test_page_installs.py -k privacy
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pages import DOCS, all_pages, has_examples, missing_download
from versions import COMMANDS

ROOT = Path(__file__).parents[2]
PINS = ROOT / "constraints.txt"
QUIETLY = ("--quiet", "--disable-pip-version-check", "--constraint", PINS)


def needs(page: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The extras and the other packages that a page names after "Needs", or in a block of its commands."""
    lines = re.findall(r"(?:Needs `|^ +)pip install ([^`#\n]*localparity[^`#\n]*)", page, re.MULTILINE)
    wanted = [Requirement(word) for line in lines for word in shlex.split(line)]
    extras = {extra for each in wanted if each.name == "localparity" for extra in each.extras}
    others = {str(each) for each in wanted if each.name != "localparity"}
    return tuple(sorted(extras)), tuple(sorted(others))


def test_what_a_page_needs() -> None:
    assert needs("Needs `pip install 'localparity[report]' polars`.\n") == (("report",), ("polars",))
    assert needs("   pip install 'localparity[data]'  # and `localparity[train]` later\n") == (("data",), ())
    assert needs("Skops would take ``pip install 'localparity[skops]'``.\n") == ((), ())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def environments() -> dict[object, Path]:
    """The Python of each environment made so far."""
    return {}


def run(*command: object, cwd: Path, **environment: str) -> None:
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(path, id=name)
        for path in all_pages()
        for name in [str(path.relative_to(DOCS))]
        if has_examples(path) and not name.startswith("contributing")
    ],
)
def test_what_a_page_says_to_install_is_enough(
    page: Path,
    wheel: Path,
    environments: dict[object, Path],
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
) -> None:
    text = page.read_text(encoding="utf-8")
    if "pyspark" in text and shutil.which("java") is None:
        pytest.skip("java is not installed")
    if missing := missing_download(page):
        pytest.skip(f"LOCALPARITY_DATA has no {missing}")
    extras, others = needs(text)
    if (extras, others) not in environments:
        folder = tmp_path_factory.mktemp("fresh")
        run(sys.executable, "-m", "venv", folder, cwd=ROOT)
        python = folder / COMMANDS / "python"
        package = f"{wheel}[{','.join(extras)}]" if extras else wheel
        run(python, "-m", "pip", "install", *QUIETLY, package, *others, cwd=ROOT)
        environments[extras, others] = python
    script = ROOT / "tests" / "support" / "pages.py"
    known = {"MPLBACKEND": "agg", "MLFLOW_DISABLE_TELEMETRY": "true", "PYTHONPATH": ""}
    run(environments[extras, others], script, page, cwd=tmp_path, **known)
