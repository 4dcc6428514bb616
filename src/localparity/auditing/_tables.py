"""What a document is made of: sections of sentences and tables, as plain data for every form of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Self

from localparity._text import (
    capitalised,
    group_text,
    number_text,
    outward_percent,
    pair_text,
    visible,
)
from localparity.auditing._wording import over_what, p_value_at, pair_name

if TYPE_CHECKING:
    from localparity.auditing._answer import Answer
    from localparity.auditing._audit import Audit
    from localparity.auditing._findings import PairSummary
    from localparity.metrics import ScoringRates
    from localparity.uncertainty import WithinStrata


class Shown(str):
    """A number as a text, with the number that it shows; of an interval, both ends."""

    __slots__ = ("high", "value")

    value: float
    high: float | None

    def __new__(cls, text: str, value: float, high: float | None = None) -> Self:
        """A text that shows a number or two."""
        found = super().__new__(cls, text)
        found.value, found.high = value, high
        return found


def _tenths(fraction: float) -> str:
    return f"{100.0 * fraction:.1f}%"


def _percent(fraction: float) -> Shown:
    return Shown(_tenths(fraction), fraction)


def _p_value(audit: Audit, place: int, p_value: float | None) -> str:
    text = p_value_at(audit, place, p_value)
    return text if p_value is None else Shown(text, p_value)


def _ends(low: float, high: float) -> Shown:
    return Shown(outward_percent(low, high), low, high)


@dataclass(frozen=True)
class ReportTable:
    """A table of text, columns of names first; rows that share their first `shared` cells belong together."""

    name: str
    caption: str
    names: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shared: int = 0

    def first(self, most: int) -> ReportTable:
        """The same with the first rows that belong together, so many times for each model."""
        if not self.shared:
            return replace(self, rows=self.rows[:most])
        of_models = self.names[:1] == ("model",)
        together = [list(rows) for _, rows in groupby(self.rows, key=lambda row: row[: self.shared])]
        times: Counter[str] = Counter()
        rows: list[tuple[str, ...]] = []
        for some in together:
            model = some[0][0] if of_models else ""
            times[model] += 1
            rows += some if times[model] <= most else []
        return replace(self, rows=tuple(rows))


@dataclass(frozen=True)
class Section:
    """A part of a document: what it is about, in sentences, facts and tables."""

    name: str
    heading: str
    sentences: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[ReportTable, ...] = ()
    model: str | None = None


def models_table(audits: Mapping[str, Audit]) -> ReportTable:
    """The models side by side: MCDP of the worst pair at each epsilon of the first model."""
    epsilons = [finding.epsilon for finding in next(iter(audits.values())).findings]
    rows = []
    for name, audit in audits.items():
        found = {finding.epsilon: _percent(finding.mcdp) for finding in audit.findings}
        cells = [found.get(epsilon, "-") for epsilon in epsilons]
        rows.append((name, *cells, *numbers_of(audit, 0)[1:]))
    columns = [f"MCDP({epsilon:g})" for epsilon in epsilons]
    numbers = (*columns, f"interval of {columns[0]}", "p-value")
    return ReportTable("models", "The models side by side", ("model",), numbers, tuple(rows))


def numbers_of(audit: Audit, place: int) -> tuple[str, str, str]:
    """The largest MCDP of all pairs at an epsilon, its interval and the p-value of parity in all of them."""
    finding = audit.findings[place]
    p_value = None if finding.test is None else finding.test.p_value
    ends = _ends(finding.interval.low, finding.interval.high)
    return _percent(finding.mcdp), ends, _p_value(audit, place, p_value)


def findings_table(audits: Mapping[str, Audit]) -> ReportTable:
    """MCDP of the audits at each epsilon, with interval and test, and whose it is."""
    several = any(len(audit.pairs) > 1 for audit in audits.values())
    rows = []
    for name, audit in audits.items():
        for place, finding in enumerate(audit.findings):
            expected = "-" if finding.test is None else _percent(finding.test.null_mean)
            pair = _pair(audit, audit.worst_pair(finding))
            cells = (*_if(len(audits) > 1, name), *_if(several, pair))
            epsilon = Shown(f"{finding.epsilon:g}", finding.epsilon)
            rows.append((*cells, epsilon, *numbers_of(audit, place), expected))
    names = (*_if(len(audits) > 1, "model"), *_if(several, "worst pair (people)"))
    numbers = (*_number_columns(audits), "expected under parity")
    caption = "MCDP at each epsilon"
    if several:
        caption = (
            "MCDP, the largest of all pairs, with an interval and a p-value of the largest, whichever pair "
            "that is; each pair has its own"
        )
    return ReportTable("findings", caption, names, numbers, tuple(rows))


def shares_table(answer: Answer) -> ReportTable:
    """The share of each group above the cutoff of an answer, the largest first."""
    rows = [
        (
            group.name + (" (few people)" if group.few else ""),
            Shown(f"{group.people:,}", group.people),
            "-" if group.share_above is None else _percent(group.share_above),
            "-" if group.low is None or group.high is None else _ends(group.low, group.high),
        )
        for group in answer.groups
    ]
    above = "share above the cutoff" if answer.cutoff is None else f"share above {answer.cutoff_text}"
    numbers = ("people", above, "interval")
    return ReportTable("shares", "Groups, from the highest share on", ("group",), numbers, tuple(rows))


def summary_of(audit: Audit) -> str:
    """The answer, and MCDP at each epsilon, as text."""
    head = _number_columns({"": audit})
    places = range(len(audit.findings))
    rows = [(f"{audit.findings[place].epsilon:g}", *numbers_of(audit, place)) for place in places]
    lines = [f"{a:>9}  {b:>7}  {c:>17}  {d}" for a, b, c, d in (head, *rows)]
    answer = audit.answer
    if len(audit.pairs) > 1:
        first = audit.findings[0]
        worst = audit.worst_pair(first)
        among = "" if worst.label is None else f" with label {worst.label}"
        names = pair_text(worst.groups) + among
        lines.insert(
            0, f"The largest of {len(audit.pairs):,} pairs, at epsilon {audit.findings[0].epsilon:g} {names}:"
        )
    return "\n".join([answer.headline, f"{answer.rates}. {answer.sure}", *lines])


def pairs_table(audits: Mapping[str, Audit], most: int) -> ReportTable:
    """The first pairs of each model at all epsilons, the largest gap first, those too small to judge last."""
    labelled = any(pair.label is not None for audit in audits.values() for pair in audit.pairs)
    rows = []
    for name, audit in audits.items():
        for pair in audit.pairs[:most]:
            cells = (
                *_if(len(audits) > 1, name),
                _pair(audit, pair),
                *_if(labelled, str(pair.label)),
                _percent(pair.abcc),
                _percent(pair.delta_dp),
            )
            rows += [(*cells, *_numbers_at(audit, pair, place)) for place in range(len(audit.findings))]
    names = (*_if(len(audits) > 1, "model"), "pair (people)")
    of_pair = (*_if(labelled, "label"), "ABCC", delta_dp_name(audits))
    last = any(pair.too_small for audit in audits.values() for pair in audit.pairs)
    caption = "Pairs, largest gap first" + (", those too small to judge last" if last else "")
    held = {over_what(audit) for audit in audits.values()}
    if len(held) == 1:
        caption += f". {held.pop().removesuffix('.')}"
    shared = len(names) + len(of_pair)
    return ReportTable("pairs", caption, names, of_pair + _number_columns(audits), tuple(rows), shared)


def groups_table(audits: Mapping[str, Audit]) -> ReportTable:
    """The groups: how many rows they have and how they score on average."""
    groups = [(name, group) for name, audit in audits.items() for group in audit.groups]
    labelled = any(group.label is not None for _, group in groups)
    weighted = any(group.effective_rows != group.rows for _, group in groups)
    rows = [
        (
            *_if(len(audits) > 1, name),
            group_text(group.group),
            *_if(labelled, str(group.label)),
            Shown(f"{group.rows:,}" + (" (too small to judge)" if group.too_small else ""), group.rows),
            *_if(weighted, Shown(f"{group.effective_rows:,.1f}", group.effective_rows)),
            Shown(number_text(group.mean_score, 4), group.mean_score),
        )
        for name, group in groups
    ]
    names = (*_if(len(audits) > 1, "model"), "group")
    numbers = (*_if(labelled, "label"), "rows", *_if(weighted, "effective rows"), "mean score")
    return ReportTable("groups", "Groups", names, numbers, tuple(rows))


def strata_table(found: WithinStrata, most: int) -> ReportTable:
    """The strata with the largest gaps: MCDP of the worst pair at each epsilon."""
    rows = [
        (
            group_text(each.stratum) + ("" if each.label is None else f", label {each.label}"),
            pair_text(each.window.groups),
            f"{each.rows:,}",
            *map(_tenths, each.mcdp),
        )
        for each in found.strata[:most]
    ]
    numbers = ("rows", *(f"MCDP({epsilon:g})" for epsilon in found.epsilons))
    return ReportTable("strata", "Strata, largest gap first", ("stratum", "worst pair"), numbers, tuple(rows))


def scoring_tables(scoring: ScoringRates) -> Iterator[ReportTable]:
    """The categories of each column and of their intersections."""
    for place, table in enumerate(scoring.tables):
        rows = [
            (group_text(each.category), *map(_cell, (each.people, each.rate, each.impact_ratio)))
            for each in table.categories
        ]
        few = f"fewer than {scoring.min_group_size}"
        rows.append(("unknown", few if table.unknown is None else f"{table.unknown:,}", "-", "-"))
        caption = f"{capitalised(scoring.name)}s by {' × '.join(map(visible, table.columns))}"
        numbers = ("people", scoring.name, "impact ratio")
        name = f"{scoring.name.removesuffix(' rate')}-{place + 1}"
        yield ReportTable(name, caption, ("category",), numbers, tuple(rows))


def scoring_facts(scoring: ScoringRates, date: str | None) -> Iterator[tuple[str, str]]:
    """What a public summary of an audit says besides rates (section 5-303 of the rule)."""
    few = f"fewer than {scoring.min_group_size}"
    unknown = "; ".join(
        f"{' × '.join(map(visible, table.columns))} {few if table.unknown is None else f'{table.unknown:,}'}"
        for table in scoring.tables
    )
    excluded = ", ".join(map(group_text, scoring.excluded)) or "none"
    yield "Date of the audit", date or "not given"
    yield "Source of the data", scoring.data_source or "not given"
    yield "Distribution date of the tool", scoring.distribution_date or "not given"
    yield "People", f"{scoring.people:,}"
    yield "People of an unknown category", unknown
    yield f"Categories below {100.0 * scoring.min_share:g}%, without a ratio", excluded


def _cell(number: float | None) -> str:
    """A count, a fraction, or nothing."""
    if number is None:
        return "-"
    return f"{number:,}" if isinstance(number, int) else f"{number:.3f}"


def delta_dp_name(audits: Mapping[str, Audit]) -> str:
    """What delta-DP is called: with the threshold, where all models have the same."""
    thresholds = {audit.threshold for audit in audits.values()}
    threshold = thresholds.pop() if len(thresholds) == 1 else None
    return "delta-DP" if threshold is None else f"delta-DP at {number_text(threshold)}"


def _number_columns(audits: Mapping[str, Audit]) -> tuple[str, ...]:
    confidence = next(iter(audits.values())).confidence
    return ("epsilon", "MCDP", f"{100 * confidence:g}% interval", "p-value")


def _numbers_at(audit: Audit, pair: PairSummary, place: int) -> tuple[str, ...]:
    """What was found of a pair at one of the audit's epsilons."""
    epsilon = audit.findings[place].epsilon
    return (
        Shown(f"{epsilon:g}", epsilon),
        _percent(pair.mcdp[place]),
        _ends(pair.intervals[place].low, pair.intervals[place].high),
        _p_value(audit, place, None if pair.p_values is None else pair.p_values[place]),
    )


def _pair(audit: Audit, pair: PairSummary) -> str:
    """A pair with its people, marked where it is too small to judge."""
    return pair_name(audit, pair) + (", too small to judge" if pair.too_small else "")


def _if(shown: bool, cell: str) -> tuple[str, ...]:
    return (cell,) if shown else ()
