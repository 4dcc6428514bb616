"""Rows without a group, a score, a label or a weight: refused with their number, or left out and counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from typed_commands import run

SCORES = [0.1, 0.3, 0.5, 0.4, 0.9, 0.7, 0.2, 0.6]
SEX = ["f", "f", "f", "m", "m", "m", None, "NA"]
LABELS = [0, 1, 1, 0, 1, 1, 0, 1]


def audit(scores: Any = SCORES, groups: Any = SEX, labels: Any = None, **options: Any) -> lp.Audit:
    return lp.audit(labels, scores, sensitive_features=groups, n_resamples=0, **options)


def names(found: lp.Audit) -> list[str]:
    return [str(group.group) for group in found.groups]


def test_rows_without_a_group_are_refused_with_their_number_and_the_options() -> None:
    with pytest.raises(
        ValueError, match=r"sensitive_features has no value in 1 of 8 rows; .*'drop'.*'group'.*'bound'"
    ):
        audit()
    with pytest.raises(ValueError, match="no value in 2 of 8 rows"):
        audit(missing_values="NA")
    with pytest.raises(ValueError, match="missing_groups must be"):
        audit(missing_groups="guess")
    with pytest.raises(ValueError, match="missing_values must be a text or several, got 3"):
        audit(missing_values=3)


@pytest.mark.parametrize(
    "groups",
    [
        SEX,
        np.array(SEX, dtype=object),
        pd.Series(SEX),
        pd.Series(SEX, dtype="category"),
        ["f", "f", "f", "m", "m", "m", " ", "NA"],
        [float("nan") if group is None else group for group in SEX],
    ],
)
def test_rows_without_a_group_are_left_out_and_counted(groups: Any) -> None:
    found = audit(groups=groups, missing_groups="drop", missing_values=["NA"])
    assert (found.missing_rows.groups, found.missing_rows.missing_groups) == (2, "drop")
    assert found.missing_rows.sentences == ("2 rows without a group were left out.",)
    assert found.findings[0].mcdp == audit(SCORES[:6], SEX[:6]).findings[0].mcdp
    assert found.to_dict(min_group_size=1)["missing_rows"]["groups"] == 2


def test_codes_of_numbers_stand_for_no_group() -> None:
    codes = [1, 1, 1, 2, 2, 2, 3, 3]
    for groups in (codes, np.array(codes, dtype=float)):
        found = audit(groups=groups, missing_groups="drop", missing_values=[3])
        assert (names(found), found.missing_rows.groups) == (
            [str(group) for group in dict.fromkeys(groups[:6])],
            2,
        )


def test_rows_without_a_group_are_a_group_of_their_own() -> None:
    found = audit(missing_groups="group")
    assert names(found) == ["NA", "f", "m", "(unknown)"]
    assert found.missing_rows.sentences == ("1 row without a group was taken for a group of its own.",)
    assert '"(unknown)"' in found.to_json(min_group_size=1)


def test_a_row_that_lacks_one_of_several_columns_has_no_group() -> None:
    columns = {"sex": SEX, "region": ["n", None, "n", "n", "n", "n", "n", "n"]}
    found = audit(groups=columns, missing_groups="group", missing_values="NA")
    assert [group.group for group in found.groups][:2] == [("f", "n"), ("m", "n")]
    assert found.groups[2].rows == found.missing_rows.groups == 3


@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_rows_without_a_score_a_label_or_a_weight(make: Any) -> None:
    scores = make([0.1, np.nan, 0.5, 0.4, 0.9, 0.7])
    labels = make([0, 1, np.nan, 0, 1, 1])
    weights = make([1.0, 1.0, 1.0, 1.0, np.nan, 2.0])
    options: dict[str, Any] = {"criterion": "predictive_equality", "n_resamples": 100, "random_state": 0}
    arrays = {"sensitive_features": SEX[:6], "sample_weight": weights}
    with pytest.raises(ValueError, match="y_score has no value in 1 of 6 rows; missing='drop'"):
        lp.audit(labels, scores, **arrays, **options)
    found = lp.audit(labels, scores, **arrays, **options, missing="drop")
    assert (found.missing_rows.scores, found.missing_rows.labels, found.missing_rows.weights) == (1, 1, 1)
    assert found.missing_rows.sentences[0] == "1 row without a score was left out."
    assert [group.rows for group in found.groups] == [1, 1]


def test_what_is_left_must_be_something_and_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="y_score has no row left"):
        audit([np.nan, np.nan], ["a", "b"], missing="drop")
    with pytest.raises(ValueError, match="y_true has 2 rows, y_score has 4"):
        audit([0.1, np.nan, 0.2, 0.3], SEX[2:6], [0, 1], criterion="equal_opportunity", missing="drop")
    assert (
        audit(SCORES[:6], pd.DataFrame({"g": SEX[:6]}), missing="drop").missing_rows
        == lp.results.MissingRows()
    )
    with pytest.raises(ValueError, match="inside score_range"):
        audit([0.1, 2.0], ["a", "b"])


FILE = "p,g,h,y,w\n0.1,f,x,0,1\n0.3,f,x,1,1\n0.5,,x,1,1\n,m,x,0,1\n0.9,m,,1,\n0.2,m,x,zz,1\n0.3,zz,x,0,1\n0.4,m,x,0,1\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "scores.csv"
    file.write_text(FILE)
    return file


def read(path: Path, **options: Any) -> lp.Audit:
    return lp.Audit.read(path, **{"score": "p", "group": "g", "n_resamples": 0, "random_state": 0} | options)


def test_a_file_says_how_many_rows_lack_a_value(path: Path) -> None:
    with pytest.raises(ValueError, match=r"column 'g' has no value in 1 of 8 rows; missing_groups='drop'"):
        read(path)
    with pytest.raises(ValueError, match=r"column 'g' has no value in 2 of 8 rows"):
        read(path, missing="drop", missing_values="zz")
    with pytest.raises(ValueError, match=r"column 'p'.*no value.*1 row without a score: missing='drop'"):
        read(path, missing_groups="drop")
    path.write_text(FILE.replace("0.5,,x", "0.5,f,x"))
    with pytest.raises(ValueError, match=r"column 'p'.*no value.*1 row without a score: missing='drop'"):
        read(path)
    with pytest.raises(ValueError, match=r"must be numbers, got 'zz' at data row"):
        read(path, label="y", criterion="equal_opportunity", missing="drop")


@pytest.mark.parametrize("cluster", [None, "h"])
def test_a_file_without_the_rows_that_lack_a_value(path: Path, cluster: str | None) -> None:
    path.write_text(FILE.replace("0.9,m,,", "0.9,m,z,"))
    options: dict[str, Any] = {
        "missing": "drop",
        "missing_values": ["zz"],
        "cluster": cluster,
        "n_resamples": 50,
    }
    found = read(path, missing_groups="drop", label="y", weight="w", **options)
    assert found.missing_rows == lp.results.MissingRows(
        scores=1, labels=1, weights=1, groups=2, missing_groups="drop"
    )
    assert [(str(group.group), group.rows) for group in found.groups] == [("f", 2), ("m", 1)]
    kept = read(path, missing_groups="group", label="y", weight="w", **options)
    assert [(str(group.group), group.rows) for group in kept.groups] == [("f", 2), ("m", 1), ("(unknown)", 2)]
    assert (kept.missing_rows.groups, kept.missing_rows.scores) == (2, 1)


def test_a_group_of_two_columns_is_unknown_where_one_is(path: Path) -> None:
    found = read(path, group=["g", "h"], missing_groups="group", missing_values="zz", missing="drop")
    assert names(found) == ["('f', 'x')", "('m', 'x')", "(unknown)"]
    assert found.groups[2].rows == 3
    with pytest.raises(ValueError, match="column 'g' and 'h' has no value in 3 of 8 rows"):
        read(path, group=["g", "h"], missing_values="zz")


def test_engines_that_know_of_no_such_rows(path: Path) -> None:
    with pytest.raises(ValueError, match="missing_groups needs engine='duckdb'"):
        read(path, engine="spark", missing_groups="drop")
    with pytest.raises(ValueError, match="engine must be"):
        read(path, engine="sql")


def test_the_command_names_its_options_and_counts_the_rows(path: Path) -> None:
    words = ["audit", path, "--score", "p", "--group", "g", "--resamples", 0, "--min-group-size", 1]
    refused = run(*words, "--missing", "drop", "--missing-value", "zz")
    assert refused.returncode == 2
    assert "column 'g' has no value in 2 of 8 rows; --missing-groups drop leaves them out" in refused.stderr
    refused = run(*words, "--missing-groups", "drop")
    assert "1 row without a score: --missing drop leaves them out" in refused.stderr
    found = run(*words, "--missing-groups", "drop", "--missing", "drop", "--missing-value", "zz")
    assert found.returncode == 0
    said = " ".join(found.stdout.split())
    assert "1 row without a score was left out. 2 rows without a group were left out." in said


def test_what_unknown_groups_could_change(path: Path) -> None:
    found = audit(missing_groups="bound", missing_values="NA", epsilons=[0, 0.1])
    assert found.unknown_groups == lp.unknown_groups(
        lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX, missing_values="NA"),
        epsilon=[0, 0.1],
    )
    assert (found.missing_rows.groups, found.missing_rows.missing_groups) == (2, "bound")
    plain = found.to_dict(min_group_size=1)["unknown_groups"]
    assert plain["bounds"][1]["high"] == found.unknown_groups.bounds[1].high
    assert audit(SCORES[:6], SEX[:6], missing_groups="bound").unknown_groups is None
    many = audit(5 * SCORES, 5 * SEX, missing_groups="bound", missing_values="NA", min_group_size=11)
    assert (many.missing_rows.groups, many.unknown_groups) == (10, None)
    assert "What they could change is not shown" in many.to_markdown(min_group_size=1)
    with pytest.raises(ValueError, match="missing_groups='bound' needs compare='between_groups'"):
        audit(missing_groups="bound", compare="to_overall")
    read_from = read(path, missing="drop", missing_groups="bound", missing_values=["zz"], epsilons=[0])
    assert read_from.unknown_groups.unknown == 2


def test_the_command_says_what_unknown_groups_could_change(path: Path, tmp_path: Path) -> None:
    words = ["audit", path, "--score", "p", "--group", "g", "--resamples", 0, "--min-group-size", 1]
    words += ["--missing-groups", "bound", "--missing", "drop", "--missing-value", "zz"]
    found = run(*words, "--max-mcdp", 0.5, "--report", tmp_path / "page.html")
    assert found.returncode == 1
    assert "people have no recorded g. Depending on who they are, the largest gap" in " ".join(
        found.stdout.split()
    )
    verbose = run(*words, "--verbose").stdout
    assert "Whatever the unknown groups are, MCDP(0) is between " in verbose
    assert "MCDP(0) of the known groups is above 50.00%; " in found.stderr
    (plain,) = json.loads(run(*words, "--max-mcdp", 0.5, "--json").stdout)["audits"]
    assert (plain["breakdown"]["passes"], plain["breakdown"]["unknown"]) == (False, 2)
    markdown = run(*words, "--max-mcdp", 0.5, "--format", "markdown").stdout
    assert "Whatever the unknown groups are, MCDP(0) is between" in markdown
    refused = run(*words, path.rename(tmp_path / "other.csv"), "--id", "h")
    assert "--id: cannot be used with --missing-groups bound" in refused.stderr
    page = (tmp_path / "page.html").read_text()
    assert "Whatever the unknown groups are" in page
    assert "2 rows without a group were left out." in page


ALL = ["raise", "drop", "group", "bound"]


@pytest.mark.parametrize("missing_groups", ALL)
def test_no_group_at_all_is_named_by_its_column(tmp_path: Path, missing_groups: Any) -> None:
    """The error named "localparity: no group", which is nobody's word."""
    with pytest.raises(ValueError, match=r"^sensitive_features has no value in any of its 60 rows$"):
        lp.audit(None, [0.1, 0.2, 0.3] * 20, sensitive_features=[None] * 60, missing_groups=missing_groups)
    path = tmp_path / "scores.csv"
    path.write_text("p,g\n" + "0.5,\n" * 60)
    asked: dict[str, Any] = {"score": "p", "group": "g", "missing_groups": missing_groups}
    with pytest.raises(ValueError, match=r"^column 'g' has no value in any of its 60 rows$"):
        lp.Audit.read(path, **asked)
    path.write_text("p,g\n" + "0.5,\n" * 60 + ",a\n,b\n")
    with pytest.raises(
        ValueError, match=r"^column 'g' has no value in any of the otherwise complete 60 rows$"
    ):
        lp.Audit.read(path, **asked, missing="drop")


