"""Damaged tables: CSV, JSON and Parquet, plain and packed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import strategies as st

import localparity as lp
from fuzzing import damaged, damaged_json, fuzz, read_or_refuse

ROWS = [
    {"p": score / 16, "sex": "fm"[score % 2], "y": score // 3 % 2, "w": 1 + score % 3} for score in range(12)
]
CSV = "p,sex,y,w\n" + "".join(f'{row["p"]},"{row["sex"]}",{row["y"]},{row["w"]}\n' for row in ROWS)
COLUMNS = {"score": "p", "group": "sex", "label": "y", "weight": "w"}
LINES = "\n".join(map(json.dumps, ROWS))


# A file in which all numbers happen to be written in another way is read that way, with a warning.
pytestmark = pytest.mark.filterwarnings(
    "ignore:column .* is read:UserWarning", "ignore:the groups:UserWarning"
)


def parquet(folder: Path) -> bytes:
    (folder / "rows.csv").write_text(CSV)
    duckdb.sql(f"COPY (FROM read_csv('{folder}/rows.csv')) TO '{folder}/rows.parquet'")
    return (folder / "rows.parquet").read_bytes()


def check_file(path: Path, content: bytes) -> None:
    """The rows in memory and the counts through the engine are refused both, or agree."""
    path.write_bytes(content)
    read = read_or_refuse(lambda: lp.Predictions.read(path, **COLUMNS), str(path), "column ")
    counted = read_or_refuse(lambda: lp.engines.from_duckdb(path, **COLUMNS), str(path), "column ")
    assert (read is None) == (counted is None)
    if read is not None and counted is not None:
        expected = lp.ScoreCounts.from_predictions(read).atoms
        assert set(expected) == set(counted.atoms)
        for key, atoms in counted.atoms.items():
            np.testing.assert_array_equal(atoms.scores, expected[key].scores)
            np.testing.assert_array_equal(atoms.weights, expected[key].weights)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.json", "a.jsonl", "a.parquet"])
def test_a_damaged_file_is_refused_or_read_alike_by_both_readers(name: str, tmp_path: Path) -> None:
    valid = {
        "a.csv": CSV.encode(),
        "a.tsv": CSV.replace(",", "\t").encode(),
        "a.csv.gz": gzip.compress(CSV.encode()),
        "a.json": json.dumps(ROWS).encode(),
        "a.jsonl": LINES.encode(),
        "a.parquet": parquet(tmp_path),
    }[name]
    check_file(tmp_path / name, valid)
    fuzz(damaged(valid), lambda content: check_file(tmp_path / name, content))


def check_flips(folder: Path, step: int) -> None:
    """Of a Parquet file whose statistics lie, two queries may find different rows, as two readers may."""
    valid, path = parquet(folder), folder / "a.parquet"
    for byte in range(0, len(valid), step):
        content = bytearray(valid)
        content[byte] ^= 1 << byte % 8
        path.write_bytes(content)
        read_or_refuse(lambda: lp.Predictions.read(path, **COLUMNS), str(path), "column ")
        read_or_refuse(lambda: lp.engines.from_duckdb(path, **COLUMNS), str(path), "column ")


def test_a_change_of_one_byte_is_refused_or_read(tmp_path: Path) -> None:
    check_flips(tmp_path, 28)


@pytest.mark.slow
def test_every_change_of_one_byte_is_refused_or_read(tmp_path: Path) -> None:
    check_flips(tmp_path, 1)


def test_json_of_other_shapes_is_refused_or_read_alike(tmp_path: Path) -> None:
    texts: st.SearchStrategy[str] = damaged_json(ROWS).map(json.dumps)
    fuzz(texts, lambda text: check_file(tmp_path / "a.json", text.encode()))


# Expressions of SQL, of the row i; a line each.
NUMBERS = """
i / 16.0
(i / 16.0)::FLOAT
(i / 16.0)::DECIMAL(9, 4)
(i % 2)::TINYINT
(i % 2)::HUGEINT
i % 2 = 0
(i / 16.0)::VARCHAR
'nan'::DOUBLE
'-inf'::DOUBLE
NULL
NULL::DOUBLE
nullif(i, 3) / 16.0
[i / 16.0]
{'a': i}
DATE '2026-05-17' + i::INTEGER
''
(i % 2)::UTINYINT
1e-320
-0.0
""".strip().split("\n")
VALUES = """
chr(97 + i % 2)
(i % 2)::INTEGER
i % 2 = 0
(i % 2)::DOUBLE
DATE '2026-05-17' + (i % 2)::INTEGER
chr(97 + i % 2)::BLOB
[i % 2]
{'a': i % 2}
NULL
''
nullif(chr(97 + i % 2), 'a')
i::VARCHAR
chr(8238) || i % 2
INTERVAL 1 DAY
uuid()
('a' || i % 2)::ENUM ('a0', 'a1')
NULL::INTEGER[]
""".strip().split("\n")


def test_parquet_of_other_types_is_refused_or_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = st.tuples(*map(st.sampled_from, (NUMBERS, VALUES, NUMBERS, NUMBERS)))
    how = st.sampled_from(("", ", COMPRESSION zstd", ", ROW_GROUP_SIZE 2048", ", PARQUET_VERSION v2"))

    def check(table: tuple[tuple[str, str, str, str], str, int]) -> None:
        (score, group, label, weight), form, rows = table
        query = f"SELECT {score} AS p, {group} AS sex, {label} AS y, {weight} AS w FROM (SELECT range::INTEGER AS i FROM range({rows}))"
        duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet{form})")
        check_file(path, path.read_bytes())

    fuzz(st.tuples(columns, how, st.sampled_from((0, 1, 12, 16))), check)
