"""`localparity audit --report`: the page beside the numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import localparity as lp
from typed_commands import run_here

OPTIONS = ["--score", "p", "--group", "sex", "--resamples", "5", "--jobs", "1"]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    census = lp.datasets.make_census(1000, random_state=0)
    paths = []
    for name, power in (("a.csv", 1), ("b.csv", 2)):
        frame = census.data.assign(p=census.score**power, sex=census.sensitive_features, y=census.target)
        frame.to_csv(tmp_path / name, index=False)
        paths.append(tmp_path / name)
    return paths


def page_numbers(path: Path) -> dict[str, list[dict[str, object]]]:
    text = path.read_text(encoding="utf-8")
    found: dict[str, list[dict[str, object]]] = json.loads(
        text.split('id="numbers">')[1].split("</script>")[0]
    )
    return found


def test_several_files_are_several_models_on_one_page(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "out.html"
    assert run_here(monkeypatch, "audit", *files, *OPTIONS, "--label", "y", "--report", page) == 0
    out, err = capsys.readouterr()
    assert out.startswith("2 models  ")
    assert all(f"\n  {path.name} " in out for path in files)
    assert err == f"report: {page}\n"
    assert [model["name"] for model in page_numbers(page)["audits"]] == [str(path) for path in files]
    assert "label y" in page.read_text(encoding="utf-8")


def test_a_glob_is_one_model(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_here(monkeypatch, "audit", tmp_path / "*.csv", *OPTIONS, "--json") == 0
    assert sum(group["rows"] for group in json.loads(capsys.readouterr().out)["audits"][0]["groups"]) == 2000


def test_json_of_several_files_has_their_names(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_here(monkeypatch, "audit", *files, *OPTIONS, "--json") == 0
    found = json.loads(capsys.readouterr().out)["audits"]
    assert [audit["name"] for audit in found] == [str(path) for path in files]
    assert found[0]["groups"][0]["rows"] > 0


def test_one_model_above_the_bound_fails_all(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (
        lp.mcdp(None, predictions.scores, sensitive_features=predictions.group_codes)
        for predictions in (lp.Predictions.read(file, score="p", group="sex") for file in files)
    )
    assert first == second  # squaring moves every score and no order
    above = ["--epsilon", "0.05", "--max-mcdp", "0.3"]
    code = run_here(monkeypatch, "audit", *files, *OPTIONS, *above)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines].count("fail") >= code
    assert all(str(file) in line for file, line in zip(files, lines, strict=True))
    assert code == int(any(line.startswith("fail") for line in lines))


def test_the_same_file_twice_is_wrong_use(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_here(monkeypatch, "audit", files[0], files[0], *OPTIONS) == 2
    assert "a.csv is named twice" in capsys.readouterr().err


def test_a_page_that_is_there_is_noticed_before_the_work(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there.html"
    there.write_text("mine")
    assert run_here(monkeypatch, "audit", files[0], *OPTIONS, "--report", there) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "there.html already exists; pass --force to overwrite" in err
    assert there.read_text() == "mine"
    assert run_here(monkeypatch, "audit", files[0], *OPTIONS, "--report", there, "--force") == 0
    assert "<!doctype html>" in there.read_text(encoding="utf-8")
    before = files[0].read_text()
    assert run_here(monkeypatch, "audit", files[0], *OPTIONS, "--report", files[0], "--force") == 2
    assert "is the file that is read" in capsys.readouterr().err
    assert files[0].read_text() == before


def test_numbers_are_printed_whatever_becomes_of_the_page(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = files[0] / "out.html"
    assert run_here(monkeypatch, "audit", files[0], *OPTIONS, "--report", path) == 2
    out, err = capsys.readouterr()
    assert "DISPARITY" in out or "NONE FOUND" in out or "UNDECIDED" in out
    assert err.startswith("error: ")
    assert "out.html cannot be written: " in err


@pytest.mark.slow
def test_the_demo_ends_with_the_path_of_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    page = tmp_path / "demo.html"
    assert run_here(monkeypatch, "demo", "--rows", 500, "--report", page) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"All models on one page:  {page}"
    assert run_here(monkeypatch, "demo", "--rows", 500, "--report", page, "--force", "--json") == 0
    audits = json.loads(capsys.readouterr().out)["audits"]
    assert [audit["name"] for audit in audits] == ["as made", "ERM", "DiffMCDP"]
    assert [model["name"] for model in page_numbers(page)["audits"]] == ["as made", "ERM", "DiffMCDP"]
