"""Ctrl-C, SIGTERM and SIGHUP end a command wherever they come, and nothing temporary is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from localparity._io._files import _remove_folder
from localparity.cli._app import heeding_interrupts

# As in the foreground: tests may run in the background of a shell, where Ctrl-C is ignored, or after nohup.
COMMAND = """
import hashlib, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from localparity.cli import _app

def wait():
    print("busy", flush=True)
    time.sleep(600)

def busy(**options):
    {body}

_app.app = busy
_app.main()
"""
BODIES = {
    "python": "wait()",
    "an error of a library": """
    try:
        wait()
    except KeyboardInterrupt:
        raise RuntimeError("Query interrupted")""",
    "swallowed": """
    try:
        wait()
    except KeyboardInterrupt:
        print("a traceback")""",
    # The other thread goes on when this one is in the library, which gives up the interpreter's lock.
    "a library that does not come back": """
    inside = threading.Event()
    threading.Thread(target=lambda: inside.wait() and print("busy", flush=True), daemon=True).start()
    sys.setswitchinterval(3600)
    inside.set()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)""",
}


def ended(code: str, folder: Path, number: int) -> tuple[int, str]:
    """The exit code and the errors of some code that is busy, after a signal."""
    words, environment = [sys.executable, "-c", code], {**os.environ, "TMPDIR": str(folder)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, **pipes, text=True, env=environment) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "busy\n"
        process.send_signal(number)
        try:
            _, error = process.communicate(timeout=300)
        finally:
            process.kill()
    return process.returncode, error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
@pytest.mark.parametrize("where", BODIES)
def test_a_signal_ends_the_command_and_leaves_nothing(where: str, number: int, tmp_path: Path) -> None:
    """Not even the folder of rows that did not fit in memory."""
    body = (
        f"from localparity._io._files import private_folder\n    assert private_folder()\n    {BODIES[where]}"
    )
    code, error = ended(COMMAND.format(body=body), tmp_path, number)
    as_signalled = {-number, 128 + number} - ({-2} if number == signal.SIGINT else set())
    assert code in as_signalled
    assert error == "interrupted\n"
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path) -> None:
    """As after nohup: what comes next is heeded."""
    ignoring = "signal.signal(signal.SIGHUP, signal.SIG_IGN)\nimport os\nfrom localparity.cli import"
    body = "os.kill(os.getpid(), signal.SIGHUP); wait()"
    code = COMMAND.replace("from localparity.cli import", ignoring).format(body=body)
    assert ended(code, tmp_path, signal.SIGTERM) == (-signal.SIGTERM, "interrupted\n")


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    body = "from localparity._io._files import private_folder\n    private_folder(); wait()"
    assert ended(COMMAND.format(body=body), tmp_path, signal.SIGKILL)[0] == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    (left / "rows").write_text("personal")
    other = tmp_path / "localparity-other"
    other.mkdir()  # it has no lock, so nobody knows whose it is
    code = "from localparity._io._files import private_folder; print(private_folder())"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True)
    assert list(tmp_path.iterdir()) == [other]
    # One that lives keeps its folder.
    alive = f"from localparity._io._files import private_folder; import subprocess, sys, os\nf = private_folder()\nsubprocess.run([sys.executable, '-c', {code!r}], check=True)\nassert os.path.exists(f)"
    subprocess.run([sys.executable, "-c", alive], check=True, env=environment, capture_output=True)


def test_a_kill_while_a_folder_is_removed_leaves_no_rows_without_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock goes last: the next command removes what is left with it, and nothing without it."""
    rows, lock, gone = tmp_path / "spilled" / "rows", tmp_path / "lock", list[str]()
    rows.parent.mkdir()
    for path in (rows, lock, tmp_path / "another"):
        path.write_text("personal")
    unlink = os.unlink
    monkeypatch.setattr(
        os, "unlink", lambda path, **place: (gone.append(Path(path).name), unlink(path, **place))
    )
    _remove_folder(tmp_path)
    assert sorted(gone[:-1]) == ["another", "rows"]
    assert gone[-1] == "lock"
    assert not tmp_path.exists()


def test_what_is_no_interrupt_is_left_as_it_is() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with pytest.raises(RuntimeError, match="own"), heeding_interrupts():
        raise RuntimeError("own")
    with heeding_interrupts():
        pass
    assert {number: signal.getsignal(number) for number in before} == before


NO_THREAD = """
import resource, sys, threading
from localparity.cli import main
threading.stack_size(2**30)
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
sys.argv = ["localparity", "plan", "--group-sizes", "9,9"]
main()
"""


def test_a_machine_without_room_for_a_thread() -> None:
    done = subprocess.run([sys.executable, "-c", NO_THREAD], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no thread can be started: ")
    assert done.stderr.count("\n") == 1
