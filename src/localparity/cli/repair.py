"""`localparity repair`: a file of people in, a model whose scores are repaired to a bound out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import localparity as lp
from localparity._text import interval_text, percent, visible_lines
from localparity.auditing._wording import CRITERION_WORDS
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
    SeedOption,
    SheetOption,
    TargetOption,
    TextOption,
    WeightOption,
    check_bound,
    check_folder,
)
from localparity.cli._tables import (
    IntendedUseOption,
    RemoteOption,
    TrainingTable,
    complete_card,
    read_training_table,
)
from localparity.metrics._within import within_bound

if TYPE_CHECKING:
    from localparity.results import HeldOutAudit, ModelCard

_HELD_OUT = 0.25
_CONFIDENCE = 0.95

GroupAwareOption = Annotated[
    bool,
    typer.Option(
        "--group-aware/--group-blind", help="Whether the groups are known at prediction, or only here."
    ),
]
ConfidenceOption = Annotated[
    float | None, typer.Option(help="Promise the bound for new people, with this probability.")
]


def repair(
    file: PeopleArgument,
    target: TargetOption,
    group: GroupOption,
    out: Annotated[Path, typer.Option(help="The folder that the model is written to.")],
    max_mcdp: Annotated[float, typer.Option(help="The most that MCDP may be.")] = 0.05,
    group_aware: GroupAwareOption = False,
    confidence: ConfidenceOption = None,
    epsilon: EpsilonOption = 0.0,
    criterion: CriterionOption = "demographic_parity",
    weight: WeightOption = None,
    drop: DropOption = None,
    feature: FeatureOption = None,
    text: TextOption = None,
    intended_use: IntendedUseOption = None,
    seed: SeedOption = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the model card as JSON.")] = False,
    force: ForceOption = False,
    encoding: EncodingOption = None,
    sheet: SheetOption = None,
    allow_remote: RemoteOption = False,
) -> None:
    """Fit boosted trees on a file, repair their scores to a bound, and audit them on people held out.

    A quarter of the rows is held out of everything but the audit.

    Exit codes: 0 when MCDP of the people held out is within the bound, 1 when it is above (the model is
    still written), 2 for wrong usage or input, such as a bound that is out of reach.
    """
    check_bound(max_mcdp, "estimate")
    check_folder(out, "--out", replace=force)
    asked: dict[str, Any] = {"max_mcdp": max_mcdp, "epsilon": epsilon, "criterion": criterion}
    people = read_training_table(
        file,
        target,
        group,
        weight=weight,
        drop=drop,
        text=text,
        feature=feature,
        extra="boost",
        encoding=encoding,
        sheet=sheet,
        allow_remote=allow_remote,
    )
    options = {**asked, "confidence": confidence, "random_state": seed}
    classifier = _group_aware(**options) if group_aware else lp.models.GroupBlindClassifier(**options)
    held_out = _fit(classifier, people, seed)
    card = replace(complete_card(classifier.card(), file, intended_use), held_out=held_out)
    classifier.save(out, card)
    within = within_bound(held_out.interval.estimate, max_mcdp)
    if json:
        print_json({"model": str(out), "within_bound": within, **card.to_dict()})
    else:
        typer.echo(visible_lines(_told(card, file, out)))
    if not within:
        raise typer.Exit(1)


def _group_aware(**options: Any) -> Any:
    trees = lp.models.LocalParityLGBMClassifier(0.0, random_state=options["random_state"])
    return lp.models.RepairedClassifier(trees, **options)


def _fit(classifier: Any, people: TrainingTable, seed: int) -> HeldOutAudit:
    """Fit on three quarters of the people, and return the audit of the others."""
    # Imported here: both import scikit-learn.
    from localparity.models._card import audit_held_out
    from localparity.models._folder import needs_group
    from localparity.models._rows import check_training_rows

    features, classes, groups, weights = people
    rows = check_training_rows(classifier, features, classes, groups, weights)
    fitted, held_out = rows.with_weight().hold_out(_HELD_OUT, seed)
    classifier.fit(
        fitted.features,
        fitted.targets,
        sensitive_features=fitted.named_groups,
        sample_weight=None if weights is None else fitted.weights,
    )
    given = {"sensitive_features": held_out.named_groups} if needs_group(classifier) else {}
    return audit_held_out(
        held_out,
        classifier.predict_proba(held_out.features, **given)[:, 1],
        epsilon=classifier.epsilon,
        criterion=classifier.criterion,
        confidence=_CONFIDENCE if classifier.confidence is None else classifier.confidence,
        n_resamples=1000,
        random_state=seed,
    )


def _told(card: ModelCard, file: str, out: Path) -> str:
    """Return what was promised and what the people held out show."""
    found, bound = card.held_out, card.max_mcdp
    assert found is not None
    assert card.fitted_on is not None
    assert bound is not None
    interval = found.interval
    relation = "within" if within_bound(interval.estimate, bound) else "above"
    lines = [
        f"{file}: {card.fitted_on.rows:,} rows to fit on, {found.rows:,} held out; compared: "
        f"{CRITERION_WORDS[card.criterion]}.",
        f"Promised: {card.promise}",
        f"On the people held out, MCDP({card.epsilon:g}) is {percent(interval.estimate)} "
        f"({interval_text(interval)}), {relation} the bound of {percent(bound)}; "
        f"{percent(found.noise_floor)} is expected under parity. AP is {percent(found.average_precision)}.",
    ]
    if not within_bound(found.noise_floor, bound):
        lines.append("With so few rows the expected value is above the bound: only more rows can tell.")
    needs = "needs the groups" if card.needs_group else "does not need the groups"
    lines.append(f"Prediction {needs}. The model and its card are in {out}")
    return "\n".join(lines)
