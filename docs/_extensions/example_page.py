"""The page that `localparity audit --report` writes, made anew for the documentation."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

import localparity as lp


def write_example(app: Sphinx, error: Exception | None) -> None:
    """Audit the synthetic census and put its page beside the others."""
    if error is None and app.builder.format == "html":
        census = lp.datasets.make_census(5000, random_state=0)
        audit = lp.audit(
            census.target,
            census.score,
            sensitive_features=census.sensitive_features,
            random_state=0,
        )
        audit.to_html(Path(app.outdir) / "example-audit.html", title="An invented census", force=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("build-finished", write_example)
    return {"parallel_read_safe": True}
