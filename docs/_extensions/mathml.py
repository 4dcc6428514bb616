"""Formulas as MathML, which browsers draw by themselves, offline."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def mathml(node: nodes.Element, *, as_block: bool) -> str:
    """The formula; an accent belongs to its letter alone, whatever index follows."""
    tex = re.sub(r"\\tilde\s*([A-Za-z])", r"{\\tilde \1}{}", node.astext())
    return tex2mathml(tex, as_block=as_block)


def visit_inline(translator: Any, node: nodes.math) -> None:
    """A formula in a sentence."""
    translator.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    translator.body.append(f'<div class="formula">{mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True}
