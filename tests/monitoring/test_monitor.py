"""A monitor loses nothing and counts nothing twice, whenever it is killed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

import localparity as lp
from localparity.monitoring import Monitor

pytest.importorskip("datasketches")

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)


def batch(seed: int, size: int = 300, **options: object) -> lp.Predictions:
    rng = np.random.default_rng(seed)
    groups = rng.choice(["f", "m"], size)
    scores = rng.beta(2.0, 3.0 + (groups == "f"))
    return lp.Predictions.from_arrays(None, scores, sensitive_features=groups, **options)  # type: ignore[arg-type]


def test_periods_by_day_and_by_hour(tmp_path: Path) -> None:
    days, hours = Monitor(tmp_path / "days"), Monitor(tmp_path / "hours", every="hour")
    for step in range(4):
        for monitor in (days, hours):
            assert monitor.append(batch(step), at=NOON + timedelta(hours=8 * step), batch_id=str(step))
    assert [point.period for point in days.series()] == ["2026-05-17", "2026-05-18"]
    assert [point.period for point in hours.series()] == [
        "2026-05-17T12",
        "2026-05-17T20",
        "2026-05-18T04",
        "2026-05-18T12",
    ]
    first = hours.series(0.05)[0]
    sex = np.array(["f", "m"])[batch(0).codes]
    expected = lp.mcdp_interval(None, batch(0).scores, sensitive_features=sex, epsilon=0.05, confidence=0.955)
    assert first.interval is not None
    assert first.rows == 300
    # The sketch holds all rows here, and a tenth of the error is its own.
    assert (first.interval.low, first.interval.estimate, first.interval.high) == pytest.approx(
        (expected.low, expected.estimate, expected.high)
    )
    floor = lp.permutation_test(None, batch(0).scores, sensitive_features=sex, epsilon=0.05, random_state=1)
    assert first.expected == pytest.approx(floor.null_mean, rel=0.15)


def test_times_are_utc_unless_they_have_a_zone(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    late = datetime(2026, 5, 17, 23, tzinfo=timezone(timedelta(hours=-5)))
    monitor.append(batch(0), at=late, batch_id="a")
    monitor.append(batch(1), at=datetime(2026, 5, 17, 23), batch_id="b")
    assert [point.period for point in monitor.series()] == ["2026-05-17", "2026-05-18"]


def test_a_batch_applied_twice_counts_once_whenever_it_comes(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    assert monitor.append(batch(0), at=NOON, batch_id="a")
    assert not monitor.append(batch(0), at=NOON, batch_id="a")
    assert not monitor.append(batch(0), at=NOON + timedelta(days=3), batch_id="a")
    assert [point.rows for point in Monitor(tmp_path).series()] == [300]


def test_a_period_with_one_group_says_so(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    alone = lp.Predictions.from_arrays(None, [0.1, 0.2], sensitive_features=["f", "f"], min_groups=1)
    monitor.append(alone, at=NOON, batch_id="a")
    (point,) = monitor.series()
    assert (point.interval, point.expected, point.alarm, point.rows) == (None, None, False, 2)
    assert "one group only, 'f'" in point.missing
    monitor.append(batch(0), at=NOON, batch_id="b")
    (point,) = monitor.series()
    assert point.interval is not None
    with pytest.raises(ValueError, match=r"epsilon must be .* got -1"):
        monitor.series(-1)


def test_an_alarm_needs_more_than_chance_on_every_look(tmp_path: Path) -> None:
    def rows(shift: float, seed: int) -> lp.Predictions:
        rng = np.random.default_rng(seed)
        groups = np.repeat(["f", "m"], 400)
        scores = np.clip(rng.random(800) * 0.7 + shift * (groups == "m"), 0.0, 1.0)
        return lp.Predictions.from_arrays(None, scores, sensitive_features=groups)

    monitor = Monitor(tmp_path)
    for day in range(12):
        monitor.append(rows(0.0, day), at=NOON + timedelta(days=day), batch_id=str(day))
    quiet = monitor.series(max_mcdp=0.02)
    assert max(point.interval.estimate for point in quiet if point.interval) > 0.05
    assert not any(point.alarm for point in quiet)
    assert not any(point.alarm for point in monitor.series())
    monitor.append(rows(0.3, 99), at=NOON + timedelta(days=12), batch_id="drift")
    assert [point.alarm for point in monitor.series(max_mcdp=0.1)] == [False] * 12 + [True]
    # A later period, and one more often looked at, must show more.
    alarms = [point.alarm for point in monitor.series(max_mcdp=0.1, alarm_rate=1e-12)]
    assert not any(alarms)
    with pytest.raises(ValueError, match="max_mcdp is 2 where a fraction"):
        monitor.series(max_mcdp=2)


def test_days_that_come_late_spend_what_is_left(tmp_path: Path) -> None:
    """Appended newest first, every day was the first, and each spent the first day's share of the error."""
    monitor = Monitor(tmp_path)
    for day in (2, 1, 0):
        monitor.append(batch(day), at=NOON + timedelta(days=day), batch_id=str(day))
    assert [arrival for *_, arrival in monitor._periods()] == [3, 2, 1]
    monitor.append(batch(9), at=NOON, batch_id="more")
    assert [arrival for *_, arrival in monitor._periods()] == [3, 2, 1]


