"""Files on other machines: read where the option allows it, and said to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from typer import Option

from localparity._io._connection import check_remote, remote_among, without_password
from localparity._io._tables import Table
from localparity.cli._printing import note

RemoteOption = Annotated[
    bool,
    Option("--allow-remote", help="Read files on other machines, through DuckDB's extensions, or databases."),
]


def announce_remote(files: Sequence[str], *, allow_remote: bool) -> None:
    """Check that files on other machines may be read, and say which of them will be fetched."""
    check_remote(files, allow_remote=allow_remote)
    for file in remote_among(files):
        note(f"fetching {without_password(file)}; DuckDB installs its extension for that if it has none")


def open_file(file: str, *, allow_remote: bool, **options: Any) -> Table:
    """The rows of a file, wherever it is, with the options of `open_table`."""
    announce_remote([file], allow_remote=allow_remote)
    return Table(file, allow_remote=allow_remote, **options)
