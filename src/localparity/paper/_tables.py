"""The paper's tables from a store, as Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from localparity._io._files import write_whole
from localparity.paper._data import DATA_SETS
from localparity.paper._runs import TITLES, strengths_of
from localparity.paper._selection import (
    MethodRuns,
    SeedMean,
    by_data_set,
    by_grid,
    by_strength,
    by_variant,
    choose_runs,
    records_of,
)
from localparity.paper._store import Record, Store
from localparity.uncertainty import noise_floor

# Tables as Markdown and CSV.


Cell = str | SeedMean | None


@dataclass
class TextTable:
    """A table of texts and measured values, None for an empty cell.

    `name` is that of its files; `marks` are "best" or "outside", by row and column; `digits` is the number of
    decimals of a measured value; `notes` are sentences below it.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: list[list[Cell]]
    marks: dict[tuple[int, int], set[str]] = field(default_factory=dict)
    digits: int = 2
    notes: list[str] = field(default_factory=list)

    def to_markdown(self) -> str:
        """The table as GitHub reads it."""
        rule = "|".join("---:" if numeric else "---" for numeric in self._numeric)
        rows = [_markdown_row(cells) for cells in self._texts()]
        lines = [f"### {self.title}", "", _markdown_row(self.columns), f"|{rule}|", *rows]
        return "\n".join([*lines, "", *(note + "\n" for note in self.notes)])

    def to_csv(self) -> str:
        """The table with all digits; deviations have a column of their own."""
        columns: list[list[object]] = []
        by_column = zip(*self.rows, strict=True)
        for name, numeric, cells in zip(self.columns, self._numeric, by_column, strict=True):
            columns.append([name, *(cell.mean if isinstance(cell, SeedMean) else cell for cell in cells)])
            if numeric:
                deviations = (cell.deviation if isinstance(cell, SeedMean) else None for cell in cells)
                columns.append([f"{name} deviation", *deviations])
        return csv_text(zip(*columns, strict=True))

    @property
    def _numeric(self) -> list[bool]:
        """Whether each column has measured values."""
        return [any(isinstance(cell, SeedMean) for cell in cells) for cells in zip(*self.rows, strict=True)]

    def _texts(self) -> Iterator[list[str]]:
        """The cells of each row as texts, the best of a column in bold."""
        for row, cells in enumerate(self.rows):
            marks = [self.marks.get((row, column), set()) for column in range(len(cells))]
            texts = [self._text(cell, own) for cell, own in zip(cells, marks, strict=True)]
            yield [f"**{text}**" if "best" in own else text for text, own in zip(texts, marks, strict=True)]

    def _text(self, cell: Cell, marks: set[str]) -> str:
        if cell is None or isinstance(cell, str):
            return cell or "-"
        spread = "" if cell.deviation is None else f" ± {cell.deviation:.{self.digits}f}"
        return f"{cell.mean:.{self.digits}f}{spread}{'*' if 'outside' in marks else ''}"


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


# What the paper reports, in percent.


METRICS = ("ap", "delta_dp", "abcc", "mcdp_0")

