"""PostgreSQL with ten million rows: the bits of DuckDB, and no query that returns more than 65,536 rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import localparity as lp
from localparity.engines._ibis import IbisScores
from scale_rows import assert_same_counts

ibis = pytest.importorskip("ibis")
psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.slow

ROWS = 10_000_000
EPSILONS = (0.0, 0.01, 0.05)
# Of the row's number, in whole numbers and doubles alone, so that every database makes the same rows.
DISTINCT = "CAST((i * 2654435761) % 4294967296 AS {double}) / 4294967296"
TIES = "CAST((i * 7919) % 100003 AS {double}) / 100003"
ROWS_OF = (
    f"SELECT ({DISTINCT}) * (1 - (i % 2) * ({DISTINCT}) / 8) AS p, {TIES} AS q, i % 2 AS g FROM {{numbers}}"
)


@pytest.fixture(scope="module")
def table(postgres: str) -> Iterator[Any]:
    numbers = f"generate_series(0, {ROWS - 1}::bigint) AS t (i)"
    with psycopg.connect(postgres) as connection:
        connection.execute(
            f"CREATE UNLOGGED TABLE many AS {ROWS_OF.format(double='float8', numbers=numbers)}"
        )
    connected = ibis.connect(postgres)
    yield connected.table("many")
    connected.drop_table("many")
    connected.disconnect()


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each query returned."""
    sizes = []
    fetch = IbisScores._fetch

    def noted(self: IbisScores, counted: Any) -> Any:
        found = fetch(self, counted)
        sizes.append(found.num_rows)
        return found

    monkeypatch.setattr(IbisScores, "_fetch", noted)
    return sizes


@pytest.mark.parametrize("score", ["q", "p"])
def test_postgres_has_the_bits_of_duckdb(table: Any, fetched: list[int], score: str) -> None:
    found = lp.engines.from_ibis(table, score=score, group="g", epsilons=EPSILONS)
    numbers = f"(SELECT range AS i FROM range({ROWS}))"
    query = ROWS_OF.format(double="DOUBLE", numbers=numbers)
    expected = lp.engines.from_duckdb(query, score=score, group="g", epsilons=EPSILONS)
    assert max(fetched) <= 2**16
    assert found.size == expected.size == ROWS
    if score == "q":  # exact: 100,003 scores of each group, in pages
        assert sum(fetched) > 200_000
        assert_same_counts(found, expected)
    for epsilon in EPSILONS:
        bounds = lp.mcdp_bounds(found, epsilon=epsilon)
        assert bounds.low == bounds.high
        assert bounds == lp.mcdp_bounds(expected, epsilon=epsilon)
