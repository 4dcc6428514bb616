"""How long work will take, shown or told by whoever listens, as commands do, once it is known to be long."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, Self, TypeVar

T = TypeVar("T")
Tell = Callable[[str], None]

_SHORT = 2.0
"""Work that takes no longer is not shown on a terminal."""
_MOMENT = 0.75
_LOADING = 120.0
"""Units may take up to so long only because they load and compile what the others use."""
_LONG = 5.0
_ALIKE = 1.5


class _Listener(Protocol):
    """Hears of the outermost work only."""

    current: Forecast | None

    def begin(self, forecast: Forecast) -> None: ...
    def advance(self, forecast: Forecast) -> None: ...
    def end(self) -> None: ...


_listener: ContextVar[_Listener | None] = ContextVar("listener", default=None)


class Forecast:
    """How far some work is, of which there are `total` units; `doing` names it, as in "reading 3 files".

    Work inside other work is silent. It counts towards the other inside `Forecast.part`.
    """

    def __init__(self, total: float, doing: str) -> None:
        self.total, self.doing, self.done, self.text = total, doing, 0.0, ""
        self._part, self._until = 0.0, 0.0
        self._listener: _Listener | None = None
        self._outer: Forecast | None = None

    def __enter__(self) -> Self:
        listener = _listener.get()
        if listener is not None:
            self._outer = listener.current
            if self._outer is None:
                self._listener, listener.current = listener, self
                listener.begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._listener is not None:
            self._listener.current = None
            self._listener.end()

    def advance(self, units: float = 1.0, text: str = "") -> None:
        """Count units as done."""
        self.done, self.text = self.done + units, text
        if self._listener is not None:
            self._listener.advance(self)
        elif self._outer is not None and self._outer._part:
            left = self._outer._until - self._outer.done
            self._outer.advance(min(self._outer._part * units / self.total, left), text)

    @contextmanager
    def part(self, units: float) -> Iterator[None]:
        """Inside, other work counts towards so many units, all of which are done at the end."""
        self._part, self._until = units, self.done + units
        yield
        self._part = 0.0
        self.advance(self._until - self.done)


def foretold(items: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """The items, with a forecast while they are worked on; `unit` names them, as in "comparing pairs"."""
    doing, _, units = unit.partition(" ")
    with Forecast(total, f"{doing} {total:,} {units}" if total != 1 else unit) as forecast:
        for item in items:
            yield item
            forecast.advance()


# Where there is no terminal, one line says how long the work takes.


class _Lines:
    """Says how long work takes, once the first units have taken a moment.

    Units are slower before loops are compiled, and stand still while they are: what is said rests on two
    moments, one after the other, in which nothing ran uncompiled and units took about as long. Where there
    are none for long, it rests on all units so far.
    """

    def __init__(self, tell: Tell) -> None:
        self.current: Forecast | None = None
        self._tell, self._told = tell, False

    def begin(self, forecast: Forecast) -> None:
        from localparity._compiled import plain_seconds  # which imports numpy

        self._plain_seconds, self._begun, self._rate, self._told = (
            plain_seconds,
            time.monotonic(),
            math.inf,
            False,
        )
        self._seen = (forecast.done, self._begun, plain_seconds())

    def advance(self, forecast: Forecast) -> None:
        if self._told:
            return
        now, plain = time.monotonic(), self._plain_seconds()
        done, since, plain_before = self._seen
        if now - since < _MOMENT or forecast.done <= done:
            return
        rate = (now - since) / (forecast.done - done) if plain == plain_before else math.inf
        before, self._rate, self._seen = self._rate, rate, (forecast.done, now, plain)
        passed = now - self._begun
        is_steady = max(rate, before) <= _ALIKE * min(rate, before) < math.inf
        if passed < _LOADING and not is_steady:
            return
        left = (rate if is_steady else passed / forecast.done) * (forecast.total - forecast.done)
        if left > _LONG:
            self._tell(f"{forecast.doing} takes about {duration(passed + left)}; Ctrl-C stops")
        self._told = True

    def end(self) -> None: ...


@contextmanager
def forecasts_to(tell: Tell) -> Iterator[None]:
    """Inside, `tell` is called with a line about work that takes long."""
    with _heard_by(_Lines(tell)):
        yield


@contextmanager
def _heard_by(listener: _Listener | None) -> Iterator[None]:
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


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


# On a terminal, a bar on standard error says how much time is left.


class _Bar:
    """Draws the work under way, once it has taken longer than a moment, and leaves nothing behind."""

    def __init__(self) -> None:
        self.current: Forecast | None = None
        self._drawn: Any = None
        self._lock = threading.RLock()

    def begin(self, forecast: Forecast) -> None:
        self._timer = threading.Timer(_SHORT, self._draw, [forecast])
        self._timer.daemon = True
        self._timer.start()

    def _draw(self, forecast: Forecast) -> None:
        with self._lock:
            if forecast is self.current:
                self._drawn = _bar(transient=True)
                self._drawn.start()
                self._task = self._drawn.add_task(forecast.doing, total=forecast.total, text="")
                self.advance(forecast)

    def advance(self, forecast: Forecast) -> None:
        with self._lock:
            if self._drawn is not None:
                self._drawn.update(self._task, completed=forecast.done, text=forecast.text)

    def end(self) -> None:
        self._timer.cancel()
        with self._lock:
            if self._drawn is not None:
                self._drawn.stop()
            self._drawn = None


@contextmanager
def bar_on_terminal() -> Iterator[None]:
    """Inside, work that takes long is drawn on standard error, which is a terminal."""
    with _heard_by(_Bar()):
        yield


def _bar(**options: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from localparity._compiled import is_compiling  # which imports numpy

    class Known(TextColumn):
        def render(self, task: Any) -> Any:
            text = super().render(task)
            return type(text)("compiling, once on this machine") if is_compiling() else text

    # A name of a file or a group is no markup.
    title, text = (
        TextColumn("{task.description}", markup=False),
        Known("{task.fields[text]}", markup=False),
    )
    share, left = TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn()
    columns = (title, BarColumn(20), share, TimeElapsedColumn(), left, TextColumn("left"), text)
    return Progress(*columns, console=Console(stderr=True), redirect_stdout=False, **options)


# A bar for whoever asked to see how a fit or a sweep goes.


Advance = Callable[[int, str], None]
"""Called with how many units are done, and with what is known so far."""
Progress = Callable[[dict[str, float]], None]
"""Called with `step` and, where known, `loss`, `average_precision` and `mcdp`."""


@contextmanager
def drawn_bar(title: str, total: int, *, lines: bool = False) -> Iterator[Advance]:
    """Draw a bar; without a terminal, print a line for each advance (`lines`), or only the last state."""
    from rich.console import Console

    console = Console(stderr=True)
    in_lines = lines and not console.is_terminal
    with _heard_by(_listener.get() if in_lines else None), _bar(disable=in_lines) as bar:
        task = bar.add_task(title, total=total, text="")

        def advance(done: int, text: str) -> None:
            bar.update(task, completed=done, text=text)
            if in_lines:
                console.print(f"{done}/{total} {text}", soft_wrap=True, highlight=False)

        yield advance


@contextmanager
def progress_bar(title: str, steps: int, *, shown: bool) -> Iterator[Progress | None]:
    """What a fit calls with its loss and how it does on validation rows; None where nobody listens."""
    if not shown and _listener.get() is None:
        yield None
        return
    with ExitStack() as stack:
        draw = stack.enter_context(drawn_bar(title, steps)) if shown else None
        forecast = stack.enter_context(Forecast(steps, title))
        known: dict[str, float] = {}

        def tell(record: dict[str, float]) -> None:
            known.update(record)
            text = "  ".join(words.format(known[name]) for name, words in _NUMBERS.items() if name in known)
            forecast.advance(known["step"] - forecast.done, text)
            if draw is not None:
                draw(int(known["step"]), text)

        yield tell


_NUMBERS = {
    "loss": "loss {:.4f}",
    "average_precision": "validation AP {:.1%}",
    "mcdp": "validation MCDP {:.1%}",
}
