"""An audit on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from localparity.audit._wording import interval_text, p_value_text, pair_name
from localparity.counts._comparison import group_text
from localparity.metrics._window import number_text, percent

if TYPE_CHECKING:
    from localparity.audit._audit import Audit

MOST_PAIRS = 10


def terminal_parts(audit: Audit, *, title: str = "Audit") -> Iterator[RenderableType]:
    """An audit for rich: the groups, MCDP at each epsilon, the worst windows in words, and the worst pairs.

    Examples
    --------
    >>> import localparity as lp
    >>> from rich.console import Console
    >>> found = lp.audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> next(terminal_parts(found)).plain
    'Audit: demographic parity, between groups'
    """
    compared = f"{audit.comparison.criterion}, {audit.comparison.compare}".replace("_", " ")
    headline = f"{escape(title)}: {compared}"
    yield Text.from_markup(f"[bold]{headline}[/bold]")
    yield _verdict(audit)
    yield _groups_table(audit)
    yield _findings_table(audit)
    yield _sentences(audit)
    if len(audit.pairs) > 1:
        yield _pairs_table(audit)
    yield _averages_table(audit)
    if len(audit.pairs) > MOST_PAIRS:
        more = len(audit.pairs) - MOST_PAIRS
        yield Text(f"... and {more} pairs more; --json has them all.", style="dim")
    if audit.left_out:
        names = ", ".join(f"{group_text(left.group)} ({left.rows:,})" for left in audit.left_out)
        yield Text(f"Left out as too small: {names}.")
    yield Text("\n".join(audit.assumptions), style="dim")


def _verdict(audit: Audit) -> RenderableType:
    found = audit.verdict
    sentences = [Text(found.headline, style="bold"), Text(f"{found.where} {found.how_sure}")]
    return Padding(Group(*sentences, *map(Text, found.notes)), (0, 0, 1, 0))


def _groups_table(audit: Audit) -> Table:
    table = Table(title="Groups", title_justify="left")
    labelled = any(group.label is not None for group in audit.groups)
    weighted = any(group.effective_rows != group.rows for group in audit.groups)
    table.add_column("group", overflow="fold")
    if labelled:
        table.add_column("label", justify="right")
    table.add_column("rows", justify="right")
    if weighted:
        table.add_column("effective rows", justify="right")
    table.add_column("mean score", justify="right")
    for group in audit.groups:
        cells = [escape(group_text(group.group) + (" (too small to judge)" if group.too_small else ""))]
        cells += [str(group.label)] if labelled else []
        cells += [f"{group.rows:,}"]
        cells += [f"{group.effective_rows:,.1f}"] if weighted else []
        table.add_row(*cells, number_text(group.mean_score, 4))
    return table


def _findings_table(audit: Audit) -> Table:
    confidence = audit.confidence
    small = any(audit.worst_pair(finding).too_small for finding in audit.findings)
    title = "MCDP of the worst pair" + (", which is too small to judge" if small else "")
    table = Table(title=title, title_justify="left")
    for name in ("epsilon", "MCDP", f"{100 * confidence:g}% interval", "p-value", "expected under parity"):
        table.add_column(name, justify="right")
    for place, finding in enumerate(audit.findings):
        pair = audit.worst_pair(finding)
        table.add_row(
            f"{finding.epsilon:g}",
            percent(finding.mcdp),
            interval_text(pair.intervals[place]),
            p_value_text(None if pair.p_values is None else pair.p_values[place]),
            "-" if finding.test is None else percent(finding.test.null_mean),
        )
    return table


def _sentences(audit: Audit) -> RenderableType:
    lines = [
        Text(f"epsilon {finding.epsilon:g}: {finding.window.sentence_for(audit.higher_is)}")
        for finding in audit.findings
    ]
    return Padding(Group(*lines), (0, 0, 1, 0))


def _pairs_table(audit: Audit) -> Table:
    table = Table(title="Pairs, the worst first", title_justify="left")
    table.add_column("pair", overflow="fold")
    labelled = any(pair.label is not None for pair in audit.pairs)
    for name in (*(["label"] if labelled else []), "epsilon", "MCDP", "interval", "p-value"):
        table.add_column(name, justify="right", no_wrap=True)
    for pair in audit.pairs[:MOST_PAIRS]:
        cells = [escape(pair_name(pair))]
        cells += [str(pair.label)] if labelled else []
        for place, finding in enumerate(audit.findings):
            p_value = None if pair.p_values is None else pair.p_values[place]
            numbers = (percent(pair.mcdp[place]), interval_text(pair.intervals[place]), p_value_text(p_value))
            table.add_row(*cells, f"{finding.epsilon:g}", *numbers)
            cells = [""] * len(cells)
        table.add_section()
    return table


def _averages_table(audit: Audit) -> Table:
    delta_dp = "delta-DP" if audit.threshold is None else f"delta-DP at {number_text(audit.threshold)}"
    table = Table(title="Averages over thresholds", title_justify="left")
    table.add_column("pair", overflow="fold")
    labelled = any(pair.label is not None for pair in audit.pairs)
    for name in (*(["label"] if labelled else []), "ABCC", delta_dp):
        table.add_column(name, justify="right")
    for pair in audit.pairs[:MOST_PAIRS]:
        label = [str(pair.label)] if labelled else []
        table.add_row(escape(pair_name(pair)), *label, percent(pair.abcc), percent(pair.delta_dp))
    return table
