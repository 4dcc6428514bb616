"""Numbers written as texts: every way to write them, against decimal arithmetic."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity._io._numbers import NumberFormat, is_missing_text, missing_text
from localparity._io._readers import distinct, repeated
from localparity._io._table import Table
from localparity._text import normal_text

WAYS = [NumberFormat(point, percent) for point in (".", ",") for percent in (False, True)]
NUMBERS = st.decimals(-(10**9), 10**9, places=6, allow_nan=False) | st.decimals(0, 1, places=6)


def written(number: Decimal, way: NumberFormat, separator: str) -> str:
    text = f"{number * 100 if way.percent else number:,f}".replace(",", "_")
    text = text.replace(".", way.decimal or ".").replace("_", separator)
    return text + ("%" if way.percent else "")


@given(NUMBERS, st.sampled_from(WAYS), st.sampled_from(["", "'", " ", "\u00a0", "other"]))
def test_every_way_to_write_a_number(number: Decimal, way: NumberFormat, separator: str) -> None:
    if separator == "other":
        separator = "," if way.decimal == "." else "."
    text = written(number, way, separator)
    found = duckdb.execute(f"SELECT {way.sql('t')} FROM (SELECT ? AS t)", [text]).fetchall()
    assert found == [(float(number),)], text


@given(numbers=st.lists(NUMBERS, min_size=1, max_size=5), way=st.sampled_from(WAYS), grouped=st.booleans())
def test_a_column_is_read_in_one_way_or_not_at_all(
    numbers: list[Decimal], way: NumberFormat, grouped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    separator = {".": ",", ",": "."}[way.decimal or "."] if grouped else ""
    texts = [written(number, way, separator) for number in numbers]
    path = tmp_path_factory.mktemp("a") / "a.csv"
    path.write_text("p;g\n" + "".join(f"{text};x\n" for text in texts))
    found = Table(path).read(numbers=["p"])["p"].tolist()  # six decimals leave one way alone
    assert found == [float(number) for number in numbers]
    assert Table(path, decimal=way.decimal).read(numbers=["p"])["p"].tolist() == found


@pytest.mark.parametrize("text", ["1,234", "12,345\n1,234"])
def test_what_can_be_read_in_two_ways_is_asked(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"p;g\n{text.replace(chr(10), ';x' + chr(10))};x\n")
    with pytest.raises(ValueError, match=r"column 'p' .* pass decimal='.' or decimal=','"):
        Table(path).read(numbers=["p"])
    last = text.split("\n")[-1]
    assert Table(path, decimal=",").read(numbers=["p"])["p"][-1] == float(last.replace(",", "."))
    assert Table(path, decimal=".").read(numbers=["p"])["p"][-1] == float(last.replace(",", ""))


@pytest.mark.parametrize("text", ["", "NA", " n/a ", "-", "NaN", "?", "Null", None, "0", "a", "0-", "nano"])
def test_what_stands_for_no_value(text: str | None) -> None:
    found = duckdb.execute(f"SELECT {missing_text('t')} FROM (SELECT ?::VARCHAR AS t)", [text]).fetchall()
    assert found == [(is_missing_text(text),)]


@given(st.lists(st.sampled_from(["a", "A", "a.2", "b", "ß", "SS"])))
def test_names_are_made_distinct(names: list[str]) -> None:
    folded = [name.casefold() for name in distinct(names)]
    assert len(set(folded)) == len(names)
    assert repeated(names) == {
        name for name in names if folded and [n.casefold() for n in names].count(name.casefold()) > 1
    }


@pytest.mark.parametrize("text", ["Male", " MALE ", "male\u00a0", "Ｍale"])
def test_names_that_look_the_same(text: str) -> None:
    assert normal_text(text) == "male"
