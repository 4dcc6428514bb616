"""Policies that differ in one key, and the files that they are about."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from workbooks import workbook

BASE: dict[str, Any] = {
    "files": ["scores.csv"],
    "score": "p",
    "group": ["sex"],
    "n_resamples": 39,
    "max_mcdp": 0.5,
    "not_assessed": "allow",
}
CHANGES: dict[str, Any] = {
    "files": ["other.csv"],
    "score": "q",
    "group": ["race", "sex"],
    "label": "y",
    "weight": "w",
    "cluster": "person",
    "person_id": "person",
    "control": ["job"],
    "encoding": "utf-8",
    "decimal": ".",
    "sheet": "people",
    "table": "scores",
    "normalise_groups": True,
    "epsilons": [0.05],
    "criterion": "equal_opportunity",
    "compare": "to_overall",
    "score_range": [0, 2],
    "threshold": 0.5,
    "pos_label": 0,
    "higher_is": "worse",
    "min_group_size": 200,
    "missing_groups": "group",
    "missing_values": ["b"],
    "missing": "drop",
    "confidence": 0.8,
    "method": "bootstrap",
    "n_resamples": 59,
    "random_state": 7,
    "max_mcdp": 0.01,
    "decide_by": "upper",
    "required_groups": ["nobody"],
    "not_assessed": "fail",
    "min_ratio": 0.8,
    "scoring_rates": True,
    "cutoff": 0.4,
    "decision": "y",
    "data_source": "applicants of 2025",
    "distribution_date": "2025-01-31",
}
NEEDS: dict[str, dict[str, Any]] = {
    "sheet": {"files": ["scores.xlsx"]},
    "table": {"files": ["sqlite://scores.db"]},
    "criterion": {"label": "y"},
    "pos_label": {"label": "y", "criterion": "equal_opportunity"},
    "missing_groups": {"missing_values": ["b"], "missing_groups": "drop", "group": ["race"]},
    "missing_values": {"missing_groups": "drop", "group": ["race"]},
    "decide_by": {"max_mcdp": 0.3},
    "required_groups": {"not_assessed": "fail"},
    "not_assessed": {"group": ["rare"]},
    "data_source": {"cutoff": 0.4},
    "distribution_date": {"decision": "y"},
}
NOT_HERE = {"target", "alarm_rate"}
"""Keys of --model and of monitors, which have tests apart."""


def write_scores(folder: Path) -> None:
    """Two files of people of two sexes, three races, and a few who are rare; a workbook and a database."""
    rng, rows = np.random.default_rng(0), 600
    sex, race = rng.choice(["f", "m"], rows), rng.choice(["a", "b", "c"], rows)
    p = np.round(np.clip(rng.random(rows) * 0.8 + 0.2 * (sex == "m"), 0, 1), 4)
    lines = ["p,q,sex,race,rare,y,w,person,job,id"]
    for i in range(rows):
        rare = "rare" if i < 5 else sex[i]
        values = (p[i], round(1 - p[i], 4), sex[i], race[i], rare, i % 2, 1 + i % 3, i // 2, "xy"[i % 2], i)
        lines.append(",".join(map(str, values)))
    for name in ("scores.csv", "other.csv"):
        (folder / name).write_text("\n".join(lines[: None if name == "scores.csv" else 400]) + "\n")
    header, *rows_of_text = (line.split(",") for line in lines)
    workbook(folder / "scores.xlsx", {"notes": [["a"], ["b"]], "people": [header, *rows_of_text]})
    with closing(sqlite3.connect(folder / "scores.db")) as database:
        kinds = ("REAL", "REAL", *["TEXT"] * 3, "INTEGER", "REAL", "INTEGER", "TEXT", "INTEGER")
        columns = ", ".join(map(" ".join, zip(header, kinds, strict=True)))
        database.execute(f"CREATE TABLE scores ({columns})")
        marks = ", ".join("?" * len(header))
        database.executemany(f"INSERT INTO scores VALUES ({marks})", rows_of_text)
        database.commit()


def toml(values: dict[str, Any]) -> str:
    """Values as a file."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def changed(key: str) -> str:
    """A policy in which a key has another value than usual, with what it needs."""
    return toml({**BASE, **NEEDS.get(key, {}), key: CHANGES[key]})
