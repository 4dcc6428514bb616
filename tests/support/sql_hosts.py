"""Databases of the tests: each takes a table of people, and evaluates an expression on every row of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray

Evaluate = Callable[[pd.DataFrame, str], NDArray[np.float64]]
"""The values of an expression, NaN for NULL, in the order of the table's rows."""


def in_duckdb(people: pd.DataFrame, expression: str) -> NDArray[np.float64]:
    with duckdb.connect() as connection:
        connection.register("people", people.assign(row=np.arange(len(people))))
        return (
            connection.sql(f"SELECT {expression} AS found FROM people ORDER BY row").df()["found"].to_numpy()
        )


def in_postgres(address: str) -> Evaluate:
    """The same in a server, each time in a table that is gone afterwards."""
    import psycopg
    from psycopg import sql

    types = {"f": "DOUBLE PRECISION", "i": "BIGINT", "b": "BOOLEAN"}

    def evaluate(people: pd.DataFrame, expression: str) -> NDArray[np.float64]:
        people = people.assign(row=np.arange(len(people)))
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(types.get(people[name].dtype.kind, "TEXT")))
            for name in people.columns
        ]
        with psycopg.connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("CREATE TEMP TABLE people ({})").format(sql.SQL(", ").join(columns)))
            with cursor.copy("COPY people FROM STDIN") as copy:
                for row in people.astype(object).where(people.notna(), None).itertuples(index=False):
                    copy.write_row(row)
            found: Any = cursor.execute(f"SELECT {expression} FROM people ORDER BY row")  # type: ignore[call-overload]
            return np.array(found.fetchall(), dtype=np.float64)[:, 0]

    return evaluate
