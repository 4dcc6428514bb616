"""Reports on the disk: whole or not at all, and never over what is there unasked."""

from __future__ import annotations

from pathlib import Path

from localparity._io._files import write_whole


def write_new(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file that does not exist yet, or take its place where `force` says so."""
    if path.exists() and not force:
        raise FileExistsError(f"{path} already exists; pass force=True to overwrite")
    try:
        write_whole(path, content)
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror}") from error
