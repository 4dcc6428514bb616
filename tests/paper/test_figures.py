"""The figures: all of them, in three formats, on axes that people compose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from localparity.metrics import abcc, delta_dp
from localparity.paper import Run, Store
from localparity.paper import _figures as figures
from localparity.paper._figures import draw_frontier, panels, read_frontier, save, toy_scores
from localparity.paper._selection import choose_runs
from localparity.paper._store import Record

RESULTS = Path(__file__).parents[2] / "results"

pyplot = pytest.importorskip("matplotlib.pyplot")

NAMES = [
    "figure-1-paper",
    "figure-2-paper",
    "figure-3-paper",
    "ap-delta-dp-paper",
    "ap-abcc-paper",
    "ap-mcdp-epsilon-adult-paper",
    "ap-mcdp-epsilon-bank-paper",
    "figure-4-paper",
    "figure-6-paper",
    "figure-7-adult-paper",
    "figure-7-bank-paper",
]


def names_of(ax: object) -> list[str]:
    return list(ax.get_legend_handles_labels()[1])  # type: ignore[attr-defined]


@pytest.mark.slow
def test_every_figure_in_every_format(copy_of_store: Store, tmp_path: Path) -> None:
    written = figures.write_figures(copy_of_store, tmp_path, frontier=RESULTS / "frontier.csv")
    assert [path.name for path in written] == [
        f"{name}.{kind}" for name in NAMES for kind in ("png", "svg", "pdf")
    ]
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    for path in written:
        assert path.read_bytes().startswith(starts[path.suffix])


def test_the_same_figure_is_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("first", "second"):
        figure, ((ax,),) = panels(1)
        figures.draw_cdfs(ax, toy_scores(50), "a title")
        contents.append([path.read_bytes() for path in save(figure, tmp_path / name, "cdfs")])
    assert contents[0] == contents[1]


def test_a_trade_off_has_every_strength_with_its_deviations_and_the_floor(small_store: Store) -> None:
    records = [
        each for each in small_store.records() if each.run.dataset == "adult" and each.run.temperature is None
    ]
    _, ((ax,),) = panels(1)
    figures.draw_trade_off(ax, records, "mcdp_0", floor=0.03, title="Adult")
    names = names_of(ax)
    assert "ERM" in names
    assert {"DiffMCDP", "DiffMCDP (soft)", "expected under parity"} < set(names)
    container = next(each for each in ax.containers if each.get_label() == "DiffDP")
    own = [each for each in records if each.run.method == "diffdp"]
    x, y = container.lines[0].get_data()
    strengths = sorted({each.run.strength for each in own})
    for place, strength in enumerate(strengths):
        pair = [each.metrics for each in own if each.run.strength == strength]
        assert x[place] == pytest.approx(np.mean([metrics["test_mcdp_0"] for metrics in pair]))
        assert y[place] == pytest.approx(np.mean([metrics["test_ap"] for metrics in pair]))
    assert container.has_xerr
    assert container.has_yerr


def test_a_method_that_collapsed_does_not_squeeze_the_others_and_is_named() -> None:
    def record(method: str, strength: float, precision: float) -> Record:
        metrics = {"test_ap": precision, "test_mcdp_0": 0.2}
        return Record(Run("bank", method, strength, 0), metrics, 1.0, "cpu", {})

    records = [record("erm", 0.0, 0.64), record("diffdp", 0.2, 0.62), record("advdebias", 1.5, 0.4)]
    _, ((ax,),) = panels(1)
    figures.draw_trade_off(ax, records, "mcdp_0")
    low, high = ax.get_ylim()
    assert 0.61 < low < 0.62 < 0.64 < high < 0.65
    assert [text.get_text() for text in ax.texts] == ["AdvDebias: 1 below"]
    _, ((ax,),) = panels(1)
    figures.draw_trade_off(ax, records[:2], "mcdp_0")
    assert list(ax.texts) == []


def test_profiles_are_those_of_the_selected_runs(small_store: Store) -> None:
    selections = [each for each in choose_runs(small_store.records()) if each.dataset == "bank"]
    _, ((ax,),) = panels(1)
    figures.draw_profiles(ax, small_store, selections, title="Bank")
    shown = [each.variant for each in selections if each.chosen]
    assert names_of(ax) == shown
    line = ax.lines[0]
    assert line.get_ydata()[0] == pytest.approx(
        np.mean([each.metrics["test_mcdp_0"] for each in selections[0].chosen.values()])
    )


def test_temperatures_and_windows_draw_on_given_axes(copy_of_store: Store) -> None:
    _, axes = panels(2)
    records = copy_of_store.records()
    by_temperature = {
        temperature: [
            each
            for each in records
            if each.run.method == "diffmcdp"
            and each.run.dataset == "adult"
            and each.run.settings.temperature == temperature
        ]
        for temperature in (5.0, 10.0, 20.0)
    }
    figures.draw_temperatures(axes[0][0], by_temperature, "mcdp_0")
    assert names_of(axes[0][0]) == ["temperature 5", "temperature 10", "temperature 20"]
    part = copy_of_store.scores(records[0].run)
    figures.draw_windows(axes[0][1], part, (0.0, 0.05))
    assert [name.split(" is ")[0] for name in names_of(axes[0][1])] == ["MCDP(0)", "MCDP(0.05)"]


def test_the_toy_has_a_small_delta_dp_and_a_large_abcc() -> None:
    part = toy_scores()
    compared = {"y_score": part.score, "sensitive_features": part.group}
    assert delta_dp(None, **compared) < 0.01
    assert abcc(None, **compared) > 0.15


def test_an_empty_store_has_no_figures(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing has no runs"):
        figures.write_figures(Store(tmp_path / "nothing"), tmp_path / "out")


def test_figure_3_has_the_frontier(tmp_path: Path) -> None:
    path = tmp_path / "frontier.csv"
    path.write_text(
        "data,seed,method,setting,test_ap,test_mcdp0\n"
        "adult,0,group-blind repair,bound 0.1,80,10\n"
        "adult,1,group-blind repair,bound 0.1,82,12\n"
        "adult,0,group-blind repair,bound 0.02,76,2\n"
        "adult,0,plain LightGBM,,83,36\n"
    )
    found = read_frontier(path)
    assert list(found) == ["adult"]
    np.testing.assert_allclose(found["adult"], [[0.02, 0.76], [0.11, 0.81]])
    _, ((ax,),) = panels(1)
    draw_frontier(ax, found["adult"])
    assert names_of(ax) == ["group-blind repair"]
    path.write_text("data,method\nadult,group-blind repair\n")
    with pytest.raises(ValueError, match=r"frontier\.csv"):
        read_frontier(path)
