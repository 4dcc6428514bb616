"""Which tests reach which line, and how long each takes."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import accumulate, chain
from math import log
from pathlib import Path

import pytest

from mutation.mutants import Mutant, lines_of_statement
from processes import ROOT, WORK

TESTS = ("tests/counts", "tests/metrics", "tests/uncertainty")
EXAMPLES = ("src/localparity/counts", "src/localparity/metrics", "src/localparity/uncertainty")
SIGNATURES = "tests/test_public_names.py::test_they_are_those_that_were_agreed_on"
"""What holds the signatures, and with them what runs on import."""

KERNELS = ("_kernels.py",)
"""The files whose mutants are seen only with the compiler off; the tests of all others run with it on."""

BUDGET = 60.0
"""The most seconds of processor time of tests that a mutant is tried on: those that would take longest are left out."""

PYTEST = (
    *("-q", "--no-header", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-p", "no:unraisableexception", "-p", "no:threadexception"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


AHEAD = "duckdb hypothesis matplotlib.pyplot numba pandas scipy.ndimage scipy.stats sklearn.linear_model sklearn.model_selection"


def environment(*, compiled: bool) -> dict[str, str]:
    """What the tests run under: repeatable, on one thread, and with the compiler on or off."""
    return {
        "HYPOTHESIS_PROFILE": "mutants",
        "NUMBA_DISABLE_JIT": "0" if compiled else "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


@dataclass(frozen=True)
class Baseline:
    """What the tests do on the files as they are: seconds of processor time by test, and tests by file and line."""

    seconds: dict[str, float]
    reached: dict[str, dict[int, frozenset[str]]]

    def tests_of(self, mutant: Mutant, source: str) -> list[str]:
        """The tests that reach a mutant's statement, the quickest first."""
        lines = self.reached.get(mutant.file, {})
        statement = lines_of_statement(source, mutant.line)
        if statement is None:
            reaching = frozenset().union(*lines.values()) | {SIGNATURES}
        else:
            reaching = frozenset().union(*(lines.get(line, frozenset()) for line in statement))
        tests = sorted(reaching, key=self._order)
        ends = accumulate(self.seconds[test] for test in tests)
        return [test for test, end in zip(tests, ends, strict=True) if end <= BUDGET]

    def _order(self, test: str) -> tuple[int, str]:
        # By powers of four, so that noise in the times hardly changes which test comes first.
        return round(log(max(self.seconds[test], 0.01), 4)), test


@cache
def baseline(*, compiled: bool) -> Baseline:
    """Measured once for a state of the sources and the tests, and kept in a file."""
    WORK.mkdir(exist_ok=True)
    kept = WORK / f"baseline-{'compiled' if compiled else 'interpreted'}.json"
    state = state_of_tests()
    if not kept.exists() or json.loads(kept.read_text())["state"] != state:
        _measure(kept, compiled=compiled, state=state)
    measured = json.loads(kept.read_text())
    reached = {
        file: {int(line): frozenset(tests) for line, tests in lines.items()}
        for file, lines in measured["reached"].items()
    }
    return Baseline(measured["seconds"], reached)


@cache
def state_of_tests() -> str:
    """A digest of the package and of the tests in use."""
    tests = (
        (ROOT / "tests").glob("*.py"),
        (ROOT / "tests" / "support").glob("*.py"),
        *((ROOT / folder).rglob("*.py") for folder in TESTS),
    )
    digest = hashlib.sha256()
    for path in sorted({*(ROOT / "src").rglob("*.py"), *chain.from_iterable(tests)}):
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _measure(kept: Path, *, compiled: bool, state: str) -> None:
    data = WORK / f"coverage-{os.getpid()}"
    times = WORK / f"times-{os.getpid()}.json"
    marks = "not slow" if compiled else "not slow and not compiled"
    # With the compiler off, numbers keep numpy's types, which examples would show.
    tests = (*TESTS, *EXAMPLES, SIGNATURES) if compiled else (*TESTS, SIGNATURES)
    command = [
        *(sys.executable, "-m", "pytest", *PYTEST, "-m", marks, "-p", "mutation.selection", *tests),
        *(f"--cov={folder}" for folder in EXAMPLES),
        *("--cov-context=test", "--cov-report=", "--no-cov-on-fail"),
    ]
    settings = {
        **os.environ,
        **environment(compiled=compiled),
        "COVERAGE_FILE": str(data),
        "MUTATION_TIMES": str(times),
        "PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in ("tests", "tests/support", "src")),
    }
    subprocess.run(command, cwd=ROOT, env=settings, check=True)
    reached = _reached(data)
    whole = {"state": state, "seconds": json.loads(times.read_text()), "reached": reached}
    kept.with_suffix(".part").write_text(json.dumps(whole))
    kept.with_suffix(".part").replace(kept)
    data.unlink()
    times.unlink()


def _reached(data: Path) -> dict[str, dict[int, list[str]]]:
    from coverage import CoverageData

    reached: dict[str, dict[int, list[str]]] = {}
    recorded = CoverageData(str(data))
    recorded.read()
    for file in recorded.measured_files():
        lines: dict[int, set[str]] = defaultdict(set)
        for line, contexts in recorded.contexts_by_lineno(file).items():
            lines[line] |= {context.rpartition("|")[0] for context in contexts if context}
        reached[str(Path(file).relative_to(ROOT))] = {
            line: sorted(tests) for line, tests in lines.items() if tests
        }
    return reached


_seconds: dict[str, float] = {}


@pytest.hookimpl
def pytest_runtest_logstart(nodeid: str) -> None:
    """Measure each test's seconds of processor time, whatever else the machine does, where this is a plugin of pytest."""
    _seconds[nodeid] = -time.process_time()


@pytest.hookimpl
def pytest_runtest_logfinish(nodeid: str) -> None:
    """The test has ended."""
    _seconds[nodeid] += time.process_time()


@pytest.hookimpl
def pytest_sessionfinish() -> None:
    """Write down how long each test took."""
    Path(os.environ["MUTATION_TIMES"]).write_text(json.dumps(_seconds))


def load_ahead() -> None:
    """What tests import beside the package, so that it is there before each fork."""
    for name in AHEAD.split():
        import_module(name)
    import_module("numba").njit(lambda number: number)(1.0)
    gc.collect()
    gc.freeze()
