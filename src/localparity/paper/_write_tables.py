"""The paper's tables from a store, as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from localparity._io._files import write_whole
from localparity.paper._findings import comparison, findings
from localparity.paper._results_table import results_table
from localparity.paper._run_tables import hyperparameter_table, training_time_table
from localparity.paper._selection import by_data_set, records_of, select
from localparity.paper._store import Record, Store
from localparity.uncertainty import noise_floor

_HOW = (
    "All values are percentages on the test part: mean ± deviation over the seeds (sample deviation), beside "
    "what the paper reports. Of a method's strengths each seed takes the one with the lowest validation "
    "MCDP(0) among those that keep 95% of ERM's validation AP. delta-DP is the difference of the shares "
    "with a score above 0.5. Bold is the best of a column. A star marks a value that is further from the "
    "paper's than the paper's deviation, or than 1.0 point if that is larger."
)


def write_tables(store: Store, out: Path) -> list[Path]:
    """Write every table as LaTeX and CSV, all of them as one Markdown file, and return the paths."""
    records = records_of(store)
    selections = select(records)
    first = {(record.run.dataset, record.run.preset): record for record in reversed(records)}
    results = [
        results_table(own, _noise_floor(store, first[own[0].dataset, own[0].preset]))
        for own in by_data_set(selections)
    ]
    tables = [*results, hyperparameter_table(records), training_time_table(records)]
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
        written[out / f"{table.name}.tex"] = table.to_latex()
        written[out / f"{table.name}.csv"] = table.to_csv()
    for path, text in written.items():
        write_whole(path, text.encode())
    return list(written)


def runs_csv(records: Sequence[Record]) -> str:
    """A line for each run: its configuration, its metrics as fractions, and its time."""
    rows = [{**record.run.to_dict(), **record.metrics, "seconds": record.seconds} for record in records]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _made_with(records: Sequence[Record]) -> str:
    devices = sorted({record.device for record in records})
    versions = sorted({f"{name} {value}" for record in records for name, value in record.versions.items()})
    return f"{len(records)} runs, trained with {', '.join(versions)}, on {', '.join(devices)}."


def _noise_floor(store: Store, record: Record) -> float:
    """The MCDP(0) expected under parity at the group sizes of a run's test part."""
    return float(noise_floor(store.scores(record.run).group_sizes(), random_state=0))
