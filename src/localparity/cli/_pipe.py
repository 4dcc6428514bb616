"""A standard output that outlives its reader: `localparity audit ... | head -1`."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Pipe(io.FileIO):
    """Writes to a pipe while somebody reads it, and to nowhere after that or after an error.

    `reports` says whether an error is raised, once: one of the standard error can be told nowhere.
    """

    def __init__(self, descriptor: int, *, reports: bool) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._reports, self._failed = reports, False

    def write(self, data: Any, /) -> int:
        """Write, or count as written what nobody reads."""
        if not self._failed:
            try:
                return super().write(data) or 0
            except OSError as error:
                self._failed = True
                if self._reports and not reader_has_gone(error):
                    raise OSError(f"the output cannot be written: {error.strerror}") from error
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
def outliving_its_reader(name: str) -> Iterator[None]:
    """Inside, sys.stdout or sys.stderr takes what is printed after its reader has gone.

    What a command still has to do, such as to write a page, and its exit code are then what they would be
    with a reader who stays. A terminal stays as it is, and so does what a test puts in its place.
    """
    printed = getattr(sys, name)
    try:
        piped = None if printed.isatty() else _Pipe(printed.fileno(), reports=name == "stdout")
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
        try:
            stream.flush()
        finally:
            setattr(sys, name, printed)
