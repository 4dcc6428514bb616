"""`localparity demo`: an audit of invented people whose true disparity is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

import localparity as lp
from localparity._validation import FloatArray
from localparity.report._terminal import terminal_parts
from localparity.report._words import percent


def demo(
    rows: Annotated[int, typer.Option(help="How many people there are.")] = 20_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same people.")] = 0,
    report: Annotated[Path, typer.Option(help="Where to write a page with charts.")] = Path(
        "localparity-demo.html"
    ),
) -> None:
    """Audit the scores of an invented model on an invented census, and compare with the truth."""
    census = lp.datasets.make_census(rows, random_state=seed, as_frame=False)
    audits = {
        name: lp.audit(
            None, score, sensitive_features=census.sensitive_features, random_state=seed, n_jobs=-1
        )
        for name, score in _models(census).items()
    }
    found = next(iter(audits.values()))
    console = Console()
    console.print(*terminal_parts(found, title=f"A census of {rows:,} invented people"), sep="\n")
    console.print(
        "The model never saw sex, but occupation and hours stand in for it. The truth, as it was made:"
    )
    for finding in found.findings:
        truth = lp.datasets.census_mcdp(finding.epsilon)
        inside = "inside" if finding.interval.low <= truth <= finding.interval.high else "outside"
        console.print(f"  MCDP({finding.epsilon:g}) is {percent(truth)}, {inside} the interval")
    console.print("Audit a file of your own:  localparity audit scores.csv --score p --group sex")
    try:
        lp.report.write_page(report, audits, title="An invented census", force=True)
        console.print(f"Both models on one page:  {report.resolve()}", soft_wrap=True)
    except ImportError as error:
        console.print(f"No page with charts: {error}")


def _models(census: Any) -> dict[str, FloatArray]:
    """The census's own scores, and those of a model that knows education alone, in which the sexes agree."""
    years = np.asarray(census.data["education_years"])
    return {"all features": census.score, "education alone": 1.0 / (1.0 + np.exp(-0.5 * (years - 14.0)))}
