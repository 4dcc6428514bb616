"""The progress of a sweep: a bar with the time left, or a line for each run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from localparity.paper._run import Run
from localparity.paper._runner import Progress


@contextmanager
def progress_bar(total: int, *, shown: bool) -> Iterator[Progress]:
    """A bar on standard error with the time left, or a line for each run if that is no terminal."""
    console = Console(stderr=True)
    columns = [
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    ]
    with Bar(
        *columns,
        TextColumn("{task.description}"),
        console=console,
        disable=not (shown and console.is_terminal),
    ) as bar:
        task = bar.add_task("", total=total)
        count = 0

        def advance(run: Run, metrics: dict[str, float]) -> None:
            nonlocal count
            count += 1
            text = (
                f"{run.title}: AP {100 * metrics['test_ap']:.2f}, MCDP(0) {100 * metrics['test_mcdp_0']:.2f}"
            )
            bar.update(task, advance=1, description=text)
            if shown and not console.is_terminal:
                console.print(f"{count}/{total} {text}", soft_wrap=True, highlight=False)

        yield advance
