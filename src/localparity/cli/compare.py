"""`localparity compare`: a file of people in, methods side by side and a recommendation out."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

import localparity as lp
from localparity._io._files import write_whole
from localparity._text import percent
from localparity._validation import require
from localparity.cli._commands import note, print_json
from localparity.cli._options import (
    ConfidenceOption,
    CriterionOption,
    EpsilonOption,
    ForceOption,
    GroupOption,
    IntendedUseOption,
    PeopleArgument,
    PeopleOptions,
    TargetOption,
    asking,
    check_file,
    check_folder,
    complete_card,
    read_training_table,
)
from localparity.metrics._within import verdict_text

if TYPE_CHECKING:
    from localparity.results import ModelComparison

OutOption = Annotated[Path | None, typer.Option(help="Write the recommended model to this folder.")]
WithoutGroupOption = Annotated[
    bool, typer.Option("--without-group", help="Write the best model that predicts without the groups.")
]
NetworkStepsOption = Annotated[
    int | None,
    typer.Option(help="Also train networks (ERM, DiffMCDP), each for this many steps; 200 is a start."),
]
_FIGURES = (".png", ".svg", ".pdf")


@asking
def compare(
    *,
    file: PeopleArgument,
    target: TargetOption,
    group: GroupOption,
    max_mcdp: Annotated[float, typer.Option(help="The bound that methods are chosen for.")] = 0.05,
    epsilon: EpsilonOption = 0.0,
    criterion: CriterionOption = "demographic_parity",
    booster: Annotated[str, typer.Option(help="lightgbm or xgboost.")] = "lightgbm",
    people: PeopleOptions,
    network_steps: NetworkStepsOption = None,
    confidence: ConfidenceOption = 0.95,
    resamples: Annotated[int, typer.Option(help="Samples of the bootstrap of each interval.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same comparison.")] = 0,
    figure: Annotated[Path | None, typer.Option(help="Write the figure here: .png, .svg or .pdf.")] = None,
    out: OutOption = None,
    without_group: WithoutGroupOption = False,
    intended_use: IntendedUseOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    force: ForceOption = False,
) -> None:
    """Train boosted trees, with and without a penalty and a repair, and compare them; networks on request.

    --out keeps the recommended model, fitted on the rows to train on, with its model card.

    Exit codes: 0 when MCDP of the recommended model is within the bound on test data, 1 when it is above
    (--out still writes the model), 2 for bad usage or input.
    """
    if figure is not None and figure.suffix.lower() not in _FIGURES:
        raise typer.BadParameter(
            f"must be a {', '.join(_FIGURES[:-1])} or {_FIGURES[-1]} file, got {str(figure)!r}",
            param_hint="--figure",
        )
    check_file(figure, "--figure", read=[file], replace=force)
    _check_out(out, without_group=without_group, intended_use=intended_use, force=force)
    features, classes, groups, weights = read_training_table(
        file, target, group, people, extra="boost" if network_steps is None else "train,boost"
    )
    comparison = lp.models.compare(
        features,
        classes,
        sensitive_features=groups,
        sample_weight=weights,
        max_mcdp=max_mcdp,
        epsilon=epsilon,
        criterion=criterion,
        booster=booster,
        network_steps=network_steps,
        confidence=confidence,
        n_resamples=resamples,
        random_state=seed,
    )
    if json:
        print_json(comparison.to_dict())
    else:
        from localparity.report._terminal import TerminalComparison

        Console().print(TerminalComparison(comparison, f"{file}  {target} by {' x '.join(group)}"))
    if figure is not None:
        _draw(comparison, figure)
        note(f"figure: {figure}")
    outcome = comparison.recommended_without_group if without_group else comparison.recommended
    within = outcome in comparison.within_on_test
    if out is not None:
        comparison.save(out, complete_card(comparison.card(outcome), file, intended_use), outcome=outcome)
        note(f"model: {outcome.name}, in {out}")
    verdict, bound = comparison.verdict(outcome), f"the bound of {percent(max_mcdp)}"
    assert verdict is not None
    note(
        f"{'pass' if within else 'fail'}: {outcome.name}: on test data MCDP({epsilon:g}) is "
        f"{percent(outcome.test.mcdp)}, {verdict_text(verdict, bound)}"
    )
    if not within:
        raise typer.Exit(1)


def _check_out(out: Path | None, *, without_group: bool, intended_use: str | None, force: bool) -> None:
    """Check the folder of the model, which two options need."""
    given = {"--without-group": without_group, "--intended-use": intended_use is not None}
    for option in (option for option, is_given in given.items() if is_given and out is None):
        raise typer.BadParameter("needs --out, the folder of the model", param_hint=option)
    if out is not None:
        check_folder(out, "--out", replace=force)


def _draw(found: ModelComparison, path: Path) -> None:
    require("matplotlib", extra="report").use("Agg")
    pyplot = require("matplotlib.pyplot", extra="report")
    figure, ax = pyplot.subplots(figsize=(7.2, 5.4), layout="constrained")
    found.plot(ax)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix.lower().removeprefix("."), dpi=200)
    pyplot.close(figure)
    write_whole(path, drawn.getvalue())
