"""Copies of rows are found, and people who are alike by chance are not taken for copies."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from localparity.counts._score_counts import copies_in, copies_of, without_copies


def counts_of(scores: Any, groups: Any, **options: Any) -> lp.ScoreCounts:
    people = lp.Predictions.from_arrays(
        options.pop("labels", None), scores, sensitive_features=groups, **options
    )
    return lp.ScoreCounts.from_predictions(people)


@pytest.mark.parametrize(
    ("times", "copies"),
    [
        (np.full(49, 5), 1),  # too few to tell
        (np.full(50, 5), 5),
        (np.full(5000, 1), 1),
        (np.repeat([4, 6, 8], 40), 2),
        (np.repeat([5, 10, 1], [90, 6, 4]), 5),  # 4% were dropped from some copies
        (np.repeat([5, 1], [90, 10]), 1),  # a tenth is too much for that
        (np.repeat([1, 2], [500, 500]), 1),
        (np.full(60, 3000), 1000),
        (np.empty(0, dtype=np.int64), 1),
    ],
)
def test_copies_are_what_nearly_all_numbers_are_a_multiple_of(times: Any, copies: int) -> None:
    assert copies_in(times) == copies


@pytest.mark.parametrize("values", [2, 10, 60, 1000])
def test_people_who_are_alike_by_chance_are_no_copies(values: int) -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        people = rng.integers(0, values, 5000) + values * rng.integers(0, 2, 5000)
        assert copies_in(np.unique(people, return_counts=True)[1]) == 1


@pytest.mark.parametrize("copies", [2, 5])
@pytest.mark.parametrize("values", [100, 10**6])
def test_copies_are_found_whatever_holds_the_rows(tmp_path: Path, values: int, copies: int) -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.integers(0, values, 3000) / values, rng.choice(["a", "b"], 3000)
    twice = np.tile(scores, copies), np.tile(groups, copies)
    found = counts_of(*twice)
    assert copies_of(found) == copies
    assert without_copies(found, copies).size == 3000
    assert without_copies(found, 1) is found
    pd.DataFrame({"p": twice[0], "g": twice[1]}).to_csv(tmp_path / "twice.csv", index=False)
    counted = lp.engines.from_duckdb(tmp_path / "twice.csv", score="p", group="g", max_scores=500, level=8)
    assert copies_of(counted) == copies
    assert copies_of(counts_of(*twice, cluster=np.tile(np.arange(3000), copies))) == 1
    weighted = counts_of(*twice, sample_weight=np.tile(rng.random(3000), copies))
    assert copies_of(weighted) == copies
    assert without_copies(weighted, copies).size == 3000 * copies


def test_a_sketch_shows_no_copies() -> None:
    pytest.importorskip("datasketches")
    rng = np.random.default_rng(0)
    sketch = lp.monitoring.ScoreSketch(k=64)
    sketch.update(
        lp.Predictions.from_arrays(
            None, rng.random(20_000), sensitive_features=rng.choice(["a", "b"], 20_000)
        )
    )
    assert copies_of(sketch.counts()) == 1


def test_an_audit_of_copies_says_so_and_proposes_clusters() -> None:
    census = lp.datasets.make_census(400, random_state=0)
    scores, sex = np.repeat(census.score, 5), np.repeat(census.sensitive_features, 5)
    options: dict[str, Any] = {"epsilons": [0.0], "n_resamples": 19}
    with pytest.warns(UserWarning, match="every row occurs 5 times.*; pass cluster"):
        found = lp.audit(None, scores, sensitive_features=sex, **options)
    assert any("occurs 5 times" in sentence for sentence in found.assumptions)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        people = np.repeat(np.arange(400), 5)
        clustered = lp.audit(None, scores, sensitive_features=sex, cluster=people, **options)
        lp.audit(None, census.score, sensitive_features=census.sensitive_features, **options)
    assert not any("times" in sentence for sentence in clustered.assumptions)


def test_a_monitor_says_so(tmp_path: Path) -> None:
    pytest.importorskip("datasketches")
    census = lp.datasets.make_census(400, random_state=0)
    monitor, at = lp.monitoring.Monitor(tmp_path), datetime(2026, 5, 17, tzinfo=UTC)
    arrays = np.tile(census.score, 2), np.tile(census.sensitive_features, 2)
    batch = lp.Predictions.from_arrays(None, arrays[0], sensitive_features=arrays[1])
    with pytest.warns(UserWarning, match="every row occurs 2 times"):
        assert monitor.append(batch, at=at, batch_id="a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not monitor.append(batch, at=at, batch_id="a")


def test_real_scores_of_few_values_are_no_copies(data_folder: Path) -> None:
    compas = pd.read_csv(data_folder / "compas" / "compas.csv")
    assert copies_of(counts_of(compas["decile_score"], compas["race"], score_range=(1, 10))) == 1
