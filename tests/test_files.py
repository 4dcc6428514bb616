"""Files are written whole or not at all, and as readable as their neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from localparity._files import write_whole


def test_a_file_is_as_readable_as_any_new_one(tmp_path: Path) -> None:
    write_whole(tmp_path / "written", b"content")
    (tmp_path / "neighbour").write_bytes(b"content")
    assert (tmp_path / "written").stat().st_mode == (tmp_path / "neighbour").stat().st_mode


def test_what_cannot_be_put_in_its_place_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_whole(tmp_path / "taken", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
