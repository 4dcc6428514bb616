"""Ctrl-C ends a command within a second and with exit code 130, wherever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from localparity.cli._interrupts import heeding_interrupts

# As in the foreground: tests may run in the background of a shell, where Ctrl-C is ignored.
COMMAND = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from localparity.cli import _app

def busy(**options):
    print("busy", flush=True)
    {body}

_app.app = busy
_app.main()
"""
BODIES = {
    "python": "time.sleep(60)",
    "an error of a library": """
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        raise RuntimeError("Query interrupted")""",
    "swallowed": """
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        print("a traceback")""",
    "a library that does not come back": """
    import hashlib
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)""",
}


@pytest.mark.parametrize("where", BODIES)
def test_an_interrupt_ends_the_command(where: str) -> None:
    words = [sys.executable, "-c", COMMAND.format(body=BODIES[where])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "busy\n"
        time.sleep(0.1)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            _, error = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, error) == (130, "interrupted\n")
    assert time.monotonic() - begun < 3.0


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
