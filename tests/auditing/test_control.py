"""Control features of an audit: the same numbers from arrays, from a file and from the command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localparity as lp
from typed_commands import run


def made(rows: int = 600) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    job = rng.integers(0, 2, rows)
    sex = np.where(rng.random(rows) < np.where(job, 0.8, 0.2), "f", "m")
    scores = np.clip(0.3 + 0.3 * job - 0.08 * (sex == "f") + 0.1 * rng.standard_normal(rows), 0, 1).round(3)
    year = np.where(np.arange(rows) % 3, "2024", "2025")
    return {"p": scores, "sex": sex, "job": np.array(["cook", "nurse"])[job], "year": year}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    columns = made()
    file = tmp_path / "scores.csv"
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return file


ASKED: dict[str, Any] = {"epsilons": [0, 0.05], "n_resamples": 39, "random_state": 0}


def audit(columns: dict[str, Any], control: Any, **options: Any) -> lp.Audit:
    return lp.audit(
        None, columns["p"], sensitive_features=columns["sex"], control_features=control, **ASKED | options
    )


def test_arrays_and_files_say_the_same(path: Path) -> None:
    columns = made()
    with pytest.warns(UserWarning, match="The sign turns: within strata f"):
        found = audit(columns, columns["job"])
    alone = lp.within_strata(
        lp.Predictions.from_arrays(None, columns["p"], sensitive_features=columns["sex"]),
        control_features=columns["job"],
        epsilon=[0, 0.05],
        n_resamples=39,
        random_state=0,
    )
    assert found.within_strata == alone
    with pytest.warns(UserWarning, match="The sign turns"):
        read = lp.Audit.read(path, score="p", group="sex", control="job", **ASKED)
    assert read.within_strata == alone
    assert [finding.mcdp for finding in read.findings] == [finding.mcdp for finding in found.findings]
    assert found.to_dict()["within_strata"]["standardised"] == alone.standardised


@pytest.mark.filterwarnings("ignore:The sign turns")
def test_strata_of_two_columns_and_people_without_a_group(path: Path) -> None:
    columns = made()
    columns["sex"] = columns["sex"].astype(object)
    columns["sex"][::10] = None
    both = {name: columns[name] for name in ("job", "year")}
    found = audit(columns, both, missing_groups="drop", min_group_size=10)
    assert {each.stratum for each in found.within_strata.strata} <= {
        (job, year) for job in ("cook", "nurse") for year in ("2024", "2025")
    }
    assert sum(each.rows for each in found.within_strata.strata) + found.within_strata.rows_left_out == 540
    text = path.read_text().replace(",f,", ",,", 20)
    path.write_text(text)
    options = {"control": ["job", "year"], "missing_groups": "bound", "min_group_size": 10}
    read = lp.Audit.read(path, score="p", group="sex", **options, **ASKED)
    assert read.missing_rows.groups == 20
    assert sum(each.rows for each in read.within_strata.strata) + read.within_strata.rows_left_out == 580


def test_what_cannot_be_controlled_for(path: Path) -> None:
    columns = made()
    with pytest.raises(ValueError, match="control_features must be None with cluster"):
        audit(columns, columns["job"], cluster=np.arange(600))
    with pytest.raises(ValueError, match="control_features needs compare='between_groups'"):
        audit(columns, columns["job"], compare="to_overall")
    with pytest.raises(ValueError, match="control_features needs a score_range of two numbers"):
        audit(columns, columns["job"], score_range="rank")
    counts = audit(columns, None).counts
    with pytest.raises(ValueError, match="control_features must be None with ScoreCounts"):
        lp.audit(counts, control_features=columns["job"])
    with pytest.raises(ValueError, match="control_features has 599 rows, y_score has 600"):
        audit(columns, columns["job"][1:])
    asked = {"score": "p", "group": "sex", **ASKED}
    with pytest.raises(ValueError, match="column 'sex' cannot be both a control and the score or a group"):
        lp.Audit.read(path, control="sex", **asked)
    with pytest.raises(ValueError, match="control must be None with cluster"):
        lp.Audit.read(path, control="job", cluster="year", **asked)


def test_the_command_compares_within_strata(path: Path, tmp_path: Path) -> None:
    words = ["audit", path, "--score", "p", "--group", "sex", "--control", "job", "--resamples", 39]
    words += ["--epsilon", "0,0.05"]
    page = tmp_path / "page.html"
    shown = run(*words, "--report", page, PYTHONWARNINGS="default")
    assert shown.returncode == 0
    assert "Within 2 strata the standardised MCDP(0) is " in shown.stdout
    assert "Strata, largest gap first" in shown.stdout
    assert "The sign turns: within strata f has the lower scores" in shown.stderr
    assert "Within 2 strata the standardised" in page.read_text()
    plain = json.loads(run(*words, "--json", PYTHONWARNINGS="ignore").stdout)
    (found,) = plain["audits"]
    assert found["within_strata"]["strata"][0]["stratum"] in ("cook", "nurse")


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_nobody_or_enough_people_of_a_group_are_left_out(criterion: Any) -> None:
    """Three women are left out of a stratum: all women, less those of the other strata, would tell of them."""
    cells = {("f", "x"): 50, ("m", "x"): 60, ("f", "y"): 40, ("m", "y"): 70, ("f", "z"): 3, ("m", "z"): 80}
    rng = np.random.default_rng(0)
    sex, year = (np.repeat([cell[side] for cell in cells], list(cells.values())) for side in (0, 1))
    labels = np.zeros(sex.size, dtype=int) if criterion == "demographic_parity" else np.arange(sex.size) % 2
    asked = {"sensitive_features": sex, "control_features": year, "criterion": criterion, **ASKED}
    scores = rng.random(sex.size)
    shown = lp.audit(labels, scores, min_group_size=10, **asked).within_strata
    assert {each.stratum for each in shown.strata} == {"x"}
    assert (shown.left_out, shown.rows_left_out) == (2, 193)
    every = lp.audit(labels, scores, **asked).within_strata
    assert (every.left_out, every.rows_left_out) == (0, 0)


@pytest.mark.filterwarnings("ignore:The sign turns")
@pytest.mark.parametrize("policy", ["raise", "drop", "group", "bound"])
def test_people_without_a_stratum_count_in_the_audit_and_in_no_stratum(path: Path, policy: Any) -> None:
    columns = made()
    columns["sex"], columns["job"] = columns["sex"].astype(object), columns["job"].astype(object)
    columns["job"][:40:2] = None
    if policy != "raise":
        columns["sex"][20:50] = None
    asked = {**ASKED, "missing_groups": policy, "n_resamples": 0}
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([list(columns), *zip(*columns.values(), strict=True)])
    without = lp.Audit.read(path, score="p", group="sex", **asked)
    read = lp.Audit.read(path, score="p", group="sex", control="job", **asked)
    found = audit(columns, columns["job"], **asked)
    known = 600 if policy in ("raise", "group") else 570
    blank = 20 if policy in ("raise", "group") else 10
    for controlled in (read, found):
        assert controlled.findings == without.findings
        assert controlled.groups == without.groups
        assert controlled.missing_rows == without.missing_rows
        assert controlled.unknown_groups == without.unknown_groups
        strata = controlled.within_strata
        assert strata.overall == tuple(finding.mcdp for finding in without.findings)
        assert strata.rows_without_stratum == blank
        assert {each.stratum for each in strata.strata} == {"cook", "nurse"}
        assert sum(each.rows for each in strata.strata) + strata.rows_left_out == known
        assert f"{blank} rows have no stratum" in strata.sentences[-1]
    assert read.within_strata == found.within_strata


def test_a_text_that_stands_for_no_group_may_name_a_stratum(path: Path) -> None:
    options = {"missing_groups": "drop", "missing_values": ["nurse"]}
    with pytest.warns(UserWarning, match="The sign turns|nurse"):
        found = lp.Audit.read(path, score="p", group="sex", control="job", **options, **ASKED)
    assert {each.stratum for each in found.within_strata.strata} == {"cook", "nurse"}
