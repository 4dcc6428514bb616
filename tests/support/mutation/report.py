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
from results_page import RESULTS, write_page

EXPLAINED = Path(__file__).with_name("explained.toml")

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


def write_results(rows: Sequence[tuple[Mutant, dict[str, Any] | None]], *, of: Sequence[Mutant]) -> None:
    """Write what was tried `of` all mutants to `mutants.csv`; to `mutants.md` how many there are, and the survivors."""
    known = explanations()
    tried = [(mutant, row) for mutant, row in rows if row is not None]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["file", "line", "function", "was", "now", "result", "by", "why"])
    for mutant, row in tried:
        why = _why(mutant, known) if row["result"] == "survived" else ""
        place = (mutant.file, mutant.line, mutant.function)
        writer.writerow([*place, mutant.was, mutant.now, row["result"], row["by"], why])
    (RESULTS / "mutants.csv").write_text(file.getvalue())
    text = (
        "Written by `make mutants`, each mutant in `mutants.csv`: of every small change to a line of\n"
        "`localparity.counts`, `localparity.metrics` and `localparity.uncertainty`, whether a test fails. A change that\n"
        "makes the tests run for ever, or crash, counts as killed."
    )
    if len(rows) < len(of):
        text += f"\n\nA sample, the same each time: {len(rows):,} of {len(of):,} mutants (`--sample {len(rows)}`)."
    counts = _counts(Counter(mutant.file for mutant in of), tried)
    write_page("mutants", "Mutants", text, counts, _survivors(tried, known))


def _why(mutant: Mutant, known: Sequence[Explanation]) -> str:
    return next((each.why for each in known if each.covers(mutant)), "")


def _counts(mutants: Counter[str], tried: Sequence[Row]) -> list[dict[str, str | int]]:
    survived = Counter(mutant.file for mutant, row in tried if row["result"] == "survived")
    killed = Counter(mutant.file for mutant, _ in tried) - survived
    columns = {"mutants": mutants, "tried": killed + survived, "killed": killed, "survived": survived}
    rows: list[dict[str, str | int]] = [
        {"file": f"`{_short(file)}`", **{name: counts[file] for name, counts in columns.items()}}
        for file in sorted(mutants)
    ]
    return [*rows, {"file": "all", **{name: counts.total() for name, counts in columns.items()}}]


def _survivors(tried: Sequence[Row], known: Sequence[Explanation]) -> list[str]:
    lines = ["## Survivors, and why", ""]
    survivors = [mutant for mutant, row in tried if row["result"] == "survived"]
    for each in known:
        covered = [mutant for mutant in survivors if each.covers(mutant)]
        if covered:
            lines += [f"- `{_short(covered[0].file)}:{covered[0].line}` `{each.was}`: {each.why}"]
            lines += [f"  - `{mutant.now}`" for mutant in covered]
    return lines


def _short(file: str) -> str:
    return file.removeprefix("src/localparity/")
