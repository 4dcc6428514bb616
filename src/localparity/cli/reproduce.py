"""`localparity reproduce`: the paper's experiments, then its tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from localparity._progress import drawn_bar
from localparity.cli._commands import Commands, print_result
from localparity.cli._options import check_folder, parse_numbers
from localparity.paper._runner import RunListener, run_missing
from localparity.paper._runs import DATA_SET_NAMES, PRESET_NAMES, SEARCHES, TITLES, Run, grid
from localparity.paper._store import Store

app = Commands(no_args_is_help=True, add_completion=False)

StoreOption = Annotated[Path, typer.Option(help="The folder of finished runs.")]
_STORE = Path("localparity-store")
JsonOption = Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")]


@app.callback()
def reproduce() -> None:
    """Train the paper's runs on a data set, then write tables and figures. Interrupted sweeps resume."""


def _dataset_command(dataset: str) -> Callable[..., None]:
    def command(
        preset: Annotated[str, typer.Option(help=" or ".join(PRESET_NAMES) + ".")] = "paper",
        store: StoreOption = _STORE,
        methods: Annotated[
            str | None,
            typer.Option(help=f"Some of {', '.join(TITLES)}, separated by commas; always with erm."),
        ] = None,
        strengths: Annotated[
            str | None, typer.Option(help="Some of the strengths, separated by commas.")
        ] = None,
        seeds: Annotated[int, typer.Option(help="The number of seeds: 0, 1, ...")] = 5,
        searches: Annotated[
            str | None, typer.Option(help=f"Further searches of DiffMCDP: {', '.join(SEARCHES)}.")
        ] = None,
        temperatures: Annotated[
            str | None, typer.Option(help="Further temperatures of DiffMCDP, separated by commas.")
        ] = None,
        jobs: Annotated[int, typer.Option(help="The number of runs at a time; -1 for one per core.")] = 1,
        device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
        dry_run: Annotated[
            bool, typer.Option("--dry-run", help="List the runs that would be trained.")
        ] = False,
        quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
        json: JsonOption = False,
    ) -> None:
        """Train the runs of a data set that the store lacks; interrupted sweeps resume."""
        runs = grid(
            dataset,
            preset=preset,
            methods=None if methods is None else _names(methods),
            strengths=None if strengths is None else parse_numbers(strengths, "--strengths"),
            seeds=seeds,
            searches=[] if searches is None else _names(searches),
            temperatures=[] if temperatures is None else parse_numbers(temperatures, "--temperatures"),
        )
        check_folder(store, "--store")
        opened = Store(store)
        opened.check_version()
        if dry_run:
            _list_runs(opened, runs, json)
            return
        _train(opened, runs, partial(run_missing, jobs=jobs, device=device), quiet, json)

    return command


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _list_runs(store: Store, runs: list[Run], json: bool) -> None:
    titles = [run.title for run in store.missing(runs)]
    line = f"{len(titles)} of {len(runs)} runs would be trained; the others are in the store"
    print_result({"runs": titles, "wanted": len(runs)}, *titles, line, json=json)


def _train(store: Store, runs: list[Run], train: Callable[..., int], quiet: bool, json: bool) -> None:
    missing = store.missing(runs)
    with sweep_progress(len(missing), shown=not quiet) as progress:
        train(store, missing, progress=progress)
    there = len(runs) - len(missing)
    outcome = {"trained": len(missing), "found": there, "store": str(store.folder)}
    line = f"trained {len(missing)} runs, found {there}; all are in {store.folder}"
    print_result(outcome, line, json=json)


@app.command()
def tables(
    store: StoreOption = _STORE,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("localparity-tables"),
    json: JsonOption = False,
) -> None:
    """Write the paper's tables next to the paper's values, as Markdown and CSV."""
    from localparity.paper._tables import write_tables

    check_folder(store, "--store")
    check_folder(out, "--out")
    _list_files(write_tables(Store(store), out), out, json)


@app.command()
def figures(
    store: StoreOption = _STORE,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("localparity-figures"),
    frontier: Annotated[
        Path | None,
        typer.Option(help="A CSV of group-blind repair, such as results/frontier.csv, to draw in Figure 3."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Draw the paper's figures, as PNG, SVG and PDF."""
    from localparity.paper._figures import write_figures

    check_folder(store, "--store")
    check_folder(out, "--out")
    _list_files(write_figures(Store(store), out, frontier=frontier), out, json)


def _list_files(written: list[Path], out: Path, json: bool) -> None:
    names = [path.name for path in written]
    last = f"wrote {len(names)} files to {out}"
    print_result({"out": str(out), "files": names}, *names, last, json=json)


for _name in DATA_SET_NAMES:
    app.command(_name, help=f"Train the runs on {_name} that the store lacks; interrupted sweeps resume.")(
        _dataset_command(_name)
    )


@contextmanager
def sweep_progress(total: int, *, shown: bool) -> Iterator[RunListener | None]:
    """Show how a sweep goes: each run with its AP and MCDP(0); None unless shown."""
    if not shown:
        yield None
        return
    finished = count(1)
    with drawn_bar("", total, lines=True) as advance:

        def listen(run: Run, metrics: dict[str, float]) -> None:
            numbers = f"AP {100 * metrics['test_ap']:.2f}, MCDP(0) {100 * metrics['test_mcdp_0']:.2f}"
            advance(next(finished), f"{run.title}: {numbers}")

        yield listen
