"""`localparity compare`: a file of people in, methods side by side and a recommendation out."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console

import localparity as lp
from localparity._io._files import write_whole
from localparity._text import percent
from localparity._types import FloatArray
from localparity._validation import InputError, require
from localparity.auditing._files import Scorer
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
    open_file,
    read_training_table,
)
from localparity.metrics._within import verdict_text

if TYPE_CHECKING:
    from localparity.results import ModelComparison, Outcome

ScoreOption = Annotated[
    str | None, typer.Option(help="The column of a model's scores: look for alternatives to that model.")
]
ModelOption = Annotated[
    Path | None, typer.Option(help="The folder of a saved model: look for alternatives to it.")
]
MarginOption = Annotated[
    float,
    typer.Option(help="How much lower AP and accuracy of an alternative may be and count as not worse."),
]
ReportOption = Annotated[Path | None, typer.Option(help="Write a page with everything here.")]
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
    score: ScoreOption = None,
    model: ModelOption = None,
    margin: MarginOption = 0.01,
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
    report: ReportOption = None,
    out: OutOption = None,
    without_group: WithoutGroupOption = False,
    intended_use: IntendedUseOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    force: ForceOption = False,
) -> None:
    """Train boosted trees, with and without a penalty and a repair, and compare them; networks on request.

    --out keeps the recommended model, fitted on the rows to train on, with its model card.

    With --score or --model they are alternatives to that model, the baseline: which of them surely have a
    lower MCDP at accuracy that is not worse by more than --margin? --out keeps the best of those.

    Exit codes: 0 when MCDP of the recommended model is within the bound on test data, 1 when it is above
    (--out still writes the model), 2 for bad usage or input. With a baseline, 1 when an alternative dominates
    it, 0 when none is known to (--out writes nothing).
    """
    if figure is not None and figure.suffix.lower() not in _FIGURES:
        raise typer.BadParameter(
            f"must be a {', '.join(_FIGURES[:-1])} or {_FIGURES[-1]} file, got {str(figure)!r}",
            param_hint="--figure",
        )
    check_file(figure, "--figure", read=[file], replace=force)
    check_file(report, "--report", read=[file], replace=force)
    _check_out(out, without_group=without_group, intended_use=intended_use, force=force)
    scores = _baseline_scores(file, target, group, people, score=score, model=model)
    if score is not None:
        people = replace(people, drop=[*(people.drop or []), score])
    features, classes, groups, weights = read_training_table(
        file, target, group, people, extra="boost" if network_steps is None else "train,boost"
    )
    comparison = lp.models.compare(
        features,
        classes,
        sensitive_features=groups,
        sample_weight=weights,
        y_score=scores,
        margin=margin,
        max_mcdp=max_mcdp,
        epsilon=epsilon,
        criterion=criterion,
        booster=booster,
        network_steps=network_steps,
        confidence=confidence,
        n_resamples=resamples,
        random_state=seed,
    )
    about = [file, f"{target} by {' x '.join(group)}"]
    about += [] if scores is None else [f"baseline: {score or model}"]
    if json:
        print_json(comparison.to_dict())
    else:
        from localparity.report._terminal import TerminalComparison

        Console().print(TerminalComparison(comparison, "  ".join(about)))
    if figure is not None:
        _draw(comparison, figure)
        note(f"figure: {figure}")
    if report is not None:
        comparison.to_html(report, about=about, force=force)
        note(f"report: {report}")
    outcome = comparison.recommended_without_group if without_group else comparison.recommended
    if out is not None and (scores is None or outcome in comparison.dominating):
        comparison.save(out, complete_card(comparison.card(outcome), file, intended_use), outcome=outcome)
        note(f"model: {outcome.name}, in {out}")
    elif out is not None:
        note(f"no model is written to {out}: none that may be is known to dominate the baseline")
    passes, reason = _verdict(comparison, outcome)
    note(f"{'pass' if passes else 'fail'}: {reason}")
    if not passes:
        raise typer.Exit(1)


def _baseline_scores(
    file: str, target: str, group: list[str], people: PeopleOptions, *, score: str | None, model: Path | None
) -> FloatArray | None:
    """Return the scores of the model that alternatives are looked for to, if there is one."""
    if score is None and model is None:
        return None
    if score is not None and model is not None:
        raise typer.BadParameter("give --score or --model, one of them", param_hint="--score")
    table = open_file(file, encoding=people.encoding, sheet=people.sheet, allow_remote=people.allow_remote)
    if score is not None:
        if score in (target, *group, people.weight):
            raise typer.BadParameter(f"{score!r} is a column with another role", param_hint="--score")
        return np.asarray(table.read(numbers=[score])[score])
    scorer = Scorer.load(str(model))
    if scorer.was_fitted_on(file):
        raise InputError(
            f"{file} is the file that the model in {model} was fitted on; give people it was not"
        )
    scorer.labels(table.read(numbers=[], values=[target])[target], target, table.name)
    return scorer.score(table, group)


def _verdict(comparison: ModelComparison, outcome: Outcome) -> tuple[bool, str]:
    """Whether an outcome is within the bound, or the baseline is not known to be dominated, and why."""
    if comparison.baseline is not None:
        return not comparison.dominating, comparison.sentences[0]
    verdict, bound = comparison.verdict(outcome), f"the bound of {percent(comparison.max_mcdp)}"
    assert verdict is not None
    passes = outcome in comparison.within_on_test
    return passes, (
        f"{outcome.name}: on test data MCDP({comparison.epsilon:g}) is "
        f"{percent(outcome.test.mcdp)}, {verdict_text(verdict, bound, passes=passes)}"
    )


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
