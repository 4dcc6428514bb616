"""Connections to DuckDB, which reach no other machine unless they are told to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_REMOTE = re.compile(r"(?!file://)[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def connect(*, memory_limit: str | None = None, allow_remote: bool = False) -> DuckDBPyConnection:
    """A connection; `allow_remote` lets DuckDB install what it needs to read from other machines."""
    import duckdb

    allowed = str(allow_remote).lower()
    config: dict[str, Any] = {"autoinstall_known_extensions": allowed, "autoload_known_extensions": allowed}
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    return duckdb.connect(config=config)


def remote_among(paths: Iterable[str]) -> list[str]:
    """The paths that are on other machines.

    Examples
    --------
    >>> remote_among(["scores.csv", "s3://bucket/scores.csv", "file:///scores.csv"])
    ['s3://bucket/scores.csv']
    """
    return [path for path in paths if _REMOTE.match(path)]


def check_remote(paths: Iterable[str], *, allow_remote: bool) -> None:
    """Raise a ValueError where a path is on another machine that may not be reached."""
    remote = remote_among(paths)
    if remote and not allow_remote:
        raise ValueError(f"{remote[0]} is on another machine; pass allow_remote=True to fetch it")
