"""Files that are written whole or not at all, and what is said of those that are damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

_BREAKS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError)


def write_whole(path: Path, content: bytes, *, lasting: bool = False) -> None:
    """Write under a temporary name and rename, so that nothing half-written ever has the file's name.

    `lasting` waits until the disk has it, so that a machine that stops has the new file or the old.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new" / "file"
    >>> write_whole(path, b"all of it")
    >>> path.read_bytes()
    b'all of it'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        # Made as any new file is, so that whoever may read the folder's other files may read this one.
        with temporary.open("xb") as stream:
            stream.write(content)
            if lasting:
                stream.flush()
                os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if lasting:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def parse_json(content: bytes) -> dict[str, Any]:
    """The object that JSON describes; anything else is a ValueError.

    Examples
    --------
    >>> parse_json(b'{"format": 1}')
    {'format': 1}
    """
    try:
        found = json.loads(content)
    except RecursionError as error:
        raise ValueError("JSON that is nested too deep") from error
    if not isinstance(found, dict):
        raise ValueError(f"JSON of a {type(found).__name__} where an object is expected")
    return found


@contextmanager
def damage_of(name: str, *others: type[Exception]) -> Iterator[None]:
    """Turn what breaks on a file's content into a ValueError that names the file.

    `others` are errors that the reader of the content has of its own.

    Examples
    --------
    >>> with damage_of("model.json"):
    ...     parse_json(b"{}")["format"]
    Traceback (most recent call last):
    ValueError: model.json is damaged: 'format' is missing
    """
    breaks: tuple[type[Exception], ...] = (*_BREAKS, *others)
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{name} is damaged: {error} is missing") from error
    except breaks as error:
        if isinstance(error, ValueError) and str(error).startswith(f"{name} "):
            raise
        raise ValueError(f"{name} is damaged: {error}") from error
