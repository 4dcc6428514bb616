"""`localparity repair`: a file of people in, a model whose scores are repaired to a bound out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import localparity as lp
from localparity._text import interval_text, percent, points
from localparity._validation import InputError
from localparity.auditing._wording import CRITERION_WORDS
from localparity.cli._commands import print_result
from localparity.cli._options import (
    CriterionOption,
    EpsilonOption,
    ForceOption,
    GroupOption,
    IntendedUseOption,
    PeopleArgument,
    PeopleOptions,
    PromiseOption,
    SeedOption,
    TargetOption,
    asking,
    check_bound,
    check_folder,
    complete_card,
    read_training_table,
)
from localparity.metrics._within import verdict_on, verdict_text, within_bound
from localparity.models._bound import OutOfReachError

if TYPE_CHECKING:
    from localparity.results import ModelCard

GroupAwareOption = Annotated[
    bool,
    typer.Option(
        "--group-aware/--group-blind", help="Whether predictions may use the groups, or only this fit."
    ),
]


@asking
def repair(
    *,
    file: PeopleArgument,
    target: TargetOption,
    group: GroupOption,
    out: Annotated[Path, typer.Option(help="The folder that the model is written to.")],
    max_mcdp: Annotated[float, typer.Option(help="The most that MCDP may be.")] = 0.05,
    group_aware: GroupAwareOption = False,
    confidence: PromiseOption = None,
    epsilon: EpsilonOption = 0.0,
    criterion: CriterionOption = "demographic_parity",
    people: PeopleOptions,
    intended_use: IntendedUseOption = None,
    seed: SeedOption = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the model card as JSON.")] = False,
    force: ForceOption = False,
) -> None:
    """Fit boosted trees on a file, repair their scores to a bound, and audit them on people held out.

    A quarter of the rows is held out of everything but the audit.

    Exit codes: 0 when MCDP of the people held out is within the bound, 1 when it is above (the model is
    still written), 2 for bad usage or input, such as a bound that is out of reach.
    """
    check_bound(max_mcdp, "estimate")
    check_folder(out, "--out", replace=force)
    features, classes, groups, weights = read_training_table(file, target, group, people, extra="boost")
    settings: dict[str, Any] = {
        "max_mcdp": max_mcdp,
        "epsilon": epsilon,
        "criterion": criterion,
        "confidence": confidence,
        "random_state": seed,
    }
    classifier: lp.models.RepairedClassifier | lp.models.GroupBlindClassifier
    if group_aware:
        trees = lp.models.LocalParityLGBMClassifier(0.0, random_state=seed)
        classifier = lp.models.RepairedClassifier(trees, **settings)
    else:
        classifier = lp.models.GroupBlindClassifier(**settings)
    try:
        classifier.fit_with_audit(features, classes, sensitive_features=groups, sample_weight=weights)
    except OutOfReachError as error:
        raise InputError(f"{error.reason}. {_carriers(target, features, classes, groups)}") from error
    card = complete_card(classifier.card(), file, intended_use)
    classifier.save(out, card)
    assert card.held_out is not None
    within = within_bound(card.held_out.mcdp, max_mcdp)
    verdict = None if card.held_out.interval is None else verdict_on(card.held_out.interval, max_mcdp)
    result = {"model": str(out), "verdict": verdict, "within_bound": within, **card.to_dict()}
    print_result(result, *_summary(card, file, out), json=json)
    if not within:
        raise typer.Exit(1)


def _carriers(target: str, features: Any, classes: Any, groups: Any) -> str:
    """Which features carry the gap between the groups' classes, in a sentence."""
    is_last = (classes == np.unique(classes)[-1]).astype(float)
    try:
        why = lp.explain(is_last, features, sensitive_features=groups, random_state=0)
    except InputError as error:
        return f"What carries the gap is not known: {error}."
    carried = [gap.name for gap in why.features if gap.explained is not None and gap.explained.low > 0.0][:3]
    names = ", ".join(carried) or "no single feature"
    gap = points(why.total.estimate)
    return f"The groups' gap of {gap} in {target!r} is carried by {names} (see `localparity explain`)"


def _summary(card: ModelCard, file: str, out: Path) -> list[str]:
    """What was promised and what the people held out show."""
    test, bound = card.held_out, card.max_mcdp
    assert card.fitted_on is not None
    assert bound is not None
    assert test is not None
    assert test.interval is not None
    assert test.noise_floor is not None
    verdict, passes = verdict_on(test.interval, bound), within_bound(test.mcdp, bound)
    relation = verdict_text(verdict, f"the bound of {percent(bound)}", passes=passes)
    lines = [
        f"{file}: {card.fitted_on.rows:,} rows to fit on, {test.rows:,} held out; compared: "
        f"{CRITERION_WORDS[card.criterion]}.",
        f"Promised: {card.promise}",
        f"On the people held out, MCDP({card.epsilon:g}) is {percent(test.mcdp)} "
        f"({interval_text(test.interval)}), {relation}; "
        f"{percent(test.noise_floor)} is expected under parity. AP is {percent(test.average_precision)}.",
    ]
    if not within_bound(test.noise_floor, bound):
        lines.append("With so few rows the expected value is above the bound: only more rows can tell.")
    needs = "needs the groups" if card.needs_group else "does not need the groups"
    return [*lines, f"Prediction {needs}. The model and its card are in {out}"]
