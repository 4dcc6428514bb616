"""How time, memory and bars are measured and written down."""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import sys
import time
import timeit
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields
from io import StringIO
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import NoReturn, TypeVar

import numpy as np

from benchmarks._commit import current_commit
from localparity._io._files import write_whole

T = TypeVar("T")

QUIET = 0.5
"""The most that the machine may have to do beside, as its load of the last minute."""

_SOON = 180.0
"""The seconds in which the load of a benchmark before this one fades."""


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


def median_seconds(
    calls: Sequence[Callable[[], T]], *, repeats: int = 5, long: float = 2.0
) -> list[tuple[float, T]]:
    """The median of several measurements of each call, in turns, and what it returned.

    The first turns only warm up, except for a call that takes long, which is measured three times in all.
    """
    first = [_timed(call, 1) for call in calls]
    found = [[took] if took > long else [] for took, _ in first]
    counts = [
        1 if took > long else max(1, int(0.05 / _timed(call, 1)[0]))
        for call, (took, _) in zip(calls, first, strict=True)
    ]
    for turn in range(repeats):
        for call, count, (took, _), times in zip(calls, counts, first, found, strict=True):
            if turn < 2 or took <= long:
                times.append(_timed(call, count)[0])
    return [(median(times), answer) for times, (_, answer) in zip(found, first, strict=True)]


def _timed(call: Callable[[], T], count: int) -> tuple[float, T]:
    start = time.perf_counter()
    for _ in range(count):
        answer = call()
    return (time.perf_counter() - start) / count, answer


def peak_bytes(prepare: Callable[[], Callable[[], object]]) -> int:
    """How much the resident memory of a fresh process grows at most in the call that `prepare` returns.

    The processes that it starts, such as Spark's, count with it.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        return executor.submit(_grow, prepare).result()


def _grow(prepare: Callable[[], Callable[[], object]]) -> int:
    import psutil  # what measures no memory runs without it

    call = prepare()
    own = psutil.Process()
    started = [child for child in own.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    processes = [own.pid, *(child.pid for child in started)]
    before = sum(_memory(process, "VmRSS:") for process in processes)
    for process in processes:
        Path(f"/proc/{process}/clear_refs").write_text("5")  # forget the peak so far
    call()
    return sum(_memory(process, "VmHWM:") for process in processes) - before


def _memory(process: int, field: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def add_busy(parser: argparse.ArgumentParser) -> None:
    """Add the option for a machine that has other work."""
    parser.add_argument("--busy", action="store_true", help="measure whatever the load; write nothing")


def record_at(path: Path, *, busy: bool) -> Path | None:
    """Where results are written, None for nowhere; exits where the machine has other work.

    It is called before anything is measured, which raises the load itself.
    """
    if busy:
        return None
    start = time.monotonic()
    while (load := os.getloadavg()[0]) > QUIET:
        if time.monotonic() - start > _SOON:
            sys.exit(f"the load is {load:.2f}, above {QUIET}; pass --busy to measure and write nothing")
        print(f"the load is {load:.2f}; waiting until it is {QUIET}", file=sys.stderr, flush=True)
        time.sleep(10.0)
    return path


def machine() -> str:
    """Where, at which commit and by which command it was measured, for the first line of a file."""
    python = f"Python {platform.python_version()}, numpy {np.__version__}"
    command = f"python -m benchmarks.{Path(sys.argv[0]).stem}".removesuffix(".__main__")
    return f"{_processor()}, {os.cpu_count()} cores, {python}; {command} at {current_commit()}"


def _processor() -> str:
    """The name of the processor, where the system tells it."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    facts = dict(line.replace("\t", "").split(":", 1) for line in lines if ":" in line)
    named = [facts[name].strip() for name in ("model name", "cpu family", "model") if name in facts]
    return (
        " ".join(named[:1]) + f" (family {named[1]}, model {named[2]})"
        if len(named) == 3
        else platform.machine()
    )


def write_json(path: Path | None, found: dict[str, object]) -> None:
    """Print it, and write it whole or not at all."""
    text = json.dumps(found, indent=2)
    print(text)
    if path is not None:
        write_whole(path, f"{text}\n".encode())


def measure_all(
    benches: Sequence[Callable[[], Iterable[Measurement]]], path: Path, description: str | None
) -> NoReturn:
    """The program of benches: print a line a measurement, write them, and fail where a bar is not met."""
    parser = argparse.ArgumentParser(description=description)
    add_busy(parser)
    out = record_at(path, busy=parser.parse_args().busy)
    found = []
    for measurement in chain.from_iterable(bench() for bench in benches):
        found.append(measurement)
        verdict = "holds" if measurement.holds else "FAILS"
        numbers = f"{measurement.measured:g} ({measurement.bar})"
        print(f"{verdict}  {measurement.what}: {numbers} {measurement.detail}", flush=True)
    write_csv(out, found)
    sys.exit(0 if all(measurement.holds for measurement in found) else 1)


def write_csv(path: Path | None, measurements: Sequence[Measurement]) -> None:
    """Write the measurements whole or not at all, with the machine they were made on."""
    write_table(path, [field.name for field in fields(Measurement)], map(astuple, measurements))


def write_table(path: Path | None, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """The same of any rows."""
    if path is None:
        return
    content = StringIO()
    content.write(f"# {machine()}\n")
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    write_whole(path, content.getvalue().encode())
