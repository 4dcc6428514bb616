"""A monitor loses nothing and counts nothing twice, whenever it is killed."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import localparity as lp
from localparity.monitoring import Monitor, Watch, _periods
from localparity.monitoring._alarms import LONGEST
from localparity.monitoring._store import SqlStore, StoredPeriod

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
    first = hours.series(Watch(epsilon=0.05))[0]
    sex = np.array(["f", "m"])[batch(0).group_codes]
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
    (point,) = monitor.series(Watch(min_group_size=1))
    assert (point.interval, point.expected, point.alarm, point.rows) == (None, None, None, 2)
    assert "one group only, 'f'" in point.missing
    monitor.append(batch(0), at=NOON, batch_id="b")
    (point,) = monitor.series()
    assert point.interval is not None
    with pytest.raises(ValueError, match=r"epsilon must be .* got -1"):
        monitor.series(Watch(epsilon=-1))


def test_an_alarm_needs_more_than_chance_on_every_look(tmp_path: Path) -> None:
    def rows(shift: float, seed: int) -> lp.Predictions:
        rng = np.random.default_rng(seed)
        groups = np.repeat(["f", "m"], 400)
        scores = np.clip(rng.random(800) * 0.7 + shift * (groups == "m"), 0.0, 1.0)
        return lp.Predictions.from_arrays(None, scores, sensitive_features=groups)

    monitor = Monitor(tmp_path)
    for day in range(12):
        monitor.append(rows(0.0, day), at=NOON + timedelta(days=day), batch_id=str(day))
    quiet = monitor.series(Watch(max_mcdp=0.02))
    assert max(point.interval.estimate for point in quiet if point.interval) > 0.05
    assert not any(point.alarm for point in quiet)
    assert not any(point.alarm for point in monitor.series())
    monitor.append(rows(0.3, 99), at=NOON + timedelta(days=12), batch_id="drift")
    *before, drifted = monitor.series(Watch(max_mcdp=0.1))
    assert not any(point.alarm for point in before)
    assert drifted.alarm is not None
    assert (drifted.alarm.start, drifted.alarm.end, drifted.alarm.periods) == ("2026-05-29",) * 2 + (1,)
    assert not any(point.alarm for point in monitor.series(Watch(max_mcdp=0.1, alarm_rate=1e-40)))
    with pytest.raises(ValueError, match=r"max_mcdp .* got 2"):
        monitor.series(Watch(max_mcdp=2))


def looks(monitor: Monitor) -> list[tuple[int, int]]:
    _, stamps = monitor.store.periods()
    return [(stored.look, stored.newer) for stored in monitor.store.read(list(stamps))]


def test_every_batch_is_a_look_and_knows_how_late_it_comes(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    for day in (2, 1, 0):
        monitor.append(batch(day), at=NOON + timedelta(days=day), batch_id=str(day))
    assert looks(monitor) == [(3, 2), (2, 1), (1, 0)]
    monitor.append(batch(9), at=NOON + timedelta(days=1), batch_id="more")
    monitor.append(batch(10), at=NOON + timedelta(days=3), batch_id="new")
    monitor.append(batch(10), at=NOON + timedelta(days=3), batch_id="new")
    assert looks(monitor) == [(3, 2), (4, 1), (1, 0), (5, 0)]


def test_the_same_rows_under_another_id_are_refused(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.append(batch(0), at=NOON, batch_id="a")
    with pytest.raises(ValueError, match="batch 'b' has the same rows as batch 'a'"):
        monitor.append(batch(0), at=NOON + timedelta(days=1), batch_id="b")
    assert [point.rows for point in monitor.series()] == [300]
    assert monitor.append(batch(0), at=NOON, batch_id="b", allow_duplicate=True)
    assert [point.rows for point in monitor.series()] == [600]


@pytest.mark.parametrize("labelled", [False, True])
def test_the_same_rows_in_another_order_are_the_same_batch(tmp_path: Path, labelled: bool) -> None:
    rng = np.random.default_rng(0)
    scores, sex = rng.random(200).round(2), rng.choice(["f", "m", "x"], 200)
    labels = rng.integers(0, 2, 200) if labelled else None

    def rows(order: Any, scores: Any = scores, dtype: Any = np.float64) -> lp.Predictions:
        y = None if labels is None else labels[order]
        values = scores[order].astype(dtype)
        return lp.Predictions.from_arrays(y, values, sensitive_features=sex[order])

    monitor = Monitor(tmp_path)
    monitor.append(rows(np.arange(200)), at=NOON, batch_id="a")
    with pytest.raises(ValueError, match="batch 'b' has the same rows as batch 'a'"):
        monitor.append(rows(rng.permutation(200)), at=NOON, batch_id="b")
    # A row more, a row twice in the place of another, two rows that swap their groups: other batches.
    swapped = scores.copy()
    first, second = np.flatnonzero(sex == "f")[0], np.flatnonzero((sex == "m") & (scores != scores[0]))[0]
    swapped[[first, second]] = swapped[[second, first]]
    twice = np.arange(200)
    twice[7] = np.flatnonzero(scores != scores[7])[0]
    others = [rows(np.append(np.arange(200), 3)), rows(twice), rows(np.arange(200), swapped)]
    for place, other in enumerate(others):
        assert monitor.append(other, at=NOON, batch_id=f"other {place}")


def test_what_is_looked_for_is_kept_with_the_monitor(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    assert monitor.watched is None
    watch = Watch(epsilon=0.05, max_mcdp=0.001, alarm_rate=0.2, min_group_size=20, confidence=0.9)
    monitor.watch(watch)
    monitor.append(batch(0, 3000), at=NOON, batch_id="a")
    again = Monitor(tmp_path)
    assert again.watched == watch
    assert again.series() == again.series(watch)
    assert again.series()[0].alarm is not None
    assert again.series(replace(watch, max_mcdp=0.9))[0].alarm is None
    whole = again.since_start()
    assert whole == again.since_start(watch)
    assert whole.interval.confidence == 0.9
    again.watch(replace(watch, max_mcdp=0.9))
    assert Monitor(tmp_path).series()[0].alarm is None
    again.append(batch(1), at=NOON, batch_id="b", columns={"score": "p"})
    assert again.watched.max_mcdp == 0.9
    for wrong in ({"max_mcdp": 2.0}, {"epsilon": -1.0}, {"criterion": "none"}, {"min_group_size": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Watch(**wrong)


def test_numbers_of_sketches_that_keep_a_part_of_the_scores_are_approximate(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.watch(Watch(max_mcdp=0.01))
    monitor.append(batch(0), at=NOON, batch_id="few")
    assert not monitor.since_start().approximate
    monitor.append(batch(1, 20_000), at=NOON + timedelta(days=1), batch_id="many")
    few, many = monitor.series()
    assert (few.approximate, many.approximate) == (False, True)
    assert many.alarm is not None
    assert many.alarm.approximate
    assert monitor.since_start().approximate


class Killed(BaseException):
    """Stands for a kill: nothing after it runs."""


@pytest.mark.parametrize("step", ["_put", "keep_state", "_replace", "find"])
def test_killed_at_any_step_nothing_is_lost_and_nothing_counts_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monitor = Monitor(tmp_path)
    monitor.append(batch(0), at=NOON, batch_id="0")
    for number, days in ((1, 0), (2, 1)):
        with monkeypatch.context() as patch:
            patch.setattr(SqlStore, step, Mock(side_effect=Killed))
            with pytest.raises(Killed):
                monitor.append(batch(number), at=NOON + timedelta(days=days), batch_id=str(number))
        # The job is repeated, on another day: it counts there, once.
        assert monitor.append(batch(number), at=NOON + timedelta(days=2), batch_id=str(number))
        assert not monitor.append(batch(number), at=NOON, batch_id=str(number))
    assert [point.rows for point in monitor.series()] == [300, 600]


def change(folder: Path, *statements: str) -> None:
    """Change the tables of a monitor behind its back."""
    with closing(sqlite3.connect(folder / "monitor.sqlite")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM localparity_rows WHERE name = '2026-05-17'", "a period is missing"),
        ("UPDATE localparity_rows SET name = '2026-05-16' WHERE name = '2026-05-17'", "a period is missing"),
        ("DELETE FROM localparity_rows WHERE kind = 'state'", "its state is missing"),
        ("UPDATE localparity_rows SET payload = x'00' WHERE kind = 'state'", "its bytes do not match"),
        (
            "UPDATE localparity_rows SET payload = x'00' WHERE name = '2026-05-17'",
            "period 2026-05-17 in .*its bytes do not match",
        ),
        ("UPDATE localparity_rows SET stamp = 'x' WHERE name = '2026-05-17'", "a period is missing"),
        (
            "DELETE FROM localparity_rows WHERE kind = 'look' AND name LIKE '%1'",
            "a batch that it counted is miss",
        ),
        ("UPDATE localparity_rows SET payload = x'00' WHERE kind = 'look'", "its bytes do not match"),
        ("DROP TABLE localparity_batches", "its tables are not those of a monitor"),
        ("CREATE TABLE other (number)", "its tables are not those of a monitor"),
    ],
)
def test_tables_that_somebody_changed_are_refused(tmp_path: Path, statement: str, message: str) -> None:
    monitor = Monitor(tmp_path)
    for number in (0, 1):
        monitor.append(batch(number), at=NOON + timedelta(days=number), batch_id=str(number))
    change(tmp_path, statement)
    with pytest.raises(ValueError, match=f"{tmp_path}.* is damaged: {message}|{message}"):
        monitor.series(Watch(max_mcdp=0.1))


def test_an_index_of_the_batches_that_lost_one_is_noticed(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    for number in (0, 1):
        monitor.append(batch(number), at=NOON + timedelta(days=number), batch_id=str(number))
    change(
        tmp_path,
        "PRAGMA writable_schema = 1",
        "CREATE TABLE lost (monitor TEXT, id TEXT, digest TEXT)",
        "CREATE INDEX hole ON lost (monitor, digest)",
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'hole') "
        "WHERE name = 'localparity_digests'",
        "DELETE FROM sqlite_master WHERE name IN ('lost', 'hole')",
    )
    with pytest.raises(ValueError, match="its indexes of the batches do not agree"):
        monitor.append(batch(0), at=NOON, batch_id="b")


def test_a_file_that_is_none_or_cannot_be_used_is_named(tmp_path: Path) -> None:
    monitor, path = Monitor(tmp_path), tmp_path / "monitor.sqlite"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(ValueError, match=r"monitor\.sqlite is damaged: file is not a database"):
        Monitor(tmp_path)
    path.write_bytes(b"")
    for use in (Monitor, lambda folder: monitor.append(batch(0), at=NOON, batch_id="0")):
        with pytest.raises(ValueError, match=r"monitor\.sqlite is damaged: it is empty"):
            use(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError, match=r"monitor\.sqlite cannot be used: unable to open"):
        Monitor(tmp_path)


def test_a_first_batch_that_was_killed_leaves_a_monitor_without_periods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SqlStore, "add", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            Monitor(tmp_path).append(batch(0), at=NOON, batch_id="0")
    assert (tmp_path / "monitor.sqlite").stat().st_size > 0
    assert Monitor(tmp_path, every="hour").series() == []
    assert Monitor(tmp_path, every="hour").append(batch(0), at=NOON, batch_id="0")


def test_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    Monitor(tmp_path / "kept").append(batch(0), at=NOON, batch_id="0")
    assert (tmp_path / "kept" / "monitor.sqlite").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["monitor.sqlite"]


def test_a_writer_that_waits_too_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = Monitor(tmp_path)
    monitor.append(batch(0), at=NOON, batch_id="0")
    monkeypatch.setattr("localparity.monitoring._store._SECONDS", 0.0)
    with monitor.store.writing():
        with pytest.raises(OSError, match=r"monitor\.sqlite is locked: others have written to it for 0 s"):
            Monitor(tmp_path).append(batch(1), at=NOON, batch_id="1")
        assert len(Monitor(tmp_path).series()) == 1  # who reads need not wait


def test_a_window_as_wide_as_the_range_is_refused() -> None:
    with pytest.raises(ValueError, match=r"epsilon must be < 1 with max_mcdp, got 1"):
        Watch(epsilon=1, max_mcdp=0.1)
    assert Watch(epsilon=0.99, max_mcdp=0.1).epsilon == 0.99


def test_a_folder_of_files_is_refused_with_advice(tmp_path: Path) -> None:
    (tmp_path / "monitor.json").write_text("{}")
    with pytest.raises(ValueError, match=r"has files of a monitor of an earlier localparity.* new folder"):
        Monitor(tmp_path)


def count_reads(monkeypatch: pytest.MonkeyPatch) -> Mock:
    read = Mock(side_effect=StoredPeriod.from_bytes)
    monkeypatch.setattr(StoredPeriod, "from_bytes", read)
    return read


def test_an_append_reads_one_period_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = Monitor(tmp_path, every="hour")
    for number in range(30):
        monitor.append(batch(number, 10), at=NOON + timedelta(hours=number), batch_id=str(number))
    read = count_reads(monkeypatch)
    monitor.append(batch(30, 10), at=NOON + timedelta(hours=30), batch_id="30")
    monitor.append(batch(31, 10), at=NOON, batch_id="31")
    assert not monitor.append(batch(7, 10), at=NOON, batch_id="7")
    assert read.call_count == 3  # everyone twice, and a period that was there


def test_an_append_with_a_bound_reads_the_newest_period_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether there were ten periods or a hundred: the evidence so far is remembered."""
    monitor, watch = Monitor(tmp_path, every="hour"), Watch(max_mcdp=0.25)
    read = count_reads(monkeypatch)
    counts = []
    for number in range(LONGEST + 28):
        monitor.append(batch(number, 60), at=NOON + timedelta(hours=number), batch_id=str(number))
        read.reset_mock()
        (newest,) = monitor.series(watch, last=1)
        counts.append(read.call_count)
        assert newest.alarm is None
    assert set(counts) == {1}
    # A late batch: its own period alone has changed.
    monitor.append(batch(999, 60), at=NOON + timedelta(hours=LONGEST), batch_id="late")
    read.reset_mock()
    monitor.series(watch, last=1)
    assert read.call_count == 0