# Tables 1 and 2: AP, delta-DP, ABCC and MCDP(0), each with its deviation.
_RESULTS: dict[str, dict[str, tuple[float, ...]]] = {
    "adult": {
        "erm": (76.77, 0.54, 19.67, 0.94, 18.89, 0.29, 36.62, 0.53),
        "advdebias": (76.52, 0.62, 12.73, 1.81, 12.95, 1.35, 29.28, 2.26),
        "diffdp": (75.02, 0.28, 7.77, 1.20, 8.97, 0.73, 22.37, 1.11),
        "fairmixup": (74.52, 0.40, 3.87, 1.20, 7.34, 0.62, 24.87, 1.53),
        "dralign": (74.98, 0.28, 7.64, 1.22, 8.86, 0.75, 22.08, 1.19),
        "diffabcc": (74.19, 0.24, 5.90, 1.28, 7.83, 0.74, 21.18, 1.23),
        "diffmcdp": (73.90, 0.29, 6.63, 0.85, 6.09, 0.59, 11.53, 1.12),
    },
    "bank": {
        "erm": (61.02, 1.12, 9.85, 1.28, 9.83, 0.98, 25.36, 1.81),
        "advdebias": (60.54, 1.02, 1.95, 2.76, 3.95, 0.97, 17.52, 4.12),
        "diffdp": (58.36, 1.67, 1.03, 0.23, 2.13, 0.20, 14.01, 1.34),
        "fairmixup": (59.45, 1.94, 1.28, 0.44, 2.95, 0.91, 13.22, 2.91),
        "dralign": (58.19, 1.54, 1.15, 0.41, 1.98, 0.23, 13.58, 1.26),
        "diffabcc": (58.06, 1.60, 0.99, 0.44, 2.23, 0.19, 14.67, 1.35),
        "diffmcdp": (59.98, 1.80, 2.13, 0.72, 1.83, 0.28, 11.02, 1.00),
    },
    "celeba-a": {
        "erm": (84.62, 0.38, 54.32, 0.77, 37.20, 0.69, 54.85, 0.92),
        "advdebias": (84.04, 0.51, 46.90, 1.89, 30.72, 2.05, 47.45, 1.83),
        "diffdp": (82.52, 0.42, 36.03, 1.77, 21.33, 1.40, 36.40, 1.61),
        "fairmixup": (80.70, 1.03, 34.64, 3.23, 14.15, 1.63, 35.52, 2.67),
        "dralign": (80.45, 1.05, 26.36, 2.48, 15.25, 1.71, 27.38, 2.46),
        "diffabcc": (80.71, 0.86, 28.05, 1.83, 15.70, 1.67, 28.94, 1.89),
        "diffmcdp": (80.32, 0.67, 21.10, 1.94, 16.03, 1.61, 23.10, 1.66),
    },
    "celeba-w": {
        "erm": (77.16, 0.68, 34.02, 2.24, 28.94, 1.36, 48.96, 2.16),
        "advdebias": (77.19, 0.47, 31.14, 1.44, 25.27, 2.48, 43.11, 5.20),
        "diffdp": (75.04, 1.60, 23.01, 0.95, 16.99, 1.29, 29.17, 3.00),
        "fairmixup": (75.45, 0.72, 26.49, 4.48, 17.96, 1.04, 39.61, 3.01),
        "dralign": (74.86, 1.49, 22.20, 1.54, 16.95, 1.11, 29.16, 2.76),
        "diffabcc": (73.38, 1.69, 19.93, 1.85, 13.67, 0.88, 23.77, 3.44),
        "diffmcdp": (74.14, 1.26, 19.58, 1.91, 15.35, 1.26, 20.29, 1.78),
    },
}


def published(dataset: str, method: str) -> dict[str, SeedMean]:
    """What the paper reports of a method on a data set, by metric; {} if it reports nothing."""
    values = _RESULTS.get(dataset, {}).get(method, ())
    pairs = zip(values[::2], values[1::2], strict=True)
    return {metric: SeedMean(*pair) for metric, pair in zip(METRICS, pairs, strict=False)}


# The methods on one data set: each value with its deviation, beside the paper's.


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


def results_table(selections: Sequence[MethodRuns], floor: float) -> TextTable:
    """The methods on one data set with one preset: AP, delta-DP, ABCC and MCDP(0)."""
    first = selections[0]
    data, reported = DATA_SETS[first.dataset], bool(published(first.dataset, "erm"))
    titles = [METRIC_TITLES[metric] for metric in METRICS]
    columns = [name for title in titles for name in (title, f"{title}, paper")[: 1 + reported]]
    name, title = f"results-{first.dataset}-{first.preset}", f"{data.title}, preset {first.preset}"
    table = TextTable(name, title, ["method", *columns, "strengths", "seeds"], [])
    for selection in selections:
        theirs = published(first.dataset, selection.method)
        cells: list[Cell] = [selection.variant]
        for metric in METRICS:
            if is_outside(selection, metric):
                table.marks[len(table.rows), len(cells)] = {"outside"}
            cells += [selection.measured(metric), *([theirs[metric]] if reported else [])]
        table.rows.append([*cells, _strengths_text(selection), _seeds_text(selection)])
    _mark_best(table)
    table.notes.append(f"The MCDP(0) expected under parity at these group sizes is {100 * floor:.2f}.")
    if data.kind == "image":
        starts = sorted({record.start for selection in selections for record in selection.chosen.values()})
        table.notes.append(f"The networks start {' and '.join(starts)}.")
    return table


def is_outside(selection: MethodRuns, metric: str) -> bool:
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
            if isinstance(cell := cells[column], SeedMean)
        ]
        if values and not name.endswith("paper"):
            _, row = (max if name == "AP" else min)(values)
            table.marks.setdefault((row, column), set()).add("best")


def _strengths_text(selection: MethodRuns) -> str | None:
    return numbers_text(selection.strengths) if selection.chosen and selection.method != "erm" else None


