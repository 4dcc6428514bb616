"""The search with equal budgets: what is drawn, what is chosen, and that its page is what its runs say."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from scipy import stats

ROOT = Path(__file__).parents[1]
SHARED = ("hidden", "dropout", "plan")


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("benchmarks.equal_table")


def run_of(table: ModuleType, seed: int, strength: float, precision: float, disparity: float) -> object:
    metrics = {"validation_ap": precision, "validation_mcdp_0": disparity, "test_mcdp_0": disparity}
    return table.EqualRun("adult", "diffdp", 0, seed, strength, metrics)


@pytest.mark.parametrize("number", range(5))
def test_a_setting_is_the_same_for_all_methods_but_for_what_one_alone_has(
    table: ModuleType, number: int
) -> None:
    drawn = [table.draw_settings("adult", method, number) for method in table.METHODS]
    assert all(
        {name: each[name] for name in SHARED} == {name: drawn[0][name] for name in SHARED} for each in drawn
    )
    assert len({each["options"]["balanced"] for each in drawn}) == 1


def test_every_method_was_given_the_same(table: ModuleType) -> None:
    runs = table.read_runs(ROOT / "results" / "equal_search.csv")
    for dataset in table.NAMES:
        number = table.shared_numbers(runs, dataset)
        given = {
            method: sum(
                (run.dataset, run.method) == (dataset, method) and run.setting < number for run in runs
            )
            for method in table.METHODS
        }
        assert len({count for method, count in given.items() if method != "erm"}) == 1
        assert given["erm"] < given["diffmcdp"]  # which has no strengths


def test_the_rule_takes_the_lowest_disparity_among_runs_that_keep_the_precision(table: ModuleType) -> None:
    runs = [
        run_of(table, 0, 0.1, 0.80, 0.3),
        run_of(table, 0, 0.2, 0.77, 0.2),
        run_of(table, 0, 0.4, 0.75, 0.1),
        run_of(table, 1, 0.1, 0.70, 0.1),
    ]
    assert {seed: run.strength for seed, run in table.choose(runs, {0: 0.8, 1: 0.8}).items()} == {0: 0.2}


def test_a_paired_comparison_without_shared_people_is_the_t_test(table: ModuleType) -> None:
    ones, others = (0.11, 0.14, 0.12, 0.18), (0.10, 0.11, 0.12, 0.13)
    one, other = (
        {s: run_of(table, s, 0.1, 0.8, v) for s, v in enumerate(values)} for values in (ones, others)
    )
    expected = stats.ttest_rel(ones, others).pvalue
    assert table.compare(one, other, 0.0, "test_mcdp_0").p_value == pytest.approx(expected)
    assert table.compare(one, other, 0.75, "test_mcdp_0").p_value > expected


def test_p_values_are_adjusted_as_by_holm(table: ModuleType) -> None:
    assert table.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_the_page_is_what_the_runs_say(table: ModuleType) -> None:
    results = ROOT / "results"
    searched, tested = (table.read_runs(results / name) for name in ("equal_search.csv", "equal_test.csv"))
    assert table.page(searched, tested) == (results / "equal.md").read_text(encoding="utf-8")
