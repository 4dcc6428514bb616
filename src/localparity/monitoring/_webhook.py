"""A webhook: alarms are posted as JSON to one URL, each once."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from concurrent.futures import Future
from dataclasses import asdict
from threading import Thread
from time import time
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from localparity._io._files import sha256_of
from localparity._text import brief
from localparity._validation import InputError
from localparity.monitoring._watch import PeriodResult, Watch, alarm_sentence

if TYPE_CHECKING:
    from localparity.monitoring._monitor import Monitor

_TOLD, _DONE, _FAILED = "told", b"", b"0"
_SECONDS = 10.0  # for the whole exchange, with the look-up of the host's name


class Webhook:
    """A URL, http or https, that is told of alarms, in numbers about groups; redirects are not followed.

    A user and a password in it are sent as HTTP authentication, and looked up nowhere.
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            port = "" if parts.port is None else f":{parts.port}"
            (parts.hostname or "").encode("idna")
        except ValueError:  # whose message may have a part of the password
            raise InputError("must be a URL with a host that can be looked up", "webhook") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            reason = f"must be a URL such as https://host/path, got {parts.scheme!r} as its scheme"
            raise InputError(reason, "webhook")
        if not re.fullmatch(r"[!-~]*", url) or url.count("@") > parts.netloc.count("@"):
            raise InputError("must be a URL in ASCII, with %40 for @ and the like elsewhere", "webhook")
        self.host = parts.hostname
        host = f"[{self.host}]" if ":" in self.host else self.host
        self._url = urlunsplit(parts._replace(netloc=f"{host}{port}", fragment=""))
        self._name = sha256_of(url.encode())
        self._headers = {"Content-Type": "application/json", "User-Agent": "localparity"}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"

    def tell(self, monitor: Monitor, newest: PeriodResult, watch: Watch) -> bool:
        """Post the alarm of a period, unless it was posted before; an OSError if that fails.

        No other process waits for the receiver: each notes when it begins to post, and then that it has.
        """
        alarm = newest.alarm
        assert alarm is not None
        assert watch.max_mcdp is not None
        question = json.dumps([asdict(watch), self._name])
        name = f"{newest.period} {sha256_of(question.encode())}"
        with monitor.store.writing():
            if not _is_due(monitor.store.recall(_TOLD, name).get(name, _FAILED)):
                return False
            monitor.store.remember(_TOLD, {name: str(time()).encode()})
        outcome = _FAILED
        try:
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
            outcome = _DONE
        finally:
            monitor.store.remember(_TOLD, {name: outcome})
        return True

    def _post(self, message: dict[str, Any]) -> None:
        """Post a message, in another thread: nothing else ends an exchange whose every byte is in time."""
        request = Request(self._url, json.dumps(message).encode(), self._headers, method="POST")
        answer = Future[int]()

        def post() -> None:
            try:
                with build_opener(_NoRedirects).open(request, timeout=_SECONDS) as response:
                    answer.set_result(response.status)
            except HTTPError as error:
                error.close()
                answer.set_result(error.code)
            except BaseException as error:
                answer.set_exception(error)

        Thread(target=post, daemon=True).start()
        try:
            status = answer.result(_SECONDS)
        except TimeoutError:
            raise OSError(f"{self.host} did not answer within {_SECONDS:g} s") from None
        except URLError as error:
            raise OSError(f"{self.host} cannot be reached: {error.reason}") from None
        except Exception as error:  # whatever the answer was, it is no HTTP
            reason = f"{type(error).__name__}: {brief(str(error))}"
            raise OSError(f"{self.host} gave no answer that can be read: {reason}") from None
        if not 200 <= status < 300:
            raise OSError(f"{self.host} answered {status}")


def _is_due(note: bytes) -> bool:
    """Whether an alarm is to be posted: nobody has, nor began to within the time that it may take."""
    try:
        return note != _DONE and abs(time() - float(note)) > 2.0 * _SECONDS
    except ValueError:
        return True


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        """Follow none: the answer is an error then."""
