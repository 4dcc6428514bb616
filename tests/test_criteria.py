"""Every criterion from end to end: trained, repaired, audited and reported, over intersections of two features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import localparity as lp
from localparity.models import LocalParityClassifier, RepairedClassifier, ScoreRepair

CENSUS = lp.datasets.make_census(4000, random_state=0)
GROUPS = pd.DataFrame(
    {"sex": CENSUS.sensitive_features, "old": np.where(CENSUS.data["age"] > 45, "old", "young")}
)
CRITERIA = ["demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds"]
BOUNDS = {
    "demographic_parity": 0.1,
    "equal_opportunity": 0.15,
    "predictive_equality": 0.1,
    "equalized_odds": 0.3,
}


def measured(scores: Any, criterion: Any) -> float:
    return lp.mcdp(CENSUS.target, scores, sensitive_features=GROUPS, criterion=criterion)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_scores_are_repaired_audited_and_reported(criterion: Any, tmp_path: Path) -> None:
    bound = BOUNDS[criterion]
    repair = ScoreRepair(max_mcdp=bound, criterion=criterion)
    repair.fit(CENSUS.score, CENSUS.target, sensitive_features=GROUPS)
    repaired = repair.transform(CENSUS.score, sensitive_features=GROUPS)
    assert measured(repaired, criterion) == repair.mcdp_ <= bound < measured(CENSUS.score, criterion)
    audit = lp.audit(
        CENSUS.target,
        repaired,
        sensitive_features=GROUPS,
        criterion=criterion,
        n_resamples=20,
        random_state=0,
    )
    assert audit.passes(bound)
    assert audit.findings[0].mcdp == repair.mcdp_
    assert {pair.label for pair in audit.pairs} == {
        "demographic_parity": {None},
        "equal_opportunity": {1},
        "predictive_equality": {0},
        "equalized_odds": {0, 1},
    }[criterion]
    audit.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Female × young" in page


def trained(strength: float, criterion: Any = "demographic_parity") -> Any:
    features = CENSUS.data.assign(sex=CENSUS.sensitive_features)
    model = LocalParityClassifier(
        "diffmcdp", strength, steps=80, hidden=(32,), random_state=0, criterion=criterion
    )
    model.fit(features, CENSUS.target, sensitive_features=GROUPS)
    return model.predict_proba(features)[:, 1]


@pytest.fixture(scope="module")
def unpenalised() -> Any:
    """Scores of a training without a penalty, which no criterion changes."""
    return trained(0.0)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_penalty_of_the_criterion_brings_it_down_and_repair_the_rest_of_the_way(
    criterion: Any, unpenalised: Any
) -> None:
    scores = trained(4.0, criterion)
    assert measured(scores, criterion) < 0.7 * measured(unpenalised, criterion)
    repair = ScoreRepair(max_mcdp=0.15, criterion=criterion)
    repair.fit(scores, CENSUS.target, sensitive_features=GROUPS)
    assert measured(repair.transform(scores, sensitive_features=GROUPS), criterion) <= 0.15


def test_trees_are_repaired_like_any_other_classifier() -> None:
    features = CENSUS.data.select_dtypes("number").assign(male=CENSUS.sensitive_features == "Male")
    model = RepairedClassifier(
        HistGradientBoostingClassifier(max_iter=30),
        criterion="equal_opportunity",
        max_mcdp=0.2,
        random_state=0,
    )
    model.fit(features, CENSUS.target, sensitive_features=GROUPS)
    assert model.repair_.mcdp_ <= 0.2 < model.repair_.unrepaired_mcdp_
    found = model.predict_proba(features, sensitive_features=GROUPS)[:, 1]
    raw = model.estimator_.predict_proba(features)[:, 1]
    assert measured(found, "equal_opportunity") < measured(raw, "equal_opportunity")
