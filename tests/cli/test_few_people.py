"""What is said of groups of one to nine people: nothing that depends on their scores.

An output that is the same whatever the scores of a few people are lets nobody recover one, be it from steps,
from pairs or from models, or from differences of these.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from typed_commands import run

GROUPS = {"a": 400, "b": 200, "c": 30, "few": 9, "one": 1}
FEW = {"few", "one"}


def write(folder: Path, few_scores: str, *, models: int = 1) -> list[Path]:
    """Files of the same people; those of few people have the scores that are asked for."""
    rng = np.random.default_rng(0)
    names = np.repeat(list(GROUPS), list(GROUPS.values()))
    folder.mkdir()
    paths = []
    for model in range(models):
        scores = rng.random(names.size).round(4)
        few = np.isin(names, list(FEW))
        if few_scores == "even":
            scores[few] = np.linspace(0.0001, 0.9999, few.sum())
        elif few_scores == "high":
            scores[few] = 1.0
        labels = np.where(few, few_scores == "high", rng.random(names.size) < 0.4).astype(int)
        path = folder / f"model{model}.csv"
        rows = zip(range(names.size), scores, labels, names, strict=True)
        path.write_text("id,p,y,g\n" + "".join(f"{i},{p},{y},{g}\n" for i, p, y, g in rows))
        paths.append(path)
    return paths


def said(folder: Path, few_scores: str, *options: object, models: int = 1) -> str:
    """All that an audit prints and writes, but for what names the files themselves."""
    paths, page = write(folder, few_scores, models=models), folder / "page.html"
    done = run(
        "audit", *paths, "--score", "p", "--group", "g", "--resamples", 50, "--report", page, *options,
        PYTHONWARNINGS="default", COLUMNS="400", SOURCE_DATE_EPOCH="0",
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    text = done.stdout + done.stderr + page.read_text()
    return re.sub(r"[0-9a-f]{64}", "<sha256>", text.replace(str(folder), "<folder>"))


@pytest.mark.parametrize(
    ("options", "models"),
    [
        ([], 1),
        (["--json"], 1),
        (["--compare", "to_overall", "--json"], 1),
        (["--label", "y", "--criterion", "equalized_odds"], 1),
        (["--label", "y", "--json"], 1),
        (["--max-mcdp", 0.1, "--method", "bootstrap"], 1),
        (["--label", "y", "--min-ratio", 0.8], 1),
        (["--label", "y", "--min-ratio", 0.5, "--json"], 1),
        (["--score-range", "rank", "--json"], 1),
        (["--score-range", "data", "--json"], 1),
        (["--json"], 2),
        (["--id", "id", "--json"], 2),
    ],
    ids=str,
)
def test_scores_of_few_people_change_nothing(tmp_path: Path, options: list[object], models: int) -> None:
    outputs = {few: said(tmp_path / few, few, *options, models=models) for few in ("even", "high", "drawn")}
    assert len(set(outputs.values())) == 1
    assert "fewer than 10" in outputs["high"]


def test_labels_of_few_people_are_not_told_apart(tmp_path: Path) -> None:
    """Nine people of a large group have the label 1: of them alone, nothing is shown."""
    outputs = []
    for name, few_scores in {"low": 0.0, "mid": 0.77}.items():
        folder = tmp_path / name
        folder.mkdir()
        rng = np.random.default_rng(0)
        rows = [(rng.random(), int(i % 2), "ab"[i % 2 or i % 3 == 0]) for i in range(600)]
        rows += [(few_scores, 1, "a")] * 9 + [(rng.random(), 0, "a") for _ in range(100)]
        path, page = folder / "scores.csv", folder / "page.html"
        path.write_text("p,y,g\n" + "".join(f"{p:.4f},{y},{g}\n" for p, y, g in rows))
        done = run(
            "audit", path, "--score", "p", "--group", "g", "--label", "y", "--resamples", 20,
            "--criterion", "predictive_equality", "--report", page, SOURCE_DATE_EPOCH="0",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        text = (done.stdout + page.read_text()).replace(str(folder), "<folder>")
        outputs.append(re.sub(r"[0-9a-f]{64}", "<sha256>", text))
    assert outputs[0] == outputs[1]


def test_the_limit_can_be_lifted(tmp_path: Path) -> None:
    lifted = ["--min-group-size", 1, "--json"]
    outputs = {few: said(tmp_path / few, few, *lifted) for few in ("even", "high")}
    assert len(set(outputs.values())) == 2