def few_known(shift: float, known: int, missing_groups: Any) -> lp.Audit:
    rng = np.random.default_rng(0)
    groups = [*rng.choice(["a", "b"], known).tolist(), *[None] * (3000 - known)]
    scores = np.clip(0.6 * rng.random(3000) + shift * np.array([group == "b" for group in groups]), 0, 1)
    asked: dict[str, Any] = {"missing_groups": missing_groups, "n_resamples": 99, "random_state": 0}
    return lp.audit(None, scores.round(2), sensitive_features=groups, **asked)


def test_where_most_groups_are_missing_what_could_be_is_said_first() -> None:
    """With 97% of the groups missing the first answer was "None found"."""
    for policy in ("bound", "drop"):
        for shift in (0.0, 0.4):
            answer = few_known(shift, 90, policy).answer
            assert answer.status == "undecided"
            assert answer.headline == "Cannot be told: 97% of 3,000 people have no recorded group"
            assert answer.rates.startswith("Among people whose group is known: ")
            assert answer.unknown is not None


def test_bounds_that_were_asked_for_stand_beside_the_number() -> None:
    answer = few_known(0.4, 2600, "bound").answer
    could_be = (
        "13% of people have no recorded group. Depending on who they are, the largest gap could be anywhere"
    )
    assert str(answer.unknown).startswith(could_be)
    assert few_known(0.4, 2600, "drop").answer.unknown is None
    assert few_known(0.0, 90, "group").answer.unknown is None


