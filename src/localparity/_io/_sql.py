"""SQL: names and texts in it, and what comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def quote_name(name: str) -> str:
    """A column name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A text as a quoted SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def text_of(name: str) -> str:
    """A column as texts."""
    return f"CAST({quote_name(name)} AS VARCHAR)"


def with_none(column: NDArray[Any]) -> NDArray[Any]:
    """A fetched column with None for missing values."""
    if not np.ma.is_masked(column):
        return np.asarray(np.ma.getdata(column))
    values = np.ma.getdata(column).astype(object)
    values[np.ma.getmaskarray(column)] = None
    return values
