"""A document on the terminal: the answer on one screen, and everything else for those who ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from localparity._text import isolated, outward_points, percent, points, signed_points, visible
from localparity.auditing._answer import Answer, GroupShare, PairGap
from localparity.auditing._document import Document
from localparity.auditing._tables import ReportTable, Section
from localparity.auditing._wording import Step
from localparity.metrics._within import verdict_on

if TYPE_CHECKING:
    from localparity.metrics import Interval
    from localparity.models._bound import Measured
    from localparity.models._dominance import Baseline
    from localparity.models._outcomes import ModelComparison, Outcome

MOST_LINES = 25
NARROWEST, WIDEST = 60, 100
_LISTED = 10
_FEWEST_PAIRS, _FEWEST_GROUPS = 3, 4
_WIDEST_NAME = 12
_LONGEST_BAR = 28
_MARGIN = 14
_ASIDE = ("assumptions", "audited")
_STATUS = {"disparity": "DISPARITY", "none found": "NONE FOUND", "undecided": "UNDECIDED"}
_STATES = {"clear": "clear", "differs, size unknown": "size unknown", "not shown": "not shown"}
_ALWAYS = ("strata", "ratios", "scoring")
"""Sections that are there only where somebody asked for them."""
_NEVER = ("answer", "models", "left_out")
"""Sections that the answer has said."""


@dataclass(frozen=True)
class TerminalDocument:
    """A document as rich shows it: the answers of at most 25 lines, or more where that is asked for."""

    document: Document
    verbose: bool = False
    pairs: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """The lines of the answer, then the sections."""
        width = max(NARROWEST, min(options.max_width, WIDEST))
        yield from answer_lines(self.document, width, self.pairs)
        for section in self.document.sections():
            if section.name in _ALWAYS or (self.verbose and section.name not in _NEVER):
                yield from _section(section, several=len(self.document.audits) > 1)


def answer_lines(document: Document, width: int = 80, pairs: int | None = None) -> list[Text]:
    """The answer of one model, or a row for each of several, line by line."""
    if len(document.audits) > 1:
        return _models(document, width)
    (name,) = document.audits
    answer = document.answer(name)
    head = _marked(_STATUS[answer.status], answer.headline, width, "bold")
    head += _marked("", f"{answer.rates}. {answer.sure}", width)
    if answer.verdict is not None and answer.bound is not None:
        verdict, _, _ = answer.verdict.partition(" Clearest gap: ")  # which the headline is
        head += _marked("PASS" if answer.bound.passes else "FAIL", verdict, width)
    if answer.unknown is not None:
        head += _marked("UNKNOWN", answer.unknown, width)
    tail = []
    for place, line in enumerate(answer.by_outcome):
        tail += _marked("by outcome" if place == 0 else "", line, width)
    tail += _marked("note", answer.caveats, width, "dim") + _next(answer, width)
    about, blank = [_line(visible("  ".join(answer.about)), "dim")], [Text("")]
    room = MOST_LINES - len(about) - len(head) - len(tail)
    few = _pairs(answer, _FEWEST_PAIRS, width)
    if room < len(few) + len(answer.groups) + 2:
        few = _pairs(answer, _FEWEST_PAIRS - 1, width)
    groups = _groups(answer, max(room - len(few) - 2, _FEWEST_GROUPS), width)
    room -= len(groups) + len(few)
    if pairs is not None:
        few = _pairs(answer, pairs, width, everything=True)
    elif room > 2:
        few = _pairs(answer, _FEWEST_PAIRS + room - 2, width)
    return about + blank * (room > 0) + head + groups + few + blank * (room > 1) + tail


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _marked(mark: str, text: str, width: int, style: str = "") -> list[Text]:
    """A text on as many lines as it takes, with a word in the margin."""
    lines = wrap(visible(text), width - _MARGIN, break_on_hyphens=False) or [""]
    marks = [mark, *([""] * (len(lines) - 1))]
    return [_line(f"  {one:<{_MARGIN - 2}}{line}", style) for one, line in zip(marks, lines, strict=True)]


def _next(answer: Answer, width: int) -> list[Text]:
    """Options of the same command on one line, and a command that fits a model where one can."""
    options = [step for step in answer.next_steps if not step.command.startswith("localparity ")]
    lines = _options(options, width)
    fits = [step.command for step in answer.next_steps if step.command.startswith("localparity repair ")]
    return lines + (_command(fits[0], width) if fits and answer.status == "disparity" else [])


def _options(steps: Sequence[Step], width: int) -> list[Text]:
    """What can be asked for next, on one line."""
    shown = [step.command + (f" ({step.text})" if step.text else "") for step in steps if step.command]
    return _marked("next", "   ".join(shown), width) if shown else []


def _command(command: str, width: int) -> list[Text]:
    """A command that can be copied from a terminal, on as many lines as it takes."""
    parts = wrap(visible(command), width - _MARGIN - 2, break_on_hyphens=False, break_long_words=False)
    return [
        _line(" " * _MARGIN + part + (" \\" if place < len(parts) - 1 else ""), "dim")
        for place, part in enumerate(parts)
    ]


def _groups(answer: Answer, most: int, width: int) -> list[Text]:
    """A row for each group with a bar: of many, the two of the headline, the highest and the lowest."""
    groups = answer.groups
    order = sorted(range(len(groups)), key=lambda place: min(place, len(groups) - 1 - place))
    order.sort(key=lambda place: groups[place] not in (answer.first, answer.second))
    shown = order if len(groups) <= most else order[: most - 1]
    head = f"share above {answer.cutoff_text}" if answer.cutoff is not None else "group"
    names = _column([head, *(group.name for group in groups)], width - 46)
    lines = [Text(""), _line(f"  {names[0]}  {'people':>9}", "dim")]
    bar = min(_LONGEST_BAR, width - cell_len(names[0]) - 33)
    largest = max((group.share_above or 0.0) for group in groups) or 1.0
    for place, (name, group) in enumerate(zip(names[1:], groups, strict=True)):
        if place in shown:
            lines.append(_group(name, group, largest, bar))
    if len(shown) < len(groups):
        lines.append(_line(f"  and {len(groups) - len(shown):,} more", "dim"))
    return lines


def _group(name: str, group: GroupShare, largest: float, bar: int) -> Text:
    few = "few people" if group.few else ""
    start = f"  {name}  {group.people:>9,}  "
    if group.share_above is None:
        return _line(f"{start}{few}".rstrip())
    drawn = "#" * round(bar * group.share_above / largest)
    return _line(f"{start}{100.0 * group.share_above:>3.0f}%  {drawn:<{bar}}  {few}".rstrip())


def _pairs(answer: Answer, most: int, width: int, *, everything: bool = False) -> list[Text]:
    """The pairs that differ clearly, the largest sure gap first, and how many others there are."""
    if sum(answer.states.values()) == 1:
        return []
    rows = answer.pairs if everything else tuple(row for row in answer.pairs if row.state == "clear")
    shown = rows[:most]
    lines = [Text("")]
    if shown:
        title = "pairs, clear ones first" if everything else "clear gaps, by their lower end"
        head, *names = _column([title, *map(_pair_name, shown)], width - (38 if everything else 24))
        lines.append(_line(f"  {head}  points        95%", "dim"))
        for name, row in zip(names, shown, strict=True):
            interval = outward_points(row.low, row.high, unit=False)
            state = f"  {'too small' if row.too_small else _STATES[row.state]}" if everything else ""
            lines.append(_line(f"  {name}  {100.0 * row.gap:>6.0f}  {interval:>9}{state}"))
    return lines + _rest(answer, shown, width)


def _pair_name(row: PairGap) -> str:
    return row.names if row.label is None else f"{row.names}, label {row.label}"


def _rest(answer: Answer, shown: Sequence[PairGap], width: int) -> list[Text]:
    """The pair with the largest gap where it is not listed, and what is known of the others."""
    largest, lines = answer.largest, []
    if largest not in shown:
        doubt = "could be chance" if largest.state == "not shown" else f"{min(largest.people):,} people"
        interval = outward_points(largest.low, largest.high, unit=False)
        size = f"{100.0 * largest.gap:.0f} ({interval}), {doubt}"
        (name,) = _column([_pair_name(largest)], width - 12)
        parts = [f"{name}, {size}"] if cell_len(name) + len(size) <= width - 13 else [f"{name},", size]
        lines += [_line(f"  {'' if place else 'largest:':<8} {part}") for place, part in enumerate(parts)]
    small = sum(row.too_small for row in answer.pairs)
    listed = sum(row.state == "clear" for row in shown)
    counted = {
        "more clear": answer.states["clear"] - listed,
        "of unknown size": answer.states["differs, size unknown"],
        "could be chance": answer.states["not shown"] - small,
        "too small": small,
    }
    others = ", ".join(f"{number:,} {what}" for what, number in counted.items() if number)
    if others and len(shown) < sum(answer.states.values()):
        wrapped = wrap(others, width - 15)
        wrapped[-1] = wrapped[-1].ljust(width - 15) + "  --pairs all"
        lines += [_line(f"  {line}", "dim") for line in wrapped]
    return lines


def _column(names: Sequence[str], most: int) -> list[str]:
    """Names of one width on a terminal, with dots for what is cut off."""
    shown = [isolated(visible(name)) for name in names]
    wide = min(most, max(map(cell_len, shown)))
    cut = [name if cell_len(name) <= wide else set_cell_size(name, wide - 3) + "..." for name in shown]
    return [name + " " * (wide - cell_len(name)) for name in cut]


# Several models: a row for each.


def _models(document: Document, width: int) -> list[Text]:
    """The models, the largest gap first, each with its MCDP and how well it tells the labels."""
    answers = {name: document.answer(name) for name in document.audits}
    ranked = sorted(answers, key=lambda name: -answers[name].largest.gap)
    epsilon = document.first.findings[0].epsilon
    lines = [_line(f"{len(answers):,} models  " + visible("  ".join(document.first.answer.about[1:])), "dim")]
    lines += [Text(""), *_marked("MODELS", document.models_headline, width, "bold")]
    if document.paired is not None:
        for sentence in map(document.paired.sentence, document.paired.found):
            lines += _marked("", sentence, width)
    title = f"MCDP({epsilon:g}), largest first"
    head, *names = _column([title, *(document.short_names[name] for name in ranked)], width - 46)
    lines += [Text(""), _line(f"  {head}  points        95%     AP    AUC  bound", "dim")]
    most = max(_FEWEST_PAIRS, MOST_LINES - len(lines) - 5)
    for name, shown in zip(ranked[:most], names, strict=False):
        answer, interval = answers[name], document.audits[name].findings[0].interval
        word = "-" if answer.bound is None else answer.bound.verdict
        size, _, _ = points(interval.estimate, document.max_mcdp).partition(" ")
        lines.append(_model(f"{shown}  {size:>6}", interval, answer, word))
    if len(ranked) > most:
        lines.append(_line(f"  ... {len(ranked) - most:,} more models", "dim"))
    first = document.answer(ranked[0])
    lines += [Text(""), *_marked("note", first.caveats, width, "dim")]
    return lines + _options([step for step in first.next_steps if "localparity " not in step.command], width)


def _model(start: str, interval: Interval, accurate: Answer | Measured, word: str) -> Text:
    """A model's row: name and MCDP, the interval, how well it tells the labels, the verdict."""
    ends = outward_points(interval.low, interval.high, unit=False)
    both = (accurate.average_precision, accurate.auc)
    fractions = "  ".join(f"{'-' if one is None else f'{one:.3f}':>5}" for one in both)
    return _line(f"  {start}  {ends:>9}  {fractions}  {word}")


