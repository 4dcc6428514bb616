"""Files from a local folder, from the cache, or downloaded from their original source; always checked."""

from __future__ import annotations

import io
import os
import urllib.request
import zipfile
from dataclasses import dataclass
from http.client import HTTPException
from os import PathLike
from pathlib import Path

from localparity._io._files import sha256_of, write_whole

_TIMEOUT = 60.0


@dataclass(frozen=True)
class RemoteFile:
    """A file by its path inside a data folder, its source, its sha256, and its name in a zip archive."""

    name: str
    url: str
    sha256: str
    member: str | None = None


def read_bytes(
    file: RemoteFile, *, cache: bool = True, data_home: str | PathLike[str] | None = None
) -> bytes:
    """Read a file from LOCALPARITY_DATA, else from the cache, else from its source, and check its sha256."""
    folder = os.environ.get("LOCALPARITY_DATA")
    cached = cache_folder(data_home) / file.name
    for path in ([Path(folder) / file.name] if folder else []) + [cached]:
        if path.is_file():
            content = path.read_bytes()
            _check(content, file, str(path), "delete it to download it again")
            return content
    content = _download(file)
    _check(content, file, file.url, "nothing was kept")
    if cache:
        write_whole(cached, content)
    return content


def cache_folder(data_home: str | PathLike[str] | None = None) -> Path:
    """The folder that downloads are kept in."""
    if data_home is not None:
        return Path(data_home)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "localparity"


def _download(file: RemoteFile) -> bytes:
    try:
        with urllib.request.urlopen(file.url, timeout=_TIMEOUT) as response:
            content: bytes = response.read()
        if file.member is None:
            return content
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.read(file.member)
    except (OSError, HTTPException, zipfile.BadZipFile, KeyError) as error:
        raise OSError(
            f"{file.name} could not be downloaded from {file.url}: {error}; nothing was kept. "
            "To work offline, put the file into a folder and set LOCALPARITY_DATA to that folder"
        ) from error


def _check(content: bytes, file: RemoteFile, source: str, remedy: str) -> None:
    digest = sha256_of(content)
    if digest != file.sha256:
        raise OSError(f"{source} must have sha256 {file.sha256} to be {file.name}, got {digest}; {remedy}")
