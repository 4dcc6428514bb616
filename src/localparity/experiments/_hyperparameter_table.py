"""The strengths and settings that the runs of a store were trained with."""

from __future__ import annotations

from collections.abc import Iterable

from localparity.experiments._data import DATA_SETS
from localparity.experiments._grids import strengths_of
from localparity.experiments._results_table import numbers_text
from localparity.experiments._selection import by_grid, by_variant
from localparity.experiments._store import Record
from localparity.experiments._text_tables import TextTable


def hyperparameter_table(records: Iterable[Record]) -> TextTable:
    """The strengths of every method, and the settings of every preset."""
    table = TextTable(
        "hyper-parameters",
        "Hyper-parameters",
        ["data", "preset", "method", "strengths compared", "of the grid", "temperature", "search"],
        [],
    )
    notes: dict[str, str] = {}
    for (dataset, preset), own in by_grid(records):
        for variant, runs in by_variant(own):
            run = runs[0].run
            compared = sorted({record.run.strength for record in runs})
            whole = strengths_of(preset, dataset, run.method)
            settings = run.settings
            table.rows.append(
                [
                    DATA_SETS[dataset].title,
                    preset,
                    variant,
                    numbers_text(compared),
                    "all" if set(compared) >= set(whole) else f"{len(compared)} of {len(whole)}",
                    f"{settings['temperature']:g}" if run.method in {"diffabcc", "diffmcdp"} else None,
                    settings["search"] if run.method == "diffmcdp" else None,
                ]
            )
            shared = {
                name: value for name, value in settings.items() if name not in {"temperature", "search"}
            }
            told = ", ".join(f"{name} {_setting(value)}" for name, value in shared.items())
            notes[f"{DATA_SETS[dataset].title}, {preset}"] = told
    table.notes = [f"{where}: {told}." for where, told in notes.items()]
    return table


def _setting(value: object) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
