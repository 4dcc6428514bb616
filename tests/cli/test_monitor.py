"""`localparity monitor` as people type it."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

import localparity as lp
import typed_commands

pytest.importorskip("datasketches")


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return typed_commands.run("monitor", *words)


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    census = lp.datasets.make_census(800, random_state=0)
    path = tmp_path / "scores.csv"
    census.data.assign(p=census.score, sex=census.sensitive_features).to_csv(path, index=False)
    return path


COLUMNS = ("--score", "p", "--group", "sex")


def test_append_print_and_fail(tmp_path: Path, scores: Path) -> None:
    folder = tmp_path / "monitor"
    found = run("append", folder, scores, *COLUMNS, "--at", "2026-05-17T13:00")
    assert (found.returncode, found.stderr) == (0, "")
    assert re.fullmatch(r"2026-05-17: 800 rows, MCDP\(0\) .*%, 95% interval .*% to .*%\n", found.stdout)
    again = run("append", folder, scores, *COLUMNS, "--at", "2026-05-18", "--json", "--max-mcdp", 0.9)
    assert again.returncode == 0
    assert "was counted before and is not counted again" in again.stderr
    assert "no alarm: MCDP in 2026-05-17 is " in again.stderr
    appended = json.loads(again.stdout)
    assert (appended["counted"], appended["newest"]["period"]) == ([], "2026-05-17")
    assert "expected under parity" in run("show", folder).stdout
    shown = json.loads(run("show", folder, "--json").stdout)
    (point,), whole = shown["periods"], shown["since_start"]
    assert (point["period"], point["rows"], point["alarm"]) == ("2026-05-17", 800, None)
    assert (whole["start"], whole["end"], whole["periods"], whole["rows"]) == ("2026-05-17",) * 2 + (1, 800)
    assert whole["interval"]["low"] < whole["interval"]["estimate"] < whole["interval"]["high"]
    assert point["interval"]["low"] < point["interval"]["estimate"] < point["interval"]["high"]
    above = run("show", folder, "--max-mcdp", 0.01, "--epsilon", 0.02)
    assert above.returncode == 1
    assert "alarm: MCDP in 2026-05-17 is " in above.stderr
    # Above the bound, but not by more than chance explains.
    near = run("show", folder, "--max-mcdp", point["interval"]["estimate"] - 0.02)
    assert near.returncode == 0
    assert "which chance could explain" in near.stderr


def test_an_alarm_names_the_days_over_which_it_was_raised(tmp_path: Path) -> None:
    """A small gap on each of 16 days: no day alone shows it."""
    monitor = lp.monitoring.Monitor(tmp_path)
    rng = np.random.default_rng(0)
    sex = np.repeat(["f", "m"], 150)
    for day in range(1, 17):
        scores = 0.85 * rng.random(300) + 0.15 * (sex == "m")
        batch = lp.Predictions.from_arrays(None, scores, sensitive_features=sex)
        monitor.append(batch, at=datetime(2026, 5, day), batch_id=str(day))
    found = run("show", tmp_path, "--max-mcdp", 0.05)
    assert found.returncode == 1
    assert re.search(
        r"alarm: MCDP over the last 1\d days, 2026-05-0\d to 2026-05-16, is .*%, at least .*%, above the "
        r"bound of 5.00%",
        found.stderr,
    )
    assert re.search(r"2026-05-16 .* 1\d days", found.stdout)
    assert re.search(r"since the start .* 4,800", found.stdout)
    # A newest day of one group only has nothing to compare, and ends the same stretch of days.
    alone = lp.Predictions.from_arrays(None, [0.5], sensitive_features=["f"], min_groups=1)
    monitor.append(alone, at=datetime(2026, 5, 17), batch_id="alone")
    found = run("show", tmp_path, "--max-mcdp", 0.05)
    assert found.returncode == 1
    assert "to 2026-05-17, is" in found.stderr


def test_the_same_rows_under_another_name_are_refused(tmp_path: Path, scores: Path) -> None:
    folder = tmp_path / "monitor"
    assert run("append", folder, scores, *COLUMNS, "--id", "a").returncode == 0
    twin = run("append", folder, scores, *COLUMNS, "--id", "b")
    assert twin.returncode == 2
    assert "'b' has the same rows as batch 'a'" in twin.stderr
    assert "pass --allow-duplicate" in twin.stderr
    other = run("append", folder, scores, *COLUMNS, "--every", "hour")
    assert "--every must be 'day'" in other.stderr
    assert run("append", folder, scores, *COLUMNS, "--id", "b", "--allow-duplicate").returncode == 0


def test_rows_in_another_order_are_the_same_rows(tmp_path: Path, scores: Path) -> None:
    folder, other = tmp_path / "monitor", tmp_path / "other.csv"
    head, *rows = scores.read_text().splitlines()
    other.write_text("\n".join([head, *reversed(rows)]))
    assert run("append", folder, scores, *COLUMNS).returncode == 0
    again = run("append", folder, other, *COLUMNS)
    assert again.returncode == 2
    assert again.stderr.startswith(f"error: {other} has the same rows as batch")


def test_the_bound_is_kept_and_a_change_is_said(tmp_path: Path, scores: Path) -> None:
    folder = tmp_path / "monitor"
    first = run("append", folder, scores, *COLUMNS, "--max-mcdp", 0.01, "--epsilon", 0.02)
    assert (first.returncode, "from now on" in first.stderr) == (1, False)
    shown = run("show", folder)
    assert shown.returncode == 1
    assert "MCDP(0.02) over time" in shown.stdout
    assert re.search(r"alarm .*1 day", " ".join(shown.stdout.split()))
    assert "above the bound of 1.00%" in shown.stderr
    once = run("show", folder, "--max-mcdp", 0.9)
    assert once.returncode == 0
    assert "--max-mcdp 0.9 is for this command only; the monitor keeps 0.01" in once.stderr
    assert run("report", folder, "--out", tmp_path / "page.html").returncode == 1
    served = tmp_path / "metrics.prom"
    assert run("serve", folder, "--textfile", served).returncode == 0
    assert re.search(r'localparity_max_mcdp\{.*epsilon="0.02".*\} 0.01\n', served.read_text())
    changed = run("append", folder, scores, *COLUMNS, "--max-mcdp", 0.9, "--min-group-size", 20)
    assert changed.returncode == 0
    assert "--max-mcdp is 0.9 from now on; it was 0.01" in changed.stderr
    assert run("show", folder).returncode == 0
    watch = lp.monitoring.Watch(epsilon=0.02, max_mcdp=0.9, min_group_size=20)
    assert lp.monitoring.Monitor(folder).watched == watch


def test_without_a_bound_there_is_no_column_of_alarms(tmp_path: Path, scores: Path) -> None:
    run("append", tmp_path / "monitor", scores, *COLUMNS)
    shown = run("show", tmp_path / "monitor")
    assert "alarm" not in shown.stdout
    assert "about" not in shown.stdout


def test_approximate_numbers_are_called_so(tmp_path: Path) -> None:
    census = lp.datasets.make_census(20_000, random_state=0)
    path, folder = tmp_path / "many.csv", tmp_path / "monitor"
    census.data.assign(p=census.score, sex=census.sensitive_features).to_csv(path, index=False)
    appended = run("append", folder, path, *COLUMNS, "--max-mcdp", 0.9)
    assert re.search(r"MCDP\(0\) about [\d.]+%", appended.stdout)
    assert re.search(r"no alarm: MCDP in \S+ is about", appended.stderr)
    text = " ".join(run("show", folder).stdout.split())
    assert re.search(r"since the start 20,000 about", text)
    assert "sketches that keep a part of the scores" in text
    shown = json.loads(run("show", folder, "--json").stdout)
    assert shown["periods"][0]["approximate"] is shown["since_start"]["approximate"] is True
    run("report", folder, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<dt>Approximate</dt>" in page
    run("serve", folder, "--textfile", tmp_path / "a.prom")
    assert re.search(r"localparity_approximate\{.*\} 1.0\n", (tmp_path / "a.prom").read_text())


def test_a_period_of_one_group_is_shown_and_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("p,sex\n0.1,f\n0.2,f\n")
    folder = tmp_path / "monitor"
    found = run("append", folder, tmp_path / "a.csv", *COLUMNS, "--max-mcdp", 0.5)
    assert found.returncode == 0
    assert ": few rows, nothing to compare: a group has fewer than 10 rows" in found.stdout
    assert "no alarm: period " in found.stderr
    for words in (["show", folder], ["report", folder, "--out", tmp_path / "page.html"]):
        decided = run(*words, "--max-mcdp", 0.5)
        assert decided.returncode == 0
        assert "has nothing to compare" in decided.stderr


def test_who_is_alone_in_a_period_changes_nothing_that_is_said_of_it(tmp_path: Path) -> None:
    """The group, the score and the number of people of whom there are fewer than ten: all outputs agree."""
    rng, outputs = np.random.default_rng(0), set()
    many = "".join(f"{rng.random():.3f},{'fm'[i % 2]}\n" for i in range(200))
    for name, few in {
        "one": "0.73,f\n",
        "nine": "0.2,m\n" * 9,
        "both": "0.1,f\n0.9,m\n" * 5,
        "third": "1,x\n",
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "many.csv").write_text(f"p,sex\n{many}")
        (folder / "few.csv").write_text(f"p,sex\n{few}")
        kept = folder / "kept"
        said = ""
        for file, day in (("many", 17), ("few", 18)):
            done = run(
                "append", kept, folder / f"{file}.csv", *COLUMNS, "--at", f"2026-05-{day}", "--max-mcdp", 0.01
            )
            said += done.stdout + done.stderr
        shown = json.loads(run("show", kept, "--json").stdout)["periods"]
        report = run("report", kept, "--out", folder / "page.html", "--title", "t")
        page = (folder / "page.html").read_text()
        run("serve", kept, "--textfile", folder / "x.prom", "--name", "n")
        metrics = [line for line in (folder / "x.prom").read_text().splitlines() if "since_start" not in line]
        # What is said since the start counts everyone, as the page on privacy says.
        data = json.loads(re.search(r'"rows": ?(\[[^]]*\])', page)[1])  # type: ignore[index]
        assert data == [200, None]
        outputs.add((said, str(shown), str(report.returncode), "\n".join(metrics)))
    assert len(outputs) == 1


def test_batches_of_other_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("p,q,sex,job\n0.1,0.2,f,a\n0.2,0.3,m,b\n")
    (tmp_path / "b.csv").write_text("p,q,sex,job\n0.1,0.2,f,a\n0.3,0.3,m,b\n")
    folder = tmp_path / "monitor"
    assert run("append", folder, tmp_path / "a.csv", "--score", "p", "--group", "sex").returncode == 0
    for score, group, message in (
        ("p", "job", "--group must be ['sex'], as in"),
        ("q", "sex", "--score must be 'p', as in"),
    ):
        found = run("append", folder, tmp_path / "b.csv", "--score", score, "--group", group)
        assert found.returncode == 2
        assert message in " ".join(found.stderr.split())
    assert run("append", folder, tmp_path / "b.csv", "--score", "p", "--group", "sex").returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Missing argument 'BATCH...'"),
        (["{file}"], "--score: must name the column"),
        (["{file}", "--score", "p"], "--group: must name the column"),
        (["{file}", "{file}", *COLUMNS, "--id", "a"], "--id: names one batch"),
        (["{file}", *COLUMNS, "--keep", "0"], "--keep must be >= 1, got 0"),
        (["{file}", *COLUMNS, "--webhook", "https://127.0.0.1:9"], "--webhook needs --max-mcdp"),
        (
            ["{file}", *COLUMNS, "--max-mcdp", "0.1", "--webhook", "file:///x"],
            "--webhook must be a URL such as",
        ),
        (
            ["{file}", *COLUMNS, "--at", "0001-01-01T00:00+14:00"],
            "--at must be in the years 1 to 9999 in UTC",
        ),
        (["{file}", "--score", "", "--group", "sex"], "named ''"),
        (["{file}", *COLUMNS, "--at", "noon"], "--at must be a time such as 2026-05-17T13:00, got 'noon'"),
        (["{file}", *COLUMNS, "--criterion", "equalized_odds"], "needs --label"),
        (["{file}", "--score", "q", "--group", "sex"], "named 'q'"),
        (["{folder}/*.csv", *COLUMNS], "--id must be given unless the source is a single file"),
        (["{file}", *COLUMNS, "--max-mcdp", "7"], "--max-mcdp must be between 0 and 1, got 7"),
        (["{file}", *COLUMNS, "--alarm-rate", "7"], "--alarm-rate must be > 0 and < 1, got 7"),
        (["{file}", *COLUMNS, "--confidence", "1"], "--confidence must be > 0 and < 1, got 1"),
        (["{file}", *COLUMNS, "--score-range", "6,5"], "--score-range must be finite with low < high"),
        (["{file}", *COLUMNS, "--epsilon", "-5"], "--epsilon must be >= 0 and finite, got -5"),
        (["{file}", *COLUMNS, "--every", "week"], "'week' is not one of"),
        (["{file}", *COLUMNS, "--score-range", "5,6"], "column 'p' must be inside --score-range (5.0, 6.0)"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    tmp_path: Path, scores: Path, options: list[str], message: str
) -> None:
    given = [option.format(file=scores, folder=tmp_path) for option in options]
    found = run("append", tmp_path / "monitor", *given)
    assert found.returncode == 2
    assert found.stderr.startswith("error: ")
    assert message in found.stderr


@pytest.mark.parametrize("command", ["show", "prune", "report"])
def test_a_monitor_without_periods_is_refused(tmp_path: Path, command: str) -> None:
    words = {
        "prune": ["--keep", 3],
        "report": ["--out", tmp_path / "page.html"],
    }
    found = run(command, tmp_path / "monitor", *words.get(command, []))
    assert (found.returncode, "has no periods" in found.stderr) == (2, True)
    assert not (tmp_path / "monitor").exists()
    (tmp_path / "file").touch()
    assert "is a file, not a folder" in run(command, tmp_path / "file", *words.get(command, [])).stderr


def test_several_files_and_retention(tmp_path: Path, scores: Path) -> None:
    folder = tmp_path / "monitor"
    for day in (1, 2, 3):
        (tmp_path / f"{day}.csv").write_text("p,sex\n" + f"0.{day},f\n0.9,m\n" * 15)
        found = run(
            "append",
            folder,
            tmp_path / f"{day}.csv",
            *COLUMNS,
            "--at",
            f"2026-05-0{day}",
            "--keep",
            2,
            "--json",
        )
        assert json.loads(found.stdout)["counted"] == [str(tmp_path / f"{day}.csv")]
    shown = json.loads(run("show", folder, "--json").stdout)
    assert [point["period"] for point in shown["periods"]] == ["2026-05-02", "2026-05-03"]
    assert (shown["since_start"]["start"], shown["since_start"]["rows"]) == ("2026-05-01", 90)
    late = run("append", folder, scores, *COLUMNS, "--at", "2026-04-01")
    assert (late.returncode, "the periods up to 2026-05-01 were removed" in late.stderr) == (2, True)
    both = run("append", folder, tmp_path / "1.csv", scores, *COLUMNS, "--at", "2026-05-03", "--json")
    assert json.loads(both.stdout)["counted"] == [str(scores)]
    assert run("prune", folder, "--keep", 1).stdout == f"removed 1 day from {folder}\n"
    assert json.loads(run("prune", folder, "--keep", 1, "--json").stdout) == {"removed": 0}


def test_a_database(postgres: str, scores: Path) -> None:
    pytest.importorskip("psycopg")
    url = f"{postgres}#credit"
    assert run("append", url, scores, *COLUMNS, "--at", "2026-05-17").returncode == 0
    assert "counted before" in run("append", url, scores, *COLUMNS).stderr
    assert json.loads(run("show", url, "--json").stdout)["periods"][0]["rows"] == 800
    assert "other has no periods" in run("show", url.replace("credit", "other")).stderr
    unreachable = run("show", "postgresql://me:hush%21@127.0.0.1:9/scores")
    assert unreachable.returncode == 2
    assert unreachable.stderr.startswith("error: postgresql://me@127.0.0.1:9/scores: ")
    for url in ("postgresql://me:hu/sh@127.0.0.1/scores", "postgresql://me:9/sh@127.0.0.1/scores"):
        found = run("show", url)
        assert (found.returncode, "sh@" in found.stderr) == (2, False)
        assert "percent-encoded" in found.stderr


def test_a_page(tmp_path: Path, scores: Path) -> None:
    folder, page = tmp_path / "monitor", tmp_path / "page.html"
    run("append", folder, scores, *COLUMNS, "--at", "2026-05-17")
    found = run("report", folder, "--out", page, "--title", "Credit", "--max-mcdp", 0.01)
    assert (found.returncode, found.stdout) == (1, f"wrote {page}\n")
    assert "Credit" in page.read_text(encoding="utf-8")
    assert "already exists; pass --force" in run("report", folder, "--out", page).stderr
    assert json.loads(run("report", folder, "--out", page, "--force", "--json").stdout)["page"] == str(page)


@pytest.mark.parametrize(("policy", "rows"), [("drop", 700), ("group", 800)])
def test_rows_without_a_group_are_left_out_or_a_group(
    tmp_path: Path, scores: Path, policy: str, rows: int
) -> None:
    header, *lines = scores.read_text().splitlines()
    at = header.split(",").index("sex")
    for place in range(100):
        cells = lines[place].split(",")
        cells[at] = "" if place % 2 else "Unknown"
        lines[place] = ",".join(cells)
    scores.write_text("\n".join([header, *lines]) + "\n")
    folder = tmp_path / "monitor"
    refused = run("append", folder, scores, *COLUMNS, "--missing-value", "unknown", "--normalise-groups")
    assert refused.returncode == 2
    assert "has no value in 100 of 800 rows" in refused.stderr
    assert "--missing-groups drop" in refused.stderr
    words = [*COLUMNS, "--missing-value", "Unknown", "--missing-groups", policy, "--at", "2026-05-17"]
    found = run("append", folder, scores, *words)
    assert found.returncode == 0
    assert "100 rows without a group were" in found.stderr
    assert f"2026-05-17: {rows} rows" in found.stdout
    again = run("append", folder, scores, *words)
    assert "was counted before" in again.stderr


def test_rows_without_a_score_are_left_out(tmp_path: Path, scores: Path) -> None:
    scores.write_text(scores.read_text() + "," * scores.read_text().split("\n")[0].count(",") + "Male\n")
    assert run("append", tmp_path / "monitor", scores, *COLUMNS).returncode == 2
    found = run("append", tmp_path / "monitor", scores, *COLUMNS, "--missing", "drop")
    assert found.returncode == 0
    assert "1 row without a score was left out" in found.stderr
