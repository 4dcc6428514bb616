"""`localparity compare`: a file of people in, methods side by side and a recommendation out."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as RichTable

import localparity as lp
from localparity._io._files import write_whole
from localparity._text import percent, visible
from localparity._validation import require
from localparity.auditing._wording import CRITERION_WORDS
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
    steps: Annotated[int, typer.Option(help="The number of steps of each network.")] = 200,
    confidence: ConfidenceOption = 0.95,
    resamples: Annotated[int, typer.Option(help="Samples of the bootstrap of each interval.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same comparison.")] = 0,
    figure: Annotated[Path | None, typer.Option(help="Write the figure here: .png, .svg or .pdf.")] = None,
    out: OutOption = None,
    without_group: WithoutGroupOption = False,
    intended_use: IntendedUseOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    force: ForceOption = False,
) -> None:
    """Train networks and boosted trees, with and without a penalty and a repair, and compare them.

    --out keeps the recommended model, fitted on the rows to train on, with its model card.

    Exit codes: 0 when it is done, 1 when MCDP of the test part is above the bound for the model that --out
    keeps (it is still written), 2 for wrong usage or input.
    """
    if figure is not None and figure.suffix.lower() not in _FIGURES:
        raise typer.BadParameter(
            f"must be a {', '.join(_FIGURES[:-1])} or {_FIGURES[-1]} file, got {str(figure)!r}",
            param_hint="--figure",
        )
    check_file(figure, "--figure", read=[file], replace=force)
    _check_out(out, without_group=without_group, intended_use=intended_use, force=force)
    features, classes, groups, weights = read_training_table(file, target, group, people, extra="train,boost")
    comparison = lp.models.compare(
        features,
        classes,
        sensitive_features=groups,
        sample_weight=weights,
        max_mcdp=max_mcdp,
        epsilon=epsilon,
        criterion=criterion,
        booster=booster,
        steps=steps,
        confidence=confidence,
        n_resamples=resamples,
        random_state=seed,
        verbose=Console(stderr=True).is_terminal and not quiet,
    )
    print_json(comparison.to_dict()) if json else _show(comparison, file)
    if figure is not None:
        _draw(comparison, figure)
        note(f"figure: {figure}")
    if out is not None:
        outcome = comparison.recommended_without_group if without_group else comparison.recommended
        comparison.save(out, complete_card(comparison.card(outcome), file, intended_use), outcome=outcome)
        within = outcome in comparison.within_on_test
        verdict = comparison.verdict(outcome)
        bound = f"the bound of {percent(max_mcdp)}"
        relation = bound if verdict is None else verdict_text(verdict, bound)
        note(
            f"model: {outcome.name}, in {out}; on test data its MCDP({epsilon:g}) is "
            f"{percent(outcome.test.mcdp)}, {relation}"
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


def _show(found: ModelComparison, file: str) -> None:
    console = Console(highlight=False, markup=False)
    trained, validated, tested = found.rows
    console.print(
        f"{visible(file)}: {trained:,} rows to train on, {validated:,} to choose on, {tested:,} to test on; "
        f"compared: {CRITERION_WORDS[found.criterion]}."
    )
    shown: Any = RichTable(title="Chosen for the bound, measured on the test part", title_justify="left")
    shown.add_column("method", overflow="fold")
    shown.add_column("setting", overflow="fold")
    best = found.recommended.test
    assert best.interval is not None
    assert best.noise_floor is not None
    confidence = f"{100 * best.interval.confidence:g}% interval"
    for name in ("AP", f"MCDP({found.epsilon:g})", confidence, "bound", "gives up"):
        shown.add_column(name, justify="right")
    for outcome in sorted(found.outcomes, key=lambda outcome: outcome.test.mcdp):
        test, interval = outcome.test, outcome.test.interval
        shown.add_row(
            outcome.name,
            outcome.setting or "-",
            percent(test.average_precision),
            percent(test.mcdp),
            "" if interval is None else f"{percent(interval.low)} to {percent(interval.high)}",
            found.verdict(outcome) or "",
            "" if outcome.shortfall is None else f"{round(100.0 * outcome.shortfall, 1) + 0.0:.1f}",
        )
    console.print(shown)
    if found.frontier is not None:
        console.print(
            "Gives up: points of AP below the frontier, the best that group-blind scores reach at the same "
            "MCDP. Repaired scores, which need the group, may lie beyond it."
        )
    promised = [outcome.name for outcome in found.outcomes if outcome.promise]
    if promised:
        console.print(
            f"Within {percent(found.max_mcdp)} for new people, all of them with probability "
            f"{best.interval.confidence:g}: {'; '.join(promised)}."
        )
    expected = percent(best.noise_floor)
    console.print(f"Expected under parity on the test part: {expected}. Rows are assumed to be independent.")
    for name, reason in found.left_out.items():
        console.print(visible(f"Left out: {name}: {reason}"))
    console.print(found.recommendation, style="bold")


def _draw(found: ModelComparison, path: Path) -> None:
    require("matplotlib", extra="report").use("Agg")
    pyplot = require("matplotlib.pyplot", extra="report")
    figure, ax = pyplot.subplots(figsize=(7.2, 5.4), layout="constrained")
    found.plot(ax)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix.lower().removeprefix("."), dpi=200)
    pyplot.close(figure)
    write_whole(path, drawn.getvalue())
