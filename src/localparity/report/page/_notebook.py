"""What objects show of themselves in a notebook: short HTML with a drawing, in light and dark."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from localparity.counts._disclosure import few_people
from localparity.report.page._data import PageModel
from localparity.report.page._page import chips_of, shown_model, style_parts, template

if TYPE_CHECKING:
    from localparity.auditing._document import Document


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


def audit_html(document: Document) -> str | None:
    """The first screen of an audit, or nothing where jinja2 is not installed.

    Groups of a few people are not drawn: a notebook is handed on as it stands.
    """
    try:
        page = template("notebook.html.j2")
    except ImportError:
        return None
    ((name, audit),) = document.audits.items()
    answer, limit = document.answer(name), document.min_group_size
    is_drawn = not few_people(audit.counts, audit.comparison, limit)
    html: str = page.render(
        style=notebook_style(),
        answer=answer,
        chips=chips_of(answer),
        model=shown_model(PageModel(name, audit, answer, limit), 0) if is_drawn else None,
        table=document.sections("findings")[0].tables[0],
    )
    return html
