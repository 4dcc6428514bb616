"""Files are written whole or not at all, locked, and named when damaged."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localparity._io._files import (
    check_format,
    locked_folder,
    parse_json,
    parse_sealed,
    reading,
    seal_json,
    sha256_of,
    write_whole,
)
from localparity._validation import InputError


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_the_owner_alone_reads_a_file_unless_the_file_or_its_folder_says_otherwise(tmp_path: Path) -> None:
    def written(path: Path) -> int:
        write_whole(path, b"content")
        return path.stat().st_mode & 0o777

    before = os.umask(0o022)
    try:
        assert written(tmp_path / "scores") == 0o600
        (tmp_path / "scores").chmod(0o664)
        assert written(tmp_path / "scores") == 0o664
        (tmp_path / "shared").mkdir()
        (tmp_path / "shared").chmod(0o2775)
        assert written(tmp_path / "shared" / "scores") == 0o640
    finally:
        os.umask(before)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_whole(tmp_path / "taken", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_durable_write_reaches_the_disk_also_where_folders_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    opened = os.open
    monkeypatch.setattr(os, "fsync", synced.append)
    write_whole(tmp_path / "file", b"1")
    assert len(synced) == 0
    write_whole(tmp_path / "file", b"2", durable=True)
    assert len(synced) == 2

    def refuse(path: Any, flags: int, mode: int | None = None) -> int:
        if mode is None:
            raise PermissionError("a folder")
        return opened(path, flags, mode)

    with monkeypatch.context() as patch:
        patch.setattr("localparity._io._files.os.open", refuse)
        write_whole(tmp_path / "file", b"3", durable=True)
    assert len(synced) == 3
    assert (tmp_path / "file").read_bytes() == b"3"


WRITE = """
import sys, time
from pathlib import Path
from localparity._io._files import replacing
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_bytes(b"half")
    print("half", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_writer_left_is_removed_and_what_another_writes_is_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
    assert len(list(tmp_path.iterdir())) == 2
    killed, other = writers
    killed.kill()
    killed.communicate()
    (tmp_path / ".file.own").write_bytes(b"a user's")
    write_whole(path, b"whole")
    assert len(list(tmp_path.iterdir())) == 3
    other.kill()
    other.communicate()
    write_whole(path, b"whole")
    assert sorted(each.name for each in tmp_path.iterdir()) == [".file.own", "file"]
    assert path.read_bytes() == b"whole"


MANY = """
import sys
from pathlib import Path
from localparity._io._files import write_whole
for _ in range(200):
    write_whole(Path(sys.argv[1]), b"whole")
"""


def test_writers_of_one_file_do_not_take_each_others_for_stale(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MANY, str(tmp_path / "file")]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [writer.communicate()[1] for writer in writers] == [""] * 3
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


HOLD = """
import sys, time
from pathlib import Path
from localparity._io._files import locked_folder
with locked_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_is_held_by_one_process_and_ends_with_it(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(folder)
    process.kill()
    process.communicate()
    for _ in range(2):
        with locked_folder(tmp_path):
            pass


def test_the_checksum_of_bytes_and_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert sha256_of(tmp_path / "file") == sha256_of(b"content") == hashlib.sha256(b"content").hexdigest()


def test_errors_in_the_content_name_the_file() -> None:
    for broken, message in (
        (lambda: {}["k"], "a.json is damaged: 'k' is missing"),
        (lambda: [][0], "a.json is damaged: list index out of range"),
        (lambda: parse_json(b"nothing"), "a.json is damaged: Expecting value"),
        (lambda: parse_json(b"3"), r"a.json is damaged: .*object.* int"),
        (lambda: parse_json(b"[" * 50_000), "a.json is damaged: .*nested"),
    ):
        with pytest.raises(ValueError, match=message), reading("a.json"):
            broken()
    with pytest.raises(ValueError, match=r"^a.json has format 2"), reading("a.json"):
        raise InputError("has format 2", file="a.json")
    with pytest.raises(OSError, match="gone"), reading("a.json"):
        raise OSError("gone")


def test_a_changed_value_breaks_the_seal() -> None:
    sealed = seal_json({"epsilon": 0.1})
    assert parse_sealed(sealed) == {"epsilon": 0.1}
    assert parse_sealed(b'{"epsilon": 0.1}') == {"epsilon": 0.1}  # as earlier versions wrote it
    with pytest.raises(InputError, match="do not match their sha256"):
        parse_sealed(sealed.replace(b"0.1", b"0.2"))


def test_another_format_is_refused_with_advice() -> None:
    check_format(3, 3, "model.json", advice="train the model again")
    for found, message in (
        (
            7,
            "^model.json was written by a newer localparity, in format 7; this version reads format 3: update it",
        ),
        (2, "^model.json was written by localparity 0.1, in format 2; .*: train the model again"),
        ("3", "^model.json is damaged: its format must be a whole number, got '3'"),
    ):
        with pytest.raises(InputError, match=message):
            check_format(found, 3, "model.json", advice="train the model again")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "page.html", tmp_path / "page.html"
    link.symlink_to(target)
    for content in (b"new", b"newer"):
        write_whole(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["page.html", "page.html", "real"]


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(OSError, match="Not a regular file"):
            write_whole(path, b"new")
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")
def test_a_lock_that_cannot_be_had_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match=r"cannot be locked: No locks available.*/\.a\.txt\."):
        write_whole(tmp_path / "a.txt", b"content")
    assert not list(tmp_path.iterdir())