@pytest.fixture
def spelled(tmp_path: Path) -> Path:
    """Groups in several spellings, and 30 rows of 150 whose group is unknown, in three of them."""
    rng = np.random.default_rng(0)
    sex = np.array(["F", "f ", "M", "m"] * 30 + ["Unknown", "unknown", " UNKNOWN "] * 10)
    path = tmp_path / "spelled.csv"
    rows = "\n".join(f"{p:.3f},{name}" for p, name in zip(rng.random(sex.size), sex, strict=True))
    path.write_text(f"p,g\n{rows}\n")
    return path


@pytest.mark.parametrize("text", ["Unknown", "unknown", "UNKNOWN"])
@pytest.mark.parametrize("policy", ["drop", "bound", "group"])
def test_texts_for_no_group_are_found_after_look_alikes_are_joined(
    spelled: Path, policy: Any, text: str
) -> None:
    table = lp.open_table(spelled, normalise_groups=True)
    asked = {"missing_groups": policy, "missing_values": [text], "n_resamples": 0}
    found = read(table, **asked)
    assert (found.missing_rows.groups, found.missing_rows.missing_groups) == (30, policy)
    assert [group.rows for group in found.groups] == [60, 60] + ([30] if policy == "group" else [])
    assert (found.unknown_groups is None) == (policy != "bound")
    if policy == "bound":
        assert found.unknown_groups.unknown == 30
    with pytest.raises(ValueError, match="no value in 30 of 150 rows"):
        read(table, missing_values=[text])


