"""The tables: what stands in them, beside the paper's own values."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from localparity.paper import Run, Store
from localparity.paper._selection import SeedMean, choose_runs
from localparity.paper._store import Record
from localparity.paper._tables import (
    METRICS,
    TextTable,
    comparison,
    findings,
    is_outside,
    published,
    results_table,
    write_tables,
)


def as_published(
    shift: float = 0.0, methods: tuple[str, ...] = ("erm", "diffdp", "diffmcdp")
) -> list[Record]:
    """Runs of three seeds whose means are the paper's, but for a shift of DiffDP's AP."""
    found = []
    for method in methods:
        for seed, step in ((0, -0.5), (1, 0.0), (2, 0.5)):
            metrics = {"val_ap": 0.8, "val_mcdp_0": 0.3}
            for metric in METRICS:
                moved = shift if (method, metric) == ("diffdp", "ap") else 0.0
                metrics[f"test_{metric}"] = (published("adult", method)[metric].mean + step + moved) / 100.0
            run = Run("adult", method, 0.0 if method == "erm" else 0.3, seed)
            found.append(Record(run, metrics, 1.0, "cpu", {}))
    return found


def test_the_papers_own_values_agree_with_the_paper() -> None:
    selections = choose_runs(as_published())
    assert not any(is_outside(each, metric) for each in selections for metric in METRICS)
    text = "\n".join(findings(selections))
    assert "Every value in the table is within the paper's deviation" in text
    assert text.count("DiffMCDP, DiffDP, ERM") == 2


@pytest.mark.parametrize(("shift", "outside"), [(0.99, False), (1.01, True), (-1.01, True)])
def test_a_value_a_point_away_is_marked_and_told(shift: float, outside: bool) -> None:
    selections = choose_runs(as_published(shift))
    assert is_outside(selections[1], "ap") == outside
    text = results_table(selections, 0.0157).to_markdown()
    measured = f"{75.02 + shift:.2f} ± 0.50"
    assert (f"| {measured}* |" in text) == outside
    assert "expected under parity at these group sizes is 1.57" in text
    told = f"- Adult, DiffDP: AP is {75.02 + shift:.2f}, in the paper 75.02 ± 0.28"
    assert (told in findings(selections)) == outside


def test_a_method_that_no_strength_qualifies_says_so_in_place_of_numbers() -> None:
    records = as_published()
    for record in records:
        if record.run.method == "diffdp" and record.run.seed < 2:
            record.metrics["val_ap"] = 0.5
        if record.run.method == "diffmcdp":
            record.metrics["val_ap"] = 0.5
    selections = choose_runs(records)
    rows = results_table(selections, 0.01).to_markdown().splitlines()
    assert "| 1 of 3 keep 95% of ERM's AP |" in next(row for row in rows if "DiffDP" in row)
    (none,) = [row for row in rows if "DiffMCDP" in row]
    assert none.startswith("| DiffMCDP | - | 73.90 ± 0.29 |")
    assert "| none of 3 keeps 95% of ERM's AP |" in none
    told = "\n".join(findings(selections))
    assert "DiffMCDP: no strength keeps 95% of ERM's validation AP at seeds 0, 1, 2" in told


def test_a_data_set_that_the_paper_does_not_have_has_no_column_for_it() -> None:
    records = [replace(record, run=replace(record.run, dataset="utkface")) for record in as_published()]
    table = results_table(choose_runs(records), 0.02)
    assert [name for name in table.columns if "paper" in name] == []
    assert "The networks start from scratch." in table.notes
    assert findings(choose_runs(records)) == []


def test_a_baseline_that_does_better_is_named() -> None:
    records = as_published()
    for record in records:
        record.metrics["test_mcdp_0_05"] = record.metrics["test_mcdp_0"] / 2.0
    lines = "\n".join(comparison(choose_runs(records), records))
    assert "Adult, preset paper: DiffMCDP has AP 73.90, MCDP(0) 11.53, MCDP(0.05) 5.76." in lines
    assert "No baseline has at least that AP and a lower MCDP(0) or MCDP(0.05)" in lines
    for record in records:
        if record.run.method == "diffdp":
            record.metrics["test_mcdp_0_05"] = 0.05
    lines = "\n".join(comparison(choose_runs(records), records))
    assert "- DiffDP at strength 0.3 has AP 75.02 and a lower MCDP(0.05), 5.00" in lines
    for record in records:
        if record.run.method == "diffdp":
            record.metrics["test_ap"] = 0.7
    assert "No baseline" in "\n".join(comparison(choose_runs(records), records))
    assert comparison(choose_runs(as_published(methods=("erm", "diffdp"))), records) == []


def test_markdown_and_csv_have_the_same_numbers() -> None:
    table = TextTable(
        "t", "T", ["name", "a & b"], [["x_1", SeedMean(1.2345, 0.5)], ["50%", SeedMean(2.0, None)]]
    )
    table.rows.append(["none", None])
    table.marks[1, 1] = {"best", "outside"}
    assert "| x_1 | 1.23 ± 0.50 |" in table.to_markdown()
    assert "| 50% | **2.00*** |" in table.to_markdown()
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert rows == [
        ["name", "a & b", "a & b deviation"],
        ["x_1", "1.2345", "0.5"],
        ["50%", "2.0", ""],
        ["none", "", ""],
    ]


def test_all_tables_of_a_store(copy_of_store: Store, tmp_path: Path) -> None:
    written = write_tables(copy_of_store, tmp_path / "tables")
    names = {path.name for path in written}
    tables = {"results-adult-paper.csv", "results-bank-paper.csv", "hyper-parameters.csv"}
    assert names == {"tables.md", "runs.csv", *tables}
    page = (tmp_path / "tables" / "tables.md").read_text()
    for text in (
        "DiffMCDP (soft)",
        "Adult, preset paper",
        "frozen",
        "## What could not be reproduced",
    ):
        assert text in page
    assert "temperature 5" not in page
    runs = list(csv.DictReader(io.StringIO((tmp_path / "tables" / "runs.csv").read_text())))
    assert len(runs) == len(copy_of_store.records())
    assert {"dataset", "strength", "val_mcdp_0", "test_ap", "seconds"} <= runs[0].keys()
    write_tables(copy_of_store, tmp_path / "again")
    assert (tmp_path / "again" / "tables.md").read_text() == page


def test_a_store_without_erm_has_tables_of_what_there_is(copy_of_store: Store, tmp_path: Path) -> None:
    for record in copy_of_store.records():
        if record.run.method != "diffdp":
            next(copy_of_store.runs.glob(f"*{record.run.key}.json")).unlink()
    write_tables(copy_of_store, tmp_path)
    assert "DiffDP" in (tmp_path / "tables.md").read_text()


def test_an_empty_store_has_no_tables(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing has no runs"):
        write_tables(Store(tmp_path / "nothing"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_published_values_are_whole() -> None:
    for dataset in ("adult", "bank", "celeba-a", "celeba-w"):
        for method in ("erm", "advdebias", "diffdp", "fairmixup", "dralign", "diffabcc", "diffmcdp"):
            assert list(published(dataset, method)) == list(METRICS)
    assert published("celeba-w", "diffmcdp")["mcdp_0"] == (20.29, 1.78)
