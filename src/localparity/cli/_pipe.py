"""A standard output that outlives its reader: `localparity audit ... | head -1`."""

from __future__ import annotations

import errno
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
        except OSError as error:
            if not reader_has_gone(error):
                raise
            return memoryview(data).nbytes


def reader_has_gone(error: OSError) -> bool:
    """Whether a failed write means that nobody reads the pipe; Windows has a number of its own for it.

    Examples
    --------
    >>> reader_has_gone(BrokenPipeError(errno.EPIPE, "")), reader_has_gone(OSError(errno.ENOSPC, ""))
    (True, False)
    """
    return error.errno in (errno.EPIPE, errno.EINVAL)


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
    # Where the encoding is not UTF-8, as on Windows, a name that it lacks is printed escaped.
    errors = "backslashreplace" if printed.errors == "strict" else printed.errors
    stream = io.TextIOWrapper(
        io.BufferedWriter(piped), encoding=printed.encoding, errors=errors, line_buffering=True
    )
    setattr(sys, name, stream)
    try:
        yield
    finally:
        stream.flush()
        setattr(sys, name, printed)
