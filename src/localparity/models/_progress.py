"""A line on standard error for each fit: its strength, its step of how many, and how it does so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[dict[str, float]], None]
"""Called with `step` and, where known, `loss`, `average_precision` and `mcdp`."""


@contextmanager
def progress_bar(title: str, steps: int, *, shown: bool) -> Iterator[Progress | None]:
    """A bar for a fit to advance, or its last line where standard error is no terminal; None unless shown."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    with Bar(*columns, TextColumn("{task.fields[numbers]}"), console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=steps, numbers="")
        known: dict[str, float] = {}

        def advance(record: dict[str, float]) -> None:
            known.update(record)
            numbers = [text.format(known[name]) for name, text in _NUMBERS.items() if name in known]
            bar.update(task, completed=int(known["step"]), numbers="  ".join(numbers))

        yield advance


_NUMBERS = {
    "loss": "loss {:.4f}",
    "average_precision": "validation AP {:.1%}",
    "mcdp": "validation MCDP {:.1%}",
}
