"""Forty files as people have them, made from Adult and COMPAS: the right number, or one line that says what to do."""

from __future__ import annotations

import codecs
import gzip
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pytest

from typed_commands import run
from workbooks import workbook

Rows = list[list[str]]
HEADER = ["p", "sex", "race", "y"]
ADULT, COMPAS = "adult", "compas"
ROWS = 1000


@pytest.fixture(scope="module")
def people(data_folder: Path) -> dict[str, Rows]:
    """A score, the sex, the race and the label of people: from census answers, and the published deciles."""
    adult = []
    for line in (data_folder / "adult" / "adult.data").read_text().splitlines()[:ROWS]:
        values = line.split(", ")
        score = (int(values[0]) / 90 + int(values[4]) / 16 + int(values[12]) / 99) / 3
        adult.append([f"{score:.4f}", values[9], values[8], str(int(values[14] == ">50K"))])
    compas = []
    for line in (data_folder / "compas" / "compas.csv").read_text().splitlines()[1 : ROWS + 1]:
        decile, race, sex, label = line.split(",")
        compas.append([decile, sex, race, label])
    return {ADULT: adult, COMPAS: compas}


def worst_gap(rows: Rows, group: int = 1) -> float:
    """MCDP(0) by its definition: the largest gap between two groups' shares at or below any score."""
    by_group: dict[str, list[Fraction]] = {}
    for row in rows:
        by_group.setdefault(row[group], []).append(Fraction(row[0]))
    kept = [sorted(scores) for scores in by_group.values() if len(scores) >= 10]
    scores = {score for scores in kept for score in scores}
    shares = [{at: Fraction(bisect_right(each, at), len(each)) for at in scores} for each in kept]
    return float(max(abs(a[at] - b[at]) for a, b in combinations(shares, 2) for at in scores))


def csv(rows: Rows, delimiter: str = ",", header: Sequence[str] = HEADER, end: str = "\n") -> str:
    return "".join(delimiter.join(row) + end for row in [list(header), *rows])


def scores(rows: Rows, change: Callable[[str], str]) -> Rows:
    return [[change(row[0]), *row[1:]] for row in rows]


def some_scores(rows: Rows, value: str) -> Rows:
    return [[value if place % 50 == 7 else row[0], *row[1:]] for place, row in enumerate(rows)]


def groups(rows: Rows, change: Callable[[int, str], str]) -> Rows:
    return [[row[0], change(place, row[1]), *row[2:]] for place, row in enumerate(rows)]


def percent(score: str) -> str:
    return f"{float(score) * 100:.2f}%"


def comma(score: str) -> str:
    return score.replace(".", ",")


def thousands(score: str) -> str:
    return f"{1000 * float(score) + 1000:,.2f}"


def spelled(place: int, sex: str) -> str:
    return [sex, sex.lower(), f" {sex.upper()} ", f"{sex}\u00a0"][place % 4]


def wide(place: int, sex: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) for letter in sex) if place % 2 else sex


class Case(NamedTuple):
    """A file, given the rows of a data set, and what becomes of it."""

    name: str
    write: Callable[[Rows, Path], object]
    file: str = "scores.csv"
    words: Sequence[str] = ()
    refused: str = ""
    """What the one line says; where it is empty the number is right."""
    warned: str = ""
    data: str = ADULT
    joined: Callable[[Rows], Rows] = list
    """The rows that the number is of."""


def text(make: Callable[[Rows], str], encoding: str = "utf-8") -> Callable[[Rows, Path], object]:
    return lambda rows, path: path.write_bytes(make(rows).encode(encoding))


def of_deciles(name: str, make: Callable[[Rows], str], **options: object) -> Case:
    words = ["--score-range", "0,10"]
    return Case(name, text(make), data=COMPAS, **{"words": words, **options})  # type: ignore[arg-type]


def kept(rows: Rows) -> Rows:
    return [row for place, row in enumerate(rows) if place % 50 != 7]


