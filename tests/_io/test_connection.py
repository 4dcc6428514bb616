"""Connections to DuckDB keep what they write to themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from localparity._io._duckdb import connect


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_rows_that_do_not_fit_in_memory_are_written_where_only_their_owner_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with connect(memory_limit="30MB") as connection:
        ((found,),) = connection.sql("SELECT current_setting('temp_directory')").fetchall()
        assert Path(found).stat().st_mode & 0o777 == 0o700
        rows = connection.sql("SELECT sqrt(range) AS p FROM range(2000000) ORDER BY hash(range)").fetchnumpy()
        assert rows["p"].size == 2_000_000
        assert list(tmp_path.iterdir()) == []
