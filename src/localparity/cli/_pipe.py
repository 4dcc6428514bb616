"""A standard output that outlives its reader: `localparity audit ... | head -1`."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Pipe(io.FileIO):
    """Writes to a pipe while somebody reads it, and to nowhere after that."""

    def write(self, data: Any, /) -> int:
        """Write, or count as written what nobody reads."""
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return memoryview(data).nbytes


@contextmanager
def outliving_its_reader() -> Iterator[None]:
    """Inside, the standard output and error take what is printed after their reader has gone.

    What a command still has to do, such as to write a page, and its exit code are then what they would be
    with a reader who stays. A terminal stays as it is, and so does what a test puts in its place.
    """
    with _outliving("stdout"), _outliving("stderr"):
        yield


@contextmanager
def _outliving(name: str) -> Iterator[None]:
    printed = getattr(sys, name)
    try:
        piped = None if printed.isatty() else _Pipe(printed.fileno(), "wb", closefd=False)
    except (AttributeError, OSError, ValueError):
        piped = None
    if piped is None:
        yield
        return
    printed.flush()
    stream = io.TextIOWrapper(
        io.BufferedWriter(piped), encoding=printed.encoding, errors=printed.errors, line_buffering=True
    )
    setattr(sys, name, stream)
    try:
        yield
    finally:
        stream.flush()
        setattr(sys, name, printed)