def test_a_command_joins_look_alikes_of_what_stands_for_no_group(spelled: Path) -> None:
    words = ["audit", spelled, "--score", "p", "--group", "g", "--missing-groups", "drop", "--resamples", 0]
    words += ["--missing-value", "Unknown", "--normalise-groups", "--scoring-rates", "--json"]
    shown = run(*words)
    assert shown.stderr == ""
    (plain,) = json.loads(shown.stdout)["audits"]
    assert (plain["missing_rows"]["groups"], plain["rows"]) == (30, 120)
    (table,) = plain["scoring_rates"]["tables"]
    assert {each["category"] for each in table["categories"]} >= {"f", "m"}
    assert "unknown" not in {each["category"] for each in table["categories"]}


def test_a_text_for_no_group_that_no_row_has_is_said(spelled: Path) -> None:
    words = ["audit", spelled, "--score", "p", "--group", "g", "--missing-groups", "drop", "--resamples", 0]
    words += ["--min-group-size", 1, "--missing-value", "Unknown", "--missing-value", "Nobody"]
    shown = run(*words, PYTHONWARNINGS="default")
    assert shown.returncode == 0
    assert "--missing-value has 'Nobody', which is in no row" in shown.stderr
    assert "'Unknown', which" not in shown.stderr
    with pytest.warns(UserWarning, match="missing_values has '9'"):
        audit(groups=SEX, missing_groups="drop", missing_values=["NA", "9"])
