"""The page: the answer first, what it rests on in folds, and everything in one file that asks for nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from localparity._io._files import write_new
from localparity._text import group_text, number_text, outward_points, points, whole_percent
from localparity.auditing._answer import FEW_PEOPLE
from localparity.auditing._document import FEW_CUTOFFS, MIN_RATIO, Document, DocumentKeywords
from localparity.auditing._tables import ReportTable
from localparity.report.displays._base import thin_steps
from localparity.report.page._data import PageModel
from localparity.report.page._svg import Drawing, percent_marks, round_top, score_marks

if TYPE_CHECKING:
    from localparity._text import Ends
    from localparity.auditing import Explanation
    from localparity.auditing._answer import Answer
    from localparity.auditing._audit import Audit
    from localparity.models._outcomes import ModelComparison
    from localparity.uncertainty import ImpactRatioCurve


# The page's words: what each means to someone without statistics, and where they stand in a sentence.


GLOSSARY = {
    "ABCC": "The area between the two groups' curves: the difference averaged over all cutoffs.",
    "adjusted": "Made larger to allow for all the pairs and window widths that were looked at together.",
    "bound": "The most that MCDP may be, set by whoever decides what is acceptable.",
    "Chance": "How often luck alone would show as much if the groups did not differ.",
    "cutoff": "A score that parts people: those above it are selected or flagged.",
    "delta-DP": "The difference of the groups' mean scores, or of their shares above one cutoff.",
    "epsilon": "Half the width of the window, as a share of the score range. At 0 it is a single cutoff.",
    "interval": "The range in which the true value lies, with the confidence that is stated.",
    "MCDP": "The largest difference between two groups that lasts over a whole window of cutoffs.",
    "p-value": "How often chance alone would show a difference as large as this, if there were none.",
    "parity": "No difference between the groups at any cutoff.",
    "points": "Percentage points: 40% against 30% is a difference of 10 points.",
    "ratio": "The smaller share that is selected over the larger: 30% against 40% is 0.75.",
    "window": "A stretch of neighbouring cutoffs.",
}
"""Words and what they mean."""

_ALSO = {
    "cutoffs": "cutoff",
    "intervals": "interval",
    "p-values": "p-value",
    "windows": "window",
    "epsilons": "epsilon",
}
_WORDS = {word: word for word in GLOSSARY} | _ALSO
_ANY = re.compile(rf"(?<![\w-])({'|'.join(sorted(map(re.escape, _WORDS), key=len, reverse=True))})(?![\w-])")


def explainer() -> Callable[[str], Any]:
    """A function that links the first use of each word on a page to what it means, and escapes all else.

    Examples
    --------
    >>> explained = explainer()
    >>> print(explained("<b> at a cutoff"), explained("another cutoff"))
    &lt;b&gt; at a <a class="term" href="#word-cutoff">cutoff</a> another cutoff
    """
    from markupsafe import Markup

    seen = set[str]()

    def explained(text: str) -> Any:
        parts, end = [], 0
        for found in _ANY.finditer(text):
            word = _WORDS[found[0]]
            if word not in seen:
                seen.add(word)
                link = Markup('<a class="term" href="#word-{}">{}</a>')
                parts += [Markup.escape(text[end : found.start()]), link.format(word, found[0])]
                end = found.end()
        return Markup("").join([*parts, Markup.escape(text[end:])])

    return explained


# What every page has: one file with its style and its script, which alone may run and asks for nothing.


def render_frame(name: str, data: dict[str, Any], **values: Any) -> str:
    """A page from the template of a name, with the data that its script moves."""
    script = _text("page.js")
    html: str = template(f"{name}.html.j2").render(
        style=page_style(),
        script=script,
        hash=_script_hash(script),
        data=script_json(data),
        glossary=GLOSSARY,
        **values,
    )
    return html


@cache
def _text(name: str) -> str:
    return files("localparity.report.page").joinpath(name).read_text(encoding="utf-8")


@cache
def style_parts() -> dict[str, str]:
    """The style by its parts: light and dark colours, drawings, and what pages and notebooks have besides."""
    parts = re.split(r"/\* (\w+) \*/\n", _text("page.css"))[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def page_style() -> str:
    """The style of a page, which follows the reader's choice of light or dark."""
    parts = style_parts()
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {parts['dark']} }} }}"
    return f":root {{ {parts['light']} }}\n{dark}\n{parts['drawings']}{parts['page']}"


