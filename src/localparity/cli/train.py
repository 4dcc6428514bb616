"""`localparity train`: a file of people in, a model whose disparity is penalised or bounded out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table as RichTable

import localparity as lp
from localparity._text import percent, visible
from localparity.cli._commands import print_json
from localparity.cli._options import (
    CriterionOption,
    DropOption,
    EncodingOption,
    EpsilonOption,
    FeatureOption,
    ForceOption,
    GroupOption,
    PeopleArgument,
    SheetOption,
    TargetOption,
    TextOption,
    WeightOption,
    check_folder,
)
from localparity.cli._tables import IntendedUseOption, RemoteOption, complete_card, read_training_table

_KINDS = {
    "network": "LocalParityClassifier",
    "lightgbm": "LocalParityLGBMClassifier",
    "xgboost": "LocalParityXGBClassifier",
}


ModelOption = Annotated[Literal["network", "lightgbm", "xgboost"], typer.Option(help="The kind of model.")]
MethodOption = Annotated[
    str | None,
    typer.Option(help="erm, advdebias, diffdp, fairmixup, dralign, diffabcc or diffmcdp (default)."),
]
MaxMcdpOption = Annotated[
    float | None, typer.Option(help="Find the most accurate model within this bound instead.")
]
ConfidenceOption = Annotated[
    float | None, typer.Option(help="Promise the bound for new people, with this probability.")
]


def train(
    file: PeopleArgument,
    target: TargetOption,
    group: GroupOption,
    out: Annotated[Path, typer.Option(help="The folder that the model is written to.")],
    model: ModelOption = "network",
    method: MethodOption = None,
    strength: Annotated[float | None, typer.Option(help="The weight of the penalty.")] = None,
    max_mcdp: MaxMcdpOption = None,
    confidence: ConfidenceOption = None,
    epsilon: EpsilonOption = 0.0,
    criterion: CriterionOption = "demographic_parity",
    preset: Annotated[str | None, typer.Option(help="paper or tuned (default).")] = None,
    steps: Annotated[int | None, typer.Option(help="The number of optimiser steps.")] = None,
    weight: WeightOption = None,
    drop: DropOption = None,
    feature: FeatureOption = None,
    text: TextOption = None,
    keep_group: Annotated[bool, typer.Option(help="Whether the groups are features too.")] = False,
    intended_use: IntendedUseOption = None,
    device: Annotated[str | None, typer.Option(help="auto (default), cpu, cuda, ...")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    force: ForceOption = False,
    encoding: EncodingOption = None,
    sheet: SheetOption = None,
    allow_remote: RemoteOption = False,
) -> None:
    """Train a classifier on a file and write it to a folder.

    Exit codes: 0 when it is done, 1 when the bound of --max-mcdp was not met (the model is still
    written), 2 for wrong usage or input.
    """
    of_networks = {"method": method, "preset": preset, "steps": steps, "device": device}
    given = _given(model, **of_networks)
    check_folder(out, "--out", replace=force)
    people = read_training_table(
        file,
        target,
        group,
        weight=weight,
        drop=drop,
        text=text,
        feature=feature,
        extra="train" if model == "network" else "boost",
        keep_group=keep_group,
        encoding=encoding,
        sheet=sheet,
        allow_remote=allow_remote,
    )
    classifier = getattr(lp.models, _KINDS[model])(
        strength=strength,
        max_mcdp=max_mcdp,
        confidence=confidence,
        epsilon=epsilon,
        criterion=criterion,
        random_state=seed,
        verbose=Console(stderr=True).is_terminal and not quiet,
        **given,
    )
    features, classes, groups, weights = people
    classifier.fit(features, classes, sensitive_features=groups, sample_weight=weights)
    classifier.save(out, complete_card(classifier.card(), file, intended_use))
    if json:
        print_json(_found(classifier, out))
    else:
        _show(classifier, getattr(classifier, "method", model), out)
    if max_mcdp is not None and not classifier.bound_met_:
        raise typer.Exit(1)


def _given(model: str, **of_networks: Any) -> dict[str, Any]:
    """Return the options that are given, which only networks take."""
    given = {name: value for name, value in of_networks.items() if value is not None}
    if model != "network" and given:
        raise typer.BadParameter(f"--model {model} does not take it", param_hint=f"--{next(iter(given))}")
    return given


def _found(classifier: Any, out: Path) -> dict[str, Any]:
    """Return the strengths that were tried and the one that was taken, as JSON has them."""
    return {
        "model": str(out),
        "estimator": type(classifier).__name__,
        "positive_class": str(classifier.classes_[1]),
        "strength": classifier.strength_,
        "bound_met": getattr(classifier, "bound_met_", None),
        "trials": [asdict(trial) for trial in getattr(classifier, "trials_", [])],
    }


def _show(classifier: Any, name: str, out: Path) -> None:
    console = Console()
    if hasattr(classifier, "trials_"):
        sure = classifier.confidence is not None
        title = (
            "Strengths tested, in order, on people held out"
            if sure
            else "Strengths tried, on the validation part"
        )
        shown: Any = RichTable(title=title, title_justify="left")
        for column in ("strength", "AP", "MCDP", *(["at most"] if sure else []), "within the bound"):
            shown.add_column(column, justify="right")
        for trial in classifier.trials_:
            numbers = [trial.average_precision, trial.mcdp, *([trial.bounded] if sure else [])]
            shown.add_row(f"{trial.strength:g}", *map(percent, numbers), "yes" if trial.met else "no")
        console.print(shown)
    console.print(
        f"{name} at strength {classifier.strength_:g}; scores are probabilities of class "
        f"{visible(str(classifier.classes_[1]))}. The model is in {visible(str(out))}",
        markup=False,
    )
    if classifier.confidence is not None:
        console.print(classifier.promise_, highlight=False, markup=False)
