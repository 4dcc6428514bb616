"""Folders of files under one sealed description, written whole or not at all.

The description names the subfolder of the files and the sha256 of each. New content takes the place of old
when the description is replaced: whenever a write is interrupted, the folder holds the old content or the
new, whole. Notes for people are kept with the files, and copies of them beside the description.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

from localparity._io._files import (
    locked_folder,
    parse_sealed,
    read_regular,
    read_settled,
    reading,
    seal_json,
    sha256_of,
    write_whole,
)

T = TypeVar("T")

Files = dict[str, bytes]
"""The content of a folder's files, by their paths below it."""

_DATA = re.compile("data-[0-9a-f]{12}")
"""The name of the subfolder of the files, which differs for contents that differ."""


def write_folder(
    folder: Path, name: str, facts: dict[str, Any], files: Files, notes: Callable[[str], Files]
) -> None:
    """Write files and the description called `name`, in place of what an earlier call wrote.

    `notes` returns the notes for people, given the sha256 of the description.
    """
    described = seal_facts(facts, files)
    data = f"data-{sha256_of(seal_json(described))[:12]}"
    description = seal_json({**described, "data": data})
    for_people = notes(sha256_of(description))
    folder.mkdir(parents=True, exist_ok=True)
    with locked_folder(folder):
        for path, content in {**files, **for_people}.items():
            write_whole(folder / data / path, content, durable=True)
        for path in for_people:
            (folder / path).unlink(missing_ok=True)
        write_whole(folder / name, description, durable=True)
        for path, content in for_people.items():
            write_whole(folder / path, content, durable=True)
        for other in folder.iterdir():
            if _DATA.fullmatch(other.name) and other.name != data:
                shutil.rmtree(other, ignore_errors=True)


def seal_facts(facts: dict[str, Any], files: Files) -> dict[str, Any]:
    """Return facts with the sha256 of each file."""
    return {**facts, "files": {path: sha256_of(content) for path, content in files.items()}}


class SealedFolder(NamedTuple):
    """A folder that `write_folder` wrote: its facts, the sha256 of its description, and where files are."""

    facts: dict[str, Any]
    sha256: str
    data: Path

    def read_files(self) -> Files:
        """Return the files, each of which must lie in the folder and have its sha256."""
        return {path: self._read(path, digest) for path, digest in self.facts["files"].items()}

    def _read(self, name: str, digest: str) -> bytes:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"{name!r} is not a file of the folder")
        try:
            content = read_regular(self.data.parent, f"{self.data.name}/{name}")
        except OSError as error:
            raise ValueError(f"{name} cannot be read ({error.strerror})") from error
        if sha256_of(content) != digest:
            raise ValueError(f"the sha256 of {name} is {sha256_of(content)}, expected {digest}")
        return content


def read_folder(folder: Path, name: str, read: Callable[[SealedFolder], T]) -> T:
    """Return what a reader makes of a folder; it is called again where a writer replaced it meanwhile."""
    path = folder / name

    def parse(content: bytes) -> T:
        with reading(str(path)):
            facts = parse_sealed(content)
            data = str(facts["data"])
            if not _DATA.fullmatch(data):
                raise ValueError(f"data must be the name of a subfolder, got {data!r}")
        return read(SealedFolder(facts, sha256_of(content), folder / data))

    return read_settled(path, parse)
