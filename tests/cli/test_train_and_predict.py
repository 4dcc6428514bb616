"""`localparity train` and `localparity predict`, as people type them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from typed_commands import run

pytest.importorskip("torch")

CENSUS = lp.datasets.make_census(900, random_state=0)
FRAME = CENSUS.data.assign(sex=CENSUS.sensitive_features, income=CENSUS.target)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("train")
    FRAME.to_csv(path / "people.csv", index=False)
    FRAME.to_parquet(path / "people.parquet")
    found = run("train", path / "people.csv", *NAMED, "--steps", 20, "--out", path / "model")
    assert (found.returncode, found.stderr) == (0, "")
    assert "diffmcdp at strength 0.2; scores are probabilities of class 1." in found.stdout
    return path


NAMED = ["--target", "income", "--group", "sex"]


def test_scores_are_those_of_the_library_and_can_be_audited(folder: Path) -> None:
    out = folder / "new" / "scores.parquet"
    found = run("predict", folder / "model", folder / "people.csv", "--out", out, "--keep", "sex")
    assert (found.returncode, found.stderr) == (0, "")
    assert "900 scores are in" in found.stdout
    scores = pd.read_parquet(out)
    model = lp.load(folder / "model")
    np.testing.assert_allclose(scores["score"], model.predict_proba(CENSUS.data)[:, 1], atol=1e-6)
    assert scores["sex"].tolist() == FRAME["sex"].tolist()
    audit = run("audit", out, "--score", "score", "--group", "sex", "--resamples", 10)
    assert audit.returncode == 0
    assert [path.name for path in out.parent.iterdir()] == ["scores.parquet"]


def test_a_model_has_a_card(folder: Path, tmp_path: Path) -> None:
    card = lp.results.ModelCard.read(folder / "model")
    assert card.file_sha256 == hashlib.sha256((folder / "people.csv").read_bytes()).hexdigest()
    assert card.fitted_on is not None
    assert card.fitted_on.rows == 900
    assert "Nothing is promised" in str(card.promise)
    words = ["--max-mcdp", 1, "--steps", 1, "--intended-use", "Loans.", "--out", tmp_path / "model"]
    assert run("train", folder / "people.csv", *NAMED, *words).returncode == 0
    told = (tmp_path / "model" / "model_card.md").read_text()
    assert "On the validation part MCDP(0) is" in told
    assert "Loans." in told
    assert str(tmp_path) not in told


def test_what_already_exists_is_overwritten_only_with_force(folder: Path, tmp_path: Path) -> None:
    out, model = tmp_path / "scores.csv", tmp_path / "model"
    out.write_text("mine")
    again = ["predict", folder / "model", folder / "people.csv", "--out", out]
    assert run(*again).returncode == 2
    assert out.read_text() == "mine"
    assert run(*again, "--force").returncode == 0
    assert len(pd.read_csv(out)) == 900
    model.mkdir()
    train = ["train", folder / "people.csv", *NAMED, "--steps", 1, "--out", model]
    assert run(*train).returncode == 0  # an empty folder holds nothing to lose
    before = (model / "model.json").read_bytes()
    assert run(*train, "--seed", 1).returncode == 2
    assert (model / "model.json").read_bytes() == before
    assert run(*train, "--seed", 1, "--force").returncode == 0
    assert (model / "model.json").read_bytes() != before


def test_a_parquet_file_gives_the_same_scores_as_a_csv(folder: Path) -> None:
    for ending in ("csv", "parquet"):
        out = folder / f"{ending}.csv"
        assert run("predict", folder / "model", folder / f"people.{ending}", "--out", out).returncode == 0
    one, other = (pd.read_csv(folder / f"{ending}.csv")["score"] for ending in ("csv", "parquet"))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_bound_that_is_not_met_is_exit_code_1_and_a_model(folder: Path) -> None:
    out = folder / "strict"
    found = run("train", folder / "people.parquet", *NAMED, "--max-mcdp", 0, "--steps", 1, "--out", out)
    assert found.returncode == 1
    assert "was not met: of 3 strengths" in found.stderr
    assert "Strengths tried, on the validation part" in found.stdout
    assert (out / "model.json").exists()


@pytest.mark.parametrize(("max_mcdp", "code"), [(1, 0), (0, 1)])
def test_a_bound_is_promised_with_a_confidence(folder: Path, max_mcdp: int, code: int) -> None:
    out = folder / f"sure-{max_mcdp}"
    words = ["--model", "lightgbm", "--max-mcdp", max_mcdp, "--confidence", 0.9, "--out", out]
    found = run("train", folder / "people.csv", *NAMED, *words)
    assert found.returncode == code, found.stderr
    assert ("--confidence 0.9, the first model to be tested" in found.stderr) is (code == 1)
    assert "Strengths tested, in order, on people held out" in found.stdout
    assert "at most" in found.stdout
    assert "With probability 0.9, MCDP(0) is at most" in " ".join(found.stdout.split())
    assert ("max_mcdp=0 was not met" in found.stdout) is (code == 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "incom", "--group", "sex"], "there is no column in"),
        ([*NAMED, "--method", "magic"], "method must be one of"),
        ([*NAMED, "--strength", "-1"], "strength must be >= 0 and finite, got -1"),
        (["--target", "age", "--group", "sex"], "Only binary classification is supported"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(folder: Path, arguments: list[str], message: str) -> None:
    found = run("train", folder / "people.csv", *arguments, "--out", folder / "never")
    assert found.returncode == 2
    assert found.stderr.startswith("error: ")
    assert message in found.stderr
    assert not (folder / "never").exists()


def test_a_column_that_is_partly_numbers(folder: Path) -> None:
    mixed = FRAME.assign(age=FRAME["age"].astype(str).where(FRAME.index > 3, "old"))
    mixed.to_csv(folder / "mixed.csv", index=False)
    found = run("train", folder / "mixed.csv", *NAMED, "--out", folder / "never")
    assert found.returncode == 2
    assert "has 'old' in data row 1 and numbers in 896 of 900 rows; use --text age" in found.stderr
    found = run("train", folder / "mixed.csv", *NAMED, "--text", "age", "--steps", 2, "--out", folder / "m2")
    assert found.returncode == 0


def test_a_class_must_not_be_missing(folder: Path) -> None:
    FRAME.assign(income=FRAME["income"].where(FRAME.index != 2)).to_csv(folder / "unknown.csv", index=False)
    found = run("train", folder / "unknown.csv", *NAMED, "--out", folder / "never")
    assert (found.returncode, found.stderr) == (2, "error: --target has no value at row 2\n")


def test_a_column_of_names_is_no_feature(folder: Path) -> None:
    FRAME.assign(id=[f"p{row}" for row in range(900)]).to_csv(folder / "ids.csv", index=False)
    found = run("train", folder / "ids.csv", *NAMED, "--out", folder / "never")
    assert found.returncode == 2
    assert "has a different text in every row" in found.stderr
    found = run("train", folder / "ids.csv", *NAMED, "--drop", "id", "--steps", 2, "--out", folder / "m3")
    assert found.returncode == 0


@pytest.mark.parametrize("command", ["train", "repair", "compare"])
@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (np.arange(900) + 7, "different whole number in every row"),
        (0.1 * CENSUS.target + 0.05 * CENSUS.score, "tells the classes apart"),
        (CENSUS.target, "tells the classes apart"),
    ],
)
def test_an_id_and_what_holds_the_class_are_no_features(
    tmp_path: Path, command: str, column: Any, reason: str
) -> None:
    FRAME.assign(extra=column).to_csv(tmp_path / "people.csv", index=False)
    found = run(command, tmp_path / "people.csv", *NAMED, "--out", tmp_path / "model")
    assert found.returncode == 2
    assert "column 'extra'" in found.stderr
    assert reason in found.stderr
    assert "--drop extra" in found.stderr
    assert "--feature extra" in found.stderr
    assert not (tmp_path / "model").exists()


def test_a_column_that_looks_like_an_id_may_be_a_feature(tmp_path: Path) -> None:
    FRAME.assign(extra=np.arange(900)).to_csv(tmp_path / "people.csv", index=False)
    words = [*NAMED, "--steps", 2, "--feature", "extra", "--out", tmp_path / "model"]
    assert run("train", tmp_path / "people.csv", *words).returncode == 0
    assert "extra" in lp.load(tmp_path / "model").feature_names_in_
    found = run("train", tmp_path / "people.csv", *words[:-2], "--feature", "ex", "--out", tmp_path / "other")
    assert (found.returncode, "'ex'" in found.stderr) == (2, True)


def test_values_that_training_did_not_see_are_scored_with_one_line_of_warning(folder: Path) -> None:
    new = FRAME.assign(
        occupation=FRAME["occupation"].where(FRAME.index != 5).where(FRAME.index > 30, "astronaut"),
        age=FRAME["age"].astype(object).where(FRAME.index > 2, "NA"),
    )
    new.loc[40:41, "occupation"] = None
    new.to_csv(folder / "gap.csv", index=False)
    found = run("predict", folder / "model", folder / "gap.csv", "--out", folder / "gap.parquet")
    assert found.returncode == 0
    assert found.stderr.count("\n") == 1
    assert found.stderr.startswith("warning: values that fit did not see count as unknown: ")
    for part in (
        "3 missing in column 'age'",
        "31 in 1 new",
        "'astronaut'",
        "2 missing in column 'occupation'",
    ):
        assert part in found.stderr
    assert np.isfinite(pd.read_parquet(folder / "gap.parquet")["score"]).all()


@pytest.mark.parametrize("kind", ["network", "lightgbm", "xgboost"])
def test_empty_cells_are_trained_on_and_are_no_news_then(folder: Path, kind: str) -> None:
    gappy = FRAME.assign(
        occupation=FRAME["occupation"].where(FRAME.index % 5 > 0),
        age=FRAME["age"].astype(object).where(FRAME.index % 7 > 0, "nan"),
    )
    gappy.to_csv(folder / "gappy.csv", index=False)
    gappy.assign(age=FRAME["age"].where(FRAME.index % 7 > 0)).to_parquet(folder / "gappy.parquet")
    steps = ["--steps", 5] if kind == "network" else []
    model = folder / f"gappy-{kind}"
    found = run("train", folder / "gappy.csv", *NAMED, "--model", kind, *steps, "--out", model)
    assert (found.returncode, found.stderr) == (0, "")
    scores = []
    for ending in ("csv", "parquet"):
        out = folder / f"gappy-{kind}-{ending}.csv"
        found = run("predict", model, folder / f"gappy.{ending}", "--out", out)
        assert (found.returncode, found.stderr) == (0, "")
        scores.append(pd.read_csv(out)["score"])
    np.testing.assert_allclose(*scores, atol=1e-9)
    expected = lp.load(model).predict_proba(pd.read_csv(folder / "gappy.csv")[CENSUS.data.columns])[:, 1]
    np.testing.assert_allclose(scores[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model", "people.csv", "--out", "people.csv"], "people.csv is the file that is read"),
        (["model", "people.csv", "--out", "scores.txt"], "must be a .csv or .parquet file"),
        (
            ["people.csv", "people.csv", "--out", "scores.csv"],
            "people.csv: model.json cannot be read (Not a directory)",
        ),
        (
            ["model", "people.csv", "--out", "s.csv", "--keep", "sex", "--score", "sex"],
            "is a column that is kept",
        ),
        (["model", "new.csv", "--out", "s.csv"], "'old' in data row 2 and numbers in 899 of 900 rows"),
    ],
)
def test_what_predict_refuses(folder: Path, arguments: list[str], message: str) -> None:
    FRAME.assign(age=FRAME["age"].astype(object).where(FRAME.index != 1, "old")).to_csv(
        folder / "new.csv", index=False
    )
    paths = [folder / text if "." in text or text == "model" else text for text in arguments]
    found = run("predict", *paths)
    assert found.returncode == 2
    assert message in found.stderr


@pytest.mark.parametrize("kind", ["lightgbm", "xgboost"])
def test_trees_are_trained_and_predict_too(folder: Path, kind: str) -> None:
    pytest.importorskip(kind)
    model, out = folder / kind, folder / f"{kind}.csv"
    words = [
        "train",
        folder / "people.csv",
        *NAMED,
        "--model",
        kind,
        "--strength",
        0.3,
        "--json",
        "--out",
        model,
    ]
    found = run(*words)
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)["strength"] == 0.3
    written = run("predict", model, folder / "people.parquet", "--out", out, "--json")
    assert json.loads(written.stdout) == {"rows": 900, "out": str(out)}
    expected = lp.load(model).predict_proba(CENSUS.data)[:, 1]
    np.testing.assert_allclose(pd.read_csv(out)["score"], expected, atol=1e-9)
    refused = run(*words, "--force", "--steps", 3)
    assert refused.returncode == 2
    assert "--steps" in refused.stderr


def test_a_search_as_json(folder: Path) -> None:
    out = folder / "searched"
    found = run("train", folder / "people.csv", *NAMED, "--max-mcdp", 1, "--steps", 1, "--json", "--out", out)
    assert found.returncode == 0
    described = json.loads(found.stdout)
    assert (described["bound_met"], described["estimator"]) == (True, "LocalParityClassifier")
    assert described["trials"][0]["strength"] == 0.0


def test_a_repaired_model_needs_the_groups(folder: Path) -> None:
    base = lp.load(folder / "model")
    repaired = lp.models.RepairedClassifier(base, prefit=True, max_mcdp=0.2)
    repaired.fit(CENSUS.data, sensitive_features=CENSUS.sensitive_features).save(folder / "repaired")
    words = ["predict", folder / "repaired", folder / "people.csv", "--out", folder / "repaired.csv"]
    refused = run(*words)
    assert refused.returncode == 2
    assert "--group" in refused.stderr
    assert run(*words, "--group", "sex").returncode == 0
    expected = repaired.predict_proba(CENSUS.data, sensitive_features=CENSUS.sensitive_features)[:, 1]
    np.testing.assert_allclose(pd.read_csv(folder / "repaired.csv")["score"], expected, atol=1e-6)
    repaired.repair_.save(folder / "scores")
    refused = run("predict", folder / "scores", folder / "people.csv", "--out", folder / "s.csv")
    assert refused.returncode == 2
    assert "ScoreRepair, which takes scores" in refused.stderr
    refused = run(
        "predict", folder / "model", folder / "people.csv", "--out", folder / "s.csv", "--group", "sex"
    )
    assert "--group" in refused.stderr


def test_people_in_another_encoding_or_on_a_sheet(folder: Path, tmp_path: Path) -> None:
    """What the error names is an option of the command."""
    people = FRAME.assign(occupation=FRAME["occupation"].astype(str) + "ä")
    people.to_csv(tmp_path / "people.csv", index=False, encoding="latin-1")
    asked = [*NAMED, "--steps", 3, "--out", tmp_path / "model"]
    refused = run("train", tmp_path / "people.csv", *asked)
    assert refused.returncode == 2
    assert "--encoding latin-1" in refused.stderr
    trained = run("train", tmp_path / "people.csv", *asked, "--encoding", "latin-1")
    assert trained.returncode == 0, trained.stderr
    words = [tmp_path / "model", tmp_path / "people.csv", "--out", tmp_path / "scores.csv"]
    assert run("predict", *words, "--encoding", "latin-1").returncode == 0