def test_the_same_rows_under_another_id_are_refused(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.append(batch(0), at=NOON, batch_id="a")
    with pytest.raises(ValueError, match="batch 'b' has the same rows as batch 'a'"):
        monitor.append(batch(0), at=NOON + timedelta(days=1), batch_id="b")
    assert [point.rows for point in monitor.series()] == [300]
    assert monitor.append(batch(0), at=NOON, batch_id="b", allow_duplicate=True)
    assert [point.rows for point in monitor.series()] == [600]


APPEND = """
import sys
sys.path.insert(0, sys.argv[1])
from test_monitor import batch, NOON
from localparity.monitoring import Monitor
monitor = Monitor(sys.argv[2])
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    monitor.append(batch(number), at=NOON, batch_id=str(number))
"""


def start(folder: Path, batches: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", APPEND, str(Path(__file__).parent), str(folder), str(batches)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_killed_while_writing_nothing_is_lost_and_nothing_counts_twice(tmp_path: Path) -> None:
    lots = random.Random(0)
    for _ in range(4):
        process = start(tmp_path, 60)
        time.sleep(lots.random() * 0.15)
        process.kill()
        process.wait()
        process.communicate()
        for point in Monitor(tmp_path).series():
            assert point.rows % 300 == 0
    process = start(tmp_path, 60)
    assert process.wait(60) == 0
    process.communicate()
    (point,) = Monitor(tmp_path).series()
    assert point.rows == 60 * 300
    exact = lp.ScoreCounts.from_predictions(batch(0))
    for number in range(1, 60):
        exact = exact.merge(lp.ScoreCounts.from_predictions(batch(number)))
    assert point.interval is not None
    assert point.interval.low <= exact.mcdp() <= point.interval.high


def test_two_processes_at_a_time(tmp_path: Path) -> None:
    processes = [start(tmp_path, 25) for _ in range(2)]
    for process in processes:
        assert process.wait(60) == 0
        process.communicate()
    assert [point.rows for point in Monitor(tmp_path).series()] == [25 * 300]


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="every is 'week' where one of 'day', 'hour' is expected"):
        Monitor(tmp_path, every="week")  # type: ignore[arg-type]
    monitor = Monitor(tmp_path, every="hour")
    monitor.append(batch(0), at=NOON, batch_id="a")
    with pytest.raises(ValueError, match=r"every is 'day' where the monitor in .* has 'hour'"):
        Monitor(tmp_path, every="day")
    with pytest.raises(
        ValueError, match=r"score_range is \(0.0, 2.0\) where the monitor in .* has \(0.0, 1.0\)"
    ):
        Monitor(tmp_path, score_range=(0, 2))
    path = tmp_path / "2026-05-17T12.period"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match=r"2026-05-17T12.period is damaged: its checksum does not fit"):
        monitor.series()
    (tmp_path / "monitor.json").write_text("{}")
    with pytest.raises(ValueError, match=r"monitor.json is damaged: 'every' is missing"):
        Monitor(tmp_path)
