"""Profiles for hypothesis, the shared data, what skips for want of an extra, and the switch that forbids it."""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from numpy.random import bit_generator

from versions import CORE

# `make test-slow` draws many new examples of each property. Everything else takes few, the same ones each time:
# whether `make test` passes is not a matter of luck.
for profile, examples in {"many": 400, "few": 25}.items():
    settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize=profile != "many",
        suppress_health_check=[HealthCheck.too_slow],
    )
# A mutant needs to be seen, not a small example of it: no shrinking, and the same cases each time.
settings.register_profile(
    "mutants",
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "few"))


def _stay_here(event: str, arguments: tuple[Any, ...]) -> None:
    """No test, and nothing that a test calls, connects to another machine."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = str(arguments[1][0])
        if not host.startswith("127.") and host not in ("localhost", "::1"):
            raise PermissionError(f"a connection to {host}, which no test may open")


sys.addaudithook(_stay_here)
# MLflow tells its makers of every use otherwise.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

NO_SKIPS = bool(os.environ.get("LOCALPARITY_NO_SKIPS"))
NO_DATA = bool(os.environ.get("LOCALPARITY_NO_DATA"))
"""With NO_SKIPS a skip is a failure, but for want of the data sets where NO_DATA says that there are none."""

OPTIONAL = [
    "datasketches",
    "fairlearn",
    "ibis",
    "jsonschema",
    "junitparser",
    "lightgbm",
    "lightning",
    "matplotlib",
    "mlflow",
    "onnxruntime",
    "optuna",
    "pandas",
    "PIL",
    "playwright",
    "polars",
    "psutil",
    "psycopg",
    "pyarrow",
    "pyspark",
    "python_calamine",
    "safetensors",
    "torch",
    "torchmetrics",
    "xgboost",
]
_ABSENT = [name for name in OPTIONAL if find_spec(name) is None]
_WANTED = re.compile(rf"No module named '({'|'.join(_ABSENT)})[.']")


_PLACE = re.compile(r"^(\S+\.py):\d+:", re.MULTILINE)


def _skip_without_extra(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Skip a test, or a file of them, that fails for want of a package that only an extra brings.

    A test of the core is skipped where it imports the package itself, and fails where the core does.
    """
    text = str(report.longrepr) if _ABSENT and report.failed else ""
    wanted, places = _WANTED.search(text), _PLACE.findall(text)
    by_a_test = bool(places) and places[-1].startswith("tests/")
    if wanted and (by_a_test or not report.nodeid.startswith(CORE)):
        report.outcome = "skipped"
        report.longrepr = (report.nodeid, 0, f"{wanted.group(1)} is not installed")


def _fail_instead(report: pytest.TestReport | pytest.CollectReport) -> None:
    excused = NO_DATA and "LOCALPARITY_DATA" in str(report.longrepr)
    if NO_SKIPS and report.skipped and not excused and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where LOCALPARITY_NO_SKIPS is set: {report.longrepr}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What draws without a seed draws the same in every run."""
    seed = crc32(item.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002, what scikit-learn draws from
    bit_generator.randbits = random.Random(seed).getrandbits  # for `default_rng(None)`
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With LOCALPARITY_NO_SKIPS set, a test that skips for a missing component fails."""
    report = yield
    _skip_without_extra(report)
    _fail_instead(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """And so does a file of tests that skips as a whole."""
    report = yield
    _skip_without_extra(report)
    _fail_instead(report)
    return report


HOSTS = {
    "chromium": ("browser/",),
    "PostgreSQL": (
        "monitoring/test_stores",
        "engines/test_ibis",
        "repair/test_sql",
        "cli/test_monitor",
        "cli/test_databases",
    ),
    "Spark": ("engines/test_spark", "repair/test_spark_sql"),
    "small store": ("paper/test_tables", "paper/test_figures", "paper/test_algorithms", "paper/test_runner"),
}
"""What takes long to start, and the files of tests that share it: they run in one process, as do the tests of a file."""

LONGEST = """
tests/test_limits.py chromium Spark PostgreSQL tests/docs/test_pages.py
tests/models/networks/test_distributed.py tests/models/repair/test_score_repair.py tests/test_criteria.py
tests/fuzz/test_tables.py tests/cli/test_few_people.py tests/integrations/test_mlflow.py tests/uncertainty/test_upper.py
tests/integrations/test_pytest.py tests/monitoring/test_alarms.py tests/cli/test_names_from_data.py
tests/models/repair/blind/test_blind_classifier.py tests/paper/test_resnet.py tests/models/networks/test_losses.py
tests/report/test_terminal.py tests/uncertainty/test_power.py tests/uncertainty/test_safe_cutoffs.py
tests/engines/test_duckdb_streams.py tests/cli/test_compare.py tests/cli/test_cli.py
tests/models/repair/blind/test_blind_repair.py tests/cli/test_repair.py
tests/cli/test_reproduce.py tests/report/test_page.py tests/metrics/test_wide_windows.py tests/cli/test_what_now.py
tests/models/test_compare.py tests/monitoring/test_streaming.py tests/test_architecture.py
"""
"""What takes longest: it is handed out first, so that all processes end at about the same time.

The first compiles most of the loops in a fresh clone, while another process starts a browser and needs none.
"""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out files, and those of a host together; the longest first."""
    from xdist.scheduler import LoadFileScheduling

    if config.getvalue("dist") != "loadfile":
        return None
    order = {unit: number for number, unit in enumerate(LONGEST.split())}

    class ByHost(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            shared = (host for host, parts in HOSTS.items() if any(part in file for part in parts))
            return next(shared, file)

        def _assign_work_unit(self, node: Any) -> None:
            longest = min(self.workqueue, key=lambda unit: order.get(unit, len(order)))
            self.workqueue.move_to_end(longest, last=False)
            super()._assign_work_unit(node)

    return ByHost(config, log)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder that LOCALPARITY_DATA names."""
    folder = os.environ.get("LOCALPARITY_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("LOCALPARITY_DATA names no folder of data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def reference_folder(data_folder: Path) -> Path:
    """What the published code measured, beside the data sets."""
    folder = data_folder.parent / "reference"
    if not folder.is_dir():
        pytest.skip("there is no folder `reference` beside LOCALPARITY_DATA")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Generator[str]:
    """The address of a PostgreSQL server; a test makes a schema of its own there."""
    from postgres import SERVERS, running_server

    if not SERVERS:
        pytest.skip("PostgreSQL is not installed")
    with running_server() as address:
        yield address


@pytest.fixture(scope="session")
def spark() -> Generator[Any]:
    """A Spark of this machine, with several partitions."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.codegen.wholeStage", "false")  # which takes longer to compile than these rows
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
