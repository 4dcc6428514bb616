"""A Spark worker that dies while it counts: its tasks run again and every row counts once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localparity as lp

pytest.importorskip("pyspark.sql")

ROWS = 6_000_000


def parent_of(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def is_ours(process: int) -> bool:
    """Whether a process descends from this one."""
    while process > 1:
        if process == os.getpid():
            return True
        process = parent_of(process)
    return False


def own_executors() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"CoarseGrainedExecutorBackend" in path.read_bytes() and is_ours(int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:  # it ended while we looked
            continue
    return found


def kill_one_at_work(spark: Any, killed: list[int]) -> None:
    """Wait until a stage is half way, then kill a worker."""
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 600
    while not killed and time.monotonic() < deadline:
        for job in tracker.getActiveJobsIds():
            stages = [tracker.getStageInfo(stage) for stage in tracker.getJobInfo(job).stageIds]
            if any(stage and stage.numCompletedTasks >= 3 and stage.numActiveTasks for stage in stages):
                killed += own_executors()[:1]
                os.kill(killed[0], signal.SIGKILL)
                return
        time.sleep(0.02)


def count_while_one_is_killed(out: str) -> None:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local-cluster[2,1,700]")
        .config("spark.executor.memory", "700m")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    frame = spark.range(0, ROWS, 1, 20).selectExpr(
        "CAST((id * 7919) % 10007 AS DOUBLE) / 10007 AS p", "id % 5 < 2 AS g"
    )
    killed: list[int] = []
    killer = threading.Thread(target=kill_one_at_work, args=(spark, killed))
    killer.start()
    counts = lp.engines.from_spark(frame, score="p", group="g", level=12)
    killer.join()
    rows = {str(group): atoms.rows.tolist() for (group, _), atoms in counts.atoms.items()}
    Path(out).write_text(json.dumps({"killed": killed, "rows": rows}))
    spark.stop()


@pytest.mark.slow
def test_a_worker_that_dies_is_retried_and_nothing_counts_twice(tmp_path: Path) -> None:
    here, out = Path(__file__).parent, tmp_path / "out.json"
    code = (
        f"import sys; sys.path.insert(0, '{here}'); import test_spark_faults as t; "
        f"t.count_while_one_is_killed('{out}')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    result = json.loads(out.read_text())
    assert result["killed"]
    numbers = np.arange(ROWS)
    scores, groups = ((numbers * 7919) % 10007) / 10007, numbers % 5 < 2
    expected = lp.ScoreCounts.from_predictions(
        lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    )
    for (group, _), atoms in expected.atoms.items():
        assert result["rows"][str(group)] == atoms.rows.tolist()
