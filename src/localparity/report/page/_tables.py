"""The page's tables, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localparity.audit._wording import interval_text, p_value_text, pair_name
from localparity.counts._comparison import group_text
from localparity.metrics._window import number_text, percent

if TYPE_CHECKING:
    from localparity.audit._audit import Audit


@dataclass(frozen=True)
class PageTable:
    """A table that a reader can sort.

    Attributes
    ----------
    name : str
        The element's identifier.
    caption : str
        What it shows.
    names : tuple of str
        The columns of text, which come first.
    numbers : tuple of str
        The columns of numbers.
    rows : tuple
        The cells, all as text.
    """

    name: str
    caption: str
    names: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def models_table(audits: Mapping[str, Audit]) -> PageTable:
    """The models side by side: MCDP of the worst pair at each epsilon of the first model."""
    epsilons = [finding.epsilon for finding in next(iter(audits.values())).findings]
    rows = []
    for name, audit in audits.items():
        found = {finding.epsilon: percent(finding.mcdp) for finding in audit.findings}
        first = audit.findings[0]
        cells = [found.get(epsilon, "-") for epsilon in epsilons]
        p_value = p_value_text(None if first.test is None else first.test.p_value)
        rows.append((name, *cells, interval_text(first.interval), p_value))
    columns = [f"MCDP({epsilon:g})" for epsilon in epsilons]
    numbers = (*columns, f"interval of {columns[0]}", "p-value")
    return PageTable("models", "The models side by side", ("model",), numbers, tuple(rows))


def findings_table(audits: Mapping[str, Audit]) -> PageTable:
    """MCDP of the worst pair at each epsilon, with interval and test."""
    confidence = next(iter(audits.values())).findings[0].interval.confidence
    rows = []
    for name, audit in audits.items():
        for place, finding in enumerate(audit.findings):
            pair = audit.worst_pair(finding)
            found = (
                f"{finding.epsilon:g}",
                percent(finding.mcdp),
                interval_text(pair.intervals[place]),
                p_value_text(None if pair.p_values is None else pair.p_values[place]),
                "-" if finding.test is None else percent(finding.test.null_mean),
            )
            rows.append((*_model_cell(audits, name), pair_name(pair), *found))
    numbers = ("epsilon", "MCDP", f"{100 * confidence:g}% interval", "p-value", "expected under parity")
    names = (*_model_column(audits), "worst pair")
    return PageTable("findings", "MCDP of the worst pair", names, numbers, tuple(rows))


def pairs_table(audits: Mapping[str, Audit], most: int) -> PageTable:
    """All pairs at all epsilons, the worst pair first and those too small to judge last."""
    labelled = any(pair.label is not None for audit in audits.values() for pair in audit.pairs)
    rows = []
    for name, audit in audits.items():
        for pair in audit.pairs[:most]:
            cells = (*_model_cell(audits, name), pair_name(pair), *((str(pair.label),) if labelled else ()))
            for place, finding in enumerate(audit.findings):
                p_value = None if pair.p_values is None else pair.p_values[place]
                found = (
                    percent(pair.mcdp[place]),
                    interval_text(pair.intervals[place]),
                    p_value_text(p_value),
                )
                areas = (percent(pair.abcc), percent(pair.delta_dp))
                rows.append((*cells, f"{finding.epsilon:g}", *found, *areas))
    confidence = next(iter(audits.values())).confidence
    numbers = ("epsilon", "MCDP", f"{100 * confidence:g}% interval", "adjusted p-value", "ABCC", "delta-DP")
    columns = (("label",) if labelled else ()) + numbers
    caption = "Pairs, the worst first; intervals and p-values hold for all of a model's pairs and epsilons"
    return PageTable("pairs", caption, (*_model_column(audits), "pair"), columns, tuple(rows))


def groups_table(audits: Mapping[str, Audit]) -> PageTable:
    """The groups: how many they are and how they score on average."""
    groups = [(name, group) for name, audit in audits.items() for group in audit.groups]
    labelled = any(group.label is not None for _, group in groups)
    rows = [
        (
            *_model_cell(audits, name),
            group_text(group.group),
            *((str(group.label),) if labelled else ()),
            f"{group.rows:,}" + (" (too small to judge)" if group.too_small else ""),
            f"{group.effective_rows:,.1f}",
            number_text(group.mean_score, 4),
        )
        for name, group in groups
    ]
    numbers = (("label",) if labelled else ()) + ("rows", "effective rows", "mean score")
    return PageTable("groups", "Groups", (*_model_column(audits), "group"), numbers, tuple(rows))


def _model_column(audits: Mapping[str, Audit]) -> tuple[str, ...]:
    return ("model",) if len(audits) > 1 else ()


def _model_cell(audits: Mapping[str, Audit], name: str) -> tuple[str, ...]:
    return (name,) if len(audits) > 1 else ()
