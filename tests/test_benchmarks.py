"""What `make bench` compares gives the same answers, and its curves are written, read and drawn."""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import oracles

ROOT = Path(__file__).parents[1]
ROWS = 40


@pytest.fixture
def curves(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("benchmarks.curves")


@pytest.fixture
def series(curves: ModuleType) -> ModuleType:
    return import_module("benchmarks._series")


def test_the_engines_and_algorithm_1_give_mcdp(series: ModuleType, tmp_path: Path) -> None:
    sample = series.SampleFiles(tmp_path, ROWS)
    sample.write()
    samples = [
        [
            (Fraction(score), Fraction(1))
            for score, own in zip(sample.scores, sample.groups, strict=True)
            if own == group
        ]
        for group in (0, 1)
    ]
    expected = float(oracles.mcdp(*samples, Fraction(series.EPSILON)))
    exact = [one for one in series.ALL if one.exact and "spark" not in one.name]
    assert len(exact) == 7
    for one in exact:
        assert one.prepare(sample)() == pytest.approx(expected, abs=1e-12), one.name


def test_others_give_what_is_said_of_them(series: ModuleType, tmp_path: Path) -> None:
    sample = series.SampleFiles(tmp_path, ROWS)
    sample.write()
    found = {
        name: series.BY_NAME[name].prepare(sample)()
        for name in ("mcdp", "scipy's ks_2samp", "mcdp_approximate, K=32", "paper's Algorithm 2, K=32")
    }
    assert found["mcdp"] <= found["scipy's ks_2samp"]
    assert found["mcdp"] <= found["mcdp_approximate, K=32"]
    rates = [(sample.scores[sample.groups == group] > 0.5).mean() for group in (0, 1)]
    difference = series.BY_NAME["fairlearn's demographic_parity_difference"].prepare(sample)()
    assert difference == pytest.approx(abs(rates[0] - rates[1]))


def test_a_call_is_measured_often_and_a_long_one_three_times(curves: ModuleType) -> None:
    median_seconds = import_module("benchmarks._measure").median_seconds
    made: list[str] = []
    (_, first), (_, second) = median_seconds([lambda: made.append("long"), lambda: "answer"], long=0.0)
    assert made == ["long"] * 3
    assert (first, second) == (None, "answer")


def test_points_are_written_read_and_drawn(curves: ModuleType, tmp_path: Path) -> None:
    points = [
        curves.Point(rows, one.name, one.panel, 1e-9 * rows, 1.0, memory, memory, 0.25)
        for rows, memory in ((10**3, None), (10**4, 0.5), (10**5, 5.0))
        for one in import_module("benchmarks._series").ALL
    ]
    curves.write_points(tmp_path / "curves.csv", points)
    assert curves.read_points(tmp_path / "curves.csv") == points
    assert curves.read_points(tmp_path / "other.csv") == []
    assert [path.name for path in curves.draw(points, tmp_path)] == ["curves.png", "curves.svg"]


def test_rows_are_named_in_short(curves: ModuleType) -> None:
    assert curves.parse_rows("1e3,2e5") == [1000, 200_000]
    assert curves.parse_rows("none") == []


@pytest.fixture
def measuring(curves: ModuleType) -> ModuleType:
    return import_module("benchmarks._measure")


def test_results_are_recorded_on_a_quiet_machine(
    measuring: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, loads = tmp_path / "found.json", [1.5, 0.75, 0.5]
    monkeypatch.setattr("os.getloadavg", lambda: (loads.pop(0), 0.0, 0.0))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    assert measuring.record_at(path, busy=False) == path
    assert loads == []


def test_a_busy_machine_is_refused_and_with_busy_nothing_is_written(
    measuring: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.51, 0.0, 0.0))
    monkeypatch.setattr(measuring, "_SOON", -1.0)
    with pytest.raises(SystemExit, match=r"0\.51, above 0\.5; .*--busy"):
        measuring.record_at(tmp_path / "found.json", busy=False)
    nowhere = measuring.record_at(tmp_path / "found.json", busy=True)
    measuring.write_json(nowhere, {"seconds": 2.5})
    measuring.write_csv(nowhere, [measuring.at_most("seconds", 2.5, 3.0)])
    assert "2.5" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_bar_that_is_not_met_is_an_error_after_all_are_written(
    measuring: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr("sys.argv", ["benchmarks"])
    path = tmp_path / "found.csv"
    for measured, code in ((2.5, 0), (3.5, 1)):
        with pytest.raises(SystemExit) as left:
            measuring.measure_all([lambda: [measuring.at_most("seconds", measured, 3.0)]], path, None)  # noqa: B023
        assert left.value.code == code
        assert f"seconds,{measured},<= 3," in path.read_text()


def test_a_cold_start_is_measured_in_turns(curves: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    cold_start = import_module("benchmarks.cold_start")
    monkeypatch.setattr(cold_start, "COMMAND", [sys.executable, "-c", "pass"])
    found = cold_start.measure(1)
    assert found.keys() - cold_start.BARS.keys() == {"nothing"}
    assert min(took.seconds for took in found.values()) > 0.0


def test_every_result_says_how_to_renew_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    results = import_module("benchmarks.results")
    listed = {Path(name).stem for name in results.costly()}
    assert listed == results.COMMANDS.keys()


def test_every_result_names_its_commit() -> None:
    """A file, or a page that names it, says which commit was measured."""
    folder = ROOT / "results"
    kinds = (".md", ".csv", ".json")
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.suffix in kinds}
    commit = re.compile(r'\b(commit|at|with|in)[":\s]+[0-9a-f]{7,8}\b')
    measured = {path: text for path, text in texts.items() if commit.search(text)}
    for path in folder.iterdir():
        name = path.name if path.is_file() else f"{path.name}/README.md"
        pages = [page.stem for page, text in measured.items() if path.stem == page.stem or name in text]
        assert pages or folder / name in measured, name
