"""A message names the cell that is wrong; the other cells of the row belong to a person and stay out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from typed_commands import run

PERSON = "Jane Doe"
GOOD = "".join(f"{name},0.{i}5,{'fm'[i % 2]}\n" for i, name in enumerate(10 * [PERSON]))
JSON = "".join(f'{{"name": "{PERSON}", "p": 0.{i}5, "sex": "{"fm"[i % 2]}"}}\n' for i in range(10))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("score.csv", f"name,p,sex\n{GOOD}{PERSON},high,f\n"),
        ("range.csv", f"name,p,sex\n{GOOD}{PERSON},7,f\n"),
        ("fields.csv", f"name,p,sex\n{GOOD}{PERSON},0.5,f,and,more\n"),
        ("few.csv", f"name,p,sex\n{GOOD}{PERSON},0.5\n"),
        ("quote.csv", f'name,p,sex\n{GOOD}{PERSON},0.5,"f\n'),
        ("rows.csv", f'name,p,sex\n{GOOD}x,"high\n{GOOD}",f\n'),
        ("group.csv", f"name,p,sex\n{GOOD}{PERSON},0.5,\n"),
        ("bytes.csv", f"name,p,sex\n{GOOD}{PERSON}\0,0.5,\x01\n"),
        ("cut.jsonl", JSON + f'{{"name": "{PERSON}", "p": 0.'),
        ("text.jsonl", JSON + f'{{"name": "{PERSON}", "p": "high", "sex": "f"}}\n'),
        ("list.jsonl", JSON + f'["{PERSON}", 0.5, "f"]\n'),
    ],
)
def test_the_rest_of_a_row_is_not_in_the_message(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    done = run("audit", path, "--score", "p", "--group", "sex", "--min-group-size", 1)
    assert PERSON not in done.stdout + done.stderr
    if name != "bytes.csv":
        assert done.returncode == 2, done.stdout
        assert done.stderr.count("\n") == 1
    appended = run("monitor", "append", tmp_path / "kept", path, "--score", "p", "--group", "sex")
    assert PERSON not in appended.stdout + appended.stderr


def test_features_that_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = "".join(f"{PERSON},{i},{'fm'[i % 2]},{i % 3 % 2}\n" for i in range(60))
    path.write_text(f"name,age,sex,income\n{rows}{PERSON},old,f,1\n")
    named = ["--target", "income", "--group", "sex", "--drop", "name"]
    done = run("train", path, *named, "--out", tmp_path / "model")
    assert done.returncode == 2
    assert "'old'" in done.stderr
    assert PERSON not in done.stderr
