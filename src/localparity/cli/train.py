"""`localparity train`: a file of people in, a model whose disparity is penalised or bounded out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as RichTable

import localparity as lp
from localparity.cli._features import People, read_people
from localparity.cli._options import (
    CriterionOption,
    DropOption,
    EpsilonOption,
    ForceOption,
    GroupOption,
    PeopleArgument,
    TargetOption,
    TextOption,
    WeightOption,
    check_folder,
)
from localparity.metrics._window import percent

if TYPE_CHECKING:
    from localparity.models import LocalParityClassifier


def train(
    file: PeopleArgument,
    target: TargetOption,
    group: GroupOption,
    out: Annotated[Path, typer.Option(help="The folder that the model is written to.")],
    method: Annotated[
        str, typer.Option(help="erm, advdebias, diffdp, fairmixup, dralign, diffabcc or diffmcdp.")
    ] = "diffmcdp",
    strength: Annotated[float | None, typer.Option(help="The weight of the method's penalty.")] = None,
    max_mcdp: Annotated[
        float | None, typer.Option(help="Find the most accurate model within this bound instead.")
    ] = None,
    max_mcdp_confidence: Annotated[
        float | None, typer.Option(help="Bound the upper end of the interval of this confidence.")
    ] = None,
    epsilon: EpsilonOption = 0.0,
    criterion: CriterionOption = "demographic_parity",
    preset: Annotated[str, typer.Option(help="paper or tuned.")] = "tuned",
    steps: Annotated[int | None, typer.Option(help="How many optimiser steps.")] = None,
    weight: WeightOption = None,
    drop: DropOption = None,
    text: TextOption = None,
    keep_group: Annotated[bool, typer.Option(help="Whether the groups are features too.")] = False,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A folder for what an interrupted run needs to go on.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    force: ForceOption = False,
) -> None:
    """Train a classifier on a file and write it to a folder.

    Exit codes: 0 when it is done, 1 when the bound of --max-mcdp was not met (the model is written all the
    same), 2 for wrong usage or input.
    """
    check_folder(out, "--out", replace=force)
    people = read_people(file, target, group, weight=weight, drop=drop, text=text, keep_group=keep_group)
    shown = Console(stderr=True).is_terminal and not quiet
    model = lp.models.LocalParityClassifier(
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
        verbose=shown,
    )
    caught = _fit(model, people)
    model.save(out)
    _tell(model, out)
    for message in caught:
        typer.echo(message, err=True)
    if max_mcdp is not None and not model.bound_met_:
        raise typer.Exit(1)


def _fit(model: LocalParityClassifier, people: People) -> list[str]:
    """Train; what is warned of a bound that was not met."""
    features, classes, groups, weights = people
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", lp.models.BoundNotMetWarning)
        model.fit(features, classes, sensitive_features=groups, sample_weight=weights)
    return [str(warning.message) for warning in caught]


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
        f"The model is in {out}",
        markup=False,
    )
