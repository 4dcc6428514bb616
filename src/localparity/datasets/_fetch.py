"""Files from their original source: from a folder at hand, from the cache, or downloaded and checked."""

from __future__ import annotations

import hashlib
import io
import os
import urllib.request
import zipfile
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from localparity._io._files import write_whole

_TIMEOUT = 60.0


@dataclass(frozen=True)
class RemoteFile:
    """A file, where it comes from, and the checksum that says it is the one.

    Parameters
    ----------
    name : str
        Where it lies inside a data folder, such as "adult/adult.data".
    url : str
        Where it is downloaded from.
    sha256 : str
        The checksum of the file itself.
    member : str, optional
        What it is called inside the zip archive that `url` gives.

    Examples
    --------
    >>> RemoteFile("adult/adult.data", "https://example.org/adult.data", "5b00").member is None
    True
    """

    name: str
    url: str
    sha256: str
    member: str | None = None


def read_bytes(file: RemoteFile, *, cache: bool = True, data_home: Any = None) -> bytes:
    """The file's bytes, checked: from LOCALPARITY_DATA, else from the cache, else from its source.

    Parameters
    ----------
    file : RemoteFile
        What to read.
    cache : bool
        Whether a download is kept for the next time.
    data_home : path, optional
        The cache folder, in place of the user's own.

    Returns
    -------
    bytes
        The whole file; its sha256 is the expected one.
    """
    folder = os.environ.get("LOCALPARITY_DATA")
    cached = cache_folder(data_home) / file.name
    for path in ([Path(folder) / file.name] if folder else []) + [cached]:
        if path.is_file():
            content = path.read_bytes()
            _check(content, file, str(path), "delete it to have it downloaded again")
            return content
    content = _download(file)
    _check(content, file, file.url, "nothing was kept")
    if cache:
        write_whole(cached, content)
    return content


def cache_folder(data_home: Any = None) -> Path:
    """Where downloads are kept.

    Examples
    --------
    >>> cache_folder("somewhere").name
    'somewhere'
    """
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
            "Put the file into a folder and name that folder in LOCALPARITY_DATA to do without a download"
        ) from error


def _check(content: bytes, file: RemoteFile, source: str, remedy: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise OSError(
            f"{source} is not the expected {file.name}: its sha256 is {found} "
            f"where {file.sha256} is expected; {remedy}"
        )
