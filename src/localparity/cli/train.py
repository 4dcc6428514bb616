"""`localparity train`: a file of people in, a model whose disparity is penalised or bounded out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as RichTable

import localparity as lp
from localparity._tables import Table
from localparity.cli._features import read_features
from localparity.metrics._criteria import Criterion
from localparity.report._words import percent

if TYPE_CHECKING:
    from localparity.training import LocalParityClassifier


def train(
    file: Annotated[str, typer.Argument(help="CSV, TSV, Parquet or JSON lines.")],
    target: Annotated[str, typer.Option(help="The column of the two classes.")],
    group: Annotated[
        list[str], typer.Option(help="The column of the groups; give it again for intersections.")
    ],
    out: Annotated[Path, typer.Option(help="The folder that the model is written to.")],
    method: Annotated[
        str, typer.Option(help="erm, advdebias, diffdp, fairmixup, dralign, diffabcc or diffmcdp.")
    ] = "diffmcdp",
    strength: Annotated[float | None, typer.Option(help="The weight of the method's penalty.")] = None,
    max_mcdp: Annotated[
        float | None, typer.Option(help="Find the most accurate model within this bound instead.")
    ] = None,
    max_mcdp_confidence: Annotated[
        float | None, typer.Option(help="Bound the upper end of the interval of this level.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The half-width of windows.")] = 0.0,
    criterion: Annotated[Criterion, typer.Option(help="Which people are compared.")] = "demographic_parity",
    preset: Annotated[str, typer.Option(help="paper or tuned.")] = "tuned",
    steps: Annotated[int | None, typer.Option(help="How many optimiser steps.")] = None,
    weight: Annotated[str | None, typer.Option(help="The column of the weights.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column that is not a feature.")] = None,
    text: Annotated[list[str] | None, typer.Option(help="A column of numbers to take as texts.")] = None,
    keep_group: Annotated[bool, typer.Option(help="Whether the groups are features too.")] = False,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A folder for what an interrupted run needs to go on.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Train a classifier on a file and write it to a folder.

    Exit codes: 0 when it is done, 1 when the bound of --max-mcdp was not met (the model is written all the
    same), 2 for wrong usage or input.
    """
    table = Table(file)
    known = table.read(numbers=[weight] if weight else [], values=[target, *group])
    left_out = {target, *(drop or []), *([weight] if weight else []), *([] if keep_group else group)}
    features = read_features(table, [name for name in table.columns if name not in left_out], text or [])
    console = Console(stderr=True)
    model = lp.training.LocalParityClassifier(
        method,
        strength,
        max_mcdp=max_mcdp,
        max_mcdp_confidence=max_mcdp_confidence,
        epsilon=epsilon,
        criterion=criterion,
        preset=preset,
        steps=steps,
        device=device,
        random_state=seed,
        checkpoint=checkpoint,
        verbose=console.is_terminal and not quiet,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", lp.training.BoundNotMetWarning)
        model.fit(
            features,
            known[target],
            sensitive_features={name: known[name] for name in group},
            sample_weight=known[weight] if weight else None,
        )
    model.save(out)
    _tell(model, out)
    for warning in caught:
        typer.echo(str(warning.message), err=True)
    if max_mcdp is not None and not model.bound_met_:
        raise typer.Exit(1)


def _tell(model: LocalParityClassifier, out: Path) -> None:
    console = Console()
    if hasattr(model, "trials_"):
        shown: Any = RichTable(title="Strengths tried, on the validation part", title_justify="left")
        for name in ("strength", "AP", "MCDP", "within the bound"):
            shown.add_column(name, justify="right")
        for trial in model.trials_:
            cells = percent(trial.average_precision), percent(trial.mcdp), "yes" if trial.met else "no"
            shown.add_row(f"{trial.strength:g}", *cells)
        console.print(shown)
    console.print(
        f"{model.method} at strength {model.strength_:g}; scores are of the class {model.classes_[1]!s}. "
        f"The model is in {out}"
    )