# Methods that were trained and compared: a row for each.


@dataclass(frozen=True)
class TerminalComparison:
    """Trained models side by side, with what to use first; `about` names the file and its columns."""

    comparison: ModelComparison
    about: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """The lines."""
        yield from comparison_lines(
            self.comparison, self.about, max(NARROWEST, min(options.max_width, WIDEST))
        )


def comparison_lines(comparison: ModelComparison, about: str, width: int = 80) -> list[Text]:
    """The answer, the models with the smallest MCDP on test data first, and what is known of them."""
    opening, *others = comparison.sentences
    is_within = comparison.recommended in comparison.within_on_test
    mark, baseline = "USE" if is_within else "ABOVE", comparison.baseline
    if baseline is not None:
        mark = "DOMINATED" if comparison.dominating else "NONE FOUND"
    lines = [_line(visible(f"{about}  {sum(comparison.rows):,} people"), "dim"), Text("")]
    lines += _marked(mark, opening, width, "bold")
    ranked = sorted(comparison.outcomes, key=lambda outcome: outcome.test.mcdp)
    if baseline is not None:
        lines += _against_baseline(ranked, baseline, width)
    title = f"MCDP({comparison.epsilon:g}) of {comparison.rows[2]:,} people held out"
    head, *names, parity = _column([title, *comparison.measured, "expected under parity"], width - 46)
    tests = comparison.measured.values()
    confidence = next(test.interval.confidence for test in tests if test.interval is not None)
    lines += [
        Text(""),
        _line(f"  {head}  points  {f'{100.0 * confidence:g}%':>9}     AP    AUC  bound", "dim"),
    ]
    for name, test in zip(names, tests, strict=True):
        assert test.interval is not None
        word = verdict_on(test.interval, comparison.max_mcdp)
        lines.append(_model(f"{name}  {100.0 * test.mcdp:>6.1f}", test.interval, test, word))
    best = comparison.recommended.test
    assert best.noise_floor is not None
    lines += [_line(f"  {parity}  {100.0 * best.noise_floor:>6.1f}", "dim"), Text("")]
    for place, sentence in enumerate(others):
        lines += _marked("note" if place == 0 else "", sentence, width)
    for name, reason in comparison.left_out.items():
        lines += _marked("left out", f"{name}: {reason}", width, "dim")
    if best.accuracy is not None and best.brier is not None and best.calibration_error is not None:
        right = f"It is right for {percent(best.accuracy)} of the people held out, with a Brier score of "
        right += f"{best.brier:.3f} and a calibration error of {percent(best.calibration_error)}."
        lines += _marked("", right, width) if baseline is None else []
    trained, chosen, _ = comparison.rows
    assumed = f"Trained on {trained:,} people, chosen on {chosen:,}. Rows are assumed to be independent."
    return lines + _marked("", assumed, width, "dim")


