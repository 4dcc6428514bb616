"""Runs, their keys, and the grids of the paper."""

from __future__ import annotations

import pytest

from localparity.models.networks._classifier import PRESETS
from localparity.paper import Run, grid
from localparity.paper._runs import _ALL, _SETTINGS, strengths_of


def test_the_papers_grid_of_both_tables_has_310_runs_and_no_key_twice() -> None:
    runs = [*grid("adult"), *grid("bank")]
    assert len(runs) == len({run.key for run in runs}) == 310


def test_every_data_set_has_five_strengths_of_every_penalised_method() -> None:
    for dataset in ("adult", "bank", "celeba-a", "celeba-w", "utkface"):
        assert len(grid(dataset, seeds=1)) == 1 + 6 * 5


def test_a_key_tells_apart_all_that_trains_differently() -> None:
    first = Run("adult", "diffmcdp", 0.3, 0)
    others = [
        Run("bank", "diffmcdp", 0.3, 0),
        Run("adult", "diffdp", 0.3, 0),
        Run("adult", "diffmcdp", 0.2, 0),
        Run("adult", "diffmcdp", 0.3, 1),
        Run("adult", "diffmcdp", 0.3, 0, "tuned"),
        Run("adult", "diffmcdp", 0.3, 0, search="exact"),
        Run("adult", "diffmcdp", 0.3, 0, temperature=20.0),
    ]
    assert len({first.key, *(run.key for run in others)}) == 8


def test_a_key_follows_the_settings_behind_the_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Run("adult", "erm", 0.0, 0).key
    monkeypatch.setitem(_SETTINGS["paper"], "adult", {_ALL: {"steps": 151}})
    changed = Run("adult", "erm", 0.0, 0)
    assert changed.key != before
    assert changed.settings.steps == 151


def test_dralign_on_bank_has_the_published_codes_alignment() -> None:
    assert Run("bank", "dralign", 0.3, 0).settings.alignment == 0.03
    assert "alignment" not in Run("adult", "dralign", 0.3, 0).stated_settings


def test_what_the_preset_says_anyway_makes_no_other_run() -> None:
    temperature = PRESETS["paper"].temperature
    runs = grid("adult", methods=["diffmcdp"], searches=["frozen"], temperatures=[temperature], seeds=1)
    assert [run.title for run in runs if run.search or run.temperature] == []


def test_further_forms_are_of_diffmcdp_alone() -> None:
    runs = grid("bank", searches=["soft"], temperatures=[5.0, 50.0], seeds=1)
    changed = [run for run in runs if run.search or run.temperature]
    assert {run.method for run in changed} == {"diffmcdp"}
    assert len(changed) == 3 * 5


def test_strengths_are_taken_of_the_methods_that_have_them() -> None:
    runs = grid("adult", methods=["advdebias", "diffmcdp"], strengths=[0.2, 0.25], seeds=1)
    assert [(run.method, run.strength) for run in runs] == [
        ("erm", 0.0),
        ("advdebias", 0.2),
        ("diffmcdp", 0.2),
        ("diffmcdp", 0.25),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": "adlt"}, "data set.*adlt.*adult"),
        ({"method": "difdp"}, "method.*difdp.*diffdp"),
        ({"preset": "best"}, "preset.*paper.*tuned.*best"),
        ({"search": "quick"}, "search.*exact.*soft.*quick"),
        ({"strength": -0.1}, r"strength.*-0\.1"),
        ({"strength": "much"}, "strength.*much"),
        ({"seed": -1}, "seed.*-1"),
        ({"temperature": 0.0}, "temperature.*0"),
    ],
)
def test_what_there_is_not_is_named(arguments: dict[str, object], message: str) -> None:
    given = {"dataset": "adult", "method": "diffmcdp", "strength": 0.3, "seed": 0, **arguments}
    with pytest.raises(ValueError, match=message):
        Run(**given)  # type: ignore[arg-type]


def test_a_strength_that_no_method_has_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"strengths.*diffmcdp.*0\.1, 0\.15, 0\.2, 0\.25, 0\.3.*0\.7"):
        grid("bank", methods=["diffmcdp"], strengths=[0.3, 0.7])
    with pytest.raises(ValueError, match=r"method.*erm2"):
        strengths_of("paper", "bank", "erm2")
    with pytest.raises(ValueError, match=r"seeds.*0"):
        grid("bank", seeds=0)
