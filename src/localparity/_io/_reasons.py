"""DuckDB's long messages about files, as one line."""

from __future__ import annotations

import re

_ADVICE = {
    "Invalid unicode": "pass its encoding, e.g. encoding='latin-1'",
    "requires the extension": "pass allow_remote=True to let DuckDB install it",
    "state machine": "do all of its lines end alike, and are its quotes closed?",
}


def first_reason(message: str) -> str:
    """The line number and the reason in one of DuckDB's long messages, as one line."""
    lines = [line.strip() for line in message.splitlines()]
    reason = re.sub(r"^[A-Za-z ]+ Error: ", "", lines[0])
    at_line = re.search(r"CSV Error on Line: (\d+)", reason)
    if at_line:
        reasons = (line for line in lines[1:] if line and not line.startswith("Original Line"))
        reason = f"line {at_line.group(1)}: {next(reasons, 'malformed')}"
    # DuckDB counts the rows before the malformed one, and two more.
    in_row = re.search(
        r"^Malformed JSON in file .*, at byte (\d+) in (?:line|record/value) (\d+): (.*?)\.", reason
    )
    if in_row:
        return f"data row {int(in_row.group(2)) - 1}: {in_row.group(3)} at its byte {in_row.group(1)}"
    for sign, advice in _ADVICE.items():
        if sign in reason:
            return f"{reason.rstrip('.')}; {advice}"
    return reason
