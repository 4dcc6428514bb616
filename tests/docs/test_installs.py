"""What a page says to install is enough for its examples."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conftest import OPTIONAL

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *(
        DOCS / "integrations" / f"{name}.rst"
        for name in ("data", "optuna", "pytest", "scikit_learn")
    ),
    DOCS / "index.rst",
    DOCS / "start" / "audit_a_file.rst",
]

RUN = """
import sys
from pathlib import Path

class Absent:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent)
from pages import run_page
run_page(Path({page!r}), Path.cwd())
"""


def installed(page: str) -> set[str]:
    """The distributions that a page's `pip install` lines bring, with all that these need."""
    lines = re.findall(r"pip install ([^`#\n]*localparity[^`#\n]*)", page)
    found: set[tuple[str, str]] = set()
    for line in lines:
        for word in shlex.split(line):
            found.update(needed(Requirement(word), found))
    return {name for name, _ in found}


def needed(wanted: Requirement, known: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """A requirement and all that it needs, each by its name and an extra, and not what is known already."""
    for extra in ("", *wanted.extras):
        key = (canonicalize_name(wanted.name), extra)
        if key in known:
            continue
        known.add(key)
        yield key
        try:
            parts = [Requirement(each) for each in requires(wanted.name) or ()]
        except PackageNotFoundError:
            continue
        for part in parts:
            if part.marker is None or part.marker.evaluate({"extra": extra}):
                yield from needed(part, known)


def test_what_a_line_brings() -> None:
    found = installed("pip install 'localparity[report]' polars   # and more\n")
    assert {"localparity", "numpy", "matplotlib", "jinja2", "polars"} <= found
    assert not {"torch", "pandas", "pyarrow"} & found


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(path, id=path.name) for path in PAGES],
)
def test_what_a_page_says_to_install_is_enough(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    brought, owners = installed(text), packages_distributions()
    absent = [
        name for name in OPTIONAL if not brought & {canonicalize_name(each) for each in owners.get(name, [])}
    ]
    code = RUN.format(absent=absent, page=str(page))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "tests" / "support"),
            "MPLBACKEND": "agg",
            "HF_HUB_OFFLINE": "1",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"without {', '.join(absent)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
