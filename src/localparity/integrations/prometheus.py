"""Prometheus: the numbers of a monitor as metrics, served over HTTP or written for a textfile collector.

Every metric is a gauge, of the newest period or of everyone since the start; Prometheus keeps the history.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from socket import gethostname
from typing import Any

from localparity._io._files import replacing
from localparity._text import visible, without_secrets
from localparity.metrics import Interval
from localparity.monitoring import Monitor, Watch

__all__ = ["MonitorMetrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The type of the text, as Prometheus asks for it."""

HELP = {
    "mcdp": "MCDP(epsilon) in the newest period that has something to compare.",
    "mcdp_low": "The lower end of its interval.",
    "mcdp_high": "The upper end of its interval.",
    "mcdp_expected": "MCDP expected between groups of these sizes that do not differ.",
    "max_mcdp": "The bound: the most that MCDP may be.",
    "alarm": "1 where MCDP is significantly above the bound at the newest period, else 0.",
    "alarm_periods": "The number of periods over which the alarm is raised, 0 without one.",
    "approximate": "1 where the numbers of the newest period come from sketches of the scores, else 0.",
    "comparable": "1 where the newest period has something to compare, else 0.",
    "period_rows": "The rows of the newest period.",
    "period_start_seconds": "When the newest period began, in seconds since 1970.",
    "since_start_mcdp": "MCDP(epsilon) among everyone counted so far.",
    "since_start_mcdp_low": "The lower end of its interval, which holds at all looks together.",
    "since_start_mcdp_high": "The upper end of its interval, which holds at all looks together.",
    "since_start_approximate": "1 where the numbers since the start are approximate, else 0.",
    "since_start_rows": "The rows counted so far.",
    "since_start_periods": "The periods counted so far.",
}
"""What each metric is, by its name after `localparity_`."""