def _seeds_text(selection: MethodRuns) -> str:
    seeds = len(selection.chosen) + len(selection.failed)
    if not selection.failed:
        return str(seeds)
    if not selection.chosen:
        return f"none of {seeds} keeps 95% of ERM's AP"
    return f"{len(selection.chosen)} of {seeds} keep 95% of ERM's AP"


def numbers_text(values: Iterable[float]) -> str:
    """Numbers with commas between them."""
    return ", ".join(f"{value:g}" for value in values)


# The hyper-parameters of the runs in a store.


# The settings that only some methods read.
_METHODS_OF = {"temperature": ("diffabcc", "diffmcdp"), "search": ("diffmcdp",), "memory": ("diffmcdp",)}


def hyperparameter_table(records: Iterable[Record]) -> TextTable:
    """The strengths of every method, the settings in which methods differ, and those that they share."""
    columns = ["data", "preset", "method", "strengths compared", "of the grid", "settings of its own"]
    table = TextTable("hyper-parameters", "Hyper-parameters", columns, [])
    for (dataset, preset), own in by_grid(records).items():
        title, shared = DATA_SETS[dataset].title, _shared(own)
        for variant, runs in by_variant(own):
            run = runs[0].run
            compared = sorted({record.run.strength for record in runs})
            grid = strengths_of(preset, dataset, run.method)
            share = "all" if set(compared) >= set(grid) else f"{len(compared)} of {len(grid)}"
            settings = {
                name: value
                for name, value in run.stated_settings.items()
                if name not in shared and run.method in _METHODS_OF.get(name, (run.method,))
            }
            table.rows.append(
                [title, preset, variant, numbers_text(compared), share, _text(settings) or None]
            )
        table.notes.append(f"{title}, preset {preset}, all methods: {_text(shared)}.")
    return table


def _shared(records: Sequence[Record]) -> dict[str, Any]:
    """The settings that are the same for all methods, except for those that only some of them read."""
    settings = [record.run.stated_settings for record in records]
    return {
        name: value
        for name, value in settings[0].items()
        if name not in _METHODS_OF and all(other.get(name) == value for other in settings)
    }


def _text(settings: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {'-'.join(map(str, value)) if isinstance(value, tuple | list) else value}"
        for name, value in settings.items()
    )


# What follows from the numbers: where they differ from the paper's, and which baselines beat DiffMCDP.


_COMPARED = ("mcdp_0", "mcdp_0_05")


def findings(selections: Sequence[MethodRuns]) -> list[str]:
    """What could not be reproduced, as lines of Markdown; none if there is nothing to compare."""
    lines: list[str] = []
    for own in by_data_set([runs for runs in selections if runs.preset == "paper"]):
        plain = {runs.method: runs for runs in own if runs.variant == TITLES[runs.method] and runs.chosen}
        theirs = {method: published(own[0].dataset, method) for method in plain}
        if not any(theirs.values()):
            continue
        title = DATA_SETS[own[0].dataset].title
        lines += _differences(plain)
        missing = [title for method, title in TITLES.items() if method not in plain]
        if missing:
            lines += ["", f"{title} has no chosen run of {', '.join(missing)}."]
        values = {
            "here": {TITLES[method]: runs.mean("mcdp_0") for method, runs in plain.items()},
            "in the paper": {TITLES[method]: theirs[method]["mcdp_0"].mean for method in plain},
        }
        orders = [f"- {where}: {', '.join(sorted(of, key=of.__getitem__))}" for where, of in values.items()]
        lines += ["", f"Order in MCDP(0), {title}, lowest first:", "", *orders, ""]
    lines += _failures(selections)
    return ["## What could not be reproduced", "", *lines] if lines else []


def _differences(plain: dict[str, MethodRuns]) -> list[str]:
    lines = []
    for method, selection in plain.items():
        for metric in METRICS:
            if is_outside(selection, metric):
                theirs = published(selection.dataset, method)[metric]
                lines.append(
                    f"- {DATA_SETS[selection.dataset].title}, {TITLES[method]}: {METRIC_TITLES[metric]} is "
                    f"{selection.mean(metric):.2f}, in the paper {theirs.mean:.2f} ± {theirs.deviation:.2f}"
                )
    return lines or [
        "Every value in the table is within the paper's deviation, or 1.0 point if that is larger."
    ]


