"""`localparity demo`, an audit of invented people whose true disparity is known, and `localparity fetch`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text

import localparity as lp
from localparity._text import percent
from localparity._types import FloatArray
from localparity._validation import as_count, require
from localparity.auditing._document import Document
from localparity.cli._commands import print_result
from localparity.cli._options import ForceOption, SeedOption, check_file, check_folder
from localparity.datasets._fetch import cache_folder
from localparity.report._terminal import TerminalDocument

_MOST_ROWS = 10_000_000
_PAGE = Path("localparity-demo.html")


def demo(
    rows: Annotated[int, typer.Option(min=100, help="How many people there are.")] = 20_000,
    seed: SeedOption = 0,
    report: Annotated[Path, typer.Option(help="Where to write a page with charts.")] = _PAGE,
    json: Annotated[bool, typer.Option("--json", help="Print the audits as JSON.")] = False,
    force: ForceOption = False,
) -> None:
    """Audit an invented model on an invented census, then train one without and one with a penalty."""
    as_count(rows, "--rows", at_most=_MOST_ROWS)
    # A page under the demo's own name is the demo's.
    check_file(report, "--report", replace=force or report == _PAGE)
    console = Console(stderr=json)
    census = lp.datasets.make_census(rows, random_state=seed, as_frame=False)
    as_made = _audit(census.score, census, seed)
    title = f"A census of {rows:,} invented people"
    console.print(TerminalDocument(Document(audits={title: as_made})))
    console.print(
        "The model never saw sex, but occupation and hours stand in for it. The truth, as it was made:"
    )
    for finding in as_made.findings:
        truth = lp.datasets.census_mcdp(finding.epsilon)
        inside = "inside" if finding.interval.low <= truth <= finding.interval.high else "outside"
        console.print(f"  MCDP({finding.epsilon:g}) is {percent(truth)}, {inside} the interval")
    audits = {"as made": as_made}
    try:
        audits |= _train(census, seed, console)
    except ImportError as error:
        console.print(Text(f"No model is trained: {error}"), soft_wrap=True)
    console.print("Audit a file of your own:  localparity audit scores.csv --score p --group sex")
    lp.report.write_page(report, audits, title="An invented census", force=True)
    console.print(Text(f"All models on one page:  {report.resolve()}"), soft_wrap=True)
    if json:
        typer.echo(Document(audits=audits, title="An invented census").to_json())


def _audit(scores: FloatArray, census: Any, seed: int) -> lp.Audit:
    return lp.audit(None, scores, sensitive_features=census.sensitive_features, random_state=seed, n_jobs=-1)


def _train(census: Any, seed: int, console: Console) -> dict[str, lp.Audit]:
    """Train ERM and DiffMCDP on other people of the same census, and audit both on these."""
    require("torch", extra="train")
    audited = require("pandas", extra="train").DataFrame(census.data)
    people = lp.datasets.make_census(census.target.size, random_state=seed + 1)
    audits = {}
    for name, strength in (("ERM", 0.0), ("DiffMCDP", 0.3)):
        model = lp.models.LocalParityClassifier(
            name.lower(), strength, preset="paper", device="cpu", random_state=seed
        )
        model.fit(people.data, people.target, sensitive_features=people.sensitive_features)
        scores = model.predict_proba(audited)[:, 1]
        audits[name] = _audit(scores, census, seed)
        value = percent(audits[name].findings[0].mcdp)
        console.print(f"{name}, trained on {people.target.size:,} others: MCDP(0) is {value}")
    return audits


def fetch(
    dataset: Annotated[Literal["adult", "bank"], typer.Argument(help="Which data set.")],
    data_home: Annotated[
        Path | None, typer.Option(help="The cache folder; the user's own by default.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Download a data set, check it, and keep it for `reproduce` and for `localparity.datasets`.

    Files in the folder that LOCALPARITY_DATA names, or in the cache, are checked and not downloaded.
    Exit codes: 0 when the data set is there, 2 for bad usage or a download that fails.
    """
    if data_home is not None:
        check_folder(data_home, "--data-home")
    load = lp.datasets.fetch_adult if dataset == "adult" else lp.datasets.fetch_bank
    rows = len(load(data_home=data_home, as_frame=False).target)
    local = Path(os.environ.get("LOCALPARITY_DATA", "")) / dataset
    folder = local if local.is_dir() else cache_folder(data_home) / dataset
    result = {"dataset": dataset, "rows": rows, "folder": str(folder)}
    print_result(result, f"{dataset}: {rows:,} people, in {folder}", json=json)
