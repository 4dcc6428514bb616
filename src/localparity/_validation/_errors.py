"""The one error about input: it knows the argument, the column, the row and the reason."""

from __future__ import annotations


class InputError(ValueError):
    """An argument or a file that cannot be used.

    Callers read its fields; nobody matches or rewrites its text.

    Parameters
    ----------
    reason : str
        What was expected and what came, as a predicate: "must be >= 0, got -1.0".
    argument : str, default=""
        The argument, by the name that the caller knows it by.
    column : str, default=""
        The column of a file or a table, which messages name in place of the argument.
    row : int or None, default=None
        The row, counted from 0.

    Examples
    --------
    >>> error = InputError("must be >= 0, got -1.0", argument="epsilon")
    >>> print(error)
    epsilon must be >= 0, got -1.0
    >>> error.argument
    'epsilon'
    """

    def __init__(self, reason: str, *, argument: str = "", column: str = "", row: int | None = None) -> None:
        self.reason, self.argument, self.column, self.row = reason, argument, column, row
        subject = f"column {column!r}" if column else argument
        super().__init__(f"{subject} {reason}".strip())
