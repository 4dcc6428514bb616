"""A webhook: alarms are posted as JSON to one URL, each once."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from localparity._io._files import sha256_of
from localparity._validation import InputError
from localparity.monitoring._watch import PeriodResult, Watch, alarm_sentence

if TYPE_CHECKING:
    from localparity.monitoring._monitor import Monitor

_TOLD = "told"
_SECONDS = 10.0


class Webhook:
    """A URL, http or https, that is told of alarms, in numbers about groups; redirects are not followed."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            reason = f"must be a URL such as https://host/path, got {parts.scheme!r} as its scheme"
            raise InputError(reason, "webhook")
        self._url, self.host = url, parts.hostname

    def tell(self, monitor: Monitor, newest: PeriodResult, watch: Watch) -> bool:
        """Post the alarm of a period, unless it was posted before; an OSError if that fails.

        No other process appends meanwhile, so that an alarm that two of them find is posted once.
        """
        alarm = newest.alarm
        assert alarm is not None
        assert watch.max_mcdp is not None
        asked = json.dumps([asdict(watch), sha256_of(self._url.encode())])
        name = f"{newest.period} {sha256_of(asked.encode())}"
        with monitor.store.writing():
            if name in monitor.store.recall(_TOLD, name):
                return False
            self._post(
                {
                    "text": f"{monitor.name}: {alarm_sentence(alarm, monitor.every, watch.max_mcdp)}",
                    "monitor": monitor.name,
                    "period": newest.period,
                    "start": alarm.start,
                    "end": alarm.end,
                    "periods": alarm.periods,
                    "rows": alarm.rows,
                    "mcdp": alarm.interval and alarm.interval.estimate,
                    "low": alarm.interval and alarm.interval.low,
                    "high": alarm.interval and alarm.interval.high,
                    "approximate": alarm.approximate,
                    **asdict(watch),
                }
            )
            monitor.store.remember(_TOLD, {name: b""})
        return True

    def _post(self, message: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "localparity"}
        request = Request(self._url, json.dumps(message).encode(), headers, method="POST")
        try:
            with build_opener(_NoRedirects).open(request, timeout=_SECONDS):
                pass
        except HTTPError as error:
            raise OSError(f"{self.host} answered {error.code}") from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise OSError(f"{self.host} cannot be reached: {reason}") from None


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        """Follow none: the answer is an error then."""
