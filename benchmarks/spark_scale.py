"""10^7 rows in 16 partitions counted by Spark on local[2], against the counts of numpy.

Run from the root of the repository: ``python -m benchmarks.spark_scale`` (`make bench-scale` does). It writes
results/spark_scale.json (or --out): the time, whether the counts agree bit for bit, and what the plan has: no
Python worker and no stage of one partition over the rows.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import localparity as lp
from benchmarks._measure import add_busy, machine, record_at, write_json
from benchmarks._series import local_spark
from localparity.engines._spark import SparkScores
from localparity.engines._table import ScoreColumns


def main() -> None:
    """Measure and write one object of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, default=Path("results/spark_scale.json"))
    add_busy(parser)
    options = parser.parse_args()
    out = record_at(options.out, busy=options.busy)
    spark = local_spark()
    # A scramble of the row's number that numpy can repeat: scores with five decimals and two groups.
    frame = spark.range(0, options.rows, 1, 16).selectExpr(
        "CAST((id * 7919) % 100003 AS DOUBLE) / 100003 AS p", "id % 5 < 2 AS g"
    )
    start = time.perf_counter()
    counts = lp.engines.from_spark(frame, score="p", group="g")
    seconds = time.perf_counter() - start
    rows = np.arange(options.rows)
    scores = ((rows * 7919) % 100003) / 100003
    expected = lp.ScoreCounts.from_predictions(
        lp.Predictions.from_arrays(None, scores, sensitive_features=rows % 5 < 2)
    )
    source = SparkScores(frame, ScoreColumns("p", ("g",)))
    plan = source.counted(source._cell(20))._jdf.queryExecution().toString()
    result = {
        "machine": machine(),
        "rows": options.rows,
        "partitions": frame.rdd.getNumPartitions(),
        "seconds": seconds,
        "equal_to_numpy": all(
            counts.atoms[key].scores.tobytes() == atoms.scores.tobytes()
            and counts.atoms[key].rows.tobytes() == atoms.rows.tobytes()
            for key, atoms in expected.atoms.items()
        ),
        "python_in_plan": "Python" in plan,
        "single_partition_in_plan": "SinglePartition" in plan,
    }
    write_json(out, result)
    spark.stop()


if __name__ == "__main__":
    main()
