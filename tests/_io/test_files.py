"""Files are written whole or not at all, and as readable as their neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from localparity._io._files import damage_of, parse_json, write_whole


def test_a_file_is_as_readable_as_any_new_one(tmp_path: Path) -> None:
    write_whole(tmp_path / "written", b"content")
    (tmp_path / "neighbour").write_bytes(b"content")
    assert (tmp_path / "written").stat().st_mode == (tmp_path / "neighbour").stat().st_mode


def test_what_cannot_be_put_in_its_place_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_whole(tmp_path / "taken", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_what_breaks_on_the_content_names_the_file() -> None:
    for broken, message in (
        (lambda: {}["k"], "a.json is damaged: 'k' is missing"),
        (lambda: [][0], "a.json is damaged: list index out of range"),
        (lambda: parse_json(b"nothing"), "a.json is damaged: Expecting value"),
        (lambda: parse_json(b"3"), "a.json is damaged: JSON of a int where an object is expected"),
        (lambda: parse_json(b"[" * 50_000), "a.json is damaged: JSON that is nested too deep"),
    ):
        with pytest.raises(ValueError, match=message), damage_of("a.json"):
            broken()
    with pytest.raises(ValueError, match=r"^a.json has format 2"), damage_of("a.json"):
        raise ValueError("a.json has format 2")
    with pytest.raises(OSError, match="gone"), damage_of("a.json"):
        raise OSError("gone")
