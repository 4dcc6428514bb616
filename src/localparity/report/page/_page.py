"""The page: plain data first, rendered second, written whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localparity.audit._answers import shown_finding
from localparity.audit._document import Document
from localparity.audit._missing import bounds_sentences
from localparity.audit._wording import CRITERION_WORDS
from localparity.counts._comparison import group_text
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.metrics._window import number_text
from localparity.report._header import header_line, header_rows
from localparity.report._tables import (
    findings_table,
    groups_table,
    models_table,
    paired_table,
    pairs_table,
)
from localparity.report._written import write_new
from localparity.report.page._charts import chart_specs
from localparity.report.page._data import PageModel, Plan
from localparity.report.page._frame import render_frame, script_json, template
from localparity.report.page._pictures import model_dots, pair_dots, rates_picture
from localparity.report.page._ratios import ratios_of, scoring_of

if TYPE_CHECKING:
    from localparity.audit._audit import Audit, DecideBy
    from localparity.audit._same_people import PairedModels


def write_page(
    path: str | PathLike[str],
    audits: Mapping[str, Audit],
    *,
    title: str = "Local disparity audit",
    notes: Mapping[str, str] | None = None,
    paired: PairedModels | None = None,
    max_mcdp: float | None = None,
    decide_by: DecideBy = "estimate",
    disclosure_limit: int = DISCLOSURE_LIMIT,
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
    disclosure_limit : int
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
        disclosure_limit=disclosure_limit,
    )
    write_new(Path(path), render_page(document, notes).encode(), force=force)


def render_page(document: Document, notes: Mapping[str, str] | None = None) -> str:
    """The page as text."""
    audits, paired = document.audits, document.paired
    models = [PageModel(name, audit, document.disclosure_limit) for name, audit in audits.items()]
    plan = Plan.of(models)
    data = {
        "epsilons": plan.epsilons.tolist(),
        "shown_epsilon": shown_finding(document.first).epsilon,
        "criteria": CRITERION_WORDS,
        "charts": chart_specs(),
        "models": [model.data(plan) for model in models if model.pairs],
    }
    picture = rates_picture(models[0]) if len(audits) == 1 else None
    return render_frame(
        "page",
        data,
        title=document.title,
        numbers=script_json(_numbers(document, plan)),
        audited=[(name, header_rows(audit)) for name, audit in audits.items()],
        lines=[header_line(audit, checksum=False) for audit in audits.values()],
        answers={name: document.answers(name) for name in audits},
        verdicts={name: audit.verdict for name, audit in audits.items()},
        picture=picture,
        models=model_dots(document) if picture is None else None,
        drawn=bool(data["models"]),
        undrawn={model.name: list(map(group_text, model.undrawn)) for model in models if model.undrawn},
        pairs={name: pair_dots(document, name) for name, audit in audits.items() if len(audit.pairs) > 1},
        ratios=list(ratios_of(document)),
        scoring=list(scoring_of(document)),
        paired=[] if paired is None else [paired.sentence(name) for name in paired.found],
        tables=_tables(audits, plan, paired),
        notes={
            **(notes or {}),
            **_method_notes(audits, plan, document.disclosure_limit),
            **_privacy(document.disclosure_limit),
            **_paired_notes(paired),
        },
        assumptions=document.first.assumptions,
        limit=document.disclosure_limit,
    )


def notebook_summary(audit: Audit) -> str | None:
    """The verdict and the findings as a piece of HTML, or nothing where jinja2 is not installed."""
    try:
        summary = template("summary.html.j2")
    except ImportError:
        return None
    html: str = summary.render(verdict=audit.verdict, table=findings_table({"scores": audit}))
    return html


def _tables(audits: Mapping[str, Audit], plan: Plan, paired: PairedModels | None) -> list[Any]:
    tables = [findings_table(audits), pairs_table(audits, plan.listed), groups_table(audits)]
    if paired is not None:
        tables.insert(0, paired_table(paired))
    return [models_table(audits), *tables] if len(audits) > 1 else tables


def _paired_notes(paired: PairedModels | None) -> dict[str, str]:
    return {} if paired is None else {"Same people": paired.promise}


def _privacy(limit: int) -> dict[str, str]:
    """What the page keeps to itself, and what it shows all the same."""
    if limit == 1:
        return {}
    return {
        "Privacy": f"no group and no step of a curve rests on fewer than {limit} people: neighbouring scores "
        "are drawn together, at their mean, and the sliders use these steps between the tables' epsilons. "
        "Means, MCDP and the ends of windows are of whole groups and computed from every row."
    }


def _method_notes(audits: Mapping[str, Audit], plan: Plan, limit: int) -> dict[str, str]:
    audit = next(iter(audits.values()))
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
    if max(len(audit.pairs) for audit in audits.values()) > plan.listed:
        notes["Pairs shown"] = (
            f"in the table the {plan.listed:,} worst of each model, on the sliders the {plan.pairs:,} worst; "
            "the audit's JSON has all"
        )
    if audit.counts.rank_error > 0.0:
        notes["Rank error"] = f"each distribution may be off by {100 * audit.counts.rank_error:.3g} points"
    for name, audit in audits.items():
        if audit.left_out:
            groups = ", ".join(map(str, audit.left_out))
            notes["Left out as too small" + (f", {name}" if len(audits) > 1 else "")] = groups
        if audit.missing.sentences:
            missing = " ".join(audit.missing.sentences)
            notes["Missing values" + (f", {name}" if len(audits) > 1 else "")] = missing
        if audit.within_strata is not None:
            strata = " ".join(audit.within_strata.sentences)
            notes["Within strata" + (f", {name}" if len(audits) > 1 else "")] = strata
        if bounds_sentences(audit):
            bounds = " ".join(bounds_sentences(audit))
            notes["Unknown groups" + (f", {name}" if len(audits) > 1 else "")] = bounds
    return notes


def _numbers(document: Document, plan: Plan) -> dict[str, Any]:
    numbers = document.to_dict()
    for audit in numbers["audits"]:
        audit["pairs"] = audit["pairs"][: plan.pairs]
    return numbers
