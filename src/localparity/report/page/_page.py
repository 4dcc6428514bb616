"""The page: plain data first, rendered second, written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localparity._io._files import write_new
from localparity._text import group_text, number_text
from localparity._validation import require
from localparity._version import __version__
from localparity.auditing._document import Document, RatioResult, header_line
from localparity.auditing._tables import (
    ReportTable,
)
from localparity.auditing._wording import CRITERION_WORDS, shown_finding
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.counts._score_counts import strata_of
from localparity.report.page._charts import chart_specs
from localparity.report.page._data import PageModel, Plan, Words
from localparity.report.page._pictures import Curves, model_dots, pair_dots, rates_picture, ratio_picture

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit, DecideBy
    from localparity.auditing._paired_models import PairedModels


# The page's words: what each means to someone without statistics, and where they stand in a sentence.


GLOSSARY = {
    "adjusted": "Made larger to allow for the number of pairs and epsilons that were looked at together.",
    "ABCC": "The area between the two groups' curves: the difference averaged over all thresholds.",
    "bound": "The most that MCDP may be, set by whoever decides what is acceptable.",
    "chance": "Two samples of the same people differ a little by luck. The smaller the groups, the more.",
    "confidence": "How often intervals made in this way hold the true value, if the assumptions do.",
    "delta-DP": "The difference of the groups' mean scores, or of their shares above one threshold.",
    "disparity": "A difference between the scores of two groups. Whether it is justified, no number says.",
    "epsilon": "Half the width of the window, as a share of the score range. At 0 it is a single threshold.",
    "interval": "The range in which the true value lies, with the confidence that is stated.",
    "MCDP": "The largest difference between two groups that lasts over a whole window of thresholds.",
    "p-value": "How often chance alone would show a difference as large as this, if there were none.",
    "parity": "No difference between the groups at any threshold.",
    "points": "Percentage points: 40% against 30% is a difference of 10 points.",
    "ratio": "The smaller share that is selected over the larger: 30% against 40% is 0.75.",
    "seed": "The number that makes random draws repeatable.",
    "sha256": "A fingerprint of a file: another file, or a changed one, has another.",
    "threshold": "A score that parts people, as where those above it are selected or flagged; also a cutoff.",
    "window": "A stretch of neighbouring thresholds.",
}
"""Words and what they mean."""

_ALSO = {
    "thresholds": "threshold",
    "cutoff": "threshold",
    "cutoffs": "threshold",
    "intervals": "interval",
    "p-values": "p-value",
    "windows": "window",
    "epsilons": "epsilon",
}
_WORDS = {word: word for word in GLOSSARY} | _ALSO
_ANY = re.compile(rf"(?<![\w-])({'|'.join(sorted(map(re.escape, _WORDS), key=len, reverse=True))})(?![\w-])")


def explained(text: str) -> Any:
    """A text with the first use of each word of the glossary linked to what it means; all else is escaped.

    Examples
    --------
    >>> print(explained("<b> at a threshold"))
    &lt;b&gt; at a <a class="term" href="#word-threshold" data-is="A score ...">threshold</a>
    """
    markup = require("markupsafe", extra="report").Markup
    parts, seen, end = [], set[str](), 0
    for found in _ANY.finditer(text):
        word = _WORDS[found[0]]
        if word not in seen:
            seen.add(word)
            link = markup('<a class="term" href="#word-{}" data-is="{}">{}</a>')
            parts += [markup.escape(text[end : found.start()]), link.format(word, GLOSSARY[word], found[0])]
            end = found.end()
    return markup("").join([*parts, markup.escape(text[end:])])


# What every page has: one file with its style and its scripts, which alone may run and ask for nothing.


def render_frame(name: str, data: dict[str, Any], *, has_charts: bool = True, **values: Any) -> str:
    """A page from the template and the script of a name, with the data that its charts are drawn from."""
    library, script = _library() if has_charts else "", _text("shared.js") + _text(f"{name}.js")
    html: str = template(f"{name}.html.j2").render(
        style=_text("page.css"),
        library=library,
        script=script,
        hashes=" ".join(_script_hash(code) for code in (library, script)),
        data=script_json(data),
        glossary=GLOSSARY,
        version=__version__,
        **values,
    )
    return html


def _text(name: str) -> str:
    return files("localparity.report.page").joinpath(name).read_text(encoding="utf-8")


def template(name: str) -> Any:
    """A template that escapes every text put into it."""
    jinja2 = require("jinja2", extra="report")
    loader = jinja2.PackageLoader("localparity.report.page", "")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["explained"] = explained
    return environment.get_template(name)


@cache
def _library() -> str:
    """Vega, Vega-Lite and vega-embed in one script, which sets `vegaEmbed`."""
    bundle: str = require("vl_convert", extra="report").javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle


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


# The selection ratios that the page tells of: where every group's is high enough, and where it is not.


MIN_RATIO = 0.8
_MOST_NUMBERS = 20_000_000


@dataclass(frozen=True)
class Ratios:
    """A model's ratios: sentences and a picture."""

    name: str
    sentences: tuple[str, ...]
    picture: Curves
    confidence: float | None
    min_ratio: float