def _against_baseline(ranked: Sequence[Outcome], baseline: Baseline, width: int) -> list[Text]:
    """A row for each alternative: how it differs from the baseline, and whether it dominates it."""
    wide = width - 57
    head = "less baseline, points"[:wide]
    confidence = f"{100.0 * (1.0 - 2.0 * baseline.error):g}%"
    lines = [_line(f"  {head:<{wide}}  {'MCDP ' + confidence:>14}  {'AP':>12}  {'accuracy':>12}", "dim")]
    for outcome in ranked:
        name, found = visible(outcome.name), outcome.differences
        assert found is not None
        cells = [
            signed_points(one.low, one.high) for one in (found.mcdp, found.average_precision, found.accuracy)
        ]
        word = "dominates" if found.dominates(baseline.margin) else "-"
        if len(name) > wide:
            lines.append(_line(f"  {name}"))
            name = ""
        lines.append(_line(f"  {name:<{wide}}  {cells[0]:>14}  {cells[1]:>12}  {cells[2]:>12}  {word}"))
    return [Text(""), *lines]


# Everything else, for whoever asks: tables and sentences.


def _section(section: Section, *, several: bool) -> Iterator[RenderableType]:
    """A section of sentences and tables."""
    lines = [*section.sentences, *(visible(f"{what}: {text}") for what, text in section.facts)]
    if not (lines or section.tables):
        return
    whose = f" of {visible(section.model)}" if several and section.model else ""
    yield Text("")
    yield Text(f"{section.heading}{whose}", style="bold")
    for table in section.tables:
        yield _rich_table(table.first(_LISTED) if section.name == "strata" else table)
    if lines:
        yield Text("\n".join(lines), style="dim" if section.name in _ASIDE else "")


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
