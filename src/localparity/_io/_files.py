"""Files that are written whole or not at all, checksums, locks, and errors that name a damaged file."""

from __future__ import annotations

import atexit
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path, PurePosixPath
from tempfile import gettempdir, mkdtemp
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar
from uuid import uuid4

from localparity._validation import InputError, OutputExistsError

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

_PARSE_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError)
_SEAL = "sha256"
_PRIVATE = "localparity-"
_OWN: dict[int, tuple[str, BinaryIO]] = {}
"""The private folder of this process and its lock, by the number of the process."""
_MOST_STEPS = 100
"""The millions of steps of a query of SQLite's that is short, whatever it reads."""


def write_whole(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write to a temporary file and rename it, so that a file is never seen half-written.

    `durable` waits for the disk, so that a power failure leaves the old or the new file.
    """
    with replacing(path) as temporary, temporary.open("wb") as stream:
        stream.write(content)
        if durable:
            stream.flush()
            os.fsync(stream.fileno())
    if durable:
        _sync_folder(path.parent)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file to write to, which replaces `path` at the end, or is removed after an error.

    It is locked meanwhile: the next writer removes what a killed process left unlocked. Behind a link, the
    target is replaced; a device or a pipe is an OSError.
    """
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    if path.parent.is_file():
        raise NotADirectoryError(errno.ENOTDIR, f"{path.parent} is not a folder", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(path)
    temporary = path.parent / f".{path.name}.{uuid4().hex}"
    try:
        with _locked_new(temporary) as held:
            yield temporary
            if path.is_file():
                shutil.copymode(path, temporary)
            if sys.platform == "win32":
                held.close()
            temporary.replace(path)  # while it is locked
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remove_stale(path: Path) -> None:
    """Remove what killed writers of a file left beside it."""
    ours = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{32}")
    for other in path.parent.iterdir():
        if ours.fullmatch(other.name):
            with suppress(OSError):
                if sys.platform == "win32":
                    other.unlink()  # which is refused while it is open
                    continue
                with other.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    other.unlink()


def _locked_new(path: Path) -> BinaryIO:
    """A new file, locked as long as it is open; made again if a writer took it for stale before the lock."""
    while True:
        file = open(path, "xb", opener=partial(os.open, mode=_private_mode(path.parent)))  # noqa: SIM115
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                file.close()
                raise OSError(error.errno, f"it cannot be locked: {error.strerror}", str(path)) from error
        if path.exists():
            return file
        file.close()


def _private_mode(folder: Path) -> int:
    """The permissions of a new file in a folder.

    Scores are personal: the owner alone may read it, unless the folder shares files with a group (setgid).
    """
    return 0o660 if folder.stat().st_mode & stat.S_ISGID else 0o600


def _sync_folder(folder: Path) -> None:
    """Wait until a rename in a folder is on the disk, where the system can open folders."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, one process at a time, where the system can lock folders."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems lock files that are open to write, and no folders
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@cache
def private_folder() -> str:
    """The folder of this process for rows that must leave memory: its owner's alone, and removed at the end.

    What killed processes left is removed, too. Empty where no folder can be made.
    """
    try:
        _remove_stale_folders()
        hidden = Path(mkdtemp(prefix=f".{_PRIVATE}"))
        lock = _locked_new(hidden / "lock")  # before others take it for stale
        folder = hidden.rename(hidden.with_name(hidden.name.removeprefix(".")))
    except OSError:
        return ""
    _OWN[os.getpid()] = str(folder), lock
    return str(folder)


@atexit.register
def remove_private_folder() -> None:
    """Remove the private folder of this process; a child that it forked leaves it alone."""
    folder, lock = _OWN.pop(os.getpid(), (None, None))
    if folder is not None and lock is not None:
        _remove_folder(Path(folder))
        lock.close()


def _remove_stale_folders() -> None:
    """Remove the private folders whose processes are dead: they hold no lock."""
    if sys.platform == "win32":
        return
    for folder in Path(gettempdir()).glob(f"{_PRIVATE}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.lstat().st_uid != os.getuid():
                continue
            with (folder / "lock").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove_folder(folder)


def _remove_folder(folder: Path) -> None:
    """Remove a private folder, its lock last: whatever a kill leaves here, the next process finds."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != "lock":
                path.unlink()
        shutil.rmtree(folder, ignore_errors=True)


def limit_work(connection: sqlite3.Connection) -> None:
    """Trust nothing that a SQLite file defines, and end a query that takes more steps than its bytes explain.

    Pages that point at one another would make a small file endless.
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    ((size,),) = connection.execute("PRAGMA page_size").fetchall()
    batches = iter(range(_MOST_STEPS + pages * size // 1000))
    connection.set_progress_handler(lambda: next(batches, None) is None, 1_000_000)


DESCRIPTION_SIZE = 1 << 26
"""The most bytes of JSON that are read: what they describe takes up to thirty times as much memory."""


def read_regular(folder: Path, name: str, *, at_most: int = 1 << 32) -> bytes:
    """The content of a file below a folder; an OSError for a link, a pipe, a device or too many bytes.

    So what is read lies in the folder, and reading it ends.
    """
    path = folder
    for part in PurePosixPath(name).parts:
        path /= part
        if path.is_symlink():
            raise OSError(errno.ELOOP, "it is a link", str(path))
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if facts.st_size > at_most:
            reason = f"it has {facts.st_size:,} bytes, more than {at_most:,}"
            raise OSError(errno.EFBIG, reason, str(path))
        return file.read(facts.st_size)


def read_settled(path: Path, read: Callable[[bytes], T]) -> T:
    """What a reader makes of a file of JSON and those that it names; again where a writer replaced it."""
    content = read_regular(path.parent, path.name, at_most=DESCRIPTION_SIZE)
    try:
        return read(content)
    except (OSError, ValueError):
        if read_regular(path.parent, path.name, at_most=DESCRIPTION_SIZE) == content:
            raise
    return read_settled(path, read)


def sha256_of(content: bytes | Path) -> str:
    """The sha256 of bytes or of a file, in hexadecimal digits."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def parse_json(content: bytes) -> dict[str, Any]:
    """The object that JSON describes; anything else is a ValueError."""
    try:
        found = json.loads(content)
    except RecursionError as error:
        raise InputError("its JSON is nested too deeply") from error
    if not isinstance(found, dict):
        raise InputError(f"its JSON must be an object, got {type(found).__name__}")
    return found


def seal_json(described: dict[str, Any]) -> bytes:
    """JSON of an object with the sha256 of its values, which `parse_sealed` checks."""
    plain = json.loads(json.dumps({name: value for name, value in described.items() if name != _SEAL}))
    return json.dumps({**plain, _SEAL: _sha256_of_values(plain)}, indent=1, ensure_ascii=False).encode()


def parse_sealed(content: bytes) -> dict[str, Any]:
    """The object that `seal_json` wrote; an InputError if a value has changed.

    An object without a sha256 is taken as it is: earlier versions wrote none.
    """
    found = parse_json(content)
    seal = found.pop(_SEAL, None)
    if seal is not None and seal != _sha256_of_values(found):
        raise InputError("its values do not match their sha256")
    return found


def _sha256_of_values(plain: dict[str, Any]) -> str:
    return sha256_of(json.dumps(plain, sort_keys=True).encode())


def check_format(found: Any, known: int, name: str, *, advice: str) -> None:
    """Refuse a file of another format than the known one; `advice` is for older ones."""
    if type(found) is not int:
        raise InputError(f"is damaged: its format must be a whole number, got {found!r}", file=name)
    if found != known:
        newer = found > known
        author, advice = ("a newer localparity", "update it") if newer else ("localparity 0.1", advice)
        reason = f"was written by {author}, in format {found}; this version reads format {known}: {advice}"
        raise InputError(reason, file=name)


@contextmanager
def reading(name: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn errors in a file's content, also a parser's own `errors`, into an InputError that names it."""
    parse_errors: tuple[type[Exception], ...] = (*_PARSE_ERRORS, *errors)
    try:
        yield
    except KeyError as error:
        raise InputError(f"is damaged: {error} is missing", file=name) from error
    except parse_errors as error:
        if isinstance(error, InputError) and error.file == name:
            raise
        raise InputError(f"is damaged: {error}", file=name) from error


def write_new(path: Path, content: bytes, *, force: bool) -> None:
    """Write a whole file that does not exist yet, or overwrite one if `force`."""
    if path.exists() and not force:
        raise OutputExistsError(path)
    try:
        write_whole(path, content)
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror}") from error