def test_a_period_is_counted_and_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = Monitor(tmp_path)
    for number in range(3):
        monitor.append(batch(number), at=NOON + timedelta(days=number), batch_id=str(number))
    counts, curves = Mock(side_effect=lp.monitoring.ScoreSketch.counts), Mock(side_effect=_periods.gap_curves)
    monkeypatch.setattr(lp.monitoring.ScoreSketch, "counts", lambda sketch: counts(sketch))
    monkeypatch.setattr(_periods, "gap_curves", curves)
    monitor.series(Watch(max_mcdp=0.1))
    assert (counts.call_count, curves.call_count) == (3, 3)


def test_batches_have_the_same_columns(tmp_path: Path) -> None:
    monitor, columns = Monitor(tmp_path), {"score": "p", "group": ["sex"], "label": None}
    assert monitor.append(batch(0), at=NOON, batch_id="0")
    assert monitor.append(batch(1), at=NOON, batch_id="1", columns=columns)
    with pytest.raises(ValueError, match=r"group must be \['sex'\], .* got \['job'\]"):
        monitor.append(batch(2), at=NOON, batch_id="2", columns=columns | {"group": ["job"]})
    assert Monitor(tmp_path).append(batch(2), at=NOON, batch_id="2", columns=columns)
    assert Monitor(tmp_path).append(batch(3), at=NOON, batch_id="3")