def ratios_of(document: Document) -> Iterator[Ratios]:
    """The ratios of each model, at cutoffs that rest on enough people.

    There are none where two labels are compared, which have no single curve, and for too many scores.
    """
    least = MIN_RATIO if document.min_ratio is None else document.min_ratio
    for name, audit in document.audits.items():
        stratum, *others = strata_of(audit.counts, audit.comparison).values()
        numbers = len(stratum) * sum(atoms.scores.size for atoms in stratum.values())
        if not others and numbers <= _MOST_NUMBERS:
            result = document.ratios(name) or RatioResult.of(audit, least, document.min_group_size)
            picture = ratio_picture(result.curve, least)
            yield Ratios(name, result.sentences, picture, result.curve.confidence, least)


def write_page(
    path: str | PathLike[str],
    audits: Mapping[str, Audit],
    *,
    title: str = "Local disparity audit",
    notes: Mapping[str, str] | None = None,
    paired: PairedModels | None = None,
    max_mcdp: float | None = None,
    decide_by: DecideBy = "estimate",
    min_group_size: int = DISCLOSURE_LIMIT,
    force: bool = False,
) -> None:
    """Write the audits of one model or several as one page that opens anywhere, offline.

    The page says first whether there is a disparity, how large, where and how sure that is; then come charts
    with sliders for epsilon and for the decision threshold, tables of everything, and the method. It asks
    nothing of any network. Needs the extra `report`.

    Parameters
    ----------
    path : path
        Where to write it. The file is written whole or not at all.
    audits : mapping
        The audit of each model, by the model's name.
    title : str
        The page's heading.
    notes : mapping, optional
        What else to say about the data, a text under each name.
    paired : PairedModels, optional
        The models compared person by person, where all scored the same people.
    max_mcdp : float, optional
        The most that MCDP may be; the page says whether it is.
    decide_by : str
        What is compared with it, as in `Audit.passes`.
    min_group_size : int
        No group, and no step of a curve, rests on fewer people than this; a group with fewer is an error, and
        `localparity.audit` leaves such groups out when asked to.
    force : bool
        Overwrite the file if it exists.

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
    >>> path.stat().st_size < 3_000_000
    True
    """
    document = Document(
        audits=audits,
        title=title,
        paired=paired,
        max_mcdp=max_mcdp,
        decide_by=decide_by,
        min_group_size=min_group_size,
    )
    write_new(Path(path), render_page(document, notes).encode(), force=force)


