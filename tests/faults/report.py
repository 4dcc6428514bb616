"""The table of results/faults.md."""

from __future__ import annotations

from pathlib import Path

from faults.cases import Tally
from faults.forks import FAULTS

RESULTS = Path(__file__).parents[2] / "results" / "faults.md"
_OUTCOMES = ("done", "refused", "interrupted", "killed")


def write_results(tallies: dict[str, Tally], kills: int) -> None:
    """Write how many cases there were of each command, and how they ended."""
    total = sum(tally.outcomes.total() for tally in tallies.values())
    failures = [failure for tally in tallies.values() for failure in tally.failures]
    lines = [
        "# Faults while files are written",
        "",
        f"Every command that writes, with a fault at every change that it makes to files ({', '.join(fault.name for fault in FAULTS)}), "
        f"and killed at {kills} random moments; each from an empty folder and over what an earlier command wrote. After each: what can be read is the old or the new one, the "
        "command typed again succeeds, and no other file is left than without a fault. `make faults` writes this table.",
        "",
        f"| command | changes to files | cases | {' | '.join(_OUTCOMES)} | failed |",
        "| --- | ---: | ---: |" + " ---: |" * (len(_OUTCOMES) + 1),
    ]
    for name, tally in tallies.items():
        counts = " | ".join(f"{tally.outcomes[outcome]:,}" for outcome in _OUTCOMES)
        lines.append(
            f"| `{name}` | {tally.steps:,} | {tally.outcomes.total():,} | {counts} | {len(tally.failures)} |"
        )
    lines += ["", f"{total:,} cases, {len(failures)} failed.", *(f"- {failure}" for failure in failures), ""]
    RESULTS.write_text("\n".join(lines), encoding="utf-8")
