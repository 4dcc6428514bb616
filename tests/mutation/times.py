"""A plugin of pytest that writes down how long each test takes."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_seconds: defaultdict[str, float] = defaultdict(float)


@pytest.hookimpl
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration


@pytest.hookimpl
def pytest_sessionfinish() -> None:
    if "MUTATION_TIMES" in os.environ:
        Path(os.environ["MUTATION_TIMES"]).write_text(json.dumps(_seconds))