def _failures(selections: Sequence[MethodRuns]) -> list[str]:
    return [
        f"- {DATA_SETS[runs.dataset].title}, preset {runs.preset}, {runs.variant}: no strength keeps 95% of "
        f"ERM's validation AP at {'seeds' if len(runs.failed) > 1 else 'seed'} "
        f"{', '.join(map(str, runs.failed))}, and nothing is reported there"
        for runs in selections
        if runs.failed
    ]


def comparison(selections: Sequence[MethodRuns], records: Sequence[Record]) -> list[str]:
    """The best form of DiffMCDP against every baseline at every strength, as lines of Markdown."""
    runs_of = by_grid(records)
    lines: list[str] = []
    for own in by_data_set(selections):
        ours = best_form(own)
        if ours is None:
            continue
        numbers = ", ".join(
            f"{METRIC_TITLES[metric]} {ours.mean(metric):.2f}" for metric in ("ap", *_COMPARED)
        )
        title = DATA_SETS[ours.dataset].title
        lines += ["", f"{title}, preset {ours.preset}: {ours.variant} has {numbers}.", ""]
        lines += better_baselines(ours, runs_of[ours.dataset, ours.preset]) or [
            "- No baseline has at least that AP and a lower MCDP(0) or MCDP(0.05), at any strength."
        ]
    return ["## DiffMCDP against the baselines", *lines, ""] if lines else []


def best_form(selections: Sequence[MethodRuns]) -> MethodRuns | None:
    """The form of DiffMCDP with the lowest mean validation MCDP(0), if one is chosen at every seed."""
    forms = [runs for runs in selections if runs.method == "diffmcdp" and runs.chosen and not runs.failed]
    return min(forms, key=lambda runs: runs.mean("mcdp_0", "val"), default=None)


def better_baselines(ours: MethodRuns, records: Sequence[Record]) -> list[str]:
    """A line for each baseline and strength whose mean test AP is at least ours and whose MCDP is lower."""
    lines = []
    for variant, runs in by_variant(records):
        if runs[0].run.method == "diffmcdp":
            continue
        for strength, own in by_strength(runs).items():
            means = {
                metric: 100.0 * fmean(record.metrics[f"test_{metric}"] for record in own)
                for metric in ("ap", *_COMPARED)
            }
            if means["ap"] < ours.mean("ap"):
                continue
            lines += [
                f"- {variant} at strength {strength:g} has AP {means['ap']:.2f} and a lower "
                f"{METRIC_TITLES[metric]}, {means[metric]:.2f}"
                for metric in _COMPARED
                if means[metric] < ours.mean(metric)
            ]
    return lines


_HOW = (
    "All values are percentages on the test part: mean ± deviation over the seeds (sample deviation), beside "
    "what the paper reports. Of a method's strengths each seed takes the one with the lowest validation "
    "MCDP(0) among those that keep 95% of ERM's validation AP. delta-DP is the difference of the shares "
    "with a score above 0.5. Bold is the best of a column. A star marks a value that is further from the "
    "paper's than the paper's deviation, or than 1.0 point if that is larger."
)


def write_tables(store: Store, out: Path) -> list[Path]:
    """Write every table as CSV, all of them as one Markdown file, and return the paths."""
    records = records_of(store)
    selections = choose_runs(records)
    runs = {(record.run.dataset, record.run.preset): record.run for record in reversed(records)}
    results = []
    for own in by_data_set(selections):
        sizes = store.scores(runs[own[0].dataset, own[0].preset]).group_sizes()
        results.append(results_table(own, float(noise_floor(sizes, random_state=0))))
    tables = [*results, hyperparameter_table(records)]
    page = [
        "# Results",
        "",
        _HOW,
        "",
        _made_with(records),
        "",
        *(table.to_markdown() for table in tables),
        *comparison(selections, records),
        *findings(selections),
    ]
    written = {out / "tables.md": "\n".join(page).rstrip() + "\n", out / "runs.csv": runs_csv(records)}
    for table in tables:
        written[out / f"{table.name}.csv"] = table.to_csv()
    for path, text in written.items():
        write_whole(path, text.encode())
    return list(written)


def runs_csv(records: Sequence[Record]) -> str:
    """A line for each run: its configuration, its metrics as fractions, and its time."""
    rows = [{**asdict(record.run), **record.metrics, "seconds": record.seconds} for record in records]
    return csv_text([list(rows[0]), *([row[name] for name in rows[0]] for row in rows)])


def _made_with(records: Sequence[Record]) -> str:
    devices = sorted({record.device for record in records})
    versions = sorted({f"{name} {value}" for record in records for name, value in record.versions.items()})
    return f"{len(records)} runs, trained with {', '.join(versions)}, on {', '.join(devices)}."