APPEND = """
import sys
sys.path.insert(0, sys.argv[1])
from datetime import timedelta
from test_monitor import batch, NOON
from localparity.monitoring import Monitor
monitor = Monitor(sys.argv[2])
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    monitor.append(batch(number), at=NOON + number % 3 * timedelta(days=1), batch_id=str(number))
    print(number, flush=True)
"""


def start(folder: Path, batches: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", APPEND, str(Path(__file__).parent), str(folder), str(batches)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_killed_while_writing_nothing_is_lost_and_nothing_counts_twice(tmp_path: Path) -> None:
    for batches in (1, 7, 8, 20):
        process = start(tmp_path, 60)
        assert process.stdout is not None
        assert [int(process.stdout.readline()) for _ in range(batches)] == list(range(batches))
        process.kill()  # while it writes the next one
        process.communicate()
        for point in Monitor(tmp_path).series():
            assert point.rows % 300 == 0
    process = start(tmp_path, 60)
    process.communicate(timeout=600)
    assert process.returncode == 0
    series = Monitor(tmp_path).series()
    assert [point.rows for point in series] == [20 * 300] * 3
    exact = lp.ScoreCounts.from_predictions(batch(0))
    for number in range(3, 60, 3):
        exact = exact.merge(lp.ScoreCounts.from_predictions(batch(number)))
    point = series[0]
    assert point.interval is not None
    assert point.interval.low <= lp.mcdp(exact) <= point.interval.high


def test_two_processes_at_a_time(tmp_path: Path) -> None:
    processes = [start(tmp_path, 25) for _ in range(2)]
    for process in processes:
        process.communicate(timeout=600)
        assert process.returncode == 0
    assert [point.rows for point in Monitor(tmp_path).series()] == [9 * 300, 8 * 300, 8 * 300]


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"every .* got 'week'"):
        Monitor(tmp_path, every="week")  # type: ignore[arg-type]
    monitor = Monitor(tmp_path, every="hour")
    monitor.append(batch(0), at=NOON, batch_id="a")
    with pytest.raises(ValueError, match=r"every must be 'hour', .* got 'day'"):
        Monitor(tmp_path, every="day")
    with pytest.raises(ValueError, match=r"score_range must be \(0.0, 1.0\), .* got \(0.0, 2.0\)"):
        Monitor(tmp_path, score_range=(0, 2))


def test_nothing_is_said_of_a_period_with_few_people_of_a_group(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.append(batch(0), at=NOON, batch_id="0")
    few = lp.Predictions.from_arrays(None, [0.1] * 30 + [0.9] * 9, sensitive_features=["f"] * 30 + ["m"] * 9)
    monitor.append(few, at=NOON + timedelta(days=1), batch_id="1")
    first, second = monitor.series(Watch(max_mcdp=0.2))
    assert (first.missing, second.missing) == ("", "a group has fewer than 10 rows to compare")
    assert (first.rows, second.rows, second.groups) == (300, None, {})
    assert second.interval is None
    assert second.expected is None
    assert monitor.series(Watch(min_group_size=1))[1].interval.estimate == 1.0
    assert monitor.since_start(Watch(min_group_size=1000)).interval is None
