"""The results under results/, and the survivors that nobody has explained."""

from __future__ import annotations

import csv
import io
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mutation.mutants import Mutant
from mutation.selection import ROOT

EXPLAINED = Path(__file__).with_name("explained.toml")
RESULTS = ROOT / "results"

Row = tuple[Mutant, dict[str, Any]]
"""A mutant and what became of it: its `result`, and what it was killed `by`."""


@dataclass(frozen=True)
class Explanation:
    """Why some survivors of one line are accepted.

    `now` names them by the line that they made of `was`; an ellipsis (…) in it stands for any text.
    """

    file: str
    function: str
    was: str
    now: tuple[str, ...]
    why: str

    def covers(self, mutant: Mutant) -> bool:
        """Whether it speaks of a mutant."""
        return (
            mutant.file.endswith(f"/{self.file}")
            and (mutant.function, mutant.was) == (self.function, self.was)
            and any(fnmatchcase(_plain(mutant.now), _pattern(now)) for now in self.now)
        )


def _plain(line: str) -> str:
    """A line without its spaces: a new number comes with one of its own."""
    return "".join(line.split())


def _pattern(now: str) -> str:
    """A pattern in which only the ellipsis is special: code has stars and brackets of its own."""
    escaped = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in _plain(now))
    return escaped.replace("…", "*")


def explanations(path: Path = EXPLAINED) -> list[Explanation]:
    """Those of `explained.toml`."""
    if not path.exists():
        return []
    entries = tomllib.loads(path.read_text())["survivors"]
    return [Explanation(**{**entry, "now": tuple(entry["now"])}) for entry in entries]


def unexplained(rows: Sequence[Row], *, whole: bool) -> list[str]:
    """What is wrong: survivors without an explanation and, of a whole run, explanations without a survivor."""
    known = explanations()
    survivors = [mutant for mutant, row in rows if row["result"] == "survived"]
    problems = [
        f"{mutant.file}:{mutant.line} survived and is not explained: {mutant.was} -> {mutant.now}"
        for mutant in survivors
        if not any(each.covers(mutant) for each in known)
    ]
    if whole:
        problems += [
            f"{each.file} {each.function}: no survivor is explained by: {each.was}"
            for each in known
            if not any(each.covers(mutant) for mutant in survivors)
        ]
    return problems


def write_results(rows: Sequence[Row]) -> None:
    """A table of all mutants, and a page with the counts of each file and the survivors."""
    known = explanations()
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["file", "line", "function", "was", "now", "result", "by", "why"])
    for mutant, row in rows:
        why = _why(mutant, known) if row["result"] == "survived" else ""
        place = (mutant.file, mutant.line, mutant.function)
        writer.writerow([*place, mutant.was, mutant.now, row["result"], row["by"], why])
    (RESULTS / "mutants.csv").write_text(file.getvalue())
    (RESULTS / "mutants.md").write_text("\n".join(_page(rows, known)) + "\n")


def _why(mutant: Mutant, known: Sequence[Explanation]) -> str:
    return next((each.why for each in known if each.covers(mutant)), "")


def _page(rows: Sequence[Row], known: Sequence[Explanation]) -> list[str]:
    results = Counter((mutant.file, row["result"]) for mutant, row in rows)
    lines = [
        "# Mutants",
        "",
        "Written by `make mutants`, each mutant in `mutants.csv`: of every small change to a line of",
        "`localparity.metrics` and `localparity.uncertainty`, whether a test fails. A change that makes the tests run",
        "for ever, or crash, counts as killed.",
        "",
        "| file | mutants | killed | survived |",
        "|---|---:|---:|---:|",
    ]
    for file in sorted({mutant.file for mutant, _ in rows}):
        total = sum(number for (name, _), number in results.items() if name == file)
        survived = results[file, "survived"]
        lines.append(
            f"| `{file.removeprefix('src/localparity/')}` | {total} | {total - survived} | {survived} |"
        )
    survived = sum(number for (_, result), number in results.items() if result == "survived")
    lines += [f"| all | {len(rows)} | {len(rows) - survived} | {survived} |", "", "## Survivors, and why", ""]
    for each in known:
        places = [mutant for mutant, row in rows if row["result"] == "survived" and each.covers(mutant)]
        if places:
            where = f"`{places[0].file.removeprefix('src/localparity/')}:{places[0].line}`"
            lines += [f"- {where} `{each.was}`", f"  {each.why}"]
            lines += [f"  - `{mutant.now}`" for mutant in places]
    return lines