def template(name: str) -> Any:
    """A template that escapes every text put into it."""
    import jinja2

    loader = jinja2.PackageLoader("localparity.report.page", "")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["explained"] = explainer()
    return environment.get_template(name)


def _script_hash(code: str) -> str:
    """The hash under which a browser lets a script of the page run, and no other."""
    digest = hashlib.sha256(code.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def script_json(data: Any) -> str:
    """JSON that can stand inside a script element: no text in it can end the element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, default=str)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


# Rows of dots on one scale: groups at their share, pairs at their gap, models at their MCDP.


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A name with a fraction and its interval; `kind` says how it looks, `key` which group moves it."""

    name: str
    note: str
    value: float | None
    low: float | None
    high: float | None
    text: str
    kind: str = ""
    key: int | None = None


@dataclass(frozen=True, kw_only=True)
class Dots:
    """Dots on one scale from 0 to `top`, with the bound where there is one."""

    caption: str
    rows: Sequence[Dot]
    top: float = 1.0
    limit: float | None = None
    is_open: bool = True

    def place(self, number: float) -> str:
        """Where a number is."""
        return f"{100.0 * number / self.top:.2f}%"


def gap_dot(
    name: str, note: str, gap: float, interval: Ends, kind: str = "", *, bound: float | None = None
) -> Dot:
    """A gap with its interval, in points that tell it from the bound."""
    low, high = interval.low, interval.high
    text = f"{points(gap, bound).split()[0]} ({outward_points(low, high, unit=False)})"
    return Dot(name=name, note=note, value=gap, low=low, high=high, text=text, kind=kind)


def group_dots(model: PageModel) -> Dots:
    """The groups at their share above the cutoff; those with too few people to be drawn have no dot."""
    drawn = {group_text(group): key for key, group in enumerate(model.groups)}
    rows = []
    for row in model.answer.groups:
        key = drawn.get(row.name)
        share, low, high = (None, None, None) if key is None else model.first_share(model.groups[key])
        note = f"{row.people:,}" + (", few people" if row.few else "")
        text, kind = "not shown" if share is None else whole_percent(share), "few" if row.few else ""
        if share is not None and key is not None and model.is_rough(model.groups[key]):
            off = model.off[model.groups[key]]
            least, most = max(share - off, 0.0), min(share + off, 1.0)
            text = f"{math.floor(100.0 * least)} to {math.ceil(100.0 * most)}%"
        dot = Dot(name=row.name, note=note, value=share, low=low, high=high, text=text, kind=kind, key=key)
        rows.append(dot)
    rows.sort(key=lambda row: -1.0 if row.value is None else row.value, reverse=True)
    return Dots(caption="Share of each group above the cutoff, with its interval", rows=rows)


_STATES = {
    "clear": ("Clear", ""),
    "differs, size unknown": ("Differ, by an unknown amount", "half"),
    "not shown": ("Could be chance", "chance"),
}


_MORE = {"clear": "differ clearly", "differs, size unknown": "differ by an unknown amount"}
_MOST_PAIRS = 8


def pair_dots(answer: Answer) -> list[Dots]:
    """The pairs of an answer: those that differ, and those of which it is not known."""
    if len(answer.pairs) < 2:
        return []
    top, shown = max(pair.high for pair in answer.pairs) or 1.0, list[Dots]()
    for state, (name, kind) in _STATES.items():
        rows = [
            gap_dot(
                pair.names if pair.label is None else f"{pair.names}, label {pair.label}",
                f"{min(pair.people):,} people" if min(pair.people) < FEW_PEOPLE else "",
                pair.gap,
                pair,
                kind,
            )
            for pair in answer.pairs
            if pair.state == state
        ]
        caption = f"{name}: {answer.states[state]:,} of {sum(answer.states.values()):,} pairs"
        # Those of a size that is known come first; many are folded.
        listed = 0 if state == "not shown" else max(0, _MOST_PAIRS - sum(len(dots.rows) for dots in shown))
        if 0 < listed < len(rows):
            shown.append(Dots(caption=caption, rows=rows[:listed], top=top))
            caption, rows = f"{len(rows) - listed:,} more that {_MORE[state]}", rows[listed:]
            listed = 0
        shown.append(Dots(caption=caption, rows=rows, top=top, is_open=listed > 0))
    return [dots for dots in shown if dots.rows]


def model_dots(document: Document) -> Dots:
    """The models at their MCDP, from the smallest to the largest, with how well each tells the labels."""
    rows, bound = [], document.max_mcdp
    for name, audit in document.audits.items():
        finding, answer = audit.findings[0], document.answer(name)
        accuracy = {"AP": answer.average_precision, "AUC": answer.auc}
        told = [f"{what} {value:.3f}" for what, value in accuracy.items() if value is not None]
        note = ", ".join([*told, *([] if answer.bound is None else [answer.bound.verdict])])
        kind = "" if answer.status == "disparity" else "chance"
        rows.append(
            gap_dot(document.short_names[name], note, finding.mcdp, finding.interval, kind, bound=bound)
        )
    rows.sort(key=lambda row: row.value or 0.0)
    top = 1.05 * max([*(row.high or 0.0 for row in rows), bound or 0.0]) or 1.0
    caption = f"MCDP({document.first.findings[0].epsilon:g}) of each model in points, with its interval"
    limit = "" if bound is None else f"; dashed: the bound of {points(bound)}"
    return Dots(caption=caption + limit, rows=rows, top=top, limit=bound)


def comparison_dots(comparison: ModelComparison) -> Dots:
    """The models of a comparison at their MCDP on test data; dashed, that of the baseline, or the bound."""
    rows = []
    for name, test in comparison.measured.items():
        assert test.interval is not None
        kind = "half" if name not in comparison.models and comparison.baseline is not None else ""
        rows.append(gap_dot(name, f"AP {test.average_precision:.3f}", test.mcdp, test.interval, kind))
    limit, dashed = comparison.max_mcdp, "the bound"
    if comparison.baseline is not None:
        limit, dashed = comparison.baseline.test.mcdp, "the baseline"
    top = 1.05 * max(limit, *(row.high or 0.0 for row in rows))
    caption = f"MCDP({comparison.epsilon:g}) on test data in points; dashed: {dashed}"
    return Dots(caption=caption, rows=rows, top=top, limit=limit)


# What carries a gap: the features ranked by what remains, and the gap before and after.


_MOST_EXPLAINED = 12


def explained_dots(explanation: Explanation) -> Dots:
    """The whole gap, and what remains of it among people alike in a feature or in several."""
    rows = [gap_dot("all people", "", explanation.total.estimate, explanation.total)]
    ranked = [gap for gap in explanation.features if gap.remaining is not None][:_MOST_EXPLAINED]
    allowed = set() if explanation.allowed is None else set(explanation.allowed.features)
    shown = (*ranked, *explanation.sets, *filter(None, [explanation.allowed]))
    for features, gap in {frozenset(gap.features): gap for gap in shown}.items():
        if gap.remaining is not None:
            note = f"AUC {gap.group_auc.estimate:.2f}{', allowed' if features == allowed else ''}"
            rows.append(gap_dot(gap.short_name, note, gap.remaining.estimate, gap.remaining))
    top = 1.05 * max(row.high or 0.0 for row in rows) or 1.0
    confidence = f"{100 * explanation.confidence:g}%"
    caption = (
        f"Gap in points among people alike in a feature, with its {confidence} interval; dashed: all people. "
        "AUC: how well the feature tells the groups apart, from 0.5 (not at all) to 1"
    )
    return Dots(caption=caption, rows=rows, top=top, limit=explanation.total.estimate)


def explained_drawing(explanation: Explanation) -> tuple[Drawing, str] | None:
    """The gap at each cutoff before and after people are alike in what was chosen, and that in words."""
    curve, chosen = explanation.curve, explanation.chosen
    if curve is None or chosen is None or len(curve.cutoffs) < FEW_CUTOFFS:
        return None
    cutoffs, before, after = map(np.array, (curve.cutoffs, np.abs(curve.before), np.abs(curve.after)))
    drawing = Drawing(explanation.score_range, round_top(1.1 * float(max(before.max(), after.max()))))
    drawing.axes(score_marks(explanation.score_range, whole=False), percent_marks(drawing.top))
    for kind, gaps in (("first", before), ("second", after)):
        drawing.curve(kind, cutoffs, gaps)
    at = int(np.argmax(before))
    drawing.text("name first", float(cutoffs[at]), float(before[at]), "all people", dx=8, dy=-0.4)
    drawing.text("name second middle", float(cutoffs[at]), float(after[at]), "alike", dy=-0.5)
    first, second = curve.groups
    label = (
        f"Gap between {first} and {second}: solid, all people; dashed, people alike in {chosen.short_name}."
    )
    return drawing, label


def explained_section(explanation: Explanation | None) -> dict[str, Any] | None:
    """What the page shows of what carries the gap."""
    if explanation is None:
        return None
    drawn = explained_drawing(explanation)
    return {
        "sentences": explanation.sentences,
        "dots": explained_dots(explanation),
        "svg": None if drawn is None else drawn[0].svg(drawn[1]),
        "above": "" if drawn is None else drawn[1],
        "notes": explanation.notes,
    }


# The selection ratios: where every group's is high enough, and where it is not.


_FEWEST_STEPS = 3


def ratios_of(document: Document, name: str) -> dict[str, Any] | None:
    """The ratios of a model, at cutoffs that rest on enough people."""
    least, result = document.min_ratio, document.drawn_ratios(name)
    if result is None:
        return None
    drawing = ratio_drawing(result.curve, MIN_RATIO if least is None else least)
    svg = drawing.svg("The lowest selection ratio of any group at each cutoff.")
    return {"sentences": result.sentences, "svg": svg, "is_open": least is not None}


def ratio_drawing(curve: ImpactRatioCurve, min_ratio: float) -> Drawing:
    """The lowest ratio of any group at each cutoff, with the lower end of its band.

    Dots stand for few cutoffs: a line through them would say what was not computed.
    """
    drawing, whole = Drawing(curve.score_range), np.array_equal(curve.cutoffs, np.rint(curve.cutoffs))
    quarters = [(part / 4, f"{part / 4:g}") for part in range(5)]
    drawing.axes(score_marks(curve.score_range, whole=whole), quarters)
    low, high = curve.score_range
    drawing.line("limit", (low, min_ratio), (high, min_ratio))
    drawing.text("direct end", high, min_ratio, f"{min_ratio:g}", dy=-0.4)
    lowest = _lowest(curve.ratios)
    few = int(np.isfinite(lowest).sum()) < (_FEWEST_STEPS if curve.selection.complete else FEW_CUTOFFS)
    drawn = {"first": lowest}
    if curve.confidence is not None:
        drawn["lower"] = np.where(np.isnan(lowest), np.nan, _lowest(curve.ratio_bands[0]))
    places = thin_steps(curve.cutoffs, np.nan_to_num(lowest, nan=1.0), 300)
    for kind, ratios in drawn.items():
        if not few:
            drawing.steps(kind, curve.cutoffs[places], ratios[places])
            continue
        for cutoff, ratio in zip(curve.cutoffs.tolist(), ratios.tolist(), strict=True):
            if np.isfinite(ratio):
                drawing.circle(kind, cutoff, min(ratio, 1.0), 4.0)
    return drawing


def _lowest(ratios: Any) -> Any:
    """The lowest of the groups' numbers at each cutoff; none where nobody is selected."""
    known = ~np.isnan(ratios).all(axis=0)
    lowest = np.full(ratios.shape[1], np.nan)
    lowest[known] = np.nanmin(ratios[:, known], axis=0)
    return lowest


def write_page(
    path: str | PathLike[str],
    audits: Mapping[str, Audit],
    *,
    notes: Mapping[str, str] | None = None,
    force: bool = False,
    **options: Unpack[DocumentKeywords],
) -> None:
    """Write the audits of one model or several as one page that opens anywhere, offline.

    The page says first what was found, how large it is and how sure that is, with a chart of two groups above
    each cutoff and a control for the cutoff. The groups and the clear pairs follow; the rest is folded. It
    asks nothing of any network.

    Parameters
    ----------
    path : path
        Where to write it. The file is written whole or not at all.
    audits : mapping
        The audit of each model, by the model's name.
    notes : mapping, optional
        What else to say about the data, a text under each name.
    force : bool
        Overwrite the file if it exists.
    **options
        ``title``, what the page is about; ``paired``, the models compared person by person, where all scored
        the same people; ``explanation``, what carries the gap, from `localparity.explain`; the others of
        `Audit.to_json`. No group, and no step of a curve, rests on fewer people than ``min_group_size``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> first = lp.audit(None, census.score, sensitive_features=sex, random_state=0)
    >>> second = lp.audit(None, census.score**2, sensitive_features=sex, random_state=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> lp.report.write_page(path, {"first": first, "second": second})
    >>> path.stat().st_size < 300_000
    True
    """
    document = Document(audits=audits, **options)
    write_new(Path(path), render_page(document, notes).encode(), force=force)


MOST_ROWS = 600
"""A page has no more rows of pairs than this."""


def render_page(document: Document, notes: Mapping[str, str] | None = None) -> str:
    """The page as text."""
    models = [PageModel(name, document) for name in document.audits]
    by_name = {section.name: section for section in document.sections()}
    several, leading = len(models) > 1, document.answer(document.differs_least)
    return render_frame(
        "page",
        {"models": [model.data() for model in models]},
        title=document.models_headline if several else models[0].answer.headline,
        about=_about(document),
        chips=[] if several else chips_of(models[0].answer),
        models=[
            shown_model(model, number)
            | {"name": document.short_names[model.name], "ratios": ratios_of(document, model.name)}
            for number, model in enumerate(models)
        ],
        ranked=model_dots(document) if several else None,
        why=explained_section(document.explanation),
        paired=by_name["paired"].sentences if "paired" in by_name else (),
        steps=[step for step in leading.next_steps if step.command[:12] in ("", "localparity ")],
        scoring=[section for section in document.sections("scoring") if section.tables],
        tables=list(_tables(document)),
        assumptions=by_name["assumptions"].sentences,
        notes={**(notes or {}), **_method_notes(document, models), **_said_of_models(document)},
        caveats=list(dict.fromkeys(model.answer.caveats for model in models)),
        audited=_audited(document),
        numbers=script_json(_numbers(document)),
    )


def _audited(document: Document) -> list[list[Any]]:
    """Where each model's scores come from, and last what is the same for all of them."""
    facts = [section.facts for section in document.sections("audited")]
    shared = [fact for fact in facts[0] if all(fact in other for other in facts)] if facts else []
    return [*([fact for fact in one if fact not in shared] for one in facts), shared]


def shown_model(model: PageModel, number: int) -> dict[str, Any]:
    """What the template shows of a model."""
    curves = model.curves()
    return {
        "number": number,
        "answer": model.answer,
        "above": "share scoring above each cutoff"
        + ("" if model.pair is model.named else " (clearest pair with enough people to draw)"),
        "below": "cutoff"
        if model.named.label is None
        else f"cutoff, among people with label {model.named.label}",
        "cutoff": number_text(model.cutoff, 6),
        "svg": None if curves is None else curves.drawing().svg(curves.label),
        "groups": group_dots(model),
        "pairs": pair_dots(model.answer),
    }


def _about(document: Document) -> list[str]:
    """What was audited, in a line: the title where one was given, and what the answers are about."""
    usual = document.title.startswith("Local disparity")
    answers = [document.answer(name) for name in document.audits]
    facts = [fact for fact in answers[0].about if all(fact in answer.about for answer in answers)]
    dates = {audit.provenance.date for audit in document.audits.values() if audit.provenance is not None}
    return [
        *([] if usual or len(answers) > 1 else [document.title]),
        *facts,
        *([min(dates)[:10]] if dates else []),
    ]


def chips_of(answer: Answer) -> list[str]:
    """What qualifies the finding of a model, in a few words each."""
    chips = {"disparity": ["clear evidence"], "none found": ["no clear evidence"]}.get(answer.status, [])
    if answer.status == "disparity" and answer.low == 0.0:
        chips = ["differs, size unknown"]
    pairs = sum(answer.states.values())
    if pairs > 1:
        chips.append(f"{pairs - answer.states['not shown']:,} of {pairs:,} pairs differ")
    chips += ["no bound set"] if answer.bound is None else []
    few = [row for row in answer.groups if row.few]
    chips += [f"{row.name}: {row.people:,} people" for row in few[:3]]
    return chips + ([f"{len(few) - 3:,} more with few people"] if len(few) > 3 else [])


def _tables(document: Document) -> Iterator[ReportTable]:
    """The tables under all numbers, each with its name."""
    most = max(1, MOST_ROWS // sum(len(audit.findings) for audit in document.audits.values()))
    names = ("models", "paired", "findings", "pairs", "groups", "strata")
    for place, section in enumerate(document.sections(*names)):
        for table in section.tables:
            shown = table.first(most) if section.name in ("pairs", "strata") else table
            yield shown if section.model is None else replace(shown, name=f"{table.name}-{place}")


def _said_of_models(document: Document) -> dict[str, str]:
    """What was left out, what could change, and what the models' comparison promises."""
    notes = {}
    for section in document.sections("left_out", "missing", "unknown_groups", "strata"):
        whose = f", {section.model}" if len(document.audits) > 1 else ""
        if section.sentences:
            notes[section.heading + whose] = " ".join(section.sentences)
    for section in document.sections("paired"):
        notes |= dict(section.facts)
    return notes


def _method_notes(document: Document, models: Sequence[PageModel]) -> dict[str, str]:
    """How the numbers of the page were made, and what it hides."""
    audit, limit = document.first, document.min_group_size
    confidence = f"{100 * audit.confidence:g}%"
    intervals = {
        "finite_sample": f"{confidence}; they hold at any sample size",
        "bootstrap": f"{confidence}, by the multiplier bootstrap: they hold in large samples",
    }[audit.method]
    threshold = "mean scores" if audit.threshold is None else f"shares above {number_text(audit.threshold)}"
    notes = {"Intervals": intervals, "delta-DP": f"the difference of {threshold}"}
    if audit.counts.rank_error > 0.0:
        notes["Rank error"] = f"each distribution may be off by {100 * audit.counts.rank_error:.3g} points"
    if limit > 1:
        off = max((model.off[group] for model in models for group in model.groups), default=0.0)
        notes["Privacy"] = (
            f"no group and no step of a curve rests on fewer than {limit} people: neighbouring scores are "
            f"drawn together, so shares away from the first cutoff may be off by {100 * off:.2g} points. All "
            "other numbers are computed from every row."
        )
    undrawn = dict.fromkeys(group_text(g) for model in models for g in model.off if g not in model.groups)
    if undrawn:
        notes["Not drawn"] = f"{', '.join(undrawn)}: curves in steps of {limit} people would be too coarse"
    return notes


def _numbers(document: Document) -> dict[str, Any]:
    numbers = document.to_dict()
    for audit in numbers["audits"]:
        audit["pairs"] = audit["pairs"][:MOST_ROWS]
    return numbers
