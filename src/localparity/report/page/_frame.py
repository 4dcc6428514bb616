"""What every page has: one file with its style and its scripts, which alone may run and ask for nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from localparity._validation import require
from localparity._version import __version__
from localparity.report.page._words import GLOSSARY, explained


def render_frame(name: str, data: dict[str, Any], **values: Any) -> str:
    """A page from the template and the script of a name, with the data that its charts are drawn from."""
    library, script = _library(), _text("shared.js") + _text(f"{name}.js")
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
