"""The hyper-parameters and the training times of the runs in a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, stdev
from typing import Any

from localparity.paper._data import DATA_SETS
from localparity.paper._grids import strengths_of
from localparity.paper._results_table import numbers_text
from localparity.paper._run import Run
from localparity.paper._selection import Measured, by_grid, by_variant
from localparity.paper._store import Record
from localparity.paper._text_table import TextTable

_METHODS_OF = {"temperature": ("diffabcc", "diffmcdp"), "search": ("diffmcdp",), "memory": ("diffmcdp",)}


def hyperparameter_table(records: Iterable[Record]) -> TextTable:
    """The strengths of every method, the settings in which methods differ, and those that they share."""
    columns = ["data", "preset", "method", "strengths compared", "of the grid", "settings of its own"]
    table = TextTable("hyper-parameters", "Hyper-parameters", columns, [])
    for (dataset, preset), own in by_grid(records):
        title = DATA_SETS[dataset].title
        shared = _shared(own)
        for variant, runs in by_variant(own):
            run = runs[0].run
            compared = sorted({record.run.strength for record in runs})
            grid = strengths_of(preset, dataset, run.method)
            share = "all" if set(compared) >= set(grid) else f"{len(compared)} of {len(grid)}"
            settings = {name: value for name, value in _read_by(run).items() if name not in shared}
            table.rows.append(
                [title, preset, variant, numbers_text(compared), share, _text(settings) or None]
            )
        table.notes.append(f"{title}, preset {preset}, all methods: {_text(shared)}.")
    return table


def training_time_table(records: Iterable[Record]) -> TextTable:
    """The training time, by method and device."""
    columns = ["data", "preset", "method", "device", "runs", "seconds per run"]
    table = TextTable("training-times", "Training time", columns, [])
    for (dataset, preset), own in by_grid(records):
        for variant, runs in by_variant(own):
            for device in sorted({record.device for record in runs}):
                seconds = [record.seconds for record in runs if record.device == device]
                spread = stdev(seconds) if len(seconds) > 1 else None
                cells = [DATA_SETS[dataset].title, preset, variant, device, str(len(seconds))]
                table.rows.append([*cells, Measured(fmean(seconds), spread)])
    return table


def _read_by(run: Run) -> dict[str, Any]:
    """The settings that a run's method reads."""
    return {
        name: value
        for name, value in run.settings.items()
        if run.method in _METHODS_OF.get(name, (run.method,))
    }


def _shared(records: Sequence[Record]) -> dict[str, Any]:
    """The settings that are the same for all methods, except for those that only some of them read."""
    settings = [record.run.settings for record in records]
    return {
        name: value
        for name, value in settings[0].items()
        if name not in _METHODS_OF and all(each.get(name) == value for each in settings)
    }


def _text(settings: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {'-'.join(map(str, value)) if isinstance(value, tuple | list) else value}"
        for name, value in settings.items()
    )
