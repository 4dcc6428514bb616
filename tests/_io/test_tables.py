"""Files of every kind, and what is said of the ones that cannot be read."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import localparity as lp
from localparity._io._table import Table

ROWS = [("0.25", "f", "1"), ("0.5", "m", "0"), ("1", "f", "1")]
CSV = "p,sex,y\n" + "".join(",".join(row) + "\n" for row in ROWS)


def check(table: Table) -> None:
    found = table.read(numbers=["p", "y"], values=["sex"])
    np.testing.assert_array_equal(found["p"], [0.25, 0.5, 1.0])
    np.testing.assert_array_equal(found["y"], [1.0, 0.0, 1.0])
    assert found["sex"].tolist() == ["f", "m", "f"]


def test_csv_with_any_delimiter_line_end_mark_and_compression(tmp_path: Path) -> None:
    texts = {
        "a.csv": CSV,
        "semicolon.csv": CSV.replace(",", ";"),
        "bar.txt": CSV.replace(",", "|"),
        "tab.tsv": CSV.replace(",", "\t"),
        "windows.csv": CSV.replace("\n", "\r\n"),
        "one_other.csv": "\n".join(CSV.replace("\n", "\r\n").rsplit("\r\n", 2)),
        "header.csv": CSV.replace("\n", "\r\n").replace("\r\n", "\n", 1),
        "mark.csv": "\ufeff" + CSV,
        "quoted.csv": CSV.replace("f", '"f"').replace("p,", '"p",'),
        "blank.csv": CSV.replace("0.5", "\n0.5"),
        "blank first.csv": "\n\n" + CSV,
        "excel.csv": "sep=;\r\n" + CSV.replace(",", ";").replace("\n", "\r\n"),
        "spaces.csv": CSV.replace("p,sex,y", " p , sex, y "),
        "old.csv": CSV.replace("\n", "\r"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
        check(Table(tmp_path / name))
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    check(Table(tmp_path / "packed.csv.gz"))


def test_lines_that_end_in_both_ways_and_texts_of_two_lines(tmp_path: Path) -> None:
    """A text of two lines in a file of Excel's has another end inside its quotes."""
    path = tmp_path / "a.csv"
    for end in (b"\r\n", b"\n"):
        path.write_bytes(b'p,sex,y\r\n0.25,"f\nx",1' + end + b"0.5,m,0\r\n")
        assert Table(path).read(numbers=["p"], values=["sex"])["sex"].tolist() == ["f\nx", "m"]
    path.write_bytes(b'p,sex,y\r\n0.25,"f,1\n0.5,m,0\r\n')
    with pytest.raises(ValueError, match="cannot be read"):
        Table(path).read(numbers=["p"])


def test_parquet_and_json(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    duckdb.sql(f"COPY (FROM read_csv('{tmp_path}/a.csv')) TO '{tmp_path}/a.parquet'")
    check(Table(tmp_path / "a.parquet"))
    people = [{"p": float(p), "sex": sex, "y": y == "1"} for p, sex, y in ROWS]
    (tmp_path / "a.json").write_text(json.dumps(people))
    check(Table(tmp_path / "a.json"))
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, people)))
    check(Table(tmp_path / "a.jsonl"))


@pytest.mark.parametrize("first", [0, 1, True, "0"])
@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_json_is_not_typed_by_its_first_rows(tmp_path: Path, kind: str, first: int | str) -> None:
    people: list[dict[str, object]] = [{"p": first, "sex": 1}] * 30_000
    people += [{"sex": "f", "p": 0.37}, {"p": 0.30000000000000004, "sex": True}]
    text = json.dumps(people) if kind == "json" else "\n".join(map(json.dumps, people))
    (tmp_path / f"a.{kind}").write_text(text)
    found = Table(tmp_path / f"a.{kind}").read(numbers=["p"], values=["sex"])
    assert found["p"].tolist() == [float(first)] * 30_000 + [0.37, 0.30000000000000004]
    assert found["sex"].tolist() == ["1"] * 30_000 + ["f", "true"]


def test_columns_of_json_are_those_of_any_row(tmp_path: Path) -> None:
    rows = ['{"p": 0.1, "sex": "f"}'] * 30_000 + ['{"note": null, "sex": "m", "p": 0.2}']
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    table = Table(tmp_path / "a.jsonl")
    assert table.columns == ["p", "sex", "note"]
    assert table.read(numbers=["p"], values=["note"])["note"].tolist() == [None] * 30_001


