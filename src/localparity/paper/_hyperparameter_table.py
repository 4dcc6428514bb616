"""The strengths and settings that the runs of a store were trained with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from localparity.paper._data import DATA_SETS
from localparity.paper._grids import strengths_of
from localparity.paper._results_table import numbers_text
from localparity.paper._run import Run
from localparity.paper._selection import by_grid, by_variant
from localparity.paper._store import Record
from localparity.paper._text_tables import TextTable

_OF_PENALTIES = {"temperature": ("diffabcc", "diffmcdp"), "search": ("diffmcdp",), "memory": ("diffmcdp",)}


def hyperparameter_table(records: Iterable[Record]) -> TextTable:
    """The strengths of every method, the settings that methods differ in, and those that they share.

    Parameters
    ----------
    records : iterable of Record
        Stored runs.

    Returns
    -------
    TextTable
    """
    columns = ["data", "preset", "method", "strengths compared", "of the grid", "settings of its own"]
    table = TextTable("hyper-parameters", "Hyper-parameters", columns, [])
    for (dataset, preset), own in by_grid(records):
        title = DATA_SETS[dataset].title
        shared = _shared(own)
        for variant, runs in by_variant(own):
            run = runs[0].run
            compared = sorted({record.run.strength for record in runs})
            whole = strengths_of(preset, dataset, run.method)
            all_of_it = set(compared) >= set(whole)
            table.rows.append(
                [
                    title,
                    preset,
                    variant,
                    numbers_text(compared),
                    "all" if all_of_it else f"{len(compared)} of {len(whole)}",
                    _told({name: value for name, value in _concerning(run).items() if name not in shared})
                    or None,
                ]
            )
        table.notes.append(f"{title}, preset {preset}, all methods: {_told(shared)}.")
    return table


def _concerning(run: Run) -> dict[str, Any]:
    """The settings that a run's method reads."""
    return {
        name: value
        for name, value in run.settings.items()
        if run.method in _OF_PENALTIES.get(name, (run.method,))
    }


def _shared(records: Sequence[Record]) -> dict[str, Any]:
    """The settings that are the same for all methods, without those that only some of them read."""
    settings = [record.run.settings for record in records]
    return {
        name: value
        for name, value in settings[0].items()
        if name not in _OF_PENALTIES and all(each.get(name) == value for each in settings)
    }


def _told(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_setting(value)}" for name, value in settings.items())


def _setting(value: object) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
