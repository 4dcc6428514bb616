"""Where an audit comes from."""

from __future__ import annotations

import hashlib
import platform
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import localparity as lp


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text("p,sex\n0.1,f\n0.4,f\n0.6,m\n0.9,m\n")
    return path


def read(source: object, **options: object) -> lp.results.Provenance:
    found = lp.Audit.read(source, score="p", group="sex", n_resamples=0, **options).provenance  # type: ignore[arg-type]
    assert found is not None
    return found


def test_a_file_that_was_read_is_named_with_its_checksum(path: Path) -> None:
    found = read(path, random_state=7)
    assert found.files == (lp.results.SourceFile(str(path), hashlib.sha256(path.read_bytes()).hexdigest()),)
    assert found.columns == {"score": "p", "group": ["sex"]}
    assert (found.seed, found.version, found.python) == (7, lp.__version__, platform.python_version())
    said = datetime.strptime(found.date, "%Y-%m-%dT%H:%M:%S%z")
    assert abs(datetime.now(UTC) - said) < timedelta(days=1)
    assert found.call == (
        f"lp.Audit.read({str(path)!r}, score='p', group='sex', n_resamples=0, random_state=7)"
    )


def test_the_files_of_a_glob_and_of_a_list_are_named_one_by_one(path: Path) -> None:
    other = path.with_name("more.csv")
    other.write_text("p,sex\n0.2,f\n")
    names = [str(other), str(path)]
    assert [file.name for file in read(str(path.with_name("*.csv"))).files] == names
    assert [file.name for file in read([other, path]).files] == names


def test_what_is_no_file_on_this_machine_has_no_checksum(path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    query = f"SELECT * FROM '{path}'"
    assert read(query).files == ()
    assert read(duckdb.sql(query)).files == ()
    assert "<DuckDBPyRelation>" in read(duckdb.sql(query)).call
    remote = lp.results.Provenance.now("a call", source="s3://bucket/*.parquet")
    assert remote.files == (lp.results.SourceFile("s3://bucket/*.parquet", None),)
    assert lp.results.Provenance.now("a call", source="absent.csv").files == ()


def test_the_environment_fixes_the_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86399")
    assert read(path).date == "1970-01-01T23:59:59Z"
    first, second = (
        lp.Audit.read(path, score="p", group="sex", n_resamples=0).to_json(min_group_size=1) for _ in "ab"
    )
    assert first == second
    for wrong in ("today", "1e99", "9" * 30):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", wrong)
        with pytest.raises(ValueError, match=f"SOURCE_DATE_EPOCH.*{wrong}"):
            read(path)


def test_audits_of_the_same_numbers_are_equal_whenever_they_were_made(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for seconds in ("0", "1"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
        found.append(lp.Audit.read(path, score="p", group="sex", n_resamples=0))
    assert found[0] == found[1]
    assert found[0].provenance != found[1].provenance
