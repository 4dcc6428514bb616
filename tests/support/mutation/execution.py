"""A mutant is tried in a fork that loads the package with it in place of the file, and runs its tests."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from mutation.mutants import Mutant
from mutation.selection import PYTEST
from processes import ROOT, Ended, fork_each

_MEMORY = 8 * 2**30
_LATE = (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL)


class Outcome(NamedTuple):
    """`killed` by a test, by the `time` it took, by a `crash`, or `survived`; in seconds of processor time."""

    result: str
    by: str
    seconds: float = 0.0


class Trial(NamedTuple):
    """A mutant, and the tests that reach it with the seconds that each takes of the file as it is."""

    mutant: Mutant
    tests: dict[str, float]


def outcomes(trials: Sequence[Trial], jobs: int) -> Iterator[tuple[Mutant, Outcome]]:
    """Try mutants, some at a time, and give each when it is done.

    What has killed a mutant of the same function before is tried first.
    """
    killers: defaultdict[str, list[str]] = defaultdict(list)
    for trial in trials:
        if not trial.tests:
            yield trial.mutant, Outcome("survived", "no test reaches it")

    def act(trial: Trial) -> list[Any]:
        likely = killers[trial.mutant.function][-3:] or killers["any"][-1:]
        return _try(trial, [test for test in reversed(likely) if test in trial.tests])

    reached = [trial for trial in trials if trial.tests]
    with tempfile.TemporaryDirectory() as folder:
        # A process that waits for ever takes no processor time: the alarm ends it.
        for trial, ended in fork_each(reached, act, Path(folder), jobs=jobs, seconds=900):
            outcome = _outcome(ended)
            if "::" in outcome.by:
                for function in (trial.mutant.function, "any"):
                    others = [test for test in killers[function] if test != outcome.by]
                    killers[function] = [*others, outcome.by]
            yield trial.mutant, outcome


def _outcome(ended: Ended) -> Outcome:
    if ended.code < 0:
        ending = signal.Signals(-ended.code)
        return Outcome("time" if ending in _LATE else "crash", ending.name, ended.seconds)
    if ended.value is None:
        raise RuntimeError(f"a mutant could not be tried: {ended.said}")
    code, by = ended.value
    if code == pytest.ExitCode.OK:
        return Outcome("survived", "", ended.seconds)
    if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
        return Outcome("killed", by or "import", ended.seconds)
    raise RuntimeError(f"pytest has run no tests: {pytest.ExitCode(code)!r}")


def _try(trial: Trial, likely: list[str]) -> list[Any]:
    """Run the tests that are likely to fail, and then all others, up to the first that does; how it ended, and by what."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    _allow(30.0)
    os.chdir(ROOT)
    sys.meta_path.insert(0, _Mutated(trial.mutant))
    for tests in (likely, [test for test in trial.tests if test not in likely]):
        if tests:
            files = dict.fromkeys(test.split("::")[0] for test in tests)
            chosen = _Chosen({test: trial.tests[test] for test in tests})
            code = int(pytest.main([*PYTEST, "-x", *files], plugins=[chosen]))
            if code:
                return [code, chosen.failed]
    return [0, ""]


def _allow(seconds: float) -> None:
    """End the process after so many more seconds of processor time."""
    limit = int(time.process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


class _Mutated(MetaPathFinder, Loader):
    """Finds the mutant where Python looks for its file."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._name = mutant.file.removeprefix("src/").removesuffix(".py").replace("/", ".")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        return spec_from_file_location(name, ROOT / self._mutant.file, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._mutant.source, str(ROOT / self._mutant.file), "exec"), module.__dict__)


class _Chosen:
    """Runs some of the tests, in their order, and knows the first that fails."""

    def __init__(self, tests: dict[str, float]) -> None:
        self._seconds = tests
        self._order = {test: number for number, test in enumerate(tests)}
        self.failed = ""

    @pytest.hookimpl
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        _allow(5.0 + 3.0 * self._seconds[nodeid])

    @pytest.hookimpl
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._order]
        items[:] = sorted(chosen, key=lambda item: self._order[item.nodeid])

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid
