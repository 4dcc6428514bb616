"""The paper's selection rule, against what the published code's own runs give."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from localparity.paper import Run
from localparity.paper._selection import MethodRuns, choose_runs, mean_over_seeds
from localparity.paper._store import Record

COLUMNS = {"ap": "ap", "dp": "delta_dp", "dpe": "delta_dp_mean", "abcc": "abcc", "mcdp0": "mcdp_0"}


def record(method: str, strength: float, seed: int, **metrics: float) -> Record:
    return Record(Run("adult", method, strength, seed), metrics, 1.0, "cpu", {})


def reference(folder: Path) -> list[Record]:
    found = []
    with (folder / "results.csv").open() as stream:
        for row in csv.DictReader(stream):
            method = row["method"].replace("mixup", "fairmixup").replace("fairfair", "fair")
            metrics = {
                f"{part}_{ours}": float(row[f"{part}_{theirs}"]) / 100.0
                for part in ("val", "test")
                for theirs, ours in COLUMNS.items()
            }
            run = Run(row["dataset"], method, float(row["strength"]), int(row["seed"]))
            found.append(Record(run, metrics, 1.0, "cpu", {}))
    return found


def test_the_published_codes_runs_give_what_is_known_of_them(reference_folder: Path) -> None:
    chosen = {(each.dataset, each.method): each for each in choose_runs(reference(reference_folder))}
    expected = {
        ("adult", "erm"): (77.00, 36.30),
        ("adult", "diffmcdp"): (74.22, 11.45),
        ("bank", "erm"): (62.01, 25.26),
        ("bank", "diffmcdp"): (60.82, 10.67),
    }
    for cell, (precision, disparity) in expected.items():
        measured = [chosen[cell].measured(metric) for metric in ("ap", "mcdp_0")]
        assert [round(each.mean, 2) for each in measured if each] == [precision, disparity]
    assert len(chosen) == 14


def test_the_rule_by_hand() -> None:
    records = [
        record("erm", 0.0, 0, val_ap=0.8, val_mcdp_0=0.4, test_ap=0.79),
        record("diffdp", 0.1, 0, val_ap=0.79, val_mcdp_0=0.3, test_ap=0.78),
        record("diffdp", 0.2, 0, val_ap=0.76, val_mcdp_0=0.2, test_ap=0.75),
        record("diffdp", 0.3, 0, val_ap=0.7599, val_mcdp_0=0.1, test_ap=0.75),
        record("erm", 0.0, 1, val_ap=0.9, val_mcdp_0=0.4, test_ap=0.89),
        record("diffdp", 0.1, 1, val_ap=0.8, val_mcdp_0=0.3, test_ap=0.8),
        record("diffdp", 0.1, 2, val_ap=0.99, val_mcdp_0=0.3, test_ap=0.8),
    ]
    erm, diffdp = choose_runs(records)
    assert (erm.method, sorted(erm.chosen)) == ("erm", [0, 1])
    assert {seed: each.run.strength for seed, each in diffdp.chosen.items()} == {0: 0.2}
    assert diffdp.failed == [1]  # and seed 2 has no ERM to compare with
    assert diffdp.strengths == [0.2]


def test_means_and_deviations() -> None:
    assert mean_over_seeds([]) is None
    one = mean_over_seeds([0.5])
    assert one is not None
    assert (one.mean, one.deviation) == (50.0, None)
    three = mean_over_seeds([0.1, 0.2, 0.6])
    assert three is not None
    assert three.mean == pytest.approx(30.0)
    assert three.deviation == pytest.approx(26.457513)
    assert MethodRuns("adult", "paper", "erm", "ERM").measured("ap") is None
