"""What was audited: the lines that head every form of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localparity._version import __version__
from localparity.audit._wording import COMPARE_WORDS, CRITERION_WORDS
from localparity.counts._comparison import group_text

if TYPE_CHECKING:
    from localparity.audit._audit import Audit

_MOST_FILES = 20
_MOST_GROUPS = 6


def header_rows(audit: Audit) -> list[tuple[str, str]]:
    """The files, rows, groups, time, call and versions, each under its name.

    Examples
    --------
    >>> import localparity as lp
    >>> found = lp.audit(None, [0.1, 0.9], sensitive_features=["a", "b"], n_resamples=0)
    >>> header_rows(found)[:2]
    [('Rows compared', '2'), ('Groups', '2: a, b')]
    """
    found = audit.provenance
    files = () if found is None else found.files
    rows = [("File" if len(files) == 1 else f"File {i}", file.name) for i, file in enumerate(files, 1)]
    names = list(dict.fromkeys(group_text(group.group) for group in audit.groups))
    more = f" and {len(names) - _MOST_GROUPS:,} more" if len(names) > _MOST_GROUPS else ""
    rows = rows[:_MOST_FILES]
    rows += [
        ("Rows compared", f"{audit.rows:,}"),
        ("Groups", f"{len(names):,}: {', '.join(names[:_MOST_GROUPS])}{more}"),
        ("People compared", CRITERION_WORDS[audit.comparison.criterion]),
        ("Pairs compared", COMPARE_WORDS[audit.comparison.compare]),
    ]
    left_out = [f"{left}." for left in audit.left_out] + list(audit.missing.sentences)
    if left_out:
        rows.append(("Left out", " ".join(left_out)))
    if found is not None:
        columns = [(use, [name] if isinstance(name, str) else name) for use, name in found.columns.items()]
        rows.append(("Columns", "; ".join(f"{use} {', '.join(names)}" for use, names in columns)))
        rows += [("Date", found.date), ("Call", found.call)]
        rows += [(f"sha256 of {file.name}", file.sha256 or "unknown") for file in files[:_MOST_FILES]]
    seed = None if found is None else found.seed
    version = __version__ if found is None else found.version
    return [
        *rows,
        ("Resamples", f"{audit.n_resamples:,}" + ("" if seed is None else f", seed {seed}")),
        ("Version", f"localparity {version}" + ("" if found is None else f", Python {found.python}")),
    ]


def header_line(audit: Audit, *, checksum: bool = True) -> str:
    """The same on one line, for a terminal."""
    found = audit.provenance
    parts = [f"{audit.rows:,} rows"]
    if found is not None:
        if checksum and len(found.files) == 1 and found.files[0].sha256 is not None:
            parts.append(f"sha256 {found.files[0].sha256}")
        parts.append(found.date)
    seed = "" if found is None or found.seed is None else f", seed {found.seed}"
    return ", ".join([*parts, f"{audit.n_resamples:,} resamples{seed}", f"localparity {__version__}"])
