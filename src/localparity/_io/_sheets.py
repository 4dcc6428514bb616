"""Sheets of workbooks, as Excel and LibreOffice write them: their columns as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._validation import require, unknown_name

SHEETS = ("xlsx", "xlsm", "xls", "ods")
"""The endings of workbooks."""


def read_sheet(file: str, sheet: str | None) -> tuple[list[str], list[NDArray[Any]]]:
    """The names of a sheet's columns and their values, None where missing; the only sheet, or the named one.

    Rows without any value are left out, above the names and below them.
    """
    calamine = require("python_calamine", extra="excel")
    try:
        workbook = calamine.load_workbook(file)
        name = _sheet_name(file, workbook, sheet)
        cells = workbook.get_sheet_by_name(name).to_python()
    except calamine.CalamineError as error:
        raise ValueError(f"{file} cannot be read: {error}") from error
    rows = [row for row in cells if any(value not in ("", None) for value in row)]
    if len(rows) < 2:
        raise ValueError(f"{file} has no rows in sheet {name!r}" if rows else f"{file} is empty")
    header, *rows = rows
    names = [str(value).strip() or f"column{place}" for place, value in enumerate(header)]
    return names, [_column(values) for values in zip(*rows, strict=True)]


def _sheet_name(file: str, workbook: Any, sheet: str | None) -> str:
    names: list[str] = workbook.sheet_names
    if sheet is None:
        filled = [name for name in names if workbook.get_sheet_by_name(name).total_height > 0] or names
        if len(filled) > 1:
            listed = ", ".join(map(repr, filled))
            raise ValueError(f"{file} has the sheets {listed}; name one, e.g. sheet={filled[0]!r}")
        return filled[0]
    if sheet not in names:
        raise unknown_name(f"sheet in {file} named", sheet, names)
    return sheet


def _column(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers as numbers, whole ones as such, and everything else as texts."""
    given = [value for value in values if value not in ("", None)]
    kinds = {type(value) for value in given}
    if kinds and kinds <= {int, float}:
        missing = [value in ("", None) for value in values]
        whole = all(float(value).is_integer() and abs(value) < 2**53 for value in given)
        dtype = np.int64 if whole else np.float64
        found = np.array([0 if empty else value for value, empty in zip(values, missing, strict=True)], dtype)
        return np.ma.array(found, mask=missing)
    return np.array([None if value in ("", None) else _text(value) for value in values], dtype=object)


def _text(value: Any) -> str:
    """A value as its sheet shows it, without a decimal point where it is whole."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)
