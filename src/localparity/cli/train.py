"""`localparity train`: a file of people in, a model whose disparity is penalised or bounded out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
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
    EpsilonOption,
    ForceOption,
    GroupOption,
    IntendedUseOption,
    PeopleArgument,
    PeopleOptions,
    PromiseOption,
    TargetOption,
    asking,
    check_folder,
    complete_card,
    read_training_table,
)
from localparity.metrics._within import within_bound

ModelOption = Annotated[Literal["network", "lightgbm", "xgboost"], typer.Option(help="The kind of model.")]


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """How a network is trained."""

    method: Annotated[
        str, typer.Option(help="erm, advdebias, diffdp, fairmixup, dralign, diffabcc or diffmcdp.")
    ] = "diffmcdp"
    preset: Annotated[str, typer.Option(help="paper or tuned.")] = "tuned"
    steps: Annotated[int | None, typer.Option(help="The number of optimiser steps.")] = None
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto"


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What every kind of model is trained for."""

    strength: Annotated[float | None, typer.Option(help="The weight of the penalty.")] = None
    max_mcdp: Annotated[
        float | None, typer.Option(help="Find the most accurate model within this bound instead.")
    ] = None
    confidence: PromiseOption = None
    epsilon: EpsilonOption = 0.0
    criterion: CriterionOption = "demographic_parity"
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0


@asking
def train(
    *,
    file: PeopleArgument,
    target: TargetOption,
    group: GroupOption,
    out: Annotated[Path, typer.Option(help="The folder that the model is written to.")],
    model: ModelOption = "network",
    training: TrainingOptions,
    network: NetworkOptions,
    people: PeopleOptions,
    keep_group: Annotated[bool, typer.Option(help="Whether the groups are features too.")] = False,
    intended_use: IntendedUseOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    force: ForceOption = False,
) -> None:
    """Train a classifier on a file and write it to a folder.

    Exit codes: 0 when it is done, 1 when the bound of --max-mcdp was not met (the model is still
    written), 2 for bad usage or input.
    """
    for field in fields(network):
        if model != "network" and getattr(network, field.name) != field.default:
            raise typer.BadParameter(f"--model {model} does not take it", param_hint=f"--{field.name}")
    check_folder(out, "--out", replace=force)
    features, classes, groups, weights = read_training_table(
        file, target, group, people, extra="train" if model == "network" else "boost", keep_group=keep_group
    )
    classifier = _classifier(model, training, network)
    classifier.fit(features, classes, sensitive_features=groups, sample_weight=weights)
    classifier.save(out, complete_card(classifier.card(), file, intended_use))
    if json:
        print_json(
            {
                "model": str(out),
                "estimator": type(classifier).__name__,
                "positive_class": str(classifier.classes_[1]),
                "strength": classifier.strength_,
                "bound_met": getattr(classifier, "bound_met_", None),
                "trials": _trials(classifier),
            }
        )
    else:
        _show(classifier, getattr(classifier, "method", model), out)
    if training.max_mcdp is not None and not classifier.bound_met_:
        raise typer.Exit(1)


def _classifier(model: str, options: TrainingOptions, network: NetworkOptions) -> Any:
    """The classifier that the options ask for."""
    settings = asdict(options)
    settings["random_state"] = settings.pop("seed")
    if model == "network":
        return lp.models.LocalParityClassifier(**settings, **asdict(network))
    trees = lp.models.LocalParityLGBMClassifier
    return (trees if model == "lightgbm" else lp.models.LocalParityXGBClassifier)(**settings)


def _trials(classifier: Any) -> list[dict[str, Any]]:
    """How the strengths that were tried do, as JSON has it."""
    return [
        {
            "strength": strength,
            "average_precision": measured.average_precision,
            "mcdp": measured.mcdp,
            "at_most": measured.at_most,
            "within_bound": within_bound(measured.at_most, classifier.max_mcdp),
        }
        for strength, measured in getattr(classifier, "trials_", {}).items()
    ]


def _show(classifier: Any, name: str, out: Path) -> None:
    console = Console()
    if hasattr(classifier, "trials_"):
        sure = classifier.confidence is not None
        how = "tested, in order, on people held out" if sure else "tried, on the validation part"
        shown: Any = RichTable(title=f"Strengths {how}", title_justify="left")
        for column in ("strength", "AP", "MCDP", *(["at most"] if sure else []), "within the bound"):
            shown.add_column(column, justify="right")
        for trial in _trials(classifier):
            numbers = [trial["average_precision"], trial["mcdp"], *([trial["at_most"]] if sure else [])]
            within = "yes" if trial["within_bound"] else "no"
            shown.add_row(f"{trial['strength']:g}", *map(percent, numbers), within)
        console.print(shown)
    console.print(
        f"{name} at strength {classifier.strength_:g}; scores are probabilities of class "
        f"{visible(str(classifier.classes_[1]))}. The model is in {visible(str(out))}",
        markup=False,
    )
    if classifier.confidence is not None:
        console.print(classifier.promise_, highlight=False, markup=False)
