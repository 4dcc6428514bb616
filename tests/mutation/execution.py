"""A mutant is tried in a fork that loads the package with it in place of the file, and runs its tests."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from mutation.mutants import Mutant
from mutation.selection import PYTEST, ROOT

_MEMORY = 8 * 2**30


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
    waiting = list(reversed(trials))
    running: dict[int, tuple[Mutant, int]] = {}
    killers: defaultdict[str, list[str]] = defaultdict(list)
    while waiting or running:
        while waiting and len(running) < jobs:
            trial = waiting.pop()
            if trial.tests:
                likely = killers[trial.mutant.function][-3:] or killers["any"][-1:]
                child, told = _start(trial, [test for test in reversed(likely) if test in trial.tests])
                running[child] = trial.mutant, told
            else:
                yield trial.mutant, Outcome("survived", "no test reaches it")
        if running:
            child, status, used = os.wait4(-1, 0)
            mutant, told = running.pop(child)
            with os.fdopen(told) as file:
                outcome = _outcome(status, file.read())
            if "::" in outcome.by:
                for function in (mutant.function, "any"):
                    killers[function] = [
                        *(each for each in killers[function] if each != outcome.by),
                        outcome.by,
                    ]
            yield mutant, outcome._replace(seconds=round(used.ru_utime + used.ru_stime, 2))


def _outcome(status: int, by: str) -> Outcome:
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL)
        return Outcome("time" if late else "crash", signal.Signals(os.WTERMSIG(status)).name)
    code = os.WEXITSTATUS(status)
    if code == pytest.ExitCode.OK:
        return Outcome("survived", "")
    if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
        return Outcome("killed", by or "import")
    raise RuntimeError(f"pytest has run no tests: {pytest.ExitCode(code)!r}")


def _start(trial: Trial, likely: list[str]) -> tuple[int, int]:
    """A process that tries a mutant, and where it tells which test failed."""
    told, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        return child, told
    code = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        os.close(told)
        code = _try(trial, likely, tell)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _try(trial: Trial, likely: list[str], tell: int) -> int:
    """The tests that are likely to fail, and then all others; up to the first that does."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    _allow(30.0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(900)  # for a process that waits for ever and takes no processor time
    os.chdir(ROOT)
    sys.meta_path.insert(0, _Mutated(trial.mutant))
    code = 0
    for tests in (likely, [test for test in trial.tests if test not in likely]):
        if tests and not code:
            files = dict.fromkeys(test.split("::")[0] for test in tests)
            chosen = _Chosen({test: trial.tests[test] for test in tests}, tell)
            code = int(pytest.main([*PYTEST, "-x", *files], plugins=[chosen]))
    return code


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
    """Runs some of the tests, in their order, and tells of the first that fails."""

    def __init__(self, tests: dict[str, float], tell: int) -> None:
        self._seconds = tests
        self._place = {test: place for place, test in enumerate(tests)}
        self._tell = tell

    @pytest.hookimpl
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        _allow(5.0 + 3.0 * self._seconds[nodeid])

    @pytest.hookimpl
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._place]
        items[:] = sorted(chosen, key=lambda item: self._place[item.nodeid])

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self._tell, report.nodeid.encode())
