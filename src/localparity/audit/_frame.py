"""The pairs of an audit as a data frame, of pandas or of the library whose frames were audited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from localparity._validation import require
from localparity.audit._document import pair_rows
from localparity.counts._comparison import group_text

if TYPE_CHECKING:
    from localparity.audit._audit import Audit


def pair_frame(audit: Audit) -> Any:
    """All pairs at all epsilons, a row for each."""
    rows = pair_rows(audit)
    if audit.library in (None, "pandas"):
        return require("pandas", extra="data").DataFrame(rows)
    # Imported here: only those who have frames need it.
    import narwhals as nw

    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for name in ("group_a", "group_b"):
        columns[name] = _of_one_type(columns[name])
    return nw.from_dict(columns, backend=audit.library).to_native()  # type: ignore[arg-type]


def _of_one_type(groups: list[Any]) -> list[Any]:
    """Groups as they are, or their texts where a column of a frame could not hold all of them."""
    kinds = {type(group) for group in groups}
    return groups if len(kinds) == 1 and kinds <= {str, int, float, bool} else list(map(group_text, groups))
