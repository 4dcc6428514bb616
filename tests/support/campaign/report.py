"""The table of results/campaign.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks._commit import current_commit

RESULTS = Path(__file__).parents[3] / "results" / "campaign.md"


def write_results(outcomes: Counter[tuple[str, str]], failures: list[str]) -> None:
    """Write how many cases of each kind ended how."""
    ways = sorted({how for _, how in outcomes})
    lines = [
        "# Bad files and arguments",
        "",
        "Generated argument lists for every command, and tables, models, stores and monitors that are odd or damaged. A case fails "
        "where there is a traceback, an exit code other than 0, 1 and 2, no line that says what is wrong, ten seconds of the "
        "processor, or an MCDP(0) other than that of a slow reader of another making. `make campaign` writes this table.",
        "",
        f"| what | cases | {' | '.join(ways)} |",
        "| --- | ---: |" + " ---: |" * len(ways),
    ]
    for name in sorted({name for name, _ in outcomes}):
        counts = [outcomes[name, how] for how in ways]
        lines.append(f"| {name} | {sum(counts):,} | {' | '.join(f'{count:,}' for count in counts)} |")
    lines += ["", f"{outcomes.total():,} cases at {current_commit()}, {len(failures)} failed.", ""]
    RESULTS.write_text("\n".join(lines), encoding="utf-8")
