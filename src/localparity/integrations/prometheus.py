"""Prometheus: the numbers of a monitor as metrics, served over HTTP or written for a textfile collector.

Every metric is a gauge, of the newest period or of everyone since the start; Prometheus keeps the history.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from localparity._io._files import replacing
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
        self._known: tuple[tuple[str, Watch] | None, str] = (None, "")

    def text(self) -> str:
        """Return the metrics. They are computed again only after a batch or a change of the watch.

        Returns
        -------
        str
        """
        version = self._monitor.version()
        if not version:
            return ""
        watch = self._watch() if callable(self._watch) else self._watch
        question = version, watch or self._monitor.watched or Watch()
        if self._known[0] != question:
            self._known = question, "".join(self._lines(question[1]))
        return self._known[1]

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
        """Serve the metrics at /metrics until the process ends.

        Parameters
        ----------
        port : int
            The port; 0 takes a free one.
        host : str
            The address to listen on; by default only this machine can connect.
        ready : callable
            Called with the URL once the server answers.
        """

        class Handler(_Handler):
            text = self.text

        with HTTPServer((host, port), Handler) as server:
            ready(f"http://{host}:{server.server_port}/metrics")
            server.serve_forever()

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
            "period_rows": float(newest.rows),
            "period_start_seconds": started.timestamp(),
            **_ends("since_start_mcdp", whole.interval),
            "since_start_approximate": float(whole.approximate),
            "since_start_rows": float(whole.rows),
            "since_start_periods": float(whole.periods),
        }


class _Handler(BaseHTTPRequestHandler):
    """Answers requests for /metrics, and no others."""

    timeout = 10
    text: Callable[[], str]

    def do_GET(self) -> None:
        if self.path.split("?")[0] != "/metrics":
            self.send_error(404)
            return
        try:
            content = self.text().encode()
        except (OSError, ValueError) as error:
            self.log_error("%s", str(error))
            self.send_error(500, "the metrics cannot be computed")
            return
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, *arguments: Any) -> None:
        """Log nothing about requests that were answered."""


def _ends(name: str, interval: Interval | None) -> dict[str, float]:
    if interval is None:
        return {}
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _escaped(value: str) -> str:
    """A label's value as Prometheus reads it."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
