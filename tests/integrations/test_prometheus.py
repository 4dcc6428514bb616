"""A monitor's metrics as a scraper reads them, and the dashboard that asks for them."""

from __future__ import annotations

import functools
import json
import queue
import re
import socket
import stat
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import localparity as lp
from localparity.integrations import prometheus
from localparity.integrations.prometheus import CONTENT_TYPE, HELP, MonitorMetrics
from localparity.monitoring import Monitor, Watch
from typed_commands import BARE, run

pytest.importorskip("datasketches")

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)
DASHBOARD = Path(__file__).parents[2] / "docs" / "integrations" / "grafana_dashboard.json"
LINE = re.compile(r'localparity_(\w+)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)')


def batch(seed: int, shift: float = 0.2, size: int = 400) -> lp.Predictions:
    groups = np.repeat(["f", "m"], size // 2)
    scores = 0.7 * np.random.default_rng(seed).random(size) + shift * (groups == "m")
    return lp.Predictions.from_arrays(None, scores, sensitive_features=groups)


def values_of(text: str) -> dict[str, float]:
    """Every value of an exposition, each of which has its help and its type before it."""
    found: dict[str, float] = {}
    lines = text.splitlines()
    assert len(lines) % 3 == 0
    for place in range(0, len(lines), 3):
        name, _, value = LINE.fullmatch(lines[place + 2]).groups()  # type: ignore[union-attr]
        assert lines[place] == f"# HELP localparity_{name} {HELP[name]}"
        assert lines[place + 1] == f"# TYPE localparity_{name} gauge"
        found[name] = float(value)
    return found


@pytest.fixture
def monitor(tmp_path: Path) -> Monitor:
    monitor = Monitor(tmp_path / "kept")
    for day in range(3):
        monitor.append(batch(day), at=NOON + timedelta(days=day), batch_id=str(day))
    return monitor


def test_the_metrics_are_the_monitor_s(monitor: Monitor) -> None:
    watch = Watch(epsilon=0.05, max_mcdp=0.01)
    found = values_of(MonitorMetrics(monitor, watch).text())
    newest, whole = monitor.series(watch)[-1], monitor.since_start(watch)
    assert newest.interval is not None
    assert newest.alarm is not None
    assert whole.interval is not None
    assert set(found) == set(HELP)
    assert (found["mcdp_low"], found["mcdp"], found["mcdp_high"]) == (
        newest.interval.low,
        newest.interval.estimate,
        newest.interval.high,
    )
    assert (found["alarm"], found["alarm_periods"]) == (1.0, newest.alarm.periods)
    assert (found["max_mcdp"], found["mcdp_expected"]) == (0.01, newest.expected)
    assert (found["since_start_mcdp"], found["since_start_rows"]) == (whole.interval.estimate, 1200.0)
    assert found["period_start_seconds"] == datetime(2026, 5, 19, tzinfo=UTC).timestamp()
    quiet = values_of(MonitorMetrics(monitor, Watch(max_mcdp=0.9)).text())
    assert (quiet["alarm"], quiet["alarm_periods"]) == (0.0, 0.0)


def test_nothing_is_said_of_few_people(monitor: Monitor) -> None:
    monitor.append(batch(9, size=10), at=NOON + timedelta(days=3), batch_id="few")
    found = values_of(MonitorMetrics(monitor).text())
    assert found["comparable"] == 0.0
    assert not {"mcdp", "mcdp_low", "mcdp_expected", "alarm"} & set(found)
    assert "since_start_mcdp" in found
    assert values_of(MonitorMetrics(monitor, Watch(min_group_size=1)).text())["comparable"] == 1.0


def test_they_are_computed_again_after_a_batch_only(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = MonitorMetrics(monitor)
    before = metrics.text()
    with monkeypatch.context() as patched:
        patched.setattr(Monitor, "series", None)
        assert metrics.text() == before
    monitor.append(batch(5), at=NOON, batch_id="5")
    assert values_of(metrics.text())["since_start_rows"] == 1600.0


def test_names_are_escaped(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    assert MonitorMetrics(monitor).text() == ""
    monitor.append(batch(0), at=NOON, batch_id="0")
    text = MonitorMetrics(monitor, name='a"b\\c\nd').text()
    assert values_of(text)
    assert 'monitor="a\\"b\\\\c\\nd"' in text


def test_a_textfile_is_read_by_everyone(monitor: Monitor, tmp_path: Path) -> None:
    path = tmp_path / "localparity.prom"
    done = run(
        "monitor", "serve", monitor.location, "--textfile", path, "--name", "credit", "--max-mcdp", 0.1
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert path.read_text() == MonitorMetrics(monitor, Watch(max_mcdp=0.1), name="credit").text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@contextmanager
def served(*words: object) -> Iterator[str]:
    command = [sys.executable, "-m", "localparity", "monitor", "serve", *map(str, words), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=BARE) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("serving http://127.0.0.1:"), line
        try:
            yield line.split()[1]
        finally:
            process.terminate()
            said = process.stderr.read()
            assert "Traceback" not in said, said


def get(url: str) -> tuple[str, Any]:
    with urllib.request.urlopen(url, timeout=300) as answer:
        return answer.read().decode(), answer.headers


def test_they_are_served(monitor: Monitor) -> None:
    with served(monitor.location, "--max-mcdp", 0.1) as url:
        text, headers = get(url)
        assert headers["Content-Type"] == CONTENT_TYPE
        assert text == MonitorMetrics(monitor, lambda: Watch(max_mcdp=0.1)).text()
        page, headers = get(url.removesuffix("metrics"))
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert "within the bound" in page or "above the bound" in page
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(f"{url}/other")
        monitor.append(batch(7), at=NOON, batch_id="7")
        assert values_of(get(url)[0])["since_start_rows"] == 1600.0
        (Path(monitor.location) / "monitor.sqlite").write_bytes(b"damaged" * 100)
        with pytest.raises(urllib.error.HTTPError, match="500"):
            get(url)


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=300)


def answered(url: str, request: str) -> str:
    """The whole answer to a request as it is."""
    with connected(url) as client, client.makefile("rb") as answer:
        client.sendall(request.encode("latin-1"))
        with suppress(ConnectionResetError):
            return answer.read().decode()
    return ""


def served_here(monitor: Monitor) -> str:
    """The URL of a server in this process, which ends with it."""
    ready: queue.Queue[str] = queue.Queue()
    serve = functools.partial(MonitorMetrics(monitor).serve, 0, ready=ready.put)
    threading.Thread(target=serve, daemon=True).start()
    return ready.get(timeout=300)


def test_nobody_waits_for_a_client_that_is_slow(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """More silent and slow clients than the server keeps, none of which is ever too late."""
    monkeypatch.setattr(prometheus._Server, "_SECONDS", 1e6)
    url = served_here(monitor)
    with ExitStack() as clients:
        for place in range(2 * prometheus._Server._MOST):
            client = clients.enter_context(connected(url))
            client.sendall(b"GET /metrics HT" if place % 2 else b"")
        assert values_of(get(url)[0])["since_start_rows"] == 1200.0


def test_a_client_that_is_reset_leaves_no_traceback(monitor: Monitor) -> None:
    with served(monitor.location) as url:
        for request in (b"", b"GET /", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            with connected(url) as gone:
                gone.sendall(request)
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert get(url)[0]


def test_a_client_may_take_ten_seconds_and_8_kilobytes(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus._Server, "_SECONDS", 0.1)
    url = served_here(monitor)
    assert answered(url, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n") == ""
    assert answered(url, f"GET /metrics HTTP/1.1\r\nX: {'a' * 10_000}\r\n\r\n") == ""


def test_requests_are_checked(monitor: Monitor) -> None:
    with served(monitor.location) as url:
        port = urlsplit(url).port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", "[::1]:80", "10.0.0.7", socket.gethostname()):
            answer = answered(url, f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n")
            assert answer.startswith("HTTP/1.1 200 OK\r\n"), host
            assert "X-Content-Type-Options: nosniff\r\n" in answer
        for path in ("/", "/metrics", "/nowhere"):
            for host in ("evil.example", "localhost.evil.example:80", "", "127.0.0.1.evil.example"):
                answer = answered(url, f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
                assert answer.startswith("HTTP/1.1 421 "), host
                assert "localparity_" not in answer
        head = answered(url, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert head.startswith("HTTP/1.1 200 ")
        assert head.endswith("\r\n\r\n")
        for request in (
            "POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
            "GET /metrics\r\n\r\n",
            "\x16\x03\x01\r\n\r\n",
        ):
            assert answered(url, request).startswith("HTTP/1.1 400 "), request


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked = {name for query in queries for name in re.findall(r"localparity_(\w+)", query)}
    assert asked <= set(HELP)
    assert {"mcdp", "mcdp_low", "mcdp_high", "max_mcdp", "alarm", "since_start_mcdp", "period_rows"} <= asked
    assert all('monitor=~"$monitor"' in query for query in queries)
    assert dashboard["templating"]["list"][1]["query"] == "label_values(localparity_period_rows, monitor)"
    identities = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(identities)) == len(identities)
