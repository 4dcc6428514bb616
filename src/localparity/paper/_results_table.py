"""The methods on one data set: each value with its deviation, beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from localparity.paper._data import DATA_SETS
from localparity.paper._published import METRICS, published
from localparity.paper._selection import Measured, Selection
from localparity.paper._text_table import Cell, TextTable

METRIC_TITLES = {
    "ap": "AP",
    "delta_dp": "delta-DP",
    "abcc": "ABCC",
    "mcdp_0": "MCDP(0)",
    "mcdp_0_01": "MCDP(0.01)",
    "mcdp_0_05": "MCDP(0.05)",
    "mcdp_0_1": "MCDP(0.1)",
}
_LEAST_TOLERANCE = 1.0


def results_table(selections: Sequence[Selection], floor: float) -> TextTable:
    """The methods on one data set with one preset: AP, delta-DP, ABCC and MCDP(0)."""
    first = selections[0]
    reported = bool(published(first.dataset, "erm"))
    columns = ["method"]
    for metric in METRICS:
        columns += [METRIC_TITLES[metric], *([f"{METRIC_TITLES[metric]}, paper"] if reported else [])]
    columns += ["strengths", "seeds"]
    table = TextTable(
        f"results-{first.dataset}-{first.preset}",
        f"{DATA_SETS[first.dataset].title}, preset {first.preset}",
        columns,
        [],
    )
    for selection in selections:
        theirs = published(first.dataset, selection.method)
        cells: list[Cell] = [selection.variant]
        for metric in METRICS:
            measured = selection.measured(metric)
            if is_outside(selection, metric):
                table.marks[len(table.rows), len(cells)] = {"outside"}
            cells.append(measured)
            if reported:
                cells.append(theirs[metric])
        table.rows.append([*cells, _strengths_text(selection), _seeds_text(selection)])
    _mark_best(table)
    table.notes.append(f"The MCDP(0) expected under parity at these group sizes is {100 * floor:.2f}.")
    if DATA_SETS[first.dataset].kind == "image":
        starts = sorted({record.start for each in selections for record in each.chosen.values()})
        table.notes.append(f"The networks start {' and '.join(starts)}.")
    return table


def is_outside(selection: Selection, metric: str) -> bool:
    """Whether a value of preset "paper" is further from the paper's than its deviation, or than one point."""
    measured, theirs = selection.measured(metric), published(selection.dataset, selection.method)
    if selection.preset != "paper" or measured is None or metric not in theirs:
        return False
    allowed = max(theirs[metric].deviation or 0.0, _LEAST_TOLERANCE)
    return abs(measured.mean - theirs[metric].mean) > allowed


def _mark_best(table: TextTable) -> None:
    for column, name in enumerate(table.columns):
        values = [
            (cell.mean, row)
            for row, cells in enumerate(table.rows)
            if isinstance(cell := cells[column], Measured)
        ]
        if values and not name.endswith("paper"):
            _, row = (max if name == "AP" else min)(values)
            table.marks.setdefault((row, column), set()).add("best")


def _strengths_text(selection: Selection) -> str | None:
    return numbers_text(selection.strengths) if selection.chosen and selection.method != "erm" else None


def _seeds_text(selection: Selection) -> str:
    seeds = len(selection.chosen) + len(selection.failed)
    if not selection.failed:
        return str(seeds)
    if not selection.chosen:
        return f"none of {seeds} keeps 95% of ERM's AP"
    return f"{len(selection.chosen)} of {seeds} keep 95% of ERM's AP"


def numbers_text(values: Iterable[float]) -> str:
    """Numbers with commas between them."""
    return ", ".join(f"{value:g}" for value in values)