def test_json_over_several_lines(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n "p": 0.1,\n "sex": "f"\n}\n{\n "p": 0.2,\n "sex": null\n}\n')
    found = Table(tmp_path / "a.json").read(numbers=["p"], values=["sex"])
    assert found["p"].tolist() == [0.1, 0.2]
    assert found["sex"].tolist() == ["f", None]


def test_a_glob_and_a_list_are_all_their_files(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("p,sex,y\n0.25,f,1\n")
    (tmp_path / "2.csv").write_text("p,sex,y\n0.5,m,0\n1,f,1\n")
    check(Table(str(tmp_path / "*.csv")))
    check(Table([tmp_path / "1.csv", tmp_path / "2.csv"]))


def test_files_with_other_columns_are_not_mixed_up(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("p,q,sex\n0.1,0.9,f\n")
    (tmp_path / "2.csv").write_text("q,p,sex\n0.9,0.3,f\n")
    with pytest.raises(ValueError, match=r"2.csv must have the columns of .*1.csv"):
        Table(str(tmp_path / "*.csv"))


def test_a_column_without_a_name_is_called_by_its_place(tmp_path: Path) -> None:
    # What pandas writes unless it is told not to write its index.
    (tmp_path / "a.csv").write_text(",p,sex\n0,0.25,f\n1,0.5,m\n")
    table = Table(tmp_path / "a.csv")
    assert table.columns == ["column0", "p", "sex"]
    assert table.read(numbers=["p"], values=["sex"])["p"].tolist() == [0.25, 0.5]


def test_words_stay_words_and_truth_counts_as_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("p,sex,y\n0.1,f,True\n0.2,t,false\n")
    found = Table(tmp_path / "a.csv").read(numbers=["y"], values=["sex", "p"])
    assert found["sex"].tolist() == ["f", "t"]
    assert found["y"].tolist() == [1.0, 0.0]
    assert found["p"].tolist() == ["0.1", "0.2"]


def test_names_full_of_quotes_and_semicolons_are_only_names(tmp_path: Path) -> None:
    name = "a\"; drop table x; --'"
    (tmp_path / "o'dd.csv").write_text('"a""; drop table x; --\'",sex\n0.5,f\n')
    table = Table(tmp_path / "o'dd.csv")
    assert table.columns == [name, "sex"]
    assert table.read(numbers=[name], values=["sex"])[name].tolist() == [0.5]


def test_a_missing_value_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("p,sex\n0.1,f\n0.2,\n")
    assert Table(tmp_path / "a.csv").read(numbers=[], values=["sex"])["sex"].tolist() == ["f", None]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "", "a.csv is empty$"),
        ("a.csv", "p,sex\n", "a.csv has no rows"),
        ("a.csv", "p,sex\n0.1,f\n0.2\n0.3,m\n", r"a.csv cannot be read: line 3: .*Columns: 2 Found: 1"),
        ("a.csv", "p,sex\n0.1,f\n0.2,m,x\n", r"a.csv cannot be read: line 3: .*Columns: 2 Found: 3"),
        ("a.csv", 'p,sex\n0.1,"f\n', "a.csv cannot be read: line 2: .*unterminated quote"),
        ("a.csv", "p,sex\n" + "0.1,f\n" * 30000 + "oops\n", "a.csv cannot be read: line 30002: "),
        ("a.csv", "p,sex\n0.1,f\nhigh,m\n", "column 'p' of .*a.csv .* got 'high' at data row 2"),
        ("a.csv", "p,sex\n0.1,f\n,m\n", "column 'p' of .*a.csv .* got no value at data row 2"),
        ("a.csv", "p,sex,p\n0.1,f,1\n", "a.csv has more than one column named 'p', apart from case"),
        ("a.csv", "P,sex\n0.1,f\n", "there is no column in .*a.csv named 'p'; did you mean 'P'?"),
        ("a.csv", "p,P,sex\n0.1,1,f\n", "a.csv has more than one column named 'p', apart from case"),
        ("a.csv", "\n\n\n", "a.csv has no line with the names of its columns"),
        ("a.csv", 'p,"sex\n or so"\n0.1,f\n', "a.csv cannot be read: line 1: a quote in the header"),
        ("a.parquet", "PAR1 or not", "a.parquet cannot be read: "),
        ("a.jsonl", '{"p": 1, "sex": "f"}\n{"p": \n', "a.jsonl cannot be read: data row 2: "),
        (
            "a.jsonl",
            '{"p": 1, "sex": "f"}\n{"p": "high", "sex": "f"}\n',
            "column 'p' .* 'high' at data row 2",
        ),
        ("a.jsonl", '{"p": 1, "sex": "f"}\n{"sex": "f"}\n', "column 'p' .* no value at data row 2"),
        ("a.jsonl", '{"p": 1, "sex": "f"}\n[0.5]\n', "a.jsonl must have an object .* array at data row 2"),
        ("a.jsonl", '{"p": 1, "sex": "f"}\nnull\n', "a.jsonl must have an object .* null at data row 2"),
        ("a.jsonl", '{"p": 1, "sex": "f"},\n{"p": 1, "sex": "f"}\n', "a.jsonl cannot .*: data row 1: "),
        ("a.jsonl", '{"p": 1, "sex": "f"}\n{"p": 1, "sex": "f"},', "a.jsonl cannot .*: data row 2: "),
        ("a.jsonl", '{"p": 1, "sex": "f"} {"p": 1, "sex": "f"}\n', "a.jsonl cannot .*: data row 1: "),
        ("a.json", '{"p": 1, "sex": "f"},\n{"p": 1, "sex": "f"}\n', "a.json cannot .*: data row 2: "),
        ("a.json", '[{"p": 1, "sex": "f"},]', "a.json cannot .*: data row 2: "),
        ("a.json", '[{"p": 1, "sex": "f"}]]', "a.json cannot .*: data row [23]: "),
        ("a.csv", "p,sex\n0.1,f,x\n0.2,m\n", "a.csv cannot be read: line 2: .*Columns: 2 Found: 3"),
        ("a.csv", "p,sex\n0.1,f\n0.2,m,x", "a.csv cannot be read: line 3: .*Columns: 2 Found: 3"),
        pytest.param(
            *("a.csv", "p,sex\n0.1,f,\n0.2,m\n", "a.csv cannot be read: line 2: .*Columns: 2 Found: 3"),
            marks=pytest.mark.skipif(duckdb.__version__ < "2", reason="a field that is empty is overlooked"),
        ),
        ("a.csv", 'p,sex\n0.1,f\n0.2,m,""', "a.csv cannot be read: line 3: .*Columns: 2 Found: 3"),
        ("a.json", "3", "a.json must have an object .* got a number at data row 1"),
        ("a.json", "[]", "a.json has no rows"),
        ("a.jsonl", "", "a.jsonl has no rows"),
        ("a.jsonl", '{"p": 1, "p": 2, "sex": "f"}\n', "a.jsonl has more than one column named 'p'"),
        ("a.jsonl", '{"p": 1}\n{"P": 2, "sex": "f"}\n', "a.jsonl has more than one column named 'P'"),
        ("a.docx", "", "a.docx must end in one of .csv, .txt, .tsv, .parquet"),
        ("a.csv", "p,sex\n0.5,f\n37%,m\n", "column 'p' .* got '37%' at data row 2"),
        ("a.csv", "p;sex\n1,234;f\n", "column 'p' of .*a.csv can be read .* pass decimal='.' or decimal=','"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        Table(tmp_path / name).read(numbers=["p"], values=["sex"])


def test_bytes_that_are_no_text_are_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"p,sex\n0.1,f\n0.2,\xff\xfe\n")
    with pytest.raises(ValueError, match=r"a.csv cannot be read: line 3: .*unicode"):
        Table(tmp_path / "a.csv").read(numbers=["p"], values=["sex"])


LONG = """
import signal, threading
from functools import partial
from localparity._io._duckdb import interruptible
from localparity._io._table import Table
signal.signal(signal.SIGINT, signal.default_int_handler)
table = Table("SELECT 1 AS p")
connection, pressed = table._query.__self__, threading.Event()
press = partial(signal.pthread_kill, threading.main_thread().ident, signal.SIGINT)
{pressing}
try:
    {asked}
except KeyboardInterrupt:
    print("interrupted")
"""
PRESSING = {
    # The query begins after the first interrupt, which ends nothing then.
    "before": """
class Connection:
    def interrupt(self):
        connection.interrupt()
        pressed.set()

def begin(query):
    press()
    pressed.wait()
    return connection.sql(query)

table._query, table._wait = begin, partial(interruptible, Connection())
value = "a.range"
""",
    "inside": """
def press_once(value):
    if not pressed.is_set():
        pressed.set()
        press()
    return value

connection.create_function("press_once", press_once, ["BIGINT"], "BIGINT")
value = "press_once(a.range)"
""",
}


@pytest.mark.parametrize("pressing", PRESSING)
@pytest.mark.parametrize("asked", ["table.fetch(query)", "next(table.stream(query))"])
def test_a_query_ends_with_ctrl_c(asked: str, pressing: str) -> None:
    query = 'query = f"SELECT sum(sqrt({value} * b.range)) AS s FROM range(1000000) a, range(1000000) b"\n'
    code = LONG.format(asked=asked, pressing=PRESSING[pressing] + query)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_no_file_and_files_of_two_kinds(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"source .* got none"):
        Table([])
    with pytest.raises(ValueError, match="one kind, got csv, parquet"):
        Table(["a.csv", "b.parquet"])
    with pytest.raises(ValueError, match=r"nowhere.csv does not exist"):
        Table(["nowhere.csv", "nowhere too.csv"])


def test_whole_numbers_written_with_a_point_are_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("p,sex\n1e17,f\n100000000000000000.5,m\n3,m\n")
    assert lp.Predictions.read(path, score="p", group="sex", score_range=(0, 1e18)).scores[0] == 1e17


@pytest.mark.parametrize("end", [b"\0" * 2**26, b"0.5," + b"x" * 2**26], ids=["zeros", "a cell"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_a_last_line_that_is_too_long_is_not_overlooked(end: bytes, pack: Any, tmp_path: Path) -> None:
    """DuckDB leaves it out without a word, as a disk leaves zeros after a crash."""
    path = tmp_path / ("a.csv" if pack is bytes else "a.csv.gz")
    path.write_bytes(pack(b"p,g\n" + b"0.1,a\n0.2,b\n" * 30 + end))
    with pytest.raises(ValueError, match=r"a\.csv.* cannot be read: .*line"):
        lp.Predictions.read(path, score="p", group="g")


def sheet(path: Path, cells: str) -> None:
    """A workbook of one sheet, as small as Excel's format allows."""
    kinds, office = "application/vnd.openxmlformats", "http://schemas.openxmlformats.org"
    relations = f"{office}/officeDocument/2006/relationships"
    link = '<Relationships xmlns="{}/package/2006/relationships"><Relationship Id="r1" Type="{}/{}" Target="{}"/></Relationships>'
    main = f'xmlns="{office}/spreadsheetml/2006/main" xmlns:r="{relations}"'
    types = "".join(
        f'<Override PartName="/xl/{part}.xml" ContentType="{kinds}-officedocument.spreadsheetml.{kind}+xml"/>'
        for part, kind in (("workbook", "sheet.main"), ("worksheets/sheet1", "worksheet"))
    )
    rels = f'<Default Extension="rels" ContentType="{kinds}-package.relationships+xml"/>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{office}/package/2006/content-types">{rels}{types}</Types>',
        "_rels/.rels": link.format(office, relations, "officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook {main}><sheets><sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": link.format(office, relations, "worksheet", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{cells}</sheetData></worksheet>",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0"?>{text}')


def test_a_workbook_whose_last_cell_is_far_away_is_refused(tmp_path: Path) -> None:
    """1,500 bytes that made 17 billion cells and ended the process."""
    pytest.importorskip("python_calamine")
    texts = "".join(
        f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'
        for place, text in (("A1", "p"), ("B1", "g"))
    )
    near, far = (
        "<row r='2'><c r='A2'><v>0.5</v></c></row>",
        '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
    )
    sheet(tmp_path / "near.xlsx", f'<row r="1">{texts}</row>{near}')
    with pytest.raises(ValueError, match="column 'g'"):
        lp.Predictions.read(tmp_path / "near.xlsx", score="p", group="g")
    sheet(tmp_path / "far.xlsx", f'<row r="1">{texts}</row>{far}')
    with pytest.raises(ValueError, match=r"far.xlsx cannot be read: .*has more than 100,000,000 cells"):
        lp.Predictions.read(tmp_path / "far.xlsx", score="p", group="g")
    cut = (tmp_path / "near.xlsx").read_bytes()
    for place in range(0, len(cut), 7):
        (tmp_path / "cut.xlsx").write_bytes(cut[:place] + b"\xff" + cut[place + 1 :])
        with pytest.raises(ValueError, match=r"cut.xlsx|column"):
            lp.Predictions.read(tmp_path / "cut.xlsx", score="p", group="g")
