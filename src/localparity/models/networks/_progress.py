"""A bar with the loss, AP and MCDP of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from localparity.models.networks._trainer import Progress


@contextmanager
def progress_bar(title: str, steps: int, *, shown: bool) -> Iterator[Progress | None]:
    """What a `Trainer` calls after every step; None where nothing is to be shown.

    Examples
    --------
    >>> with progress_bar("DiffMCDP", 150, shown=False) as progress:
    ...     print(progress)
    None
    """
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    with Bar(*columns, TextColumn("{task.fields[told]}"), console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=steps, told="")
        known: dict[str, Any] = {}

        def advance(record: dict[str, float]) -> None:
            known.update(record)
            told = f"loss {known['loss']:.4f}"
            if "mcdp" in known:
                told += f"  AP {known['average_precision']:.1%}  MCDP {known['mcdp']:.1%}"
            bar.update(task, completed=int(record["step"]), told=told)

        yield advance
