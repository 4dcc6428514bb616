"""Ctrl-C ends a command with exit code 130, wherever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from localparity.cli._app import heeding_interrupts

# As in the foreground: tests may run in the background of a shell, where Ctrl-C is ignored.
COMMAND = """
import hashlib, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
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


@pytest.mark.parametrize("where", BODIES)
def test_an_interrupt_ends_the_command(where: str) -> None:
    words = [sys.executable, "-c", COMMAND.format(body=BODIES[where])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "busy\n"
        process.send_signal(signal.SIGINT)
        try:
            _, error = process.communicate(timeout=300)
        finally:
            process.kill()
    assert (process.returncode, error) == (130, "interrupted\n")


def test_what_is_no_interrupt_is_left_as_it_is() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(RuntimeError, match="own"), heeding_interrupts():
        raise RuntimeError("own")
    with heeding_interrupts():
        pass
    assert signal.getsignal(signal.SIGINT) is before


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
