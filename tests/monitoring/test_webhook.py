"""A webhook is told of an alarm once, and no other URL is asked for."""

from __future__ import annotations

import json
import socket
import sqlite3
import struct
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

import localparity as lp
from localparity.monitoring import Monitor, Watch, _webhook
from localparity.monitoring._webhook import Webhook
from typed_commands import run

pytest.importorskip("datasketches")

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)


class Hook(HTTPServer):
    """A server that keeps what it is told, and answers with a status."""

    status = 204
    authorization: str | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.told: list[tuple[str, str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?key=hush"


class Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.told.append((self.path, self.headers["Content-Type"], body))
        self.server.authorization = self.headers["Authorization"]
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    monkeypatch.setattr(_webhook, "_SECONDS", 300.0)  # however busy the machine
    with Hook() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three days of people: alike, apart, and apart again."""
    paths = []
    for day, shift in enumerate((0.0, 0.3, 0.3)):
        rng = np.random.default_rng(day)
        rows = [f"{0.7 * rng.random() + shift * (i % 2):.4f},{'fm'[i % 2]},person-{i}" for i in range(600)]
        paths.append(tmp_path / f"{day}.csv")
        paths[-1].write_text("\n".join(["p,sex,name", *rows]))
    return paths


def append(folder: Path, path: Path, hook: Hook | str, *options: object, day: int) -> tuple[int, str]:
    words = ["--score", "p", "--group", "sex", "--at", f"2026-05-{day}", "--max-mcdp", 0.1]
    url = hook if isinstance(hook, str) else hook.url
    found = run(
        "monitor", "append", folder, path, *words, "--webhook", url, *options, PYTHONWARNINGS="default"
    )
    return found.returncode, found.stderr


def test_each_alarm_is_told_once(tmp_path: Path, files: list[Path], hook: Hook) -> None:
    folder = tmp_path / "credit"
    code, _ = append(folder, files[0], hook, day=17)
    assert (code, hook.told) == (0, [])
    code, said = append(folder, files[1], hook, day=18)
    assert (code, len(hook.told)) == (1, 1)
    assert "told 127.0.0.1 of the alarm" in said
    assert "hush" not in said
    path, kind, body = hook.told[0]
    assert (path, kind) == ("/hook?key=hush", "application/json")
    told = json.loads(body)
    assert (told["monitor"], told["period"], told["max_mcdp"]) == ("credit", "2026-05-18", 0.1)
    assert told["text"].startswith("credit: MCDP in 2026-05-18 is ")
    assert told["low"] > 0.1
    assert "person" not in body
    assert str(tmp_path) not in body
    # The same day again, with the same batch and with another one.
    assert append(folder, files[1], hook, day=18)[0] == 1
    assert append(folder, files[2], hook, "--id", "more", day=18)[0] == 1
    assert len(hook.told) == 1
    # Another bound is another question, and another day another alarm.
    assert append(folder, files[2], hook, "--id", "next", "--allow-duplicate", day=19)[0] == 1
    assert len(hook.told) == 2


def test_a_hook_that_fails_loses_no_batch_and_is_tried_again(
    tmp_path: Path, files: list[Path], hook: Hook
) -> None:
    folder = tmp_path / "kept"
    for status, message in ((500, "127.0.0.1 answered 500"), (302, "127.0.0.1 answered 302")):
        hook.status = status
        code, said = append(folder, files[1], hook, day=18)
        assert (code, message in said) == (1, True)
    assert [path for path, _, _ in hook.told] == ["/hook?key=hush"] * 2
    assert [point.rows for point in Monitor(folder).series()] == [600]
    hook.status = 200
    assert "told 127.0.0.1" in append(folder, files[1], hook, day=18)[1]
    assert len(hook.told) == 3


def test_a_hook_that_cannot_be_reached_is_named_by_its_host(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    groups = np.repeat(["f", "m"], 300)
    rows = lp.Predictions.from_arrays(None, 0.5 * (groups == "m"), sensitive_features=groups)
    monitor.append(rows, at=NOON, batch_id="0")
    (newest,) = monitor.series(Watch(max_mcdp=0.1))
    with pytest.raises(OSError, match=r"127\.0\.0\.1 cannot be reached") as error:
        Webhook("http://127.0.0.1:9/hush").tell(monitor, newest, Watch(max_mcdp=0.1))
    assert "hush" not in str(error.value)
    with pytest.raises(ValueError, match="webhook must be a URL"):
        Webhook("ftp://127.0.0.1/x")


# Receivers that answer with anything but HTTP, or not at all.


Answer = Callable[[socket.socket], None]


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def drip(connection: socket.socket) -> None:
    """A byte of a header now and then, for as long as somebody reads."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    with suppress(OSError):
        while True:
            connection.sendall(b"a")
            time.sleep(0.02)


def says(content: bytes) -> Answer:
    return lambda connection: connection.sendall(content)


ODD = {
    "no status": says(b"hello\r\n\r\n"),
    "HTTP/9.9": says(b"HTTP/9.9 200 OK\r\n\r\n"),
    "a long line": says(b"HTTP/1.1 200 " + b"O" * 70_000 + b"\r\n\r\n"),
    "a long header": says(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n"),
    "500 headers": says(b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 500 + b"\r\n"),
    "nothing": says(b""),
    "no number": says(b"HTTP/1.1 abc OK\r\n\r\n"),
    "a redirect": says(b"HTTP/1.1 307 Go\r\nLocation: file:///etc/passwd\r\n\r\n"),
    "status 999": says(b"HTTP/1.1 999 No\r\n\r\n"),
    "a colour": says(b"\x1b[31mHTTP/1.1 200 OK\r\n\r\n"),
    "a reset": reset,
    "a drip": drip,
}


@contextmanager
def receiver(answer: Answer) -> Iterator[str]:
    """The URL of a server that answers to one request at a time in a way of its own."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with closing(connection):
                        connection.recv(2**16)
                        answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/hush"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_answer_is_a_warning_and_the_exit_code_the_alarm_s(
    odd: str, tmp_path: Path, files: list[Path], hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_webhook, "_SECONDS", 1.0 if odd == "a drip" else 300.0)
    with receiver(ODD[odd]) as url:
        code, said = append(tmp_path / "kept", files[1], url, day=18)
    assert code == 1
    assert "the webhook failed, and will be tried again with the next batch: 127.0.0.1" in said
    assert max(map(len, said.splitlines())) < 300
    assert "hush" not in said
    assert "\x1b" not in said
    # The alarm that was not told is told by the next batch.
    assert append(tmp_path / "kept", files[1], hook, day=18)[0] == 1
    assert len(hook.told) == 1


def test_others_append_while_a_receiver_is_slow(tmp_path: Path, files: list[Path]) -> None:
    folder, asked, go = tmp_path / "kept", threading.Event(), threading.Event()

    def wait(_: socket.socket) -> None:
        asked.set()
        go.wait()

    def post() -> None:
        with suppress(OSError):
            Webhook(url).tell(monitor, newest, Watch(max_mcdp=0.1))

    append(folder, files[1], "http://127.0.0.1:9/", day=18)
    monitor = Monitor(folder)
    (newest,) = monitor.series(Watch(max_mcdp=0.1))
    with receiver(wait) as url:
        thread = threading.Thread(target=post)
        thread.start()
        assert asked.wait(60)
        other = lp.Predictions.from_arrays(None, [0.1, 0.2], sensitive_features=["f", "m"])
        assert Monitor(folder).append(other, at=NOON, batch_id="other")  # would wait for the lock
        # Who finds the same alarm meanwhile leaves it to the first.
        assert not Webhook(url).tell(Monitor(folder), newest, Watch(max_mcdp=0.1))
        go.set()
        thread.join()


def test_credentials_are_authentication_and_looked_up_nowhere(
    tmp_path: Path, files: list[Path], hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, look_up = [], socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest: names.append(host) or look_up(host, *rest))
    url = hook.url.replace("http://", "http://me%40work:s%3Acret@")
    assert append(tmp_path / "kept", files[1], url, day=18)[0] == 1
    assert set(names) == {"127.0.0.1"}
    assert hook.authorization is not None
    assert b64decode(hook.authorization.removeprefix("Basic ")) == b"me@work:s:cret"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:abc/hush",
        "http://127.0.0.1:99999/hush",
        "http://127.0.0.1/a hush",
        "http://127.0.0.1/hush\r\nX: y",
        "http://127.0.0.1/hush\u00e9",
        f"http://{'a' * 300}/hush",
        "http://u:hu/sh@127.0.0.1/",
        "http:///hush",
        "HTTP//hush",
        "http://[::1/hush",
    ],
)
def test_a_url_is_checked_before_anything_is_counted(tmp_path: Path, files: list[Path], url: str) -> None:
    code, said = append(tmp_path / "kept", files[1], url, day=18)
    assert code == 2
    assert said.startswith("error: --webhook must be ")
    assert "hush" not in said
    assert "hu/sh" not in said
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("payload", [b"5", b"null", b"[" * 10_000, "text", 5, 2**40, b"\xff"])
def test_a_damaged_note_is_named_and_stops_no_alarm(
    tmp_path: Path, files: list[Path], hook: Hook, payload: object
) -> None:
    folder = tmp_path / "kept"
    assert append(folder, files[1], hook, day=18)[0] == 1
    with closing(sqlite3.connect(folder / "monitor.sqlite")) as connection, connection:
        connection.execute("UPDATE localparity_rows SET payload = ? WHERE kind = 'told'", (payload,))
    code, said = append(folder, files[1], hook, day=18)
    assert (code, len(hook.told)) == (1, 2)
    assert "warning: what " in said
    assert "remembers of '2026-05-18" in said
    assert append(folder, files[1], hook, day=18)[0] == 1
    assert len(hook.told) == 2
