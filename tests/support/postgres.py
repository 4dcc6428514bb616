"""A real PostgreSQL server of the tests' own: Debian's, on loopback, run by an unprivileged user, gone at the end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def _unprivileged() -> dict[str, Any]:
    """The user that runs the server, which refuses to be run by root."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running_server() -> Iterator[str]:
    """The address of a server with an empty database, for as long as the block runs."""
    programs, user = SERVERS[-1], _unprivileged()
    home = Path(tempfile.mkdtemp(prefix="postgres-"))
    if user:
        shutil.chown(home, user["user"], user["group"])
    made = [
        programs / "initdb",
        "-D",
        home / "data",
        "-U",
        "tests",
        "--auth=trust",
        "--no-sync",
        "-E",
        "UTF8",
    ]
    subprocess.run(made, check=True, capture_output=True, cwd=home, **user)
    with (home / "log").open("wb") as log:
        server, port = _serve(programs, home, {"stdout": log, "stderr": log, **user})
        with server:
            try:
                yield f"postgresql://tests@127.0.0.1:{port}/postgres"
            finally:
                server.send_signal(signal.SIGQUIT)
    shutil.rmtree(home)


def _serve(programs: Path, home: Path, options: dict[str, Any]) -> tuple[subprocess.Popen[bytes], int]:
    """A server that answers, and its port: another one where somebody took it meanwhile."""
    for _ in range(20):
        port = _free_port()
        # Told to quit when this process ends, in whatever way.
        served = ["setpriv", "--pdeathsig", "QUIT", programs / "postgres", "-D", home / "data"]
        served += ["-h", "127.0.0.1", "-p", str(port), "-k", home, "-c", "fsync=off"]
        server = subprocess.Popen(served, cwd=home, **options)
        asked = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        while server.poll() is None:
            if subprocess.run(asked, check=False).returncode == 0:
                return server, port
            time.sleep(0.1)
    raise AssertionError(f"PostgreSQL does not start: {(home / 'log').read_text()}")
