"""Columns of a host's data, by their names."""

from __future__ import annotations

from typing import Any

from localparity._validation import InputError


def named_columns(given: Any, data: Any, option: str) -> Any:
    """The column of `data` that is named, those of a list of names, or else what was given: an array.

    Examples
    --------
    >>> import pandas as pd
    >>> data = pd.DataFrame({"sex": ["f", "m"], "age": [30, 40]})
    >>> named_columns("sex", data, "sensitive_features").tolist()
    ['f', 'm']
    >>> named_columns(["sex", "age"], data, "sensitive_features").shape
    (2, 2)
    >>> named_columns([0, 1], data, "sensitive_features")
    [0, 1]
    """
    columns = [str(column) for column in getattr(data, "columns", ())]
    if isinstance(given, str):
        if given not in columns:
            known = f"; its columns are {', '.join(columns)}" if columns else ", which has no names"
            raise InputError(f"must be a column of the data, got {given!r}{known}", option)
        return data[given]
    if isinstance(given, list | tuple) and given and all(name in columns for name in given):
        return data[list(given)]
    return given