CASES = [
    Case("plain", text(csv)),
    Case("semicolons", text(lambda rows: csv(rows, ";"))),
    Case("tabs", text(lambda rows: csv(rows, "\t"))),
    Case("tabs in a tsv", text(lambda rows: csv(rows, "\t")), "scores.tsv"),
    Case("bars", text(lambda rows: csv(rows, "|")), "scores.txt"),
    Case("windows", text(lambda rows: csv(rows, end="\r\n"))),
    Case("old mac", text(lambda rows: csv(rows, end="\r"))),
    Case("no last line end", text(lambda rows: csv(rows).rstrip("\n"))),
    Case("blank lines", text(lambda rows: csv(rows).replace("\n", "\n\n", 40))),
    Case("blank lines first", text(lambda rows: "\n\n" + csv(rows))),
    Case("utf-8 with a mark", text(csv, "utf-8-sig")),
    Case("utf-16", text(csv, "utf-16")),
    Case("utf-16, other bytes first", lambda rows, path: path.write_bytes(codecs.BOM_UTF16_BE + csv(rows).encode("utf-16-be"))),
    Case("utf-16 without a mark", text(csv, "utf-16-le")),
    Case("utf-16, packed", lambda rows, path: path.write_bytes(gzip.compress(csv(rows).encode("utf-16"))), "scores.csv.gz"),
    Case("latin-1", text(lambda rows: csv(groups(rows, lambda _, sex: f"{sex}é")), "latin-1"), refused="--encoding latin-1"),
    Case("latin-1, said", text(lambda rows: csv(groups(rows, lambda _, sex: f"{sex}é")), "latin-1"), words=["--encoding", "latin-1"]),
    Case("excel's first line", text(lambda rows: "sep=;\r\n" + csv(rows, ";", end="\r\n"))),
    Case("quotes around everything", text(lambda rows: csv([[f'"{value}"' for value in row] for row in rows]))),
    Case("commas and quotes within quotes", text(lambda rows: csv([[*row[:2], f'"{row[2]}, or ""so"""', row[3]] for row in rows]))),
    Case("spaces in the header", text(lambda rows: csv(rows, header=[" p", " sex ", '"race"', "y "]))),
    Case("spaces around numbers", text(lambda rows: csv(scores(rows, lambda score: f" {score} ")))),
    Case("an index without a name", text(lambda rows: csv([[str(place), *row] for place, row in enumerate(rows)], header=["", *HEADER]))),
    Case("percent signs", text(lambda rows: csv(scores(rows, percent))), warned="as percentages"),
    Case("percent signs and a range", text(lambda rows: csv(scores(rows, percent))), words=["--score-range", "0,100"], refused="--score-range must be (0, 1)"),
    Case("percent signs here and there", text(lambda rows: csv([[percent(row[0]) if place % 3 else row[0], *row[1:]] for place, row in enumerate(rows)])), refused="percent sign"),
    Case("decimal commas", text(lambda rows: csv(scores(rows, comma), ";")), warned="decimal comma"),
    Case("decimal commas in quotes", text(lambda rows: csv(scores(rows, lambda score: f'"{comma(score)}"'))), warned="decimal comma"),
    Case("decimal commas, said", text(lambda rows: csv(scores(rows, comma), ";")), words=["--decimal", ","]),
    Case("decimal commas and percent signs", text(lambda rows: csv(scores(rows, lambda score: comma(percent(score)).replace("%", " %")), ";")), warned="decimal comma, as percentages"),
    Case("decimal commas between commas", text(lambda rows: csv(scores(rows, comma))), refused="Expected Number of Columns: 4 Found: 5"),
    Case("thousands", text(lambda rows: csv(scores(rows, thousands), ";")), words=["--score-range", "1000,2000"], warned="separators of thousands"),
    Case("thousands or decimals", text(lambda rows: csv(scores(rows, lambda score: f"{1000 + int(1000 * float(score)):,d}"), ";")), words=["--score-range", "1000,2000"], refused="--decimal"),
    Case("no scores here and there", text(lambda rows: csv(some_scores(rows, ""))), refused="20 rows without a score: --missing drop"),
    Case("NA for a score", text(lambda rows: csv(some_scores(rows, "NA"))), refused="20 rows without a score: --missing drop"),
    Case("a dash for a score", text(lambda rows: csv(some_scores(rows, "-"))), refused="20 rows without a score: --missing drop"),
    Case("a dash for a score, left out", text(lambda rows: csv(some_scores(rows, "-"))), words=["--missing", "drop"], joined=kept),
    Case("a word for a score", text(lambda rows: csv(some_scores(rows, "high"))), refused="got 'high' at data row 8"),
    Case("scores up to 100", text(lambda rows: csv(scores(rows, lambda score: f"{float(score) * 100:.2f}"))), refused="--score-range"),
    Case("NULL for a group", text(lambda rows: csv(groups(rows, lambda place, sex: sex if place % 50 != 7 else "NULL"))), refused="column 'sex' has no value in 20 of 1,000 rows; --missing-groups"),
    Case("look-alikes", text(lambda rows: csv(groups(rows, spelled))), warned="--normalise-groups to join them", joined=lambda rows: groups(rows, spelled)),
    Case("look-alikes, joined", text(lambda rows: csv(groups(rows, spelled))), words=["--normalise-groups"]),
    Case("letters of another width, joined", text(lambda rows: csv(groups(rows, wide))), words=["--normalise-groups"]),
    Case("a group that is an id", text(lambda rows: csv(groups(rows, lambda place, _: str(place)))), refused="is it an identifier"),
    Case("columns of one name", text(lambda rows: csv([[*row, "7"] for row in rows], header=["p", "sex", "x", "y", "X"]))),
    Case("columns of the score's name", text(lambda rows: csv([[*row, "7"] for row in rows], header=[*HEADER, "P"])), refused="more than one column named 'p'"),
    Case("another name", text(lambda rows: csv(rows, header=["score", *HEADER[1:]])), refused="there is no column in"),
    Case("no header", text(lambda rows: csv(rows).partition("\n")[2]), refused="there is no column in"),
    Case("a row cut short", text(lambda rows: csv(rows)[:-4]), refused="cannot be read: line 1001"),
    Case("a total at the end", text(lambda rows: csv(rows) + "Total,,,\n"), refused="got 'Total' at data row 1001"),
    Case("empty cells at the end", text(lambda rows: csv(rows) + ",,,\n" * 3), refused="3 rows without a score: --missing drop"),
    Case("a workbook", lambda rows, path: workbook(path, {"scores": [HEADER, *rows]}), "scores.xlsx"),
    Case("a workbook of texts", lambda rows, path: workbook(path, {"scores": [HEADER, *rows]}, texts=True), "scores.xlsx"),
    Case("a workbook with commas", lambda rows, path: workbook(path, {"scores": [HEADER, *scores(rows, comma)]}), "scores.xlsx", warned="decimal comma"),
    Case("two sheets", lambda rows, path: workbook(path, {"notes": [["a"], ["b"]], "scores": [HEADER, *rows]}), "scores.xlsx", refused="--sheet notes"),
    Case("two sheets, one named", lambda rows, path: workbook(path, {"notes": [["a"], ["b"]], "scores": [HEADER, *rows]}), "scores.xlsx", words=["--sheet", "scores"]),
    Case("no workbook", lambda rows, path: path.write_text(csv(rows)), "scores.xlsx", refused="scores.xlsx cannot be read"),
    of_deciles("deciles", csv),
    of_deciles("deciles without a range", csv, words=(), refused="--score-range (0.0, 1.0)"),
    of_deciles("deciles with a decimal point", lambda rows: csv(scores(rows, lambda score: f"{score}.0"))),
    of_deciles("deciles in words", lambda rows: csv(scores(rows, lambda score: f"decile {score}")), refused="must be numbers, got 'decile"),
    of_deciles("deciles as quoted commas", lambda rows: csv(scores(rows, lambda score: f'"{score},0"')), warned="decimal comma"),
]  # fmt: skip


def test_there_are_forty() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 40


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_messy_file(case: Case, people: dict[str, Rows], tmp_path: Path) -> None:
    rows, path = people[case.data], tmp_path / case.file
    case.write(rows, path)
    asked = ["--score", "p", "--group", "sex", "--resamples", "0", "--epsilon", "0", "--json", *case.words]
    done = run("audit", path, *asked, PYTHONWARNINGS="default")
    if case.refused:
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert case.refused in done.stderr
        return
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["audits"][0]["findings"][0]["mcdp"]
    assert found == pytest.approx(worst_gap(case.joined(rows)), abs=1e-12)
    assert case.warned in done.stderr
    assert done.stderr.startswith("warning: ") == bool(case.warned), done.stderr