def render_page(document: Document, notes: Mapping[str, str] | None = None) -> str:
    """The page as text."""
    audits = document.audits
    models = [PageModel(name, audit, document.min_group_size) for name, audit in audits.items()]
    plan, words = Plan.of(models), Words()
    drawn = [model.data(plan, words) for model in models if model.pairs]
    data = {
        "epsilons": plan.epsilons.tolist(),
        "shown_epsilon": shown_finding(document.first).epsilon,
        "criteria": CRITERION_WORDS,
        "charts": chart_specs(),
        "models": drawn,
        **words.data(),
    }
    picture = rates_picture(models[0]) if len(audits) == 1 else None
    by_name = {section.name: section for section in document.sections()}
    return render_frame(
        "page",
        data,
        title=document.title,
        numbers=script_json(_numbers(document, plan)),
        audited=[(section.model, section.facts) for section in document.sections("audited")],
        lines=[header_line(audit, checksum=False) for audit in audits.values()],
        answers={name: document.answers(name) for name in audits},
        verdicts={name: audit.verdict for name, audit in audits.items()},
        picture=picture,
        models=model_dots(document) if picture is None else None,
        drawn=bool(drawn),
        undrawn={model.name: list(map(group_text, model.undrawn)) for model in models if model.undrawn},
        pairs={name: pair_dots(document, name) for name, audit in audits.items() if len(audit.pairs) > 1},
        ratios=list(ratios_of(document)),
        scoring=[section for section in document.sections("scoring") if section.tables],
        paired=by_name["paired"].sentences if "paired" in by_name else (),
        tables=list(_tables(document, plan)),
        notes={**(notes or {}), **_method_notes(document, plan), **_said_of_models(document)},
        assumptions=by_name["assumptions"].sentences,
        limit=document.min_group_size,
    )


def notebook_summary(document: Document) -> str | None:
    """The verdict and the findings as a piece of HTML, or nothing where jinja2 is not installed."""
    try:
        summary = template("summary.html.j2")
    except ImportError:
        return None
    verdict, findings = document.sections("verdict", "findings")
    html: str = summary.render(sentences=verdict.sentences, table=findings.tables[0])
    return html


def _tables(document: Document, plan: Plan) -> Iterator[ReportTable]:
    """The tables under all numbers, each with a name of its own."""
    names = ("models", "paired", "findings", "pairs", "groups", "strata")
    for place, section in enumerate(document.sections(*names)):
        for table in section.tables:
            shown = table.first(plan.listed) if section.name in ("pairs", "strata") else table
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


def _method_notes(document: Document, plan: Plan) -> dict[str, str]:
    """How the numbers of the page were made, and what it hides."""
    audit, limit = document.first, document.min_group_size
    low, high = audit.score_range
    confidence = f"{100 * audit.confidence:g}%"
    intervals = {
        "finite_sample": f"{confidence}; they hold at any sample size",
        "bootstrap": f"{confidence}, by the multiplier bootstrap: they hold in large samples",
    }[audit.method]
    threshold = "mean scores" if audit.threshold is None else f"shares above {number_text(audit.threshold)}"
    notes = {
        "Score range": f"{number_text(low)} to {number_text(high)}",
        "Intervals": intervals,
        "delta-DP": f"the difference of {threshold}",
        "For machines": "the element with the id numbers holds this page's numbers as the audit's JSON",
        "Curves": f"drawn at {plan.steps + 1:,} thresholds and up to {plan.points:,} scores between them, "
        "the extremes among these",
    }
    if limit == 1:
        notes["Curves"] += "; the sliders' values are computed from every row"
    if max(len(audit.pairs) for audit in document.audits.values()) > plan.listed:
        notes["Pairs shown"] = (
            f"in the table the {plan.listed:,} worst of each model, on the sliders the {plan.pairs:,} worst; "
            "the audit's JSON has all"
        )
    if audit.counts.rank_error > 0.0:
        notes["Rank error"] = f"each distribution may be off by {100 * audit.counts.rank_error:.3g} points"
    if limit > 1:
        notes["Privacy"] = (
            f"no group and no step of a curve rests on fewer than {limit} people: neighbouring scores are "
            "drawn together, at their mean, and the sliders use these steps between the tables' epsilons. "
            "Means, MCDP and the ends of windows are of whole groups and computed from every row."
        )
    return notes


def _numbers(document: Document, plan: Plan) -> dict[str, Any]:
    numbers = document.to_dict()
    for audit in numbers["audits"]:
        audit["pairs"] = audit["pairs"][: plan.pairs]
    return numbers
