"""`localparity audit ADDRESS --table NAME`: scores in a database, which counts them itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer import Option

from localparity._io._connection import without_password
from localparity.audit._reading import Engine
from localparity.cli._printing import note
from localparity.engines._databases import read_database

TableOption = Annotated[
    str | None, Option(help="The table or view, also schema.table, where FILE is a database's address.")
]

_DATABASES = ("postgres://", "postgresql://", "duckdb://", "sqlite://")
_NOT_WITH = (
    "model", "target", "split", "person_id", "scoring", "cluster", "control", "missing_groups",
    "missing_values", "missing", "encoding", "decimal", "sheet", "normalise_groups",
)  # fmt: skip


def engine_of(ctx: Any) -> Engine:
    """The engine that was asked for, which for a table of a database is Ibis."""
    table, engine = ctx.params["table"], ctx.params["engine"]
    if table is None:
        named = next((file for file in ctx.params["files"] if file.startswith(_DATABASES)), None)
        if engine == "ibis" or named is not None:
            raise typer.BadParameter("must name the table of a database's address", param_hint="--table")
        return engine  # type: ignore[no-any-return]
    typed = {param.name: param.opts[0] for param in ctx.command.params if param.name in _NOT_WITH}
    for name, option in typed.items():
        if ctx.get_parameter_source(name).name != "DEFAULT":
            raise typer.BadParameter("cannot be used with --table", param_hint=option)
    if engine == "spark":
        raise typer.BadParameter("cannot be used with --table", param_hint="--engine spark")
    return "ibis"


def open_databases(ctx: Any, addresses: Sequence[str], table: str, *, allow_remote: bool) -> dict[str, Any]:
    """A table of each database, by a name that has no password; connections are closed at the end."""
    found = {}
    for address in addresses:
        shown = without_password(address)
        opened = read_database(address, table, allow_remote=allow_remote)
        ctx.call_on_close(opened.get_backend().disconnect)
        found[f"{table} ({shown})"] = opened
        note(f"counting in {shown}")
    return found
