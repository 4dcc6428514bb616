"""What may go wrong with a machine while a command runs: a step that fails, little memory, a clock that went back."""

from __future__ import annotations

import ctypes
import errno
import resource
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PRELOAD = Path(__file__).with_name("preload.c")
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


def compile_preload(folder: Path) -> Path:
    """The preload library, compiled."""
    library = folder / "preload.so"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(PRELOAD), "-ldl"]
    subprocess.run(command, check=True)
    return library


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
    steps: bytes = loaded.faulty_steps()
    return steps.decode().split()
