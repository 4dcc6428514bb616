"""How long training and the algorithms take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, stdev

from localparity.paper._algorithm_study import AlgorithmStudy
from localparity.paper._data import DATA_SETS
from localparity.paper._published import ALGORITHM_1_SECONDS
from localparity.paper._selection import Measured, by_grid, by_variant
from localparity.paper._store import Record
from localparity.paper._text_tables import Cell, TextTable


def training_time_table(records: Iterable[Record]) -> TextTable:
    """How long training takes, by method and device."""
    table = TextTable(
        "training-times", "Training time", ["data", "preset", "method", "device", "runs", "seconds a run"], []
    )
    for (dataset, preset), own in by_grid(records):
        for variant, runs in by_variant(own):
            for device in sorted({record.device for record in runs}):
                seconds = [record.seconds for record in runs if record.device == device]
                row: list[Cell] = [DATA_SETS[dataset].title, preset, variant, device, str(len(seconds))]
                table.rows.append([*row, _seconds_of(seconds)])
    return table


def algorithm_time_table(studies: Sequence[AlgorithmStudy]) -> TextTable:
    """Seconds of Algorithm 1 and of what replaces it (Table 4)."""
    columns = [
        "data",
        "test rows",
        "Algorithm 1 in the paper (s)",
        "Algorithm 1 here (s)",
        "the same, lean (s)",
        "Algorithm 2, K=32, epsilon 0.05 (ms)",
        "exact profile, every epsilon (ms)",
        "profile faster than Algorithm 1",
    ]
    table = TextTable("algorithm-times", "Time of the algorithms", columns, [], digits=3)
    for study in studies:
        theirs = ALGORITHM_1_SECONDS.get(study.dataset)
        (two,) = [each for each in study.approximations if (each.epsilon, each.k) == (0.05, 32)]
        table.rows.append(
            [
                DATA_SETS[study.dataset].title,
                f"{study.rows:,}",
                None if theirs is None else Measured(*theirs),
                Measured(study.algorithm_1, study.algorithm_1_deviation),
                f"{study.algorithm_1_lean:.3f}",
                f"{1000 * two.seconds:.2f}",
                f"{1000 * study.profile:.2f}",
                f"{study.algorithm_1 / study.profile:,.0f} times",
            ]
        )
    table.notes.append(
        "Algorithm 1 makes matrices of whole numbers as the published code does, 1,024 windows at a time; "
        "the lean form keeps some windows in the cache. The paper's times are from another machine."
    )
    return table


def _seconds_of(seconds: Sequence[float]) -> Measured:
    return Measured(fmean(seconds), stdev(seconds) if len(seconds) > 1 else None)
