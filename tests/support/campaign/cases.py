"""A case by its number: what is typed, and what is wrong with how it ended."""

from __future__ import annotations

import json
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from campaign.arguments import make_words
from campaign.tables import make_table, slow_mcdp, spoil_bytes

_KEPT = (
    "model/model.json",
    "model/data-*/*",
    "store/store.json",
    "store/runs/*.json",
    "store/runs/*.parquet",
    "monitor/*",
)


@dataclass(frozen=True)
class Case:
    """A command, its words, and MCDP(0) where a slow reader finds it and the command prints it."""

    name: str
    words: list[str]
    expected: float | None = None
    prints: bool = False


def make_case(number: int, inputs: Path, out: Path) -> Case:
    """Make the case of a number, and its files in `out`, which is emptied."""
    rng = random.Random(number)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    kind = rng.random()
    if kind < 0.5:
        name, words = make_words(rng)
        return Case(f"arguments of {name}", [_placed(word, inputs, out) for word in words])
    if kind < 0.9:
        return _case_of_a_table(make_table(out, rng), rng, out)
    return _case_of_a_kept_file(rng, inputs, out)


def _case_of_a_table(path: Path, rng: random.Random, out: Path) -> Case:
    command = rng.choice(("audit", "audit", "audit", "monitor", "train", "predict"))
    table = str(path)
    if command == "audit":
        words = ["audit", table, "--score", "p", "--group", "sex", "--resamples", "0", "--jobs", "1"]
        words += ["--disclosure-limit", "1", "--epsilon", "0", "--json"]
        return Case("a table for audit", words, slow_mcdp(path), prints=True)
    if command == "monitor":
        words = [
            "monitor",
            "append",
            str(out / "monitor"),
            table,
            "--score",
            "p",
            "--group",
            "sex",
            "--at",
            "2026-05-17",
        ]
        words += ["--disclosure-limit", "1", "--json"]
        return Case("a table for monitor", words)
    if command == "train":
        words = [
            "train",
            table,
            "--target",
            "y",
            "--group",
            "sex",
            "--out",
            str(out / "model"),
            "--steps",
            "2",
        ]
        return Case("a table for train", words)
    words = ["predict", str(out.parent / "in" / "scorer"), table, "--out", str(out / "scores.csv")]
    return Case("a table for predict", words)


def _case_of_a_kept_file(rng: random.Random, inputs: Path, out: Path) -> Case:
    kept = rng.choice([path for pattern in _KEPT for path in sorted(inputs.glob(pattern)) if path.is_file()])
    owner = kept.relative_to(inputs).parts[0]
    shutil.copytree(inputs / owner, out / owner)
    path = out / kept.relative_to(inputs)
    path.write_bytes(spoil_bytes(path.read_bytes(), rng))
    words = {
        "model": [
            "predict",
            str(out / "model"),
            str(inputs / "people.csv"),
            "--out",
            str(out / "scores.csv"),
        ],
        "store": ["reproduce", "tables", "--store", str(out / "store"), "--out", str(out / "tables")],
        "monitor": ["monitor", "show", str(out / "monitor"), "--json"],
    }[owner]
    return Case(f"a damaged {owner}", words)


def _placed(word: str, inputs: Path, out: Path) -> str:
    return word.replace("{in}", str(inputs)).replace("{out}", str(out))


def problem_of(case: Case, code: int, said: str) -> str:
    """What is wrong with how a case ended; empty where nothing is."""
    if "Traceback (most recent call last)" in said:
        return "a traceback"
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if code == 2 and not re.search(r"^error: .+\Z|Usage:", said.strip(), re.M):
        return "no line that says what is wrong"
    if not case.prints or code == 2:
        return ""
    try:
        found = json.loads(said[said.index("{") :])["audits"][0]["findings"][0]["mcdp"]
    except (ValueError, KeyError, IndexError):
        return "its JSON cannot be read"
    if case.expected is None:
        return "accepted, though the slow reader refuses it"
    if abs(found - case.expected) > 1e-9:
        return f"MCDP is {found}, expected {case.expected}"
    return ""
