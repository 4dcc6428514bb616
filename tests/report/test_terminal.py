"""An audit on the terminal: the answer in 25 lines of 80 columns, and everything for those who ask."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import localparity as lp
from localparity.auditing._document import Document
from localparity.report._terminal import TerminalDocument

SCREENS = Path(__file__).parents[1] / "golden" / "terminal"
REGIONS = [
    "North",
    "South",
    "East",
    "West",
    "Centre",
    "Coast",
    "Hills",
    "Lakes",
    "Islands",
    "Border",
    "Capital",
    "Harbour",
    "Valley",
    "Enclave",
]


def shown(document: Document | lp.Audit, width: int = 80, **options: Any) -> str:
    if isinstance(document, lp.Audit):
        document = Document(audits={"Audit": document})
    console = Console(width=width, file=io.StringIO())
    console.print(TerminalDocument(document, **options))
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"  # type: ignore[attr-defined]


def read(path: Path, name: str, **options: Any) -> lp.Audit:
    file = path / name
    if not file.is_file():
        pytest.skip(f"LOCALPARITY_DATA has no {name}")
    return lp.Audit.read(file, n_resamples=499, random_state=0, min_group_size=10, **options)


def compas_by_race(data: Path, _: Path) -> Document:
    columns = {"score": "decile_score", "group": "race", "label": "two_year_recid"}
    return Document(
        audits={"m": read(data, "compas/compas.csv", **columns, score_range=(1, 10))}, max_mcdp=0.3
    )


def compas_by_race_and_sex(data: Path, _: Path) -> Document:
    columns = {"score": "decile_score", "group": ["race", "sex"], "score_range": (1, 10)}
    return Document(audits={"m": read(data, "compas/compas.csv", **columns)})


def hmda(data: Path, folder: Path) -> Document:
    """Loan-to-value ratios by race, which one in seven has not recorded."""
    pandas = pytest.importorskip("pandas")
    file = data / "hmda" / "hmda_2018_sample.csv.gz"
    if not file.is_file():
        pytest.skip("LOCALPARITY_DATA has no hmda")
    loans = pandas.read_csv(file)[1::2]
    names = ["black", "asian", "white", "amind", "hipac"]
    loans["race"] = np.select([loans[name] == 1 for name in names], names, default="")
    loans["ratio"] = loans["loan_to_value_ratio"].fillna(80.0).clip(0.0, 120.0)
    loans["high_priced"] = loans["high_priced"].astype(int)
    loans[["ratio", "race", "high_priced"]].to_csv(folder / "loans.csv", index=False)
    columns = {"score": "ratio", "group": "race", "label": "high_priced", "score_range": (0, 120)}
    return Document(audits={"m": read(folder, "loans.csv", **columns, missing_groups="bound")}, max_mcdp=0.1)


def adult(data: Path, _: Path) -> Document:
    """A score of age and hours, by sex."""
    file = data / "adult" / "adult.data"
    if not file.is_file():
        pytest.skip("LOCALPARITY_DATA has no adult")
    cells = [line.split(", ") for line in file.read_text().splitlines() if line]
    scores = np.array([float(row[0]) / 90 * float(row[12]) / 99 for row in cells]).round(4)
    labels = np.array([row[14] == ">50K" for row in cells]).astype(int)
    rows = lp.Predictions.from_arrays(
        labels, np.clip(scores, 0, 1), sensitive_features=[row[9] for row in cells]
    )
    return Document(audits={"m": lp.audit(rows, n_resamples=499, random_state=0)}, max_mcdp=0.1)


def three_models(_: Path, folder: Path) -> Document:
    census = lp.datasets.make_census(3000, random_state=0, as_frame=False)
    audits = {}
    noise = np.random.default_rng(7).random(3000)
    for name, share in (("plain.csv", 0.0), ("half.csv", 0.6), ("noise.csv", 1.0)):
        scores = ((1.0 - share) * census.score + share * noise).round(4)
        rows = zip(scores, census.sensitive_features, census.target, strict=True)
        (folder / name).write_text("p,sex,y\n" + "".join(f"{p},{sex},{y}\n" for p, sex, y in rows))
        asked: dict[str, Any] = {"score": "p", "group": "sex", "label": "y", "random_state": 0}
        audits[name] = lp.Audit.read(folder / name, **asked, n_resamples=499)
    return Document(audits=audits, max_mcdp=0.1)


def fourteen_groups(_: Path, __: Path) -> Document:
    rng = np.random.default_rng(0)
    sizes = [900, 800, 700, 650, 600, 550, 500, 450, 400, 350, 300, 250, 120, 25]
    groups, shift = np.repeat(REGIONS, sizes), np.repeat(np.linspace(-0.1, 0.1, 14), sizes)
    scores = np.clip(rng.normal(0.5 + shift, 0.15), 0, 1).round(4)
    return Document(
        audits={"m": lp.audit(None, scores, sensitive_features=groups, n_resamples=499, random_state=0)}
    )


def nothing(_: Path, __: Path) -> Document:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(3000).round(3), rng.choice(["f", "m"], 3000)
    return Document(
        audits={"m": lp.audit(None, scores, sensitive_features=groups, n_resamples=499, random_state=0)}
    )


CASES = (compas_by_race, compas_by_race_and_sex, hmda, adult, three_models, fourteen_groups, nothing)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_screen_is_as_it_was_read(case: Any, data_folder: Path, tmp_path: Path, request: Any) -> None:
    """To renew the screens, delete tests/golden/terminal and run this test; then read them."""
    screen = shown(case(data_folder, tmp_path))
    lines = screen.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    file = SCREENS / f"{case.__name__}.txt"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(screen, encoding="utf-8")
    assert screen == file.read_text(encoding="utf-8")


@cache
def audit_of(n_groups: int, **options: Any) -> lp.Audit:
    """One audit for all that is shown of it: of twenty groups it takes seconds."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, n_groups, 2000)
    scores = rng.random(2000) ** (1 + groups)
    return lp.audit(None, scores, sensitive_features=groups, n_resamples=20, random_state=0, **options)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("groups", [2, 4, 9, 20])
