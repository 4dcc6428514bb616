"""Group-blind scores from the strongest repair to none."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import localparity as lp
from census_frontier import census_probabilities
from localparity.models._frontier import path_aims, score_path
from localparity.models.repair._dual import BlindRows, Dual, GroupFeatures

BOTH = (0, 1)


def census_rows(size: int, seed: int, decimals: int = 12) -> BlindRows:
    """People with their true probabilities, rounded."""
    census = lp.datasets.make_census(size, random_state=seed)
    chance, groups = census_probabilities(census.data)
    codes = (census.sensitive_features == "Male").astype(np.int64)
    return BlindRows(
        chance.round(decimals), groups.round(decimals)[None], census.target, codes, np.ones(size)
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("decimals", [1, 2])
def test_multipliers_stay_small_where_people_at_the_threshold_are_alike(seed: int, decimals: int) -> None:
    # Trees predict few distinct values, so a few people at a threshold may all be the same.
    rows = census_rows(1000, seed, decimals)
    features = GroupFeatures.learn(rows, (None,), BOTH)
    score = Dual.of(rows, features).solve(0.0)
    ranks = score(rows.scores, features(rows.scores, rows.probabilities))
    assert np.abs(score.multipliers).max() < 1.0
    assert lp.mcdp(None, ranks, sensitive_features=rows.groups) < 0.15


def test_a_path_goes_from_no_gap_to_the_plain_scores() -> None:
    fitted, scored = census_rows(4000, 0), census_rows(4000, 1)
    aims = path_aims(fitted, BOTH, "demographic_parity", 5)
    assert aims[0] == 0.0
    assert aims[-1] == pytest.approx(lp.mcdp(None, fitted.scores, sensitive_features=fitted.groups))
    path = score_path(aims, fitted, scored, BOTH, "demographic_parity")
    np.testing.assert_array_equal(path[-1], scored.scores)
    disparity = [lp.mcdp(None, scores, sensitive_features=scored.groups) for scores in path]
    precision = [average_precision_score(scored.labels, scores) for scores in path]
    np.testing.assert_allclose(disparity, aims, atol=0.06)
    assert disparity[1:] == sorted(disparity[1:])
    assert precision == sorted(precision)
    for scores in path:  # on the scale of the plain scores
        quantiles = (np.quantile(values, [0.1, 0.5, 0.9]) for values in (scores, scored.scores))
        np.testing.assert_allclose(*quantiles, atol=0.02)
