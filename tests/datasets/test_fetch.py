"""Downloads from a server of our own: whole, truncated, altered, packed."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from localparity.datasets._fetch import RemoteFile, cache_folder, read_bytes

CONTENT = b"a,b\n1,2\n" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def packed() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("folder/table.csv", CONTENT)
    return stream.getvalue()


class Handler(BaseHTTPRequestHandler):
    requests = 0

    def do_GET(self) -> None:
        type(self).requests += 1
        content = {"/table.csv": CONTENT, "/cut.csv": CONTENT, "/table.zip": packed()}.get(self.path)
        self.send_response(200 if content else 404)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write((content or b"")[: 100 if self.path == "/cut.csv" else None])

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.delenv("LOCALPARITY_DATA", raising=False)
    Handler.requests = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


def test_a_download_is_kept_and_not_repeated(server: str, tmp_path: Path) -> None:
    file = RemoteFile("set/table.csv", f"{server}/table.csv", SHA256)
    assert read_bytes(file, data_home=tmp_path) == CONTENT
    assert read_bytes(file, data_home=tmp_path) == CONTENT
    assert Handler.requests == 1
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["table.csv"]


def test_a_download_that_is_not_kept(server: str, tmp_path: Path) -> None:
    file = RemoteFile("set/table.csv", f"{server}/table.csv", SHA256)
    assert read_bytes(file, cache=False, data_home=tmp_path) == CONTENT
    assert list(tmp_path.iterdir()) == []


def test_a_member_of_an_archive(server: str, tmp_path: Path) -> None:
    file = RemoteFile("set/table.csv", f"{server}/table.zip", SHA256, member="folder/table.csv")
    assert read_bytes(file, data_home=tmp_path) == CONTENT


@pytest.mark.parametrize(
    ("path", "member", "message"),
    [
        ("cut.csv", None, "could not be downloaded from .*cut.csv: .*; nothing was kept"),
        ("none.csv", None, "could not be downloaded .*404.*LOCALPARITY_DATA"),
        ("table.csv", "folder/table.csv", "could not be downloaded .*zip"),
        ("table.zip", "other.csv", "could not be downloaded .*other.csv"),
    ],
)
def test_a_download_that_fails(
    server: str, tmp_path: Path, path: str, member: str | None, message: str
) -> None:
    with pytest.raises(OSError, match=message):
        read_bytes(RemoteFile("set/t.csv", f"{server}/{path}", SHA256, member), data_home=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_checksum_that_does_not_match(server: str, tmp_path: Path) -> None:
    file = RemoteFile("set/table.csv", f"{server}/table.csv", "0" * 64)
    with pytest.raises(OSError, match=f"sha256 {'0' * 64} .* got {SHA256}; nothing was kept"):
        read_bytes(file, data_home=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_named_folder_comes_first_and_is_checked(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALPARITY_DATA", str(tmp_path))
    (tmp_path / "table.csv").write_bytes(CONTENT)
    file = RemoteFile("table.csv", f"{server}/table.csv", SHA256)
    assert read_bytes(file, data_home=tmp_path / "cache") == CONTENT
    assert Handler.requests == 0
    (tmp_path / "table.csv").write_bytes(CONTENT[1:])
    with pytest.raises(OSError, match=r"table.csv must have sha256 .*delete it"):
        read_bytes(file, data_home=tmp_path / "cache")


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "localparity"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "localparity"
