"""The table of results/faults.md."""

from __future__ import annotations

from pathlib import Path

from benchmarks._commit import current_commit

from faults.cases import Tally
from faults.forks import FAULTS

RESULTS = Path(__file__).parents[3] / "results" / "faults.md"
_OUTCOMES = ("done", "refused", "interrupted", "killed")


def _known() -> dict[str, str]:
    """The rows of commands that were tried before."""
    lines = RESULTS.read_text(encoding="utf-8").split("\n") if RESULTS.exists() else []
    return {line.split("`")[1]: line for line in lines if line.startswith("| `")}


def write_results(tallies: dict[str, Tally]) -> None:
    """Write how many cases there were of each command, and how they ended."""
    lines = [
        "# Faults while files are written",
        "",
        f"Every command that writes, with a fault at every change that it makes to files ({', '.join(fault.name for fault in FAULTS)}), "
        "killed at random moments (`make faults`: at 200), into a read-only folder, with 64 open files, with little memory and with a "
        "clock that went back; each from an empty folder and over what an earlier command wrote. After each: what can be read is the old or the "
        "new one, the command typed again succeeds, and no other file is left than without a fault. `make faults` writes this table. Where "
        "fewer faults were tried than are possible, they were drawn at random (`python -m faults --only COMMAND --faults 200 --kills 20 --write`).",
        "",
        f"| command | commit | changes to files | faults possible | faults tried | cases | {' | '.join(_OUTCOMES)} | failed |",
        "| --- | --- |" + " ---: |" * (len(_OUTCOMES) + 5),
    ]
    rows, commit = _known(), current_commit()
    for name, tally in tallies.items():
        counts = " | ".join(f"{tally.outcomes[outcome]:,}" for outcome in _OUTCOMES)
        rows[name] = (
            f"| `{name}` | {commit} | {tally.steps:,} | {tally.possible:,} | {tally.tried:,} "
            f"| {tally.outcomes.total():,} | {counts} | {len(tally.failures)} |"
        )
    numbers = [[int(cell.replace(",", "")) for cell in row.split("|")[3:-1]] for row in rows.values()]
    total, failed = sum(row[3] for row in numbers), sum(row[-1] for row in numbers)
    lines += [*rows.values(), "", f"{total:,} cases, {failed} failed.", ""]
    RESULTS.write_text("\n".join(lines), encoding="utf-8")
