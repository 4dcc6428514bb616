"""An audit on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from localparity._text import group_text, percent
from localparity._version import __version__
from localparity.auditing._missing import bounds_sentences
from localparity.auditing._tables import (
    ReportTable,
    delta_dp_name,
    findings_table,
    groups_table,
    paired_table,
    pairs_table,
    scoring_tables,
    strata_table,
)
from localparity.auditing._wording import COMPARE_WORDS, CRITERION_WORDS

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit
    from localparity.auditing._document import RatioResult
    from localparity.auditing._paired_models import PairedModels
    from localparity.metrics import ScoringRates


# What was audited: the lines that head every form of an audit.


_MOST_FILES = 20
_MOST_GROUPS = 6


def header_rows(audit: Audit) -> list[tuple[str, str]]:
    """The files, rows, groups, time, call and versions, each under its name.

    Examples
    --------
    >>> import localparity as lp
    >>> found = lp.audit(None, [0.1, 0.9], sensitive_features=["a", "b"], n_resamples=0)
    >>> header_rows(found)[:2]
    [('Rows compared', '2'), ('Groups', '2: a, b')]
    """
    found = audit.provenance
    files = () if found is None else found.files
    rows = [("File" if len(files) == 1 else f"File {i}", file.name) for i, file in enumerate(files, 1)]
    names = list(dict.fromkeys(group_text(group.group) for group in audit.groups))
    more = f" and {len(names) - _MOST_GROUPS:,} more" if len(names) > _MOST_GROUPS else ""
    rows = rows[:_MOST_FILES]
    rows += [
        ("Rows compared", f"{audit.rows:,}"),
        ("Groups", f"{len(names):,}: {', '.join(names[:_MOST_GROUPS])}{more}"),
        ("People compared", CRITERION_WORDS[audit.comparison.criterion]),
        ("Pairs compared", COMPARE_WORDS[audit.comparison.compare]),
    ]
    left_out = [f"{left}." for left in audit.left_out] + list(audit.missing.sentences)
    if left_out:
        rows.append(("Left out", " ".join(left_out)))
    if found is not None:
        columns = [(use, [name] if isinstance(name, str) else name) for use, name in found.columns.items()]
        rows.append(("Columns", "; ".join(f"{use} {', '.join(names)}" for use, names in columns)))
        rows += [("Date", found.date), ("Call", found.call)]
        rows += [(f"sha256 of {file.name}", file.sha256 or "unknown") for file in files[:_MOST_FILES]]
    seed = None if found is None else found.seed
    version = __version__ if found is None else found.version
    return [
        *rows,
        ("Resamples", f"{audit.n_resamples:,}" + ("" if seed is None else f", seed {seed}")),
        ("Version", f"localparity {version}" + ("" if found is None else f", Python {found.python}")),
    ]


def header_line(audit: Audit, *, checksum: bool = True) -> str:
    """The same on one line, for a terminal."""
    found = audit.provenance
    parts = [f"{audit.rows:,} rows"]
    if found is not None:
        if checksum and len(found.files) == 1 and found.files[0].sha256 is not None:
            parts.append(f"sha256 {found.files[0].sha256}")
        parts.append(found.date)
    seed = "" if found is None or found.seed is None else f", seed {found.seed}"
    return ", ".join([*parts, f"{audit.n_resamples:,} resamples{seed}", f"localparity {__version__}"])


MOST_PAIRS = 10
_WIDEST_NAME = 12


def terminal_parts(audit: Audit, *, title: str = "Audit") -> Iterator[RenderableType]:
    """An audit for rich: the verdict, the groups, MCDP at each epsilon, the worst windows, and the pairs.

    Examples
    --------
    >>> import localparity as lp
    >>> found = lp.audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> next(terminal_parts(found)).plain
    'Audit: demographic parity, between groups'
    """
    audits, pairs = {title: audit}, audit.pairs
    compared = f"{audit.comparison.criterion}, {audit.comparison.compare}".replace("_", " ")
    yield Text(f"{title}: {compared}", style="bold")
    yield _verdict(audit)
    yield _rich_table(groups_table(audits))
    yield _rich_table(findings_table(audits))
    yield _windows(audit)
    if len(pairs) > 1:
        yield _rich_table(pairs_table(audits, MOST_PAIRS, averages=False))
    else:
        (pair,) = pairs
        means = f"ABCC is {percent(pair.abcc)}, {delta_dp_name(audits)} is {percent(pair.delta_dp)}"
        yield Text(f"Averages over thresholds: {means}.")
    if len(pairs) > MOST_PAIRS:
        yield Text(f"... and {len(pairs) - MOST_PAIRS:,} more pairs, all in the audit's JSON.", style="dim")
    if audit.left_out:
        yield Text(f"Left out as too small: {', '.join(map(str, audit.left_out))}.")
    if audit.missing.sentences:
        yield Text(" ".join(audit.missing.sentences))
    if bounds_sentences(audit):
        yield Text("\n".join(bounds_sentences(audit)))
    if audit.within_strata is not None:
        yield Text("\n".join(audit.within_strata.sentences))
        yield _rich_table(strata_table(audit.within_strata, MOST_PAIRS))
    yield Text("\n".join(audit.assumptions), style="dim")
    if audit.provenance is not None:
        yield Text(header_line(audit), style="dim")


def ratio_parts(ratios: RatioResult | None, scoring: ScoringRates | None) -> Iterator[RenderableType]:
    """For rich, selection ratios and scoring rates, where they are asked for."""
    if ratios is not None:
        yield Text("Selection ratios", style="bold")
        *found, how = ratios.sentences
        yield Text("\n".join(found))
        yield Text(how, style="dim")
    if scoring is not None:
        yield Text("Scoring rates", style="bold")
        for table in scoring_tables(scoring):
            yield _rich_table(table)
        yield Text("\n".join(scoring.notes), style="dim")


def paired_parts(paired: PairedModels) -> Iterator[RenderableType]:
    """For rich, models on the same people: what was found in words, the table, and what it promises."""
    for name in paired.found:
        yield Text(paired.sentence(name), style="bold")
    yield _rich_table(paired_table(paired))
    yield Text(paired.promise, style="dim")


def _verdict(audit: Audit) -> RenderableType:
    found = audit.verdict
    sentences = [Text(found.headline, style="bold"), Text(f"{found.where} {found.how_sure}")]
    return Padding(Group(*sentences, *map(Text, found.notes)), (0, 0, 1, 0))


def _windows(audit: Audit) -> RenderableType:
    lines = [
        Text(f"epsilon {finding.epsilon:g}: {finding.window.sentence_for(audit.higher_is)}")
        for finding in audit.findings
    ]
    return Padding(Group(*lines), (0, 0, 1, 0))


def _rich_table(table: ReportTable) -> Table:
    """A table in which rows that belong together are one, with the cells that they share shown once."""
    shown = Table(title=table.caption, title_justify="left", show_lines=table.shared > 0)
    for name in table.names:
        shown.add_column(name, overflow="fold")
    for name in table.numbers:
        # Numbers keep to one line, so that a long name takes two.
        header = name.replace(" ", "\n", 1) if len(name) > _WIDEST_NAME else name
        shown.add_column(header, justify="right", no_wrap=True)
    shared = table.shared
    for key, rows in groupby(enumerate(table.rows), key=lambda row: row[1][:shared] or row[0]):
        together = zip(*(row[shared:] for _, row in rows), strict=True)
        shown.add_row(*map(escape, key if shared else ()), *(escape("\n".join(cells)) for cells in together))
    return shown
