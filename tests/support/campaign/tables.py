"""Files of scores that are odd, wrong or damaged, and what a slow reader of another making finds in them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import random
import zlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

Rows = list[dict[str, str]]

ODD_GROUPS = (
    "f",
    "m",
    "other",
    "ä",
    "x y",
    'q"q',
    "a,b",
    "0",
    "1",
    "NULL",
    "=1+1",
    "[b]",
    "",
    " ",
    "nan",
    "\u202e",
)
ODD_SCORES = (
    *(
        "0",
        "1",
        "0.5",
        ".5",
        "5e-1",
        "1e-320",
        "-0.0",
        "0.50",
        "+0.5",
        "1.0000000000000002",
        "2",
        "-1",
        "nan",
        "inf",
    ),
    *(
        "",
        " ",
        "NA",
        "1e999",
        "0,5",
        "½",
        "0x1p-1",
        "1_0",
        "true",
        "None",
        "0.5 ",
        " 0.5",
        "9" * 400,
        "'0.5",
        "1/2",
    ),
)


def valid_rows(rng: random.Random) -> Rows:
    """Rows of two groups or three, with scores of up to three decimals."""
    groups = ("f", "m", "other")[: rng.choice((2, 2, 3))]
    return [
        {"p": f"{rng.random():.{rng.choice((1, 2, 3))}f}", "sex": rng.choice(groups), "y": rng.choice("01")}
        for _ in range(rng.choice((4, 24, 60)))
    ]


def as_csv(rows: Rows, rng: random.Random) -> bytes:
    """Rows as CSV in one of its dialects."""
    stream = io.StringIO()
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    end = rng.choice(("\n", "\n", "\r\n"))
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator=end, quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    text = stream.getvalue()
    if rng.random() < 0.2:
        text = text.removesuffix(end)
    return rng.choice((b"", b"", b"\xef\xbb\xbf")) + text.encode()


def as_lines(rows: Rows, rng: random.Random) -> bytes:
    """Rows as JSON lines; numbers as numbers or as texts."""
    number: Callable[[str], object] = rng.choice((str, _number))
    return "\n".join(json.dumps({**row, "p": number(row["p"])}) for row in rows).encode()


def as_array(rows: Rows, rng: random.Random) -> bytes:
    """Rows as a JSON array."""
    return json.dumps(
        [{**row, "p": _number(row["p"])} for row in rows], indent=rng.choice((None, 1))
    ).encode()


def _number(text: str) -> object:
    try:
        found = float(text)
    except ValueError:
        return text
    return found if math.isfinite(found) else text


FORMS = {".csv": as_csv, ".jsonl": as_lines, ".json": as_array}


def spoil_rows(rows: Rows, rng: random.Random) -> None:
    """Put odd values into some places."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        row = rng.choice(rows)
        column = rng.choice(("p", "sex", "y"))
        row[column] = rng.choice(
            {"p": ODD_SCORES, "sex": ODD_GROUPS, "y": (*"01", "2", "", "yes", "1.0")}[column]
        )


def spoil_bytes(content: bytes, rng: random.Random) -> bytes:
    """Change, cut, double or put in some bytes."""
    spoilt = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(spoilt) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(spoilt):
            spoilt[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del spoilt[at : at + rng.choice((1, 3, 40))]
        elif kind == 2:
            spoilt[at:at] = spoilt[at : at + rng.choice((1, 8, 64))]
        elif kind == 3:
            spoilt[at:at] = rng.choice(
                (b'"', b",", b"\n", b"\r", b"\x00", b"\xff", b"{", b"]", b"  ", b"#", b";")
            )
        elif kind == 4:
            del spoilt[at:]
    return bytes(spoilt)


def make_table(folder: Path, rng: random.Random) -> Path:
    """Write a table and return its path: as it should be, with odd values, or with damaged bytes."""
    rows, kind = valid_rows(rng), rng.choice(tuple(FORMS))
    if rng.random() < 0.5:
        spoil_rows(rows, rng)
    content = FORMS[kind](rows, rng)
    if rng.random() < 0.5:
        content = spoil_bytes(content, rng)
    packed = rng.random() < 0.1
    path = folder / f"table{kind}{'.gz' if packed else ''}"
    if packed:
        content = gzip.compress(content)
        content = spoil_bytes(content, rng) if rng.random() < 0.5 else content
    path.write_bytes(content)
    return path


def slow_mcdp(path: Path) -> float | None:
    """The largest gap between two groups' distributions in a file; None where the file is not plainly right."""
    try:
        rows = _slow_rows(path)
    except (ValueError, KeyError, TypeError, EOFError, OSError, csv.Error, zlib.error):
        return None
    by_group: dict[object, list[float]] = defaultdict(list)
    for score, group in rows:
        if not 0.0 <= score <= 1.0 or not isinstance(group, str) or not group.strip():
            return None
        by_group[group].append(score)
    if len(by_group) < 2:
        return None
    scores = sorted({score for own in by_group.values() for score in own})
    shares = [
        [sum(other <= score for other in own) / len(own) for score in scores] for own in by_group.values()
    ]
    return max(
        abs(a - b) for first in shares for second in shares for a, b in zip(first, second, strict=True)
    )


def _slow_rows(path: Path) -> list[tuple[float, object]]:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content, path = gzip.decompress(content), path.with_suffix("")
    text = content.decode().removeprefix("\ufeff")
    if path.suffix == ".csv":
        header, *rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
        if len(set(header)) < len(header) or any(len(row) != len(header) for row in rows):
            raise ValueError("rows of other lengths")
        return [(_slow_number(row[header.index("p")]), row[header.index("sex")]) for row in rows]
    found = (
        json.loads(text)
        if path.suffix == ".json"
        else [json.loads(line) for line in text.split("\n") if line.strip()]
    )
    return [(_slow_number(row["p"]), row["sex"]) for row in found]


def _slow_number(value: object) -> float:
    """A number, or true and false as 1 and 0."""
    text = str(value).strip().lower()
    return float({"true": "1", "false": "0"}.get(text, text))
