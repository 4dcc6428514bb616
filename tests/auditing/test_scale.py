"""Scores that are not between 0 and 1: a range that is that of the data, and ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import localparity as lp
from localparity.auditing._people import as_data_range
from typed_commands import run

RNG = np.random.default_rng(0)
SEX = np.repeat(["f", "m"], 100)
INCOME = np.exp(RNG.normal(10, 1, 200)) * np.where(SEX == "f", 0.5, 1.0)


def audit(scores: Any = INCOME, **options: Any) -> lp.Audit:
    return lp.audit(
        None, scores, **{"sensitive_features": SEX, "n_resamples": 0, "random_state": 0} | options
    )


@pytest.mark.parametrize(
    "convert", [np.asarray, list, pl.Series, lambda scores: np.asarray(scores, np.float32)]
)
def test_the_range_of_the_data(convert: Any) -> None:
    scores = convert(INCOME)
    found = audit(scores, score_range="data")
    ends = (0.0, 140_000.0)
    assert found.score_range == ends
    assert found.scale == "data"
    given = audit(scores, score_range=ends)
    assert [finding.mcdp for finding in found.findings] == [finding.mcdp for finding in given.findings]
    assert any(
        f"{ends[0]:g} to {ends[1]:g}, is that of these scores, rounded" in words
        for words in found.assumptions
    )
    assert not any("that of these scores" in words for words in given.assumptions)


def test_ranks_are_the_same_whatever_the_units() -> None:
    found = audit(score_range="rank")
    order = np.argsort(np.argsort(INCOME))
    expected = audit((order + 1) / 200)
    assert (found.scale, found.score_range) == ("rank", (0.0, 1.0))
    for one, other in ((audit(np.log(INCOME), score_range="rank"), found), (found, expected)):
        assert [finding.mcdp for finding in one.findings] == [finding.mcdp for finding in other.findings]
    assert any("an epsilon is a share of people" in words for words in found.assumptions)
    assert found.findings[0].mcdp == audit(score_range="data").findings[0].mcdp


def test_people_who_are_not_compared_change_no_scale() -> None:
    groups = np.append(SEX, ["x"] * 3)
    scores = np.append(INCOME, [1e9, 2e9, 3e9])
    options: list[dict[str, Any]] = [{"score_range": "rank"}, {"score_range": "data"}]
    for asked in options:
        found = audit(scores, sensitive_features=groups, min_group_size=10, **asked)
        expected = audit(**asked)
        assert found.score_range == expected.score_range
        assert [one.mcdp for one in found.findings] == [other.mcdp for other in expected.findings]


@given(st.floats(-1e15, 1e15), st.floats(-1e15, 1e15))
def test_a_rounded_range_holds_all_scores_and_little_more(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assume(low < high)
    found = as_data_range(low, high)
    assert found[0] <= low < high <= found[1]
    assert found[1] - found[0] <= 1.4000001 * (high - low)


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (INCOME, {"score_range": "all"}, "score_range must be two numbers .*, 'data' or 'rank', got 'all'"),
        (
            INCOME,
            {"score_range": "rank", "missing_groups": "bound"},
            "missing_groups='bound' needs a score_range",
        ),
        (np.full(200, 3.0), {"score_range": "data"}, "two different scores .* got 3 only"),
        (np.full(200, np.nan), {"score_range": "data"}, "y_score must have finite scores"),
        (np.where(INCOME > 5e4, np.inf, INCOME), {"score_range": "data"}, "y_score must be finite, got inf"),
        (["x"] * 200, {"score_range": "data"}, "y_score must be numbers"),
        (None, {"score_range": "data"}, "y_score must be the score of each row, got None"),
    ],
)
def test_what_has_no_range(scores: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        audit(scores, **options)


def test_rows_without_a_score_do_not_count() -> None:
    scores = [None, *INCOME[1:].tolist()]
    assert audit(scores, score_range="data", missing="drop").score_range == (0.0, 140_000.0)


def test_data_that_was_counted() -> None:
    people = lp.Predictions.from_arrays(None, INCOME, sensitive_features=SEX, score_range=(0, 10**6))
    found = lp.audit(people, score_range="data", n_resamples=0)
    assert found.score_range == (0.0, 140_000.0)
    assert found.findings[2].mcdp == audit(score_range="data").findings[2].mcdp
    assert found.counts.resolution == pytest.approx(4 * np.finfo(float).eps)
    ranks = lp.audit(people, score_range="rank", n_resamples=0)
    assert ranks.findings[1].mcdp == audit(score_range="rank").findings[1].mcdp


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "scores.csv"
    rows = [f"{score!r};{sex}" for score, sex in zip(INCOME.tolist(), SEX.tolist(), strict=True)]
    file.write_text("\n".join(["p;sex", *rows, ";f"]).replace(".", ","))
    return file


@pytest.mark.filterwarnings("ignore:column 'p'")
@pytest.mark.parametrize("options", [{"score_range": "data"}, {"score_range": "rank"}])
def test_files_too(path: Path, options: dict[str, Any]) -> None:
    found = lp.Audit.read(path, score="p", group="sex", missing="drop", n_resamples=0, **options)
    expected = audit(**options)
    assert (found.scale, found.score_range) == (expected.scale, expected.score_range)
    assert [finding.mcdp for finding in found.findings] == [finding.mcdp for finding in expected.findings]
    with pytest.raises(ValueError, match=r"score_range='(data|rank)' needs engine='duckdb'"):
        lp.Audit.read(path, score="p", group="sex", engine="spark", **options)


def test_the_command(path: Path) -> None:
    words = ["audit", path, "--score", "p", "--group", "sex", "--resamples", "0", "--missing", "drop"]
    done = run(*words, "--score-range", "data", "--decimal", ",")
    assert done.returncode == 0, done.stderr
    assert "(range of the data)" in done.stdout
    done = run(*words, "--score-range", "rank", "--decimal", ",")
    assert "p as ranks" in done.stdout
    verbose = run(*words, "--score-range", "rank", "--decimal", ",", "--verbose").stdout
    assert "an epsilon is a share of people" in " ".join(verbose.split())
    done = run(*words[:-2], "other.csv", "--id", "p", "--score-range", "rank")
    assert "--id: cannot be used with --score-range rank" in done.stderr
