"""The commands and the one door through which their errors leave."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from importlib import import_module
from importlib.machinery import PathFinder
from inspect import getdoc
from os import _exit as end_now
from types import CodeType, FunctionType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import localparity
from localparity._io._files import remove_private_folder
from localparity.cli._commands import Commands, note

# Ctrl-C, SIGTERM and SIGHUP end a command within a second, also inside a library that takes them for an error
# or is busy, and nothing temporary is left behind.


_SIGNALS = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))]
_DEFAULTS = (signal.default_int_handler, signal.SIG_DFL)
_PATIENCE = 1.0


class SignalledError(KeyboardInterrupt):
    """Raised where a signal that ends a command has come; its argument is the number."""


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Inside, a signal is a SignalledError whatever becomes of it: libraries raise other errors, or none.

    Where the main thread does not come back from a library in time, the process ends as after a kill; what
    it was writing is still either the old file or the new one, whole.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    # Others are ignored, as by nohup and in the background of a shell.
    heeded = {number: handler for number, handler in before.items() if handler in _DEFAULTS}
    if threading.current_thread() is not threading.main_thread() or not heeded:
        yield
        return
    seen, done = list[int](), threading.Event()

    def interrupt(number: int, _: Any) -> None:
        seen.append(number)
        raise SignalledError(number)

    heard, told = os.pipe()
    os.set_blocking(told, False)
    woken = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    watch = threading.Thread(target=_stop_in_time, args=(heard, done, set(heeded)), daemon=True)
    watch.start()
    for number in heeded:
        signal.signal(number, interrupt)
    try:
        yield
    except BaseException as error:
        if seen and not isinstance(error, SignalledError):
            raise SignalledError(seen[0]) from error
        raise
    finally:
        done.set()
        for number, handler in heeded.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        os.close(told)
        watch.join()
    if seen:
        raise SignalledError(seen[0])


def _stop_in_time(heard: int, done: threading.Event, heeded: set[int]) -> None:
    """Wait for a signal, then for the end of the command; end the process if that does not come."""
    while signals := os.read(heard, 1):
        if signals[0] in heeded and not done.wait(_PATIENCE):
            os.write(2, b"interrupted\n")
            remove_private_folder()
            end_now(128 + signals[0])
    os.close(heard)


def _end_by(number: int) -> NoReturn:
    """End as a signal ends a process, after what Python does at its end; Ctrl-C gives an exit code."""
    if number != signal.SIGINT:
        remove_private_folder()
        sys.stdout.flush()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(128 + number)


# A standard output that outlives its reader: `localparity audit ... | head -1`.


class _Pipe(io.FileIO):
    """Writes to a pipe while somebody reads it, and to nowhere after an error, raised where it `reports`."""

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
    """Whether a failed write means that nobody reads the pipe; Windows has another number for it.

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


# All commands: each is imported when it is called, and help on all of them imports none.


_NAMES = (
    "audit", "compare", "demo", "explain", "fetch", "monitor", "plan", "train", "repair", "predict",
    "reproduce", "verify",
)  # fmt: skip
_HOMES = {"fetch": "demo"}
"""Commands that stand in another command's module."""


class Group(TyperGroup):
    """The commands, each a function or an application in the module of its name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "commands": _Imported()})

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with what each command says of itself read rather than run."""
        listed = copy(self)
        listed.commands = {name: TyperCommand(name, help=_docstring(name)) for name in _NAMES}
        super(Group, listed).format_help(ctx, formatter)


class _Imported(Mapping[str, Any]):
    """The commands by their names, imported when they are asked for."""

    def __getitem__(self, name: str) -> Any:
        if name not in _NAMES:
            raise KeyError(name)
        module = import_module(f"{__package__}.{_HOMES.get(name, name)}")
        app = getattr(module, "app", None)
        if app is None:
            app = Commands(add_completion=False)
            app.command()(getattr(module, name))
        return typer.main.get_command(app)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


def _docstring(name: str) -> str | None:
    """The docstring of a command's function, from the code of its module."""
    # Not the hook of a host such as pytest, whose loader has no code to read.
    home = f"{__package__}.{_HOMES.get(name, name)}"
    spec: Any = PathFinder.find_spec(home, import_module(str(__package__)).__path__)
    parts = spec.loader.get_code(spec.name).co_consts
    (code,) = (part for part in parts if isinstance(part, CodeType) and part.co_name == name)
    return getdoc(FunctionType(code, {}))


# Click's own class, which some versions of typer carry inside and none exports.
_UsageError: Any = typer.BadParameter.__base__
_DUCKDB_OUT_OF_MEMORY = "OutOfMemoryException"
"""The name of DuckDB's error, so that it need not be imported."""
_NO_THREAD = "can't start new thread"
"""What Python says where the system refuses one, in a RuntimeError like any other."""

app = Commands(
    name="localparity",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"localparity {localparity.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Where two groups are treated most differently by a model's scores, and how sure that is."""


def main() -> None:
    """Run the command; wrong usage or input is one line on the standard error and exit code 2."""
    with outliving_its_reader("stderr"):
        _run()


def _run() -> NoReturn:
    try:
        with heeding_interrupts(), outliving_its_reader("stdout"):
            code = app(standalone_mode=False)
    except _UsageError as error:
        _fail(_plain_usage(error.format_message()))
    except (ValueError, ImportError, OSError) as error:
        _fail(str(error))
    except (typer.Abort, KeyboardInterrupt) as error:
        typer.echo("interrupted", err=True)
        _end_by(error.args[0] if isinstance(error, SignalledError) else signal.SIGINT)
    except Exception as error:
        if isinstance(error, MemoryError) or type(error).__name__ == _DUCKDB_OUT_OF_MEMORY:
            _fail("there is not enough memory")
        if str(error) == _NO_THREAD:
            _fail("no thread can be started: there is too little memory, or there are too many processes")
        # Exit code 1 means "above the bound", so nothing else may end with it.
        _fail(f"this should not have happened, please report it: {type(error).__name__}: {error}", code=3)
    sys.exit(code if isinstance(code, int) else 0)


def _plain_usage(message: str) -> str:
    """A message about an option in the words of all others, whatever version of typer wrote it.

    Examples
    --------
    >>> _plain_usage("Invalid value for '--jobs': Input should be a valid integer, unable to parse string")
    "Invalid value for '--jobs': must be a valid integer"
    """
    message = re.sub(r", unable to parse .*", "", message.replace("Value error, ", ""))
    return message.replace("Input should be ", "must be ").replace(" Input should have ", " must have ")


def _fail(message: str, *, code: int = 2) -> NoReturn:
    if message:  # a call without arguments has printed its help and says nothing more
        note("error: " + " ".join(message.split()))
    sys.exit(code)
