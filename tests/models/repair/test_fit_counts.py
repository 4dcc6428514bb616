"""Repairs fitted on counts, as engines make them, against those fitted on rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.models import ScoreRepair

CENSUS = lp.datasets.make_census(3000, random_state=0)
SCORES, SEX = CENSUS.score, CENSUS.sensitive_features


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.05}, {"confidence": 0.9, "max_mcdp": 0.2}])
@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity"])
def test_counts_are_fitted_on_as_rows_are(options: dict[str, Any], criterion: Any) -> None:
    options = {"criterion": criterion, "max_mcdp": 0.1, **options}
    rows = lp.Predictions.from_arrays(CENSUS.target, SCORES, sensitive_features=SEX)
    found = ScoreRepair(**options).fit(lp.ScoreCounts.from_predictions(rows))
    expected = ScoreRepair(**options).fit(SCORES, CENSUS.target, sensitive_features=SEX)
    for group in expected.maps_:
        np.testing.assert_array_equal(found.maps_[group].values, expected.maps_[group].values)
    assert (found.mcdp_, found.promise_) == (expected.mcdp_, expected.promise_)
    assert found.card().fitted_on.groups == expected.card().fitted_on.groups


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
@pytest.mark.parametrize("level", [6, 10])
def test_counts_on_a_grid_keep_the_bound_for_the_rows_inside(epsilon: float, level: int) -> None:
    rows = lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX)
    counts = lp.counts.bounded(lp.ScoreCounts.from_predictions(rows), max_scores=100, level=level)
    assert counts.rank_error > 0.0
    repair = ScoreRepair(max_mcdp=0.12, epsilon=epsilon).fit(counts)
    found = repair.transform(SCORES, sensitive_features=SEX)
    after = lp.mcdp(None, found, sensitive_features=SEX, epsilon=epsilon)
    assert after <= repair.mcdp_ <= 0.12
    assert repair.unrepaired_mcdp_ >= lp.mcdp(None, SCORES, sensitive_features=SEX, epsilon=epsilon) > 0.12


def test_counts_that_do_not_fit_are_named() -> None:
    rows = lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX)
    counts = lp.ScoreCounts.from_predictions(rows)
    with pytest.raises(ValueError, match="sensitive_features must be None with ScoreCounts"):
        ScoreRepair().fit(counts, sensitive_features=SEX)
    with pytest.raises(ValueError, match=r"score_range is \(0, 2\), that of the counts is \(0.0, 1.0\)"):
        ScoreRepair(score_range=(0, 2)).fit(counts)
    with pytest.raises(ValueError, match="criterion='equal_opportunity' needs labels"):
        ScoreRepair(criterion="equal_opportunity").fit(counts)
    grouped = lp.Predictions.from_arrays(
        None, SCORES, sensitive_features=SEX, cluster=np.arange(SCORES.size) // 2
    )
    with pytest.raises(ValueError, match="counts with clusters"):
        ScoreRepair().fit(lp.ScoreCounts.from_predictions(grouped))
