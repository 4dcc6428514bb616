"""How time, memory and bars are measured and written down."""

from __future__ import annotations

import csv
import os
import platform
import timeit
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields
from multiprocessing import get_context
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Measurement:
    """One measured number beside the bar that it is held to."""

    what: str
    measured: float
    bar: str
    holds: bool
    detail: str


def at_most(what: str, measured: float, bar: float, detail: str = "") -> Measurement:
    return Measurement(what, round(measured, 4), f"<= {bar:g}", measured <= bar, detail)


def at_least(what: str, measured: float, bar: float, detail: str = "") -> Measurement:
    return Measurement(what, round(measured, 1), f">= {bar:g}", measured >= bar, detail)


def seconds(*calls: Callable[[], object], repeats: int = 5) -> list[float]:
    """The shortest of several measurements of each call, each of as many calls as take a moment.

    The calls take turns, so that what else the machine does touches all of them alike.
    """
    timers = [timeit.Timer(call) for call in calls]
    for timer in timers:
        timer.timeit(1)
    counts = [max(1, int(0.05 / timer.timeit(1))) for timer in timers]
    rounds = [
        [timer.timeit(count) / count for timer, count in zip(timers, counts, strict=True)]
        for _ in range(repeats)
    ]
    return [min(column) for column in zip(*rounds, strict=True)]


def peak_bytes(prepare: Callable[[], Callable[[], object]]) -> int:
    """How much the resident memory of a fresh process grows at most in the call that `prepare` returns."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        return executor.submit(_grow, prepare).result()


def _grow(prepare: Callable[[], Callable[[], object]]) -> int:
    call = prepare()
    before = _memory("VmRSS:")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    call()
    return _memory("VmHWM:") - before


def _memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def write_csv(path: Path, measurements: Sequence[Measurement]) -> None:
    """Write the measurements whole or not at all, with the machine they were made on."""
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", newline="") as file:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        file.write(f"# {machine}, numpy {np.__version__}\n")
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(Measurement)])
        writer.writerows(map(astuple, measurements))
    temporary.replace(path)
