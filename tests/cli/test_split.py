"""`localparity audit --split age`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from typed_commands import run

RNG = np.random.default_rng(0)
AGE = RNG.integers(18, 80, 400)
SCORE = np.round(RNG.beta(2, 4, 400) * np.where(AGE < 35, 0.5, 1.0), 4)
OTHER = np.round(1 - SCORE, 4)
SEX = RNG.choice(["f", "m"], 400)
ASKED = ["--score", "p", "--split", "age", "--resamples", "99"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "scores.csv"
    rows = zip(SCORE, OTHER, AGE, SEX, RNG.integers(0, 2, 400), strict=True)
    file.write_text("p,q,age,sex,y\n" + "".join(f"{p},{q},{age},{sex},{y}\n" for p, q, age, sex, y in rows))
    return file


def test_the_worst_split_of_a_file_is_that_of_its_arrays(path: Path) -> None:
    expected = lp.worst_split(
        lp.Predictions.from_arrays(None, SCORE, sensitive_features=AGE), n_resamples=99, random_state=0
    )
    done = run("audit", path, *ASKED, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)[str(path)]
    assert (found["split"], found["mcdp"], found["p_value"]) == (
        expected.split,
        expected.mcdp,
        expected.p_value,
    )
    assert found["rows"] == list(expected.sizes)
    assert found["sentence"] == expected.window.sentence
    assert found["at_this_split"][2]["mcdp"] == expected.curve.mcdp(0.05)
    words = " ".join(run("audit", path, *ASKED).stdout.split())
    limit = "of all splits of age with at least 10 people on either side"
    assert f"{limit}, that at {expected.split:g} has the largest MCDP(0)" in words
    assert expected.clearest.p_value == 0.01
    assert "p-value <= 0.01." in words
    assert found["least_rows"] == expected.least == 10
    assert found["clearest"]["split"] == expected.clearest.split
    assert (
        f"The clearest split, which stands out most from chance, is that at {expected.clearest.split:g}"
        in words
    )


def test_the_least_group_size_limits_the_search_and_is_said(path: Path) -> None:
    done = run("audit", path, *ASKED, "--min-group-size", "150")
    assert "with at least 150 people on either side" in done.stdout
    found = json.loads(run("audit", path, *ASKED, "--min-group-size", "150", "--json").stdout)[str(path)]
    assert found["least_rows"] == 150
    assert min(found["rows"]) >= 150
    assert "people on either side" in " ".join(run("audit", "--help").stdout.replace("│", " ").split())


def test_the_worst_split_of_compas_is_that_of_pandas(data_folder: Path) -> None:
    people = pd.read_csv(data_folder / "compas" / "compas_features.csv")
    asked = ["--score", "decile_score", "--split", "age", "--score-range", "1,10", "--resamples", "0"]
    for least in (10, 100):
        words = ["audit", data_folder / "compas" / "compas_features.csv", *asked, "--min-group-size", least]
        done = run(*words, "--json", "--max-mcdp", "0.5")
        (found,) = json.loads(done.stdout).values()
        expected = {}
        for age in sorted(people.age.unique()):
            low, high = (people.decile_score[side] for side in (people.age <= age, people.age > age))
            if min(low.size, high.size) >= least:
                shares = [
                    side.value_counts(normalize=True).reindex(range(1, 11), fill_value=0).cumsum()
                    for side in (low, high)
                ]
                expected[age] = (shares[0] - shares[1]).abs().max()
        assert found["split"] == max(expected, key=expected.__getitem__)
        assert found["mcdp"] == pytest.approx(max(expected.values()), abs=1e-12)
        assert done.returncode == 1


def test_a_bound_on_the_worst_split(path: Path) -> None:
    assert run("audit", path, *ASKED, "--max-mcdp", "0.9").returncode == 0
    done = run("audit", path, *ASKED, "--max-mcdp", "0.1")
    assert done.returncode == 1
    assert done.stderr.startswith("fail: MCDP(0) is ")


def test_labels_ranges_and_rows_without_a_value(path: Path) -> None:
    labelled = ["--label", "y", "--criterion", "equal_opportunity", "--score-range", "data"]
    assert run("audit", path, *ASKED, *labelled).returncode == 0
    path.write_text(path.read_text() + "0.5,0.5,,f,1\n,0.5,30,f,1\n")
    done = run("audit", path, *ASKED)
    assert done.returncode == 2
    assert "must be numbers, got no value" in done.stderr
    dropped = run("audit", path, *ASKED, "--missing", "drop", "--missing-groups", "drop", "--json")
    assert sum(json.loads(dropped.stdout)[str(path)]["rows"]) == 400


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--group", "sex"], "--split: cannot be used with --group"),
        (["--weight", "q"], "--split: cannot be used with --weight"),
        (["--report", "a.html"], "--split: cannot be used with --report"),
        (["--score-range", "rank"], "--split: cannot be used with --score-range rank"),
        (["--decide-by", "upper", "--max-mcdp", "0.1"], "--split: cannot be used with --decide-by upper"),
        (["--format", "markdown"], "--split: cannot be used with --format markdown"),
        (["--format", "junit", "--max-mcdp", "1"], "--split: cannot be used with --format junit"),
    ],
)
def test_what_a_split_has_no_use_for(path: Path, words: list[str], message: str) -> None:
    done = run("audit", path, *ASKED, *words)
    assert done.returncode == 2
    assert message in done.stderr