def test_a_screen_fits_whatever_it_is_about(width: int, groups: int) -> None:
    lines = shown(audit_of(groups), width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= (25 if width >= 80 else 32)
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize("width", [80, 120])
def test_all_pairs_and_tables_are_there_for_those_who_ask(width: int) -> None:
    audit = audit_of(4, threshold=0.5)
    listed = shown(audit, width, pairs=1000)
    for row in audit.answer.pairs:
        assert f"  {row.names}" in listed
    verbose = shown(audit, width, verbose=True)
    assert max(map(len, verbose.splitlines())) <= width
    for pair in audit.pairs:
        for value in pair.mcdp:
            assert f"{100 * value:.1f}%" in verbose
    assert all(sentence.split(".")[0][:30] in " ".join(verbose.split()) for sentence in audit.assumptions)


@pytest.mark.parametrize("name", ["\x1b[2J", "日本語のグループ" * 6, "שלום", "a" * 200])
def test_a_name_keeps_to_its_column(name: str) -> None:
    from rich.cells import cell_len

    rng = np.random.default_rng(0)
    groups = np.repeat([name, "b", "c"], [300, 300, 300])
    scores = np.clip(rng.random(900) + 0.3 * (groups == "b"), 0, 1.3)
    audit = lp.audit(
        None, scores, sensitive_features=groups, score_range=(0, 1.3), n_resamples=20, random_state=0
    )
    screen = shown(audit)
    assert "\x1b" not in screen
    rows = [line for line in screen.splitlines() if "#" in line]
    assert len({cell_len(line.split("%")[0]) for line in rows}) == 1
