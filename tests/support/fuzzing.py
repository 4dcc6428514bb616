"""Readers against damaged files: bytes and JSON that hypothesis damages, for a bounded time.

Each reader is tried with the same twenty files every time; with `LOCALPARITY_FUZZ_SECONDS`, which ``make fuzz`` sets,
with new ones for so long. A reader that crashes or hangs takes its process along, and the file that did it is then in
the folder of the test.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
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

_TOKENS = (
    b"\x00",
    b"\xff\xfe",
    b'"',
    b"'",
    b",",
    b"\n",
    b"\r\n",
    b"nan",
    b"-inf",
    b"1e999",
    b"9" * 5000,
    b"null",
    b"{}",
)
_TOKENS += (
    b"[" * 3000,
    b"PK\x03\x04",
    b"PAR1",
    b"\x80\x04cos\nsystem\n",
    b"\xff" * 8,
    (2**31).to_bytes(8, "little"),
)
_VALUES = (
    None,
    True,
    "",
    "x",
    0,
    -1,
    1,
    2**31,
    2**70,
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    [],
    {},
    [[]],
    "<f8",
)


def damaged(valid: bytes) -> st.SearchStrategy[bytes]:
    """The bytes with one to three faults: bits, runs cut out, doubled, moved or put in, or the end missing."""

    @st.composite
    def draw_damaged(draw: st.DrawFn) -> bytes:
        content = bytearray(valid)
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(content)))
            end = min(len(content), at + draw(st.sampled_from((0, 1, 2, 4, 8, 64))))
            kind = draw(st.sampled_from(("bits", "put in", "cut", "double", "end")))
            if kind == "bits" and at < len(content):
                content[at] ^= draw(st.integers(1, 255))
            elif kind == "put in":
                content[at:end] = draw(st.sampled_from(_TOKENS) | st.binary(max_size=8))
            elif kind == "cut":
                del content[at:end]
            elif kind == "double":
                content[at:at] = content[at:end] * draw(st.sampled_from((1, 100)))
            elif kind == "end":
                del content[at:]
        return bytes(content)

    return draw_damaged()


def damaged_json(valid: Any) -> st.SearchStrategy[Any]:
    """A JSON value with one or two of its parts, however deep, lost or replaced by something else."""

    @st.composite
    def draw_damaged(draw: st.DrawFn) -> Any:
        value = {"whole": deepcopy(valid)}
        for _ in range(draw(st.integers(1, 2))):
            owner, place = draw(st.sampled_from(list(_places(value))))
            if draw(st.integers(0, 3)) == 0 and owner is not value:
                del owner[place]
            else:
                owner[place] = deepcopy(draw(st.sampled_from(_VALUES)))
        return value["whole"]

    return draw_damaged()


def sealed(value: Any) -> bytes:
    """A JSON value as a file whose checksum fits, where it can have one."""
    return seal_json(value) if isinstance(value, dict) else json.dumps(value).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value where something stands: what holds it, and its key or number."""
    for place in value if isinstance(value, dict) else range(len(value)):
        yield value, place
        if isinstance(value[place], dict | list):
            yield from _places(value[place])


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
