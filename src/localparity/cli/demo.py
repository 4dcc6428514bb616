"""`localparity demo`: an audit of invented people whose true disparity is known."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

import localparity as lp
from localparity.cli._show import percent, show_audit


def demo(
    rows: Annotated[int, typer.Option(help="How many people there are.")] = 20_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same people.")] = 0,
) -> None:
    """Audit the scores of an invented model on an invented census, and compare with the truth."""
    census = lp.datasets.make_census(rows, random_state=seed, as_frame=False)
    found = lp.audit(
        None, census.score, sensitive_features=census.sensitive_features, random_state=seed, n_jobs=-1
    )
    console = Console()
    show_audit(console, found, title=f"A census of {rows:,} invented people")
    console.print(
        "The model never saw sex, but occupation and hours stand in for it. The truth, as it was made:"
    )
    for finding in found.findings:
        truth = lp.datasets.census_mcdp(finding.epsilon)
        inside = "inside" if finding.interval.low <= truth <= finding.interval.high else "outside"
        console.print(f"  MCDP({finding.epsilon:g}) is {percent(truth)}, {inside} the interval")
    console.print("Audit a file of your own:  localparity audit scores.csv --score p --group sex")
