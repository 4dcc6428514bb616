"""Children of a process that has everything imported, so that a command takes a moment, with a fault at a step."""

from __future__ import annotations

import ctypes
import errno
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PRELOAD = Path(__file__).with_name("preload.c")
HANG = 300
_TEN_YEARS = 10 * 365 * 86_400
_LITTLE_MEMORY = 64 * 2**20


@dataclass(frozen=True)
class Fault:
    """What happens at a step: a kind of the preload library, and the number of the error."""

    name: str
    kind: int
    error: int = 0
    writes_only: bool = False
    killed: bool = False


COUNT = Fault("none", 0)
READ_ONLY = Fault("read-only folder", 2, errno.EROFS)
FAULTS = (
    Fault("EIO", 1, errno.EIO),
    Fault("ENOSPC", 1, errno.ENOSPC),
    Fault("EDQUOT", 1, errno.EDQUOT),
    Fault("full from here", 2, errno.ENOSPC),
    Fault("short write", 3, writes_only=True),
    Fault("killed before", 4, killed=True),
    Fault("killed after", 5, killed=True),
    Fault("killed inside", 6, writes_only=True, killed=True),
    Fault("interrupted", 7),
)


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code, minus the signal that killed it, and what it said."""

    code: int
    said: str
    value: Any = None


def compile_preload(folder: Path) -> Path:
    """The preload library, compiled."""
    library = folder / "preload.so"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(PRELOAD), "-ldl"]
    subprocess.run(command, check=True)
    return library


def import_what_it_needs(act: Callable[[], Any], said: Path) -> Ended:
    """Call a function in a child, and import here what it imported there."""

    def watched() -> list[Any]:
        found = act()
        return [found, sorted(sys.modules)]

    ended = fork(watched, said)
    if ended.value is None:
        return ended
    found, modules = ended.value
    for name in modules:
        if name not in sys.modules:
            with suppress(Exception):
                importlib.import_module(name)
    return Ended(found if isinstance(found, int) else 0, ended.said, found)


def fork(
    act: Callable[[], Any], said: Path, *, kill_after: float | None = None, seconds: int = HANG
) -> Ended:
    """Call a function in a child, which is killed after a time or when it hangs; what it gives is JSON."""
    value = said.with_suffix(".json")
    value.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        _act(act, said, value, seconds)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = json.loads(value.read_bytes()) if value.exists() else None
    return Ended(code, said.read_text(errors="replace"), found)


def _act(act: Callable[[], Any], said: Path, value: Path, seconds: int) -> None:
    """What a child does: it never returns."""
    code = 70
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background ignores
        told = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(told, stream)
        found = act()
        whole = value.with_suffix(".whole")
        whole.write_text(json.dumps(found))
        whole.rename(value)  # a child that is killed leaves none or a whole one
        code = found if isinstance(found, int) else 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def type_command(words: list[str], arm: Callable[[], None] | None = None) -> int:
    """Run a command in this process, as `fork` does in a child; the exit code."""
    from localparity.cli import main

    sys.argv = ["localparity", *words]
    if arm is not None:
        arm()
    try:
        main()
    except SystemExit as left:
        return int(left.code or 0)
    raise AssertionError("main returned")


def armed(library: Path, folder: Path, step: int, fault: Fault) -> Callable[[], None]:
    """What arms the preload library below a folder."""
    loaded = ctypes.CDLL(str(library))
    return lambda: loaded.faulty_arm(str(folder).encode(), ctypes.c_long(step), fault.kind, fault.error)


def conditions(library: Path) -> dict[str, Callable[[], None]]:
    """What else may be wrong with a machine, by name, and what brings it about in a child."""
    loaded = ctypes.CDLL(str(library))

    def little_memory() -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + _LITTLE_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return {
        "64 open files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
        "little memory": little_memory,
        "a clock that went back": lambda: loaded.faulty_clock(ctypes.c_long(-_TEN_YEARS)),
    }


def steps_taken(library: Path) -> list[str]:
    """The changes that were counted since the library was armed."""
    loaded = ctypes.CDLL(str(library))
    loaded.faulty_steps.restype = ctypes.c_char_p
    found: bytes = loaded.faulty_steps()
    return found.decode().split()


def renew(folder: Path, template: Path) -> None:
    """Make a folder what its template is."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(template, folder)