class MonitorMetrics:
    """The metrics of a monitor in Prometheus's text format.

    Parameters
    ----------
    monitor : Monitor
        The monitor.
    watch : Watch or callable, optional
        What to watch, or a function that returns it; by default what the monitor keeps, else ``Watch()``.
    name : str, optional
        The label `monitor` of every metric; the monitor's own name by default.

    Examples
    --------
    >>> import datetime, tempfile
    >>> import localparity as lp
    >>> from localparity.integrations.prometheus import MonitorMetrics
    >>> monitor = lp.monitoring.Monitor(tempfile.mkdtemp())
    >>> batch = lp.Predictions.from_arrays(None, [0.2, 0.9] * 50, sensitive_features=["f", "m"] * 50)
    >>> _ = monitor.append(batch, at=datetime.datetime(2026, 5, 17), batch_id="1")
    >>> print(MonitorMetrics(monitor, name="credit").text())
    # HELP localparity_mcdp MCDP(epsilon) in the newest period that has something to compare.
    # TYPE localparity_mcdp gauge
    localparity_mcdp{monitor="credit",epsilon="0",criterion="demographic_parity"} 1.0
    ...
    """

    def __init__(
        self,
        monitor: Monitor,
        watch: Watch | Callable[[], Watch] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        self._monitor, self._watch, self._name = monitor, watch, name or monitor.name
        self._known: dict[str, tuple[tuple[str, Watch], str]] = {}

    def text(self) -> str:
        """Return the metrics. They are computed again only after a batch or a change of the watch.

        Returns
        -------
        str
        """
        return self._newest("metrics", lambda watch: "".join(self._lines(watch)))

    def _page(self) -> str:
        """The monitor's page."""
        from localparity.report.page._monitor import monitor_page

        page = self._newest("page", lambda watch: monitor_page(self._monitor, watch, self._name))
        return page or "Nothing was appended yet."

    def _newest(self, what: str, make: Callable[[Watch], str]) -> str:
        """What is made of the monitor as it is, made again where it has changed; empty before a batch."""
        version = self._monitor.version()
        if not version:
            return ""
        watch = self._watch() if callable(self._watch) else self._watch
        question = version, watch or self._monitor.watched or Watch()
        if what not in self._known or self._known[what][0] != question:
            self._known[what] = question, make(question[1])
        return self._known[what][1]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the metrics to a file for the textfile collector of Prometheus's node exporter.

        Parameters
        ----------
        path : path
            The file, whose name should end in .prom. It is written whole or not at all; everyone may read it.
        """
        with replacing(Path(path)) as temporary:
            temporary.write_bytes(self.text().encode())
            temporary.chmod(0o644)

    def serve(self, port: int = 9464, *, host: str = "127.0.0.1", ready: Callable[[str], None]) -> None:
        """Serve the metrics at /metrics, and the monitor's page at /, until the process ends.

        Requests must name the server by an IP address, as localhost, by this machine's name or as `host`: a
        page of another site cannot read the numbers through a name that it makes point here.

        Parameters
        ----------
        port : int
            The port; 0 takes a free one.
        host : str
            The address to listen on; by default only this machine can connect.
        ready : callable
            Called with the URL of the metrics once the server answers.
        """
        pages = {"/metrics": (CONTENT_TYPE, self.text), "/": ("text/html; charset=utf-8", self._page)}
        asyncio.run(_Server(pages, host).run(port, ready))

    def _lines(self, watch: Watch) -> Iterator[str]:
        """The lines of the metrics."""
        labels = {"monitor": self._name, "epsilon": f"{watch.epsilon:g}", "criterion": watch.criterion}
        about = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
        for name, value in self._values(watch).items():
            metric = f"localparity_{name}"
            yield f"# HELP {metric} {HELP[name]}\n# TYPE {metric} gauge\n{metric}{{{about}}} {value!r}\n"

    def _values(self, watch: Watch) -> dict[str, float]:
        """The metrics that have a value."""
        series = self._monitor.series(watch, last=1)
        if not series:
            return {}
        newest, whole = series[-1], self._monitor.since_start(watch)
        values = _ends("mcdp", newest.interval)
        if newest.expected is not None:
            values["mcdp_expected"] = newest.expected
        if watch.max_mcdp is not None:
            periods = 0 if newest.alarm is None else newest.alarm.periods
            values |= {"max_mcdp": watch.max_mcdp, "alarm": float(periods > 0)}
            values["alarm_periods"] = float(periods)
        started = datetime.fromisoformat(newest.period).replace(tzinfo=UTC)
        return {
            **values,
            "approximate": float(newest.approximate),
            "comparable": float(newest.interval is not None),
            **({} if newest.rows is None else {"period_rows": float(newest.rows)}),
            "period_start_seconds": started.timestamp(),
            **_ends("since_start_mcdp", whole.interval),
            "since_start_approximate": float(whole.approximate),
            **({} if whole.rows is None else {"since_start_rows": float(whole.rows)}),
            "since_start_periods": float(whole.periods),
        }


Pages = Mapping[str, tuple[str, Callable[[], str]]]
"""By their paths, the types of some texts and what makes them."""


class _Server:
    """Answers to GET, one request a connection. Who is slow or silent takes nobody's turn.

    A request has ten seconds and 8 kilobytes; where there are too many, the one that came first is given up.
    """

    _SECONDS, _LONGEST, _MOST = 10.0, 2**13, 128

    def __init__(self, pages: Pages, host: str) -> None:
        self._pages, self._host = pages, host
        self._names = {"localhost", host.lower(), gethostname().lower()}
        self._open: dict[Any, None] = {}
        self._worker = ThreadPoolExecutor(1)  # the monitor's store is used by one thread at a time

    async def run(self, port: int, ready: Callable[[str], None]) -> None:
        """Serve until the process ends."""
        # A task that a signal ends is no news.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        server = await asyncio.start_server(self._answer, self._host, port, limit=self._LONGEST)
        host = f"[{self._host}]" if ":" in self._host else self._host
        ready(f"http://{host}:{server.sockets[0].getsockname()[1]}/metrics")
        async with server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._open[task] = None
        if len(self._open) > self._MOST:
            next(iter(self._open)).cancel()
        try:
            async with asyncio.timeout(self._SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.transport.set_write_buffer_limits(0)  # all is sent before the connection is closed
            writer.write(await self._response(head.decode("latin-1")))
            async with asyncio.timeout(self._SECONDS):
                await writer.drain()
            writer.close()
        except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            writer.transport.abort()  # a client that is gone, slow, or sends no request
        finally:
            del self._open[task]

    async def _response(self, head: str) -> bytes:
        line, *headers = head.split("\r\n")
        asked = re.fullmatch(r"(GET|HEAD) (/\S*) HTTP/1\.[01]", line)
        hosts = [header[5:].strip() for header in headers if header.lower().startswith("host:")]
        kind, text, status = "text/plain; charset=utf-8", "", HTTPStatus.BAD_REQUEST
        if asked and len(hosts) < 2:
            path = asked[2].partition("?")[0]
            if not all(map(self._is_own, hosts)):
                status, text = HTTPStatus.MISDIRECTED_REQUEST, "use an IP address, localhost, or --host NAME"
            elif path not in self._pages:
                status, text = HTTPStatus.NOT_FOUND, "there are / and /metrics"
            else:
                kind, make = self._pages[path]
                kind, text, status = await self._made(kind, make)
        content = text.encode()
        fields = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Cache-Control": "no-store",
            "Connection": "close",
        }
        start = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        shown = b"" if line.startswith("HEAD") else content
        return f"HTTP/1.1 {status.value} {status.phrase}\r\n{start}\r\n".encode() + shown

    async def _made(self, kind: str, make: Callable[[], str]) -> tuple[str, str, HTTPStatus]:
        """A text with its type, or what is wrong; only this machine is told more."""
        try:
            text = await asyncio.get_running_loop().run_in_executor(self._worker, make)
        except ImportError as error:
            return "text/plain; charset=utf-8", str(error), HTTPStatus.NOT_IMPLEMENTED
        except (OSError, ValueError) as error:
            print(visible(without_secrets(str(error))), file=sys.stderr, flush=True)
            return "text/plain; charset=utf-8", "it cannot be computed", HTTPStatus.INTERNAL_SERVER_ERROR
        return kind, text, HTTPStatus.OK

    def _is_own(self, host: str) -> bool:
        """Whether a request names this server by a name that nobody else can make point to it."""
        name = re.sub(r":\d*$", "", host).strip("[]").lower()
        try:
            ip_address(name)
        except ValueError:
            return name in self._names
        return True


def _ends(name: str, interval: Interval | None) -> dict[str, float]:
    if interval is None:
        return {}
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _escaped(value: str) -> str:
    """A label's value as Prometheus reads it."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
