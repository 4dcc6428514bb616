"""Readers against damaged files: bytes and JSON that hypothesis damages, for a bounded time.

Each reader is tried with the same twenty files every time; with `LOCALPARITY_FUZZ_SECONDS`, which ``make fuzz`` sets,
with new ones for so long. A reader that crashes or hangs takes its process along, and the file that did it is then in
the folder of the test.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localparity._io._files import seal_json

SECONDS = float(os.environ.get("LOCALPARITY_FUZZ_SECONDS", "0"))

_HANG = 300.0
_MEMORY = 4 * 2**30
_ROUND = settings(
    max_examples=25,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

_SAME = settings(_ROUND, max_examples=20, derandomize=True)

T = TypeVar("T")

_TOKENS = [
    b"\x00",
    b"\xff\xfe",
    b"\n",
    b"\r\n",
    b"9" * 5000,
    b"[" * 3000,
    b"PK\x03\x04",
    b"\xff" * 8,
    b"  ",
    b"\r",
    b"\xff",
]
_TOKENS += [b"\x80\x04cos\nsystem\n", (2**31).to_bytes(8, "little")]
_TOKENS += b"\" ' , ; # { ] nan -inf 1e999 null {} PAR1".split()
_VALUES = (None, True, "", "x", 0, -1, 1, 2**31, 2**70, 0.5, 1e308, math.nan, math.inf, [], {}, [[]], "<f8")


def damage(valid: bytes, choose: Callable[[Sequence[Any]], Any]) -> bytes:
    """The bytes with one to four faults: bits, runs cut out, doubled, replaced or put in, or the end missing."""
    content = bytearray(valid)
    for _ in range(choose((1, 1, 2, 3, 4))):
        at = choose(range(len(content) + 1))
        end = min(len(content), at + choose((0, 1, 2, 4, 8, 64)))
        kind = choose(("bit", "byte", "put in", "noise", "cut", "double", "end"))
        if kind in ("bit", "byte") and at < len(content):
            content[at] ^= 1 << choose(range(8)) if kind == "bit" else choose(range(1, 256))
        elif kind == "put in":
            content[at:end] = choose(_TOKENS)
        elif kind == "noise":
            content[at:end] = bytes(choose(range(256)) for _ in range(choose(range(9))))
        elif kind == "cut":
            del content[at:end]
        elif kind == "double":
            content[at:at] = content[at:end] * choose((1, 100))
        elif kind == "end":
            del content[at:]
    return bytes(content)


def damaged(valid: bytes) -> st.SearchStrategy[bytes]:
    """What `damage` makes of the bytes."""
    return st.composite(lambda draw: damage(valid, lambda options: draw(st.sampled_from(options))))()


def damage_json(valid: Any, choose: Callable[[Sequence[Any]], Any]) -> Any:
    """A JSON value with one or two of its parts, however deep, lost or replaced by something else."""
    value = {"whole": deepcopy(valid)}
    for _ in range(choose((1, 2))):
        owner, key = choose(list(_parts(value)))
        if choose(range(4)) == 0 and owner is not value:
            del owner[key]
        else:
            owner[key] = deepcopy(choose(_VALUES))
    return value["whole"]


def damaged_json(valid: Any) -> st.SearchStrategy[Any]:
    """What `damage_json` makes of the value."""
    return st.composite(lambda draw: damage_json(valid, lambda options: draw(st.sampled_from(options))))()


def sealed(value: Any) -> bytes:
    """A JSON value as a file whose checksum fits, where it can have one."""
    return seal_json(value) if isinstance(value, dict) else json.dumps(value).encode()


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of a JSON value: what holds it, and its key or number."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _parts(value[key])


def fuzz(inputs: st.SearchStrategy[T], check: Callable[[T], None]) -> None:
    """Call a check with one input after the other: twenty, or until the time is up."""
    end = time.monotonic() + SECONDS
    with _limited_memory():
        if not SECONDS:
            _SAME(given(inputs)(_watched(check)))()
        while time.monotonic() < end:
            _ROUND(given(inputs)(_watched(check)))()


def read_or_refuse(read: Callable[[], T], *names: str) -> T | None:
    """What a reader gives; None where it raises a ValueError whose message has one of the names."""
    try:
        return read()
    except ValueError as error:
        if not any(name in str(error) for name in names):
            raise AssertionError(f"the message has none of {names}") from error
        return None


def _watched(check: Callable[[T], None]) -> Callable[[T], None]:
    """The check, whose process ends with a traceback where one input takes minutes."""

    def watched(value: T) -> None:
        faulthandler.dump_traceback_later(_HANG, exit=True)
        try:
            check(value)
        finally:
            faulthandler.cancel_dump_traceback_later()

    return watched


@contextmanager
def _limited_memory() -> Iterator[None]:
    """Let the process have some gigabytes more than it has, so that an explosion is an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + _MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
