"""`localparity audit --model`: a file is scored and audited in one step."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from typed_commands import only_audit, run

pytest.importorskip("lightgbm")

CENSUS, OTHERS = (lp.datasets.make_census(1200, random_state=seed) for seed in (0, 1))
NAMED = ["--target", "income", "--group", "sex"]


def frame(census: object) -> pd.DataFrame:
    answers = np.where(census.target == 1, "yes", "no")  # type: ignore[attr-defined]
    return census.data.assign(sex=census.sensitive_features, income=answers)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit")
    frame(CENSUS).to_csv(path / "people.csv", index=False)
    weighted = frame(OTHERS).assign(w=1 + np.arange(1200) % 3, home=np.arange(1200) // 2)
    weighted.assign(y=OTHERS.target).to_csv(path / "new.csv", index=False)
    trained = run("train", path / "people.csv", *NAMED, "--model", "lightgbm", "--out", path / "trees")
    assert trained.returncode == 0, trained.stderr
    aware = ["--group-aware", "--max-mcdp", 0.3, "--out", path / "aware"]
    assert run("repair", path / "people.csv", *NAMED, *aware).returncode in (0, 1)
    return path


def audited(folder: Path, model: str, *options: object) -> dict[str, Any]:
    found = run("audit", folder / "new.csv", "--model", folder / model, "--group", "sex", "--json", *options)
    assert (found.returncode, found.stderr) == (0, "")
    return only_audit(found.stdout)


@pytest.mark.parametrize("model", ["trees", "aware"])
@pytest.mark.parametrize("labels", [["--target", "income"], ["--label", "y"]])
def test_an_audit_is_that_of_the_models_scores(folder: Path, model: str, labels: list[str]) -> None:
    classifier = lp.load(folder / model)
    groups = {"sensitive_features": OTHERS.sensitive_features} if model == "aware" else {}
    scores = classifier.predict_proba(OTHERS.data.astype({"occupation": "category"}), **groups)[:, 1]
    expected = lp.audit(
        OTHERS.target,
        scores,
        sensitive_features=OTHERS.sensitive_features,
        criterion="equal_opportunity",
        min_group_size=10,
        n_resamples=20,
        random_state=0,
    )
    options = ["--criterion", "equal_opportunity", "--resamples", 20]
    assert audited(folder, model, *labels, *options) == only_audit(expected.to_json())
    columns: dict[str, Any] = {"target": "income"} if "income" in labels else {"label": "y"}
    read = lp.Audit.read(
        folder / "new.csv",
        model=folder / model,
        group="sex",
        criterion="equal_opportunity",
        min_group_size=10,
        n_resamples=20,
        random_state=0,
        **columns,
    )
    assert read == expected
    assert read.provenance is not None
    assert f"model={str(folder / model)!r}" in read.provenance.call


def test_scores_are_read_or_made(folder: Path) -> None:
    for wrong in ({}, {"score": "w", "model": folder / "trees"}):
        with pytest.raises(ValueError, match="score must be a column, or model"):
            lp.Audit.read(folder / "new.csv", group="sex", **wrong)  # type: ignore[arg-type]


def test_weights_clusters_and_a_bound_work_as_for_scores(folder: Path, tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    kept = [word for name in ("sex", "w", "home") for word in ("--keep", name)]
    assert run("predict", folder / "trees", folder / "new.csv", "--out", scores, *kept).returncode == 0
    options = ["--weight", "w", "--cluster", "home", "--resamples", 20]
    by_score = run("audit", scores, "--score", "score", "--group", "sex", "--json", *options)
    one, other = audited(folder, "trees", *options), only_audit(by_score.stdout)
    assert one["findings"][0]["mcdp"] == pytest.approx(other["findings"][0]["mcdp"])
    words = ["--model", folder / "trees", "--group", "sex", "--resamples", 0, "--max-mcdp", 0]
    failed = run("audit", folder / "new.csv", *words)
    assert failed.returncode == 1
    assert "fail: Above the bound" in failed.stderr


def test_several_files_are_scored_by_the_model_and_a_page_is_written(folder: Path, tmp_path: Path) -> None:
    files, page = [folder / "new.csv", tmp_path / "half.csv"], tmp_path / "page.html"
    frame(OTHERS).head(600).to_csv(files[1], index=False)
    words = ["--model", folder / "trees", *NAMED, "--resamples", 0, "--report", page]
    found = run("audit", *files, *words)
    assert found.returncode == 0, found.stderr
    assert "target income" in page.read_text()


def test_the_file_that_a_model_was_fitted_on_is_pointed_out(folder: Path) -> None:
    words = ["--group", "sex", "--resamples", 0, "--epsilon", 0]
    for model, hint in (("trees", "on other people\n"), ("aware", "has an audit of people held out\n")):
        found = run("audit", folder / "people.csv", "--model", folder / model, *words)
        assert found.returncode == 0
        assert found.stderr.startswith("warning: ")
        assert "is the file that the model in" in found.stderr
        assert found.stderr.endswith(hint)
    for card in (folder / "trees").rglob("model_card.*"):
        card.unlink()
    found = run("audit", folder / "people.csv", "--model", folder / "trees", *words)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_bundle_of_a_model_s_scores_is_made_again_with_the_model(folder: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "audit.zip"
    words = ["--model", folder / "trees", "--group", "sex", "--resamples", 0, "--out", bundle]
    assert run("audit", folder / "new.csv", *words).returncode == 0
    without = run("verify", bundle, "--data", folder / "new.csv")
    assert (without.returncode, without.stderr) == (
        2,
        "error: Invalid value for --model: must be the folder of the model that made the scores\n",
    )
    found = run("verify", bundle, "--data", folder / "new.csv", "--model", folder / "trees")
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--score: must name the column of the scores, or --model .* got neither"),
        (["--score", "w", "--model", "trees"], "--score: .* got both"),
        (["--score", "w", "--target", "income"], "--target: needs --model"),
        (["--model", "trees", "--target", "income", "--label", "y"], "--target: .*--label"),
        (["--model", "trees", "--engine", "spark"], "--engine: must be duckdb with --model, got spark"),
        (["--model", "trees", "--criterion", "equalized_odds"], "--criterion equalized_odds needs --target"),
        (
            ["--model", "trees", "--target", "w"],
            "column 'w' of .* must be 'no' or 'yes'.* got '1' at data row 1",
        ),
        (["--model", "trees", "--target", "incom"], "named 'incom'; did you mean 'income'"),
        (["--model", "nowhere"], "there is no model in .*nowhere: model.json cannot be read"),
        (["--model", "aware", "--group", "occupation"], "--group must be one of .* got "),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(folder: Path, options: list[str], message: str) -> None:
    paths = [folder / word if word in ("trees", "aware", "nowhere") else word for word in options]
    found = run("audit", folder / "new.csv", *([] if "--group" in options else ["--group", "sex"]), *paths)
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert re.search(f"^error: .*{message}", found.stderr), found.stderr
