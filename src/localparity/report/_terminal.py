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

from localparity.audit._missing import bounds_sentences
from localparity.metrics._window import percent
from localparity.report._header import header_line
from localparity.report._tables import (
    ReportTable,
    delta_dp_name,
    findings_table,
    groups_table,
    paired_table,
    pairs_table,
    scoring_tables,
    strata_table,
)

if TYPE_CHECKING:
    from localparity.audit._audit import Audit
    from localparity.audit._ratios import RatioResult
    from localparity.audit._same_people import PairedModels
    from localparity.metrics import ScoringRates

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
