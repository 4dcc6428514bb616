"""Where an audit's numbers come from: the files, the call, the time and the versions."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from localparity._io._duckdb import connect, remote_among
from localparity._io._files import sha256_of
from localparity._io._table import as_table, unfit_features
from localparity._text import shown_address
from localparity._types import ScoreRange
from localparity._version import __version__
from localparity.auditing._files import range_in_table
from localparity.auditing._options import AuditOptions

_SOURCE_DATE = "SOURCE_DATE_EPOCH"
_MOST_FILES = 5


@dataclass(frozen=True)
class SourceFile:
    """A file that was read.

    Attributes
    ----------
    name : str
        Its path, as it was given.
    sha256 : str or None
        The checksum of its bytes; None for one that is not on this machine.

    Examples
    --------
    >>> import localparity as lp
    >>> lp.results.SourceFile("s3://bucket/scores.parquet", None).sha256 is None
    True
    """

    name: str
    sha256: str | None


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where an audit comes from. `Audit.read` and the command make one.

    Attributes
    ----------
    call : str
        The command, or the call in Python, that made the audit.
    date : str
        When it was made, in UTC; `SOURCE_DATE_EPOCH` in the environment, in seconds since 1970, takes the
        place of the clock.
    files : tuple of SourceFile
        The files that were read, with their checksums; none for arrays, queries and tables of an engine.
    columns : dict
        The columns that were read, by their use: a name, of the groups a list of names.
    seed : int or None
        The seed of the resamples, where there was one.
    version, python : str
        The versions of localparity and of Python.

    Examples
    --------
    An audit of arrays has none, unless it is given one:

    >>> import dataclasses
    >>> import localparity as lp
    >>> found = lp.audit(None, [0.1, 0.9], sensitive_features=["a", "b"], n_resamples=0)
    >>> found.provenance is None
    True
    >>> provenance = lp.results.Provenance.now("scores of 2026, as arrays", columns={"group": "sex"})
    >>> dataclasses.replace(found, provenance=provenance).provenance.call
    'scores of 2026, as arrays'
    """

    call: str
    date: str
    files: tuple[SourceFile, ...] = ()
    columns: Mapping[str, str | list[str]] = field(default_factory=dict)
    seed: int | None = None
    version: str = field(default_factory=lambda: __version__)
    python: str = field(default_factory=platform.python_version)

    @classmethod
    def now(
        cls,
        call: str,
        *,
        source: Any = None,
        columns: Mapping[str, str | Sequence[str] | None] | None = None,
        seed: Any = None,
    ) -> Provenance:
        """Return the provenance of an audit that is made now.

        Parameters
        ----------
        call : str
            What was called.
        source : path, sequence of paths, or anything else
            What was read. Files are named with their checksums, anything else is not.
        columns : mapping, optional
            The column, or columns, of each use; None for a use that has none.
        seed : optional
            The seed, kept if it is a whole number.

        Returns
        -------
        Provenance
        """
        named = {use: name for use, name in (columns or {}).items() if name}
        groups = named.pop("group", ())
        return cls(
            call=call,
            date=_date(),
            files=tuple(_files(source)),
            columns={
                **{use: str(name) for use, name in named.items()},
                **({"group": [groups] if isinstance(groups, str) else list(groups)} if groups else {}),
            },
            seed=seed if isinstance(seed, int) else None,
        )


@dataclass(frozen=True, kw_only=True)
class AuditedFile:
    """What a command that goes on from an audit has to know of the files that were read."""

    paths: tuple[str, ...]
    reading: Mapping[str, Any] = field(default_factory=dict)
    missing: Mapping[str, Any] = field(default_factory=dict)
    score_range: ScoreRange = (0.0, 1.0)
    features: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: Any, provenance: Provenance, options: AuditOptions) -> AuditedFile | None:
        """What is known of a source; None where it is not a few files on this machine."""
        paths = tuple(file.name for file in provenance.files if file.sha256 is not None)
        if not 0 < len(paths) == len(provenance.files) <= _MOST_FILES:
            return None
        table, columns = as_table(source), provenance.columns
        score_range: ScoreRange = (0.0, 1.0)
        if "score" in columns:
            score_range = range_in_table(table, str(columns["score"]), options)
        used = {name for use in columns.values() for name in ([use] if isinstance(use, str) else use)}
        rest, target = [name for name in table.columns if name not in used], target_of(columns)
        missing = {"missing_groups": options.missing_groups, "missing_values": options.policy.texts}
        missing |= {"missing": options.missing}
        unfit = dict.fromkeys(rest, "")
        if target is not None and len(paths) == 1:
            with suppress(ValueError):  # as where two columns have one name
                unfit = unfit_features(table, rest, target)
        return cls(
            paths=paths,
            reading=table.options,
            missing={name: value for name, value in missing.items() if value not in ("raise", ())},
            score_range=score_range,
            features=tuple(name for name in rest if name not in unfit),
            others=tuple(unfit),
        )


def target_of(columns: Mapping[str, Any]) -> str | None:
    """The column of the classes, of provenance's."""
    target: str | None = columns.get("target", columns.get("label"))
    return target


def call_text(name: str, source: Any, options: Mapping[str, Any]) -> str:
    """A call as one would write it, without the options that are None."""
    source = fspath(source) if isinstance(source, PathLike) else getattr(source, "paths", source)
    first = _short(source)
    given = [f"{option}={_short(value)}" for option, value in options.items() if value is not None]
    return f"{name}({', '.join([first, *given])})"


def _short(value: Any) -> str:
    """A value as it is written in code, or the name of its type where that is none of a line."""
    if isinstance(value, list | tuple):
        paths = [fspath(each) if isinstance(each, PathLike) else each for each in value]
        return repr([shown_address(each) if isinstance(each, str) else each for each in paths])
    if isinstance(value, str):
        return repr(shown_address(value))
    return repr(value) if isinstance(value, int | float) else f"<{type(value).__name__}>"


def _date() -> str:
    """The time now, or the one that the environment says, to the second."""
    fixed = os.environ.get(_SOURCE_DATE)
    try:
        date = datetime.now(UTC) if fixed is None else datetime.fromtimestamp(int(fixed), UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{_SOURCE_DATE} must be a number of seconds since 1970, got {fixed!r}") from None
    return date.strftime("%Y-%m-%dT%H:%M:%SZ")


def _files(source: Any) -> Iterable[SourceFile]:
    """The files that a source names, those of a glob one by one; a query names none."""
    paths = [source] if isinstance(source, str | PathLike) else getattr(source, "paths", source)
    if not isinstance(paths, list | tuple):
        return
    for path in map(fspath, paths):
        if remote_among([path]):
            yield SourceFile(shown_address(path), None)
        else:
            found = [path] if Path(path).is_file() else _matching(path)
            yield from (SourceFile(name, sha256_of(Path(name))) for name in found)


def _matching(pattern: str) -> list[str]:
    """The files that a glob stands for, as they are read."""
    if not re.search(r"[*?\[]", pattern) or "\n" in pattern:
        return []
    found = connect().execute("SELECT file FROM glob(?) ORDER BY file", [pattern]).fetchall()
    return [name for (name,) in found if Path(name).is_file()]
