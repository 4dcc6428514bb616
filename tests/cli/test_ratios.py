"""`localparity audit --min-ratio` and `--scoring-rates`."""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path

import pytest

import localparity as lp
from typed_commands import only_audit, run


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    census = lp.datasets.make_census(1500, random_state=0, as_frame=False)
    columns = census.data | {"p": census.score, "sex": census.sensitive_features, "y": census.target}
    path = tmp_path_factory.mktemp("scores") / "scores.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return path


ASKED = ["--score", "p", "--group", "sex", "--label", "y", "--resamples", 0]


def test_safe_cutoffs_and_the_lowest_ratio_on_the_terminal(scores: Path) -> None:
    found = run("audit", scores, *ASKED, "--min-ratio", 0.8)
    assert (found.returncode, found.stderr) == (0, "")
    text = " ".join(found.stdout.split())
    assert "Any cutoff from 0 to just below 0.0" in text
    assert "keeps every group's ratio at or above 0.8 with 95% confidence." in text
    assert "The lowest computed ratio is 0." in text
    assert "The most accurate of them" in text
    assert "Selection ratios" not in run("audit", scores, *ASKED).stdout


def test_json_has_the_numbers_of_the_library(scores: Path) -> None:
    found = run("audit", scores, *ASKED, "--min-ratio", 0.5, "--scoring-rates", "--json")
    plain = only_audit(found.stdout)
    people = lp.Predictions.read(scores, score="p", group="sex", label="y")
    curve = lp.impact_ratio_curve(people).disclosed(cutoff=plain["answer"]["cutoff"])
    assert plain["impact_ratios"]["cutoffs"] == curve.to_dict()["cutoffs"]
    assert plain["impact_ratios"]["groups"] == json.loads(json.dumps(curve.to_dict()["groups"]))
    assert plain["impact_ratios"]["safe_cutoffs"]["sentence"] == curve.safe_cutoffs(0.5).sentence
    median = statistics.median(lp.datasets.make_census(1500, random_state=0).score)
    assert plain["scoring_rates"]["median"] == pytest.approx(median, abs=1e-3)


