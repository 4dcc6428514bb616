"""Repaired scores in real databases, against `transform`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from localparity.models import ScoreRepair
from localparity.models.repair._sql import Lines, group_maps_sql
from localparity.results import ScoreMap
from sql_hosts import Evaluate, in_duckdb, in_postgres

AWKWARD = {'a "score"': "score", "the group's": "sex"}
"""Names of columns that do not survive without quotes."""


@pytest.fixture(params=["duckdb", "postgres"])
def host(request: pytest.FixtureRequest) -> tuple[str, Evaluate]:
    if request.param == "postgres":
        return "postgres", in_postgres(request.getfixturevalue("postgres"))
    return "duckdb", in_duckdb


@cache
def census(rows: int, seed: int) -> pd.DataFrame:
    found = lp.datasets.make_census(rows, random_state=seed)
    groups = found.sensitive_features.astype(object)
    return pd.DataFrame({"score": found.score, "label": found.target, "sex": groups})


@cache
def group_aware() -> ScoreRepair:
    fitted = census(1000, 0)
    return ScoreRepair(max_mcdp=0.05).fit(fitted["score"], sensitive_features=fitted["sex"])


def test_a_score_goes_through_the_map_of_its_group(host: tuple[str, Evaluate]) -> None:
    dialect, evaluate = host
    people = census(3000, 1).rename(columns={name: odd for odd, name in AWKWARD.items()})
    score, group = AWKWARD
    expression = group_aware().to_sql(dialect, score=score, group=group)
    expected = group_aware().transform(people[score], sensitive_features=people[group])
    np.testing.assert_array_equal(evaluate(people, expression), expected)
    assert np.abs(expected - people[score]).max() > 0.01


def test_what_transform_refuses_is_null(host: tuple[str, Evaluate]) -> None:
    dialect, evaluate = host
    scores = [0.5, None, -0.1, 1.1, 0.5, 0.5, 0.0, 1.0]
    groups = ["Male", "Male", "Male", "Male", None, "male", "Male", "Female"]
    people = pd.DataFrame({"score": scores, "group": pd.Series(groups, dtype=object)})
    found = evaluate(people, group_aware().to_sql(dialect))
    np.testing.assert_array_equal(np.isnan(found), [False, True, True, True, True, True, False, False])


@pytest.mark.parametrize("names", [("it's", '"b"\\'), (1, 2), (True, False), (0.1, 0.2)])
def test_groups_of_every_kind(host: tuple[str, Evaluate], names: tuple[Any, Any]) -> None:
    dialect, evaluate = host
    fitted = census(300, 2)
    groups = pd.Series(names)[(fitted["sex"] == "Male").astype(int)].to_numpy()
    repair = ScoreRepair(max_mcdp=0.1).fit(fitted["score"], sensitive_features=groups)
    people = pd.DataFrame({"score": fitted["score"], "group": groups})
    expected = repair.transform(fitted["score"], sensitive_features=groups)
    np.testing.assert_array_equal(evaluate(people, repair.to_sql(dialect)), expected)


def test_groups_of_several_columns_and_another_range(host: tuple[str, Evaluate]) -> None:
    dialect, evaluate = host
    people = census(600, 3)
    people = people.assign(score=300 + 550 * people["score"])
    groups = people[["sex", "label"]]
    repair = ScoreRepair(max_mcdp=0.2, score_range=(300, 850)).fit(people["score"], sensitive_features=groups)
    found = evaluate(people, repair.to_sql(dialect, group=["sex", "label"]))
    np.testing.assert_array_equal(found, repair.transform(people["score"], sensitive_features=groups))
    with pytest.raises(ValueError, match=r"group must name a column for each part .*got sex"):
        repair.to_sql(dialect, group="sex")


def test_nothing_to_repair_is_the_score_itself(host: tuple[str, Evaluate]) -> None:
    dialect, evaluate = host
    people = census(500, 1)
    repair = ScoreRepair(max_mcdp=1.0).fit(people["score"], sensitive_features=people["sex"])
    np.testing.assert_array_equal(evaluate(people, repair.to_sql(dialect, group="sex")), people["score"])


def test_knots_that_stay_are_not_written() -> None:
    knots = np.linspace(0.01, 0.99, 99)
    values = knots.copy()
    values[40] += 0.001
    found = Lines.of(ScoreMap(knots, values))
    np.testing.assert_array_equal(found.knots, [0.0, *knots[39:42], 1.0])
    assert len(Lines.of(ScoreMap(np.array([0.0, 1.0]), np.array([0.0, 1.0]))).knots) == 2


def test_what_cannot_be_written_is_named() -> None:
    with pytest.raises(ValueError, match=r"dialect .*'oracle'"):
        group_aware().to_sql("oracle")
    knots = np.linspace(0.1, 0.9, 2**20)
    with pytest.raises(ValueError, match=r"at most 1,048,576 knots, got 1,048,578"):
        group_maps_sql("duckdb", "score", ["sex"], {"Male": ScoreMap(knots, knots**2)})


@pytest.mark.slow
def test_a_million_rows(host: tuple[str, Evaluate]) -> None:
    dialect, evaluate = host
    people = census(10**6, 5)
    expected = group_aware().transform(people["score"], sensitive_features=people["sex"])
    found = evaluate(people, group_aware().to_sql(dialect, group="sex"))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)
