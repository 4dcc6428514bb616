"""A webhook is told of an alarm once, and no other URL is asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
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


def append(folder: Path, path: Path, hook: Hook, *options: object, day: int) -> tuple[int, str]:
    words = ["--score", "p", "--group", "sex", "--at", f"2026-05-{day}", "--max-mcdp", 0.1]
    found = run("monitor", "append", folder, path, *words, "--webhook", hook.url, *options)
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
