"""A table of a database, by the database's address."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from localparity._io._connection import without_password
from localparity._validation import require
from localparity.engines._ibis import deprecations_ignored, driver_errors, first_line

if TYPE_CHECKING:
    from ibis.expr.types import Table

_FILES = ("duckdb", "sqlite")
"""Databases that are files."""


def read_database(address: str, table: str, *, allow_remote: bool = False) -> Table:
    """A table or a view of a database, for `from_ibis`.

    Parameters
    ----------
    address : str
        ``postgresql://user@host:5432/database``, ``duckdb://path``, ``sqlite://path``, or that of any other
        database that Ibis has a backend for.
    table : str
        Its name, also with the schema: ``schema.table``.
    allow_remote : bool
        Whether to connect to a server, be it on this machine; files need none of it.

    Returns
    -------
    ibis.Table
    """
    ibis = require("ibis", extra="warehouse")
    missing: type[Exception] = require("ibis.common.exceptions", extra="warehouse").TableNotFound
    shown, scheme = without_password(address), _scheme(address)
    options: dict[str, Any] = {}
    if scheme in _FILES:
        path = Path(address.partition("://")[2])
        if not path.is_file():
            raise FileNotFoundError(f"there is no database {str(path)!r}")
        if scheme == "duckdb":
            off = ("autoinstall_known_extensions", "autoload_known_extensions")
            options = {"read_only": True, **dict.fromkeys(off, allow_remote)}
    elif not allow_remote:
        raise ValueError(f"{shown} is a database server; pass allow_remote=True to connect to it")
    schema, _, name = table.rpartition(".")
    try:
        with deprecations_ignored():
            connection = ibis.connect(address, **options)
            try:
                return connection.table(name, database=schema or None)
            except (missing, *driver_errors()):
                connection.disconnect()
                raise
    except missing:
        raise ValueError(f"there is no table named {table!r} in {shown}") from None
    except ImportError as error:
        install = f"pip install 'ibis-framework[{scheme}]'"
        raise ImportError(f"{shown} needs a driver that is not installed: {install}") from error
    except driver_errors() as error:
        raise ValueError(f"{shown} cannot be read: {first_line(error)}") from error


def _scheme(address: str) -> str:
    """What an address begins with, where it is one that Ibis has a backend for."""
    example = "postgresql://user@host:5432/database"
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:  # whose message may have a part of the password
        raise ValueError(
            f"an address must be such as {example}, with %2F for / and %40 for @ in a password"
        ) from None
    known = {backend.name for backend in entry_points(group="ibis.backends")}
    if parts.scheme not in known | {"postgresql"}:
        raise ValueError(f"an address must be such as {example}, got {without_password(address)!r}")
    return parts.scheme
