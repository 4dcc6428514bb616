"""A progress bar with the loss, AP and MCDP of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from localparity.models.networks._trainer import Progress


@contextmanager
def progress_bar(title: str, steps: int, *, shown: bool) -> Iterator[Progress | None]:
    """A bar on standard error for a `Trainer` to call after every step; None unless it is shown."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    with Bar(*columns, TextColumn("{task.fields[numbers]}"), console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=steps, numbers="")
        known: dict[str, Any] = {}

        def advance(record: dict[str, float]) -> None:
            known.update(record)
            numbers = f"loss {known['loss']:.4f}"
            if "mcdp" in known:
                numbers += f"  AP {known['average_precision']:.1%}  MCDP {known['mcdp']:.1%}"
            bar.update(task, completed=int(record["step"]), numbers=numbers)

        yield advance
