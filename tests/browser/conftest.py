"""A real browser with the network off, and axe-core, which judges accessibility."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

AXE = "axe-core@4.10.3"
MINUTES = 300_000
"""Milliseconds after which a page hangs; no page is slow by them, however busy the machine."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, timeout=MINUTES)
        yield found
        found.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a file with the network off; whatever it complains of, asks for or pops up fails the test."""
    contexts, complaints = [], []

    def open_file(path: Path, address: str = "", **options: Any) -> Any:
        context = browser.new_context(offline=True, **options)
        context.set_default_timeout(MINUTES)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: request.url == path.as_uri() or complaints.append(request.url))
        page.goto(path.as_uri() + address)
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def axe_source(tmp_path_factory: pytest.TempPathFactory) -> str:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("axe")
    packed = subprocess.run(
        [npm, "pack", "--silent", AXE], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    if packed.returncode:
        pytest.skip(f"npm cannot fetch {AXE}: {packed.stderr.strip()}")
    with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
        source = archive.extractfile("package/axe.min.js")
        assert source is not None
        return source.read().decode("utf-8")
