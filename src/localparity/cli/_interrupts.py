"""Ctrl-C ends a command within a second, also inside a library that takes it for an error or is busy."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import _exit as end_now
from typing import Any

CODE = 130
_PATIENCE = 1.0


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Inside, Ctrl-C is a KeyboardInterrupt whatever becomes of it: libraries raise other errors, or none.

    Where the main thread does not come back from a library in time, the process ends as after a kill; what
    it was writing is the old or the new file all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen, done = threading.Event(), threading.Event()

    def interrupt(*_: Any) -> None:
        seen.set()
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored in the background of a shell
        yield
        return
    heard, told = os.pipe()
    os.set_blocking(told, False)
    woken = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    watch = threading.Thread(target=_stop_in_time, args=(heard, done), daemon=True)
    watch.start()
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        if seen.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        done.set()
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(woken)
        os.close(told)
        watch.join()
    if seen.is_set():
        raise KeyboardInterrupt


def _stop_in_time(heard: int, done: threading.Event) -> None:
    """Wait for Ctrl-C, then for the end of the command; end the process if that does not come."""
    while signals := os.read(heard, 1):
        if signals[0] == signal.SIGINT and not done.wait(_PATIENCE):
            os.write(2, b"interrupted\n")
            end_now(CODE)
    os.close(heard)
