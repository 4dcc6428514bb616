"""The scorer in scikit-learn's own tools."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate

import localparity as lp


def test_grid_search_routes_the_sensitive_feature() -> None:
    census = lp.datasets.make_census(1500, random_state=0, as_frame=False)
    X = np.column_stack([census.data["education_years"], census.data["hours_per_week"]])
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            LogisticRegression(), {"C": [1e-6, 1.0]}, scoring=lp.mcdp_scorer(0.02), cv=3
        ).fit(X, census.target, sensitive_features=census.sensitive_features)
        scorer = lp.mcdp_scorer(0.02, criterion="equalized_odds")
        value = scorer(search, X, census.target, sensitive_features=census.sensitive_features)
    # Scores that hardly move hold hardly any window: less disparity is a better score.
    assert search.best_params_ == {"C": 1e-6}
    scores = search.predict_proba(X)[:, 1]
    expected = lp.mcdp(
        census.target,
        scores,
        sensitive_features=census.sensitive_features,
        epsilon=0.02,
        criterion="equalized_odds",
    )
    assert value == -expected
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_wrong_epsilon_is_said_at_once() -> None:
    with pytest.raises(ValueError, match=r"epsilon must be .* got -1"):
        lp.mcdp_scorer(-1)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_that_do_not_arrive_are_told_how_to(routing: bool) -> None:
    census = lp.datasets.make_census(200, random_state=0, as_frame=False)
    X = np.column_stack([census.data["education_years"], census.data["hours_per_week"]])
    with (
        sklearn.config_context(enable_metadata_routing=routing),
        pytest.raises(ValueError, match=r"set_config\(enable_metadata_routing=True\).*set_score_request"),
    ):
        cross_validate(
            LogisticRegression(),
            X,
            census.target,
            scoring=lp.mcdp_scorer(),
            params={},
            error_score="raise",
            cv=2,
        )
