"""How long work will take, told to whoever listens, as commands do, once it is known to be long."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Tell = Callable[[str], None]

_MOMENT = 0.75
_LOADING = 120.0
"""Units may take up to so long only because they load and compile what the others use."""
_LONG = 5.0
_ALIKE = 1.5
_tell: ContextVar[Tell | None] = ContextVar("tell", default=None)


@contextmanager
def forecasts_to(tell: Tell) -> Iterator[None]:
    """Inside, `tell` is called with a line about work that takes long."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


class Forecast:
    """How long `total` units, named in the plural, will take, once the first have taken a moment."""

    def __init__(self, total: int, unit: str) -> None:
        from localparity._compiled import plain_seconds  # which imports numpy

        self._total, self._unit, self._done = total, unit, 0
        self._tell, self._begun = _tell.get(), time.monotonic()
        self._plain_seconds = plain_seconds
        self._seen = (self._done, self._begun, plain_seconds())
        self._rate = math.inf

    def advance(self, units: int = 1) -> None:
        """Count units as done, and say how long the others take if that is long.

        Units are slower before loops are compiled, and stand still while they are: what is said rests on two
        moments, one after the other, in which nothing ran uncompiled and units took about as long.
        """
        self._done += units
        if self._tell is None:
            return
        now, plain = time.monotonic(), self._plain_seconds()
        done, since, plain_before = self._seen
        if now - since < _MOMENT:
            return
        rate = (now - since) / (self._done - done) if plain == plain_before else math.inf
        before, self._rate, self._seen = self._rate, rate, (self._done, now, plain)
        passed = now - self._begun
        if passed < _LOADING and not max(rate, before) <= _ALIKE * min(rate, before) < math.inf:
            return
        left = (now - since) / (self._done - done) * (self._total - self._done)
        if left > _LONG:
            self._tell(f"{self._total:,} {self._unit} take about {duration(passed + left)}; Ctrl-C stops")
        self._tell = None


def foretold(items: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """The items, with a forecast while they are worked on."""
    forecast = Forecast(total, unit)
    for item in items:
        yield item
        forecast.advance()


def duration(seconds: float) -> str:
    """A time in the two largest units.

    Examples
    --------
    >>> duration(42.4), duration(200), duration(9000), duration(400_000)
    ('42 s', '3 min 20 s', '2 h 30 min', '4 d 15 h')
    """
    left = round(seconds)
    parts: list[str] = []
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {name}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 ")) or "0 s"


# A bar on standard error, for whoever asked to see how a fit or a sweep goes.


Advance = Callable[[int, str], None]
"""Called with how many units are done, and with what is known so far."""
Progress = Callable[[dict[str, float]], None]
"""Called with `step` and, where known, `loss`, `average_precision` and `mcdp`."""


@contextmanager
def drawn_bar(title: str, total: int, *, lines: bool = False) -> Iterator[Advance]:
    """Draw a bar; without a terminal, print a line for each advance (`lines`), or only the last state."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    in_lines = lines and not console.is_terminal
    done, left = (MofNCompleteColumn(), TimeElapsedColumn()), ("left", TimeRemainingColumn())
    columns = ("{task.description}", BarColumn(), *done, *left, "{task.fields[text]}")
    with Bar(*columns, console=console, disable=in_lines) as bar:
        task = bar.add_task(title, total=total, text="")

        def advance(done: int, text: str) -> None:
            bar.update(task, completed=done, text=text)
            if in_lines:
                console.print(f"{done}/{total} {text}", soft_wrap=True, highlight=False)

        yield advance


@contextmanager
def progress_bar(title: str, steps: int, *, shown: bool) -> Iterator[Progress | None]:
    """A bar for a fit to advance, with its loss and how it does on validation rows; None unless shown."""
    if not shown:
        yield None
        return
    with drawn_bar(title, steps) as advance:
        known: dict[str, float] = {}

        def tell(record: dict[str, float]) -> None:
            known.update(record)
            numbers = [text.format(known[name]) for name, text in _NUMBERS.items() if name in known]
            advance(int(known["step"]), "  ".join(numbers))

        yield tell


_NUMBERS = {
    "loss": "loss {:.4f}",
    "average_precision": "validation AP {:.1%}",
    "mcdp": "validation MCDP {:.1%}",
}
