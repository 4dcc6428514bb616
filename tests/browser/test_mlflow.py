"""An evaluation logged to a real MLflow server, and what people see of it there."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
import requests

import localparity as lp

pytestmark = pytest.mark.slow
VERDICT = "Above the bound of 10 points"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a server on loopback, with a SQLite store of its own."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    words = ["--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db", "--host", "127.0.0.1"]
    words += ["--artifacts-destination", str(tmp_path / "artifacts"), "--port", str(port), "--workers", "1"]
    with (tmp_path / "server.log").open("w") as log:
        command = [sys.executable, "-m", "mlflow", "server", *words]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
        try:
            wait_for(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=60)


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 240.0
    while process.poll() is None and time.monotonic() < end:
        try:
            if requests.get(f"{address}/health", timeout=10).ok:
                return
        except requests.RequestException:
            time.sleep(0.3)
    raise AssertionError(f"there is no server at {address}")


@pytest.fixture
def logged(server: str) -> Iterator[tuple[str, str]]:
    """The experiment and the run of an evaluation that is above its bound."""
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(server)
    experiment = mlflow.set_experiment("census").experiment_id
    census = lp.datasets.make_census(2000, random_state=0)
    people = census.data.assign(sex=census.sensitive_features, income=census.target, score=census.score)
    with mlflow.start_run() as run:
        mlflow.models.evaluate(
            data=people,
            predictions="score",
            targets="income",
            model_type="classifier",
            evaluators="localparity",
            evaluator_config={"sensitive_features": "sex", "max_mcdp": 0.1},
        )
    yield experiment, run.info.run_id
    mlflow.set_tracking_uri(before)


def only_loopback(route: Any) -> None:
    """Let a page ask this machine and no other."""
    if route.request.url.startswith(("http://127.0.0.1:", "data:", "blob:")):
        route.continue_()
    else:
        route.abort()


def test_people_see_the_numbers_the_verdict_and_the_page(
    browser: Any, server: str, logged: tuple[str, str], tmp_path: Path
) -> None:
    experiment, run_id = logged
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(120_000)
    context.route("**/*", only_loopback)
    page = context.new_page()
    page.goto(f"{server}/#/experiments/{experiment}/runs/{run_id}")
    for text in ("mcdp_0.05_high", "more likely than Females to score above ", VERDICT):
        page.get_by_text(text).first.wait_for()
    page.screenshot(path=tmp_path / "run.png")
    page.goto(f"{server}/#/experiments/{experiment}/runs/{run_id}/artifacts/localparity/audit.html")
    shown = page.frame_locator("iframe")
    shown.get_by_text(VERDICT).first.wait_for()
    page.get_by_text("audit.json").first.wait_for()
    page.screenshot(path=tmp_path / "page.png")
    context.close()