def test_scoring_rates_count_people_of_no_known_category(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    rows = [f"{place / 100},{'fm'[place % 2]},{'xy'[place // 2 % 2]}" for place in range(80)]
    rows += [f"0.{place},,x" for place in range(10, 25)] + ["0.5,f,nobody knows"] * 12 + [",f,x"]
    path.write_text("\n".join(["p,sex,race", *rows]) + "\n")
    asked = ["--score", "p", "--group", "sex", "--group", "race", "--resamples", 0, "--scoring-rates"]
    asked += ["--missing", "drop", "--missing-groups", "drop", "--missing-value", "nobody knows", "--json"]
    found = run("audit", path, *asked)
    assert found.returncode == 0, found.stderr
    scoring = only_audit(found.stdout)["scoring_rates"]
    assert scoring["people"] == 107
    assert [table["columns"] for table in scoring["tables"]] == [["sex"], ["race"], ["sex", "race"]]
    assert [table["unknown"] for table in scoring["tables"]] == [15, 12, 27]
    by_data = run("audit", path, *asked, "--score-range", "data")
    assert only_audit(by_data.stdout)["scoring_rates"] == scoring
    shown = run("audit", path, *asked[:-1])
    assert "Scoring rates by sex × race" in shown.stdout
    assert "lawful" in shown.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--min-ratio", "2"], "--min-ratio must be between 0 and 1, got 2"),
        (["--min-ratio", "0.8", "--criterion", "equalized_odds"], "--min-ratio: needs people of one label"),
        (["--scoring-rates", "--weight", "age"], "--scoring-rates: cannot be used with --weight"),
        (["--scoring-rates", "--engine", "spark"], "--scoring-rates: cannot be used with --engine spark"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(scores: Path, options: list[str], message: str) -> None:
    found = run("audit", scores, *ASKED, *options)
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert message in found.stderr


def test_groups_too_small_for_any_cutoff_are_said(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    rows = [f"{0.5 + place / 100},{'fm'[place % 2]}" for place in range(24)] + ["0,f", "0,m"]
    path.write_text("\n".join(["p,sex", *rows]) + "\n")
    found = run("audit", path, "--score", "p", "--group", "sex", "--resamples", 0, "--min-ratio", 0.8)
    assert found.returncode == 2
    assert "leave small groups out, or pass a smaller --min-group-size" in found.stderr


def test_scoring_rates_turn_round_where_higher_is_worse(tmp_path: Path) -> None:
    path = tmp_path / "risk.csv"
    rows = [f"{0.2 + 0.01 * (i % 40)},a" for i in range(100)] + [
        f"{0.5 + 0.01 * (i % 40)},b" for i in range(100)
    ]
    path.write_text("\n".join(["p,g", *rows]))
    options = ["--scoring-rates", "--json", "--resamples", "0"]
    ratios = {}
    for higher_is in ("better", "worse"):
        done = run("audit", str(path), "--score", "p", "--group", "g", "--higher-is", higher_is, *options)
        (table,) = json.loads(done.stdout)["audits"][0]["scoring_rates"]["tables"]
        ratios[higher_is] = {each["category"]: each["impact_ratio"] for each in table["categories"]}
    assert ratios["better"]["b"] == ratios["worse"]["a"] == 1.0
    assert max(ratios["better"]["a"], ratios["worse"]["b"]) < 0.5


def test_selection_rates_by_cutoff_and_by_decisions(tmp_path: Path) -> None:
    rows = [(i % 100 / 100, "fm"[i % 2], "abx"[i % 3], int(i % 5 > 1 + i % 2)) for i in range(600)]
    lines = [f"{p},{sex},{race},{hired}" for p, sex, race, hired in rows]
    lines += [f"0.5,f,few,{i % 2}" for i in range(11)] + [f"0.7,m,,{i % 2}" for i in range(20)]
    path = tmp_path / "people.csv"
    path.write_text("p,sex,race,hired\n" + "\n".join(lines) + "\n")
    asked = [path, "--score", "p", "--group", "sex", "--group", "race", "--resamples", 0]
    asked += ["--missing-groups", "drop", "--data-source", "applicants of 2025"]
    untold, asked = asked, [*asked, "--distribution-date", "2025-01-31"]
    plain = only_audit(run("audit", *asked, "--decision", "hired", "--json").stdout)
    rates = plain["selection_rates"]
    assert plain["scoring_rates"] is None
    assert (rates["decision"], rates["distribution_date"]) == ("hired", "2025-01-31")
    sexes = {one["category"]: one for one in rates["tables"][0]["categories"]}
    of = {sex: [hired for _, one, _, hired in rows if one == sex] for sex in "fm"}
    of["f"] += [i % 2 for i in range(11)]
    of["m"] += [i % 2 for i in range(20)]
    shares = {sex: sum(hired) / len(hired) for sex, hired in of.items()}
    for sex, share in shares.items():
        assert sexes[sex]["rate"] == pytest.approx(share)
        assert sexes[sex]["impact_ratio"] == pytest.approx(share / max(shares.values()))
    assert rates["tables"][1]["unknown"] == 20
    for form in ("text", "markdown"):
        said = " ".join(run("audit", *asked, "--cutoff", "0.4", "--format", form).stdout.split())
        assert "Selection rates by sex × race" in said
        assert "Source of the data: applicants of 2025" in said
        assert "Distribution date of the tool: 2025-01-31" in said.replace("\\", "")
        assert "People of an unknown category: sex 0; race 20; sex × race 20" in said
        assert "Categories below 2%, without a ratio: few, f × few" in said
        assert "complian" not in said
    wrong = (
        (["--cutoff", "0.4", "--decision", "hired"], "--decision: cannot be used with --cutoff"),
        (["--decision", "p"], "decisions 0 and 1"),
        ([], "--data-source: needs --scoring-rates, --cutoff or --decision"),
        (["--cutoff", "0.4", "--distribution-date", "May"], "must be a date"),
    )
    for words, message in wrong:
        done = run("audit", *untold, *words)
        assert (done.returncode, message in " ".join(done.stderr.split())) == (2, True), done.stderr
