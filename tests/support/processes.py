"""The runner of the programs that try thousands of cases: children with limits, and a journal of what is done.

A child is a fork of a process that has everything imported, so that a case takes a moment. Its output goes to a file, what it
returns comes back as JSON, and one that hangs is ended by a signal.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".trials"
"""Where the programs keep what a run that was stopped has done."""

HANG = 300
BROKEN = 70
"""The exit code of a child whose function raised an exception."""

T = TypeVar("T")


@dataclass(frozen=True)
class Ended:
    """How a child ended: exit code or minus the signal, output, returned value, seconds of processor time."""

    code: int
    said: str
    value: Any = None
    seconds: float = 0.0


def fork(
    act: Callable[[], Any], said: Path, *, kill_after: float | None = None, seconds: int = HANG
) -> Ended:
    """Call a function in a child, which is killed after a time, or when it hangs."""
    child = _start(act, said, seconds)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return _end(child, said)


def fork_each(
    items: Iterable[T], act: Callable[[T], Any], folder: Path, *, jobs: int, seconds: int = HANG
) -> Iterator[tuple[T, Ended]]:
    """Call a function for each item in a child, some at a time; yield each as it ends."""
    waiting, running = enumerate(items), dict[int, tuple[T, Path]]()
    while True:
        while len(running) < jobs and (following := next(waiting, None)) is not None:
            number, item = following
            said = folder / f"{number}.txt"
            running[_start(lambda item=item: act(item), said, seconds)] = item, said  # type: ignore[misc]
        if not running:
            return
        child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid  # type: ignore[union-attr]
        item, said = running.pop(child)
        yield item, _end(child, said)
        said.unlink()


def _start(act: Callable[[], Any], said: Path, seconds: int) -> int:
    value = said.with_suffix(".json")
    value.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        _act(act, said, value, seconds)
    return child


def _end(child: int, said: Path) -> Ended:
    _, status, used = os.wait4(child, 0)
    value = said.with_suffix(".json")
    returned = json.loads(value.read_bytes()) if value.exists() else None
    value.unlink(missing_ok=True)
    output = said.read_text(errors="replace") if said.exists() else ""
    code = os.waitstatus_to_exitcode(status)
    return Ended(code, output, returned, round(used.ru_utime + used.ru_stime, 2))


def _act(act: Callable[[], Any], said: Path, value: Path, seconds: int) -> None:
    """What a child does: it never returns."""
    code = BROKEN
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background ignores
        write_to(said)
        returned = act()
        whole = value.with_suffix(".whole")
        whole.write_text(json.dumps(returned))
        whole.rename(value)  # a child that is killed leaves no value, or a whole one
        code = returned if isinstance(returned, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def write_to(path: Path) -> None:
    """Send the output and the errors of this process to a file; there is no input."""
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, target in enumerate((nothing, output, output)):
        os.dup2(target, stream)
    os.close(output)
    os.close(nothing)


def import_what_it_needs(act: Callable[[], Any], said: Path) -> Ended:
    """Call a function in a child, and import here what it imported there."""
    ended = fork(lambda: [act(), sorted(sys.modules)], said)
    if ended.value is None:
        return ended
    returned, modules = ended.value
    for name in modules:
        if name not in sys.modules:
            with suppress(Exception):
                importlib.import_module(name)
    return Ended(returned if isinstance(returned, int) else 0, ended.said, returned)


def type_command(words: list[str], arm: Callable[[], None] | None = None) -> int:
    """Run a command of localparity in this process; the exit code."""
    from localparity.cli import main

    sys.argv = ["localparity", *words]
    if arm is not None:
        arm()
    try:
        main()
    except SystemExit as left:
        return int(left.code or 0)
    raise AssertionError("main returned")


class CommandLine:
    """Two folders, `in` and `out`, and commands that name them {in} and {out}."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inputs, self.out, self.said = folder / "in", folder / "out", folder / "said.txt"
        self.out.mkdir()

    def words(self, text: str | list[str]) -> list[str]:
        """A command with the folders in it."""
        words = text.split() if isinstance(text, str) else text
        return [word.replace("{in}", str(self.inputs)).replace("{out}", str(self.out)) for word in words]

    def type_well(self, text: str) -> None:
        """Run a command that must succeed, and import here what it needs."""
        ended = import_what_it_needs(lambda: type_command(self.words(text)), self.said)
        if ended.code not in (0, 1):
            raise RuntimeError(f"{text}: {ended}")


class Journal:
    """What became of each case, a line each: a run that is stopped goes on there, and the last word counts."""

    def __init__(self, name: str, *, fresh: bool = False) -> None:
        WORK.mkdir(exist_ok=True)
        self._path = WORK / f"{name}.jsonl"
        if fresh:
            self._path.unlink(missing_ok=True)

    def known(self) -> dict[str, dict[str, Any]]:
        """The outcome of each case, by its key."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        return {row["key"]: row for row in rows}

    def add(self, key: str, **outcome: Any) -> None:
        """Write down what became of a case."""
        with self._path.open("a") as file:
            file.write(json.dumps({"key": key, **outcome}) + "\n")


def memory_folder() -> Path | None:
    """A folder in memory, where syncing takes no time."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else None
