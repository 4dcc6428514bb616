"""What objects show of themselves in a notebook: short HTML with a drawing, in light and dark."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from localparity.auditing._document import MIN_RATIO
from localparity.counts._disclosure import few_people
from localparity.report.displays._base import thin_thresholds
from localparity.report.page._data import PageModel
from localparity.report.page._page import (
    chips_of,
    comparison_dots,
    explained_dots,
    explained_drawing,
    ratio_drawing,
    shown_model,
    style_parts,
    template,
)
from localparity.report.page._svg import Drawing, percent_marks, round_top, score_marks

if TYPE_CHECKING:
    from localparity.auditing import Explanation
    from localparity.auditing._document import Document
    from localparity.metrics import GapCurve, McdpProfile
    from localparity.models._frontier import Frontier
    from localparity.models._outcomes import ModelComparison
    from localparity.uncertainty import ImpactRatioCurve


@cache
def notebook_style() -> str:
    """The style of drawings for what stands in a notebook, which has its own, light or dark."""
    parts, own = style_parts(), ".localparity"
    light, dark = f"{own} {{ {parts['light']} }}", f"{own} {{ {parts['dark']} }}"
    themes = (
        f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n"
        f"[data-jp-theme-light=true] {light}\n[data-jp-theme-light=false] {dark}\n"
    )

    def within(selectors: re.Match[str]) -> str:
        return ", ".join(f"{own} {selector.strip()}" for selector in selectors[0].split(","))

    return themes + re.sub(r"^[^{]+", within, parts["drawings"], flags=re.MULTILINE) + parts["notebook"]


def audit_html(document: Document) -> str:
    """The first screen of an audit.

    Groups of a few people are not drawn: a notebook is handed on as it stands.
    """
    ((name, audit),) = document.audits.items()
    answer = document.answer(name)
    is_drawn = not few_people(audit.counts, audit.comparison, document.min_group_size)
    html: str = template("notebook.html.j2").render(
        style=notebook_style(),
        answer=answer,
        chips=chips_of(answer),
        model=shown_model(PageModel(name, document), 0) if is_drawn else None,
        table=document.sections("findings")[0].tables[0],
    )
    return html


def card(headline: str, inside: str) -> str:
    """A piece of HTML with its own style: a line of text, and what stands below it."""
    line = f'<p class="headline">{escape(headline)}</p>'
    return f'<div class="localparity"><style>{notebook_style()}</style>{line}{inside}</div>'


def figure(drawing: Drawing, label: str, *, above: str, below: str) -> str:
    """A drawing between what is drawn and along what."""
    frame = f'<div class="frame">{drawing.svg(label)}</div>'
    return f'<figure><figcaption>{above}</figcaption>{frame}<p class="below">{below}</p></figure>'


def gap_html(curve: GapCurve) -> str:
    """How far apart two groups are at each cutoff."""
    thresholds = thin_thresholds(curve)
    gaps = np.abs(curve(thresholds))
    drawing = Drawing(curve.score_range, round_top(float(gaps.max())))
    drawing.axes(score_marks(curve.score_range, whole=curve.whole), percent_marks(drawing.top))
    drawing.steps("first", thresholds, gaps)
    return card(repr(curve.worst_window()), figure(drawing, repr(curve), above="gap", below="cutoff"))


def profile_html(profile: McdpProfile) -> str:
    """MCDP at every epsilon up to 0.2, with that at 0, 0.05 and 0.1 in words."""
    epsilons = np.linspace(0.0, 0.2, 201)
    values = profile(epsilons)
    drawing = Drawing((0.0, 0.2), round_top(float(values.max())))
    drawing.axes(score_marks((0.0, 0.2), whole=False), percent_marks(drawing.top))
    drawing.steps("first", epsilons, values)
    told = repr(profile).removeprefix("McdpProfile(").removesuffix(")")
    return card(told, figure(drawing, told, above="MCDP", below="epsilon, half of a window's width"))


def ratio_html(curve: ImpactRatioCurve) -> str:
    """The lowest ratio of any group at each cutoff, with four fifths marked."""
    drawing = ratio_drawing(curve, MIN_RATIO)
    return card(repr(curve), figure(drawing, repr(curve), above="lowest ratio of any group", below="cutoff"))


def frontier_html(frontier: Frontier) -> str:
    """The best average precision at each MCDP, with its band."""
    mcdp, best, low, high = frontier.envelope()
    drawing = Drawing((0.0, round_top(float(mcdp.max()))), 1.0)
    drawing.axes(percent_marks(drawing.x_range[1]), percent_marks(1.0))
    drawing.band("chance", mcdp, low, high, steps=False)
    drawing.curve("first", mcdp, best)
    told = repr(frontier).removeprefix("Frontier(").removesuffix(")")
    return card(told, figure(drawing, told, above="average precision", below=f"MCDP({frontier.epsilon:g})"))


def explanation_html(explanation: Explanation) -> str:
    """What carries a gap, ranked, with the gap before and after."""
    parts = template("parts.html.j2").module
    shown = [parts.dots(explained_dots(explanation), True)]
    drawn = explained_drawing(explanation)
    if drawn is not None:
        drawing, label = drawn
        shown.append(figure(drawing, label, above="gap at each cutoff", below="cutoff"))
    return card(" ".join(explanation.sentences), "".join(map(str, shown)))


def comparison_html(comparison: ModelComparison) -> str:
    """The models at their MCDP on the test part."""
    parts = template("parts.html.j2").module
    recommended = f"Recommended: {comparison.recommended.name}"
    line = recommended if comparison.baseline is None else comparison.sentences[0]
    return card(line, parts.dots(comparison_dots(comparison), True))
