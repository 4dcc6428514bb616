"""Where a monitor is: a folder, or a database that a URL names."""

from __future__ import annotations

import os
from pathlib import Path

from localparity.monitoring._databases import is_database, open_database
from localparity.monitoring._folder_store import FolderStore
from localparity.monitoring._sql_store import SqlStore
from localparity.monitoring._store import Store


def open_store(location: str | os.PathLike[str]) -> Store:
    """The store at a location."""
    if is_database(str(location)):
        return SqlStore(*open_database(str(location)))
    return FolderStore(Path(location))
