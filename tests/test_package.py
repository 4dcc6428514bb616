"""The package as a whole: light to import, its names all there."""

from __future__ import annotations

import subprocess
import sys
from typing import get_origin

import pytest

import localparity as lp
from conftest import OPTIONAL

HEAVY = (
    "torch",
    "numba",
    "sklearn",
    "scipy.stats",
    "matplotlib",
    "jinja2",
    "duckdb",
    "pandas",
    "polars",
    "pyspark",
    "xgboost",
    "lightgbm",
)


def run_python(code: str) -> str:
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return found.stdout.strip()


LATE = ("losses", "models", "load", "paper")
"""The names that bring torch or scikit-learn."""

USE = f"""
import localparity as lp
for name in lp.__all__:
    if name not in {LATE!r}:
        getattr(lp, name)
"""


def test_importing_it_imports_nothing_heavy() -> None:
    heavy = ("numpy", *HEAVY)
    code = f"import sys, localparity; print([name for name in {heavy!r} if name in sys.modules])"
    assert run_python(code) == "[]"


def test_its_names_import_nothing_heavy() -> None:
    code = f"import sys\n{USE}\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    assert run_python(code) == "[]"


def test_its_names_import_few_modules() -> None:
    # Counted; `make bench` measures how long the import takes.
    modules = f"import sys, numpy\nbefore = set(sys.modules)\n{USE}\nmodules = set(sys.modules) - before\n"
    assert int(run_python(f"{modules}print(len(modules))")) < 330
    packages = "{name.partition('.')[0] for name in modules} - set(sys.stdlib_module_names)"
    assert run_python(f"{modules}print(sorted(name for name in {packages} if 'cython' not in name))") == (
        "['localparity', 'numpy']"
    )


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match=r"'localparity' has no attribute 'mcpd'"):
        lp.mcpd  # noqa: B018
    assert set(lp.__all__) <= set(dir(lp))


def test_a_source_tree_that_is_not_installed_can_be_imported() -> None:
    code = """
import importlib.metadata

def not_installed(name):
    raise importlib.metadata.PackageNotFoundError(name)

importlib.metadata.version = not_installed
import localparity
print(localparity.__version__)
"""
    assert run_python(code) == "0+unknown"


def test_an_audit_needs_no_extra() -> None:
    code = f"""
import sys
from typing import get_origin

sys.modules.update(dict.fromkeys({OPTIONAL!r}))  # None: cannot be imported
import localparity as lp
audit = lp.audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], n_resamples=50)
print(audit.finding(0.0).mcdp)
"""
    assert run_python(code) == "1.0"


@pytest.mark.parametrize("name", lp.__all__)
def test_every_public_name_is_there_and_told_of(name: str) -> None:
    if name == "losses":
        pytest.importorskip("torch")
    found = getattr(lp, name)
    # A type alias is told of in the reference.
    assert found.__doc__ or get_origin(found)
