"""Columns that no model should learn from, in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from localparity._io._table import Table, unfit_features

ROWS = 400
RNG = np.random.default_rng(0)
LABEL = RNG.integers(0, 2, ROWS)


def unfit(tmp_path: Path, column: Any, target: Any = LABEL, kind: str = "csv") -> dict[str, str]:
    frame = pd.DataFrame({"x": column, "y": target})
    path = tmp_path / f"people.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return unfit_features(Table(str(path)), ["x"], "y")


NEARLY = np.where(np.arange(ROWS) < 10, 0, np.arange(ROWS))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (RNG.permutation(ROWS) + 1000, "different whole number in every row"),
        (NEARLY, "different whole number in nearly every row"),
        (np.where(np.arange(ROWS) % 7, np.arange(ROWS), np.nan), "different whole number in every row"),
        ([f"person {row}" for row in range(ROWS)], "different text in every row"),
        (LABEL, "tells the classes apart"),
        (1 - LABEL, "tells the classes apart"),
        (np.where(LABEL, "yes", "no"), "tells the classes apart"),
        (np.where(LABEL, RNG.choice(["a", "b"], ROWS), "c"), "tells the classes apart"),
        (0.1 * RNG.random(ROWS) + 0.1 * LABEL, "tells the classes apart"),
    ],
)
def test_identifiers_and_the_class_are_found(tmp_path: Path, column: Any, reason: str, kind: str) -> None:
    assert reason in unfit(tmp_path, column, kind=kind)["x"]


@pytest.mark.parametrize(
    "column",
    [
        RNG.random(ROWS),
        RNG.integers(18, 80, ROWS),
        RNG.choice(["a", "b", "c"], ROWS),
        np.full(ROWS, 3),
        np.full(ROWS, np.nan),
        RNG.random(ROWS) + 0.9 * LABEL,
        [f"word {number}" for number in RNG.integers(0, 300, ROWS)],
    ],
)
def test_ordinary_columns_are_features(tmp_path: Path, column: Any) -> None:
    assert unfit(tmp_path, column) == {}


def test_few_rows_and_few_of_a_class_are_not_judged(tmp_path: Path) -> None:
    rare = (np.arange(ROWS) < 5).astype(int)
    assert unfit(tmp_path, np.linspace(1, 0, ROWS), rare) == {}
    assert unfit(tmp_path, np.arange(50), LABEL[:50]) == {}
    assert unfit(tmp_path, RNG.integers(0, 9, ROWS), np.arange(ROWS) % 3) == {}


def test_the_columns_of_a_census_are_features(tmp_path: Path) -> None:
    census = lp.datasets.make_census(2000, random_state=0)
    path = tmp_path / "census.csv"
    census.data.assign(income=census.target, p=census.score).to_csv(path, index=False)
    names = [*census.data.columns, "p"]
    assert unfit_features(Table(str(path)), names, "income") == {}
