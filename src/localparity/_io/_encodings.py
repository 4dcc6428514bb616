"""Text files that are not UTF-8, copied to ones that are."""

from __future__ import annotations

import codecs
import gzip
import tempfile
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO
from weakref import finalize

_READ = 2**20
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def as_encoding(encoding: str | None) -> str | None:
    """The name of an encoding of texts, as Python calls it; None for UTF-8.

    Examples
    --------
    >>> as_encoding("Latin1"), as_encoding("UTF8")
    ('iso8859-1', None)
    """
    if encoding is None:
        return None
    try:
        name = codecs.lookup(encoding).name
        "".encode(encoding)  # which a codec of another kind, such as base64, refuses
    except (LookupError, TypeError, ValueError):
        raise ValueError(
            f"encoding must be the name of an encoding, such as 'latin-1', got {encoding!r}"
        ) from None
    return None if name in ("utf-8", "utf-8-sig", "ascii") else name


class Transcoded:
    """Copies of text files in UTF-8, which nobody else can read and which go when this object does."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def copy(self, file: str, encoding: str | None) -> str:
        """The path of a file's copy; of the file itself where it is UTF-8, or not on this machine."""
        if not Path(file).is_file():
            return file
        encoding = encoding or _marked(file)
        if encoding is None:
            return file
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="localparity-"))
            finalize(self, rmtree, self._folder, ignore_errors=True)
        path = self._folder / f"{len(list(self._folder.iterdir()))}.{Path(file).name.removesuffix('.gz')}"
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            with _opened(file) as source, path.open("w", encoding="utf-8", newline="") as copy:
                while read := source.read(_READ):
                    copy.write(decoder.decode(read))
                copy.write(decoder.decode(b"", final=True))
        except UnicodeError as error:
            raise ValueError(f"{file} cannot be read as {encoding}: {error}") from error
        return str(path)


def _marked(file: str) -> str | None:
    """The encoding that the first bytes of a file tell: a mark, or zeros in every other byte of ASCII."""
    with _opened(file) as stream:
        first = stream.read(64)
    for mark, encoding in _MARKS.items():
        if first.startswith(mark):
            return encoding
    for start, encoding in enumerate(("utf-16-be", "utf-16-le")):
        if len(first) > 3 and not any(first[start::2]) and all(first[1 - start :: 2]):
            return encoding
    return None


def _opened(file: str) -> gzip.GzipFile | BinaryIO:
    return gzip.open(file) if file.lower().endswith(".gz") else Path(file).open("rb")
