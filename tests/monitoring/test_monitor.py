"""A monitor loses nothing and counts nothing twice, whenever it is killed."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest

import localparity as lp
from localparity._io._files import write_whole
from localparity.monitoring import Monitor, _periods
from localparity.monitoring import _store as stored
from localparity.monitoring._store import Batch, BatchIndex, StoredPeriod
from localparity.monitoring._watch import periods_of

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
    assert (point.interval, point.expected, point.alarm, point.rows) == (None, None, None, 2)
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
    *before, drifted = monitor.series(max_mcdp=0.1)
    assert not any(point.alarm for point in before)
    assert drifted.alarm is not None
    assert (drifted.alarm.start, drifted.alarm.end, drifted.alarm.periods) == ("2026-05-29",) * 2 + (1,)
    assert not any(point.alarm for point in monitor.series(max_mcdp=0.1, alarm_rate=1e-40))
    with pytest.raises(ValueError, match=r"max_mcdp .* got 2"):
        monitor.series(max_mcdp=2)


def looks(monitor: Monitor) -> list[tuple[int, int]]:
    periods = periods_of(monitor.store, list(monitor.store.stamps()), lp.Comparison())
    return [(period.look, period.newer) for period in periods]


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
    assert monitor.watched == {}
    assert monitor.watch(0.05, max_mcdp=0.001, alarm_rate=0.2, min_group_size=20, confidence=0.9) == {}
    monitor.append(batch(0, 3000), at=NOON, batch_id="a")
    again = Monitor(tmp_path)
    asked = {"max_mcdp": 0.001, "alarm_rate": 0.2, "min_group_size": 20, "confidence": 0.9}
    assert again.watched == {"epsilon": 0.05, **asked}
    assert again.series() == again.series(0.05, **asked)
    assert again.series()[0].alarm is not None
    assert again.series(max_mcdp=0.9)[0].alarm is None
    whole = again.since_start()
    assert whole == again.since_start(0.05, min_group_size=20, confidence=0.9)
    assert whole.interval.confidence == 0.9
    assert again.watch(max_mcdp=0.9, confidence=0.9) == {"max_mcdp": 0.001}
    assert Monitor(tmp_path).series()[0].alarm is None
    again.append_file(_written(tmp_path), score="p", group="sex", at=NOON)
    assert again.watched["max_mcdp"] == 0.9
    for wrong in ({"max_mcdp": 2.0}, {"epsilon": -1.0}, {"criterion": "none"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            again.watch(**wrong)


def _written(folder: Path) -> Path:
    path = folder / "scores.csv"
    path.write_text("p,sex\n0.1,f\n0.2,m\n")
    return path


def test_numbers_of_sketches_that_keep_a_part_of_the_scores_are_approximate(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.watch(max_mcdp=0.01)
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


def test_killed_between_the_index_and_the_period_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index says that a batch is in a period, new or old, that it is not in."""
    monitor = Monitor(tmp_path)
    monitor.append(batch(0), at=NOON, batch_id="0")
    for number, days in ((1, 0), (2, 1)):
        with monkeypatch.context() as patch:
            patch.setattr(stored.FolderStore, "_write", Mock(side_effect=Killed))
            with pytest.raises(Killed):
                monitor.append(batch(number), at=NOON + timedelta(days=days), batch_id=str(number))
        # The job is repeated, on another day: it counts there, once.
        assert monitor.append(batch(number), at=NOON + timedelta(days=2), batch_id=str(number))
        assert not monitor.append(batch(number), at=NOON, batch_id=str(number))
    assert [point.rows for point in monitor.series()] == [300, 600]


def test_killed_after_the_period_nothing_counts_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_and_die(path: Path, content: bytes, **options: Any) -> None:
        write_whole(path, content, **options)
        raise Killed

    monitor = Monitor(tmp_path)
    monitor.append(batch(0), at=NOON, batch_id="0")
    monkeypatch.setattr(stored, "write_whole", write_and_die)
    with pytest.raises(Killed):
        monitor.append(batch(1), at=NOON, batch_id="1")
    monkeypatch.undo()
    assert not monitor.append(batch(1), at=NOON + timedelta(days=2), batch_id="1")
    assert [point.rows for point in monitor.series()] == [600]


def empty_index(folder: Path) -> None:
    """As a kill after a rebuild, before it is known to be fresh, leaves it."""
    BatchIndex(folder / "index.sqlite").rebuild([])
    (folder / "index.fresh").unlink()


def older_index(folder: Path) -> None:
    """As a copy of a folder in use may have it: without the newest period."""
    BatchIndex(folder / "index.sqlite").rebuild([(1, [Batch("0", "other rows", "2026-05-17")])])


def damaged_buckets(folder: Path) -> None:
    """All buckets have the content of other ones, but for the head."""
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection, connection:
        connection.execute(
            "UPDATE buckets SET content = (SELECT content FROM buckets WHERE number = 255) WHERE number < 255"
        )


def missing_buckets(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection, connection:
        connection.execute("DELETE FROM buckets WHERE number < 256")


def damaged_head(folder: Path) -> None:
    """SQLite takes a file whose write version it does not know for one that can only be read."""
    content = (folder / "index.sqlite").read_bytes()
    (folder / "index.sqlite").write_bytes(content[:18] + b"\3" + content[19:])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "index.sqlite").unlink(),
        lambda folder: (folder / "index.sqlite").write_bytes(b"no database" * 100),
        damaged_head,
        empty_index,
        older_index,
        damaged_buckets,
        missing_buckets,
    ],
)
def test_an_index_that_is_missing_damaged_or_stale_is_rebuilt(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    monitor = Monitor(tmp_path)
    for number in (0, 1):
        monitor.append(batch(number), at=NOON + timedelta(days=number), batch_id=str(number))
    spoil(tmp_path)
    assert not monitor.append(batch(1), at=NOON, batch_id="1")
    spoil(tmp_path)
    with pytest.raises(ValueError, match="batch 'b' has the same rows as batch '0'"):
        monitor.append(batch(0), at=NOON, batch_id="b")
    spoil(tmp_path)
    assert monitor.append(batch(2), at=NOON + timedelta(days=2), batch_id="2")
    assert looks(monitor) == [(1, 0), (2, 0), (3, 0)]
    assert [point.rows for point in monitor.series()] == [300, 300, 300]


def test_an_index_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").mkdir()
    (tmp_path / "index.sqlite" / "mine").touch()
    with pytest.raises(OSError, match=r"index\.sqlite"):
        Monitor(tmp_path).append(batch(0), at=NOON, batch_id="0")
    (tmp_path / "index.sqlite" / "mine").unlink()
    (tmp_path / "index.sqlite").rmdir()
    with (
        patch.object(sqlite3, "connect", side_effect=sqlite3.OperationalError("disk full")),
        pytest.raises(OSError, match=r"index\.sqlite cannot be written: disk full"),
    ):
        Monitor(tmp_path).append(batch(0), at=NOON, batch_id="0")
    assert Monitor(tmp_path).append(batch(0), at=NOON, batch_id="0")


def test_a_period_that_was_deleted_can_be_appended_again(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    for number in (0, 1):
        monitor.append(batch(number), at=NOON + timedelta(days=number), batch_id=str(number))
    (tmp_path / "periods" / "2026-05-17.period").unlink()
    assert monitor.append(batch(0), at=NOON, batch_id="0")
    assert [point.rows for point in monitor.series()] == [300, 300]


def test_an_append_reads_a_few_periods_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = Monitor(tmp_path, every="hour")
    for number in range(30):
        monitor.append(batch(number, 10), at=NOON + timedelta(hours=number), batch_id=str(number))
    read = Mock(side_effect=StoredPeriod.from_bytes)
    monkeypatch.setattr(StoredPeriod, "from_bytes", read)
    monitor.append(batch(30, 10), at=NOON + timedelta(hours=30), batch_id="30")
    monitor.append(batch(31, 10), at=NOON, batch_id="31")
    assert not monitor.append(batch(7, 10), at=NOON, batch_id="7")
    assert read.call_count <= 6


def test_a_period_is_counted_and_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = Monitor(tmp_path)
    for number in range(3):
        monitor.append(batch(number), at=NOON + timedelta(days=number), batch_id=str(number))
    counts, curves = Mock(side_effect=lp.monitoring.ScoreSketch.counts), Mock(side_effect=_periods.gap_curves)
    monkeypatch.setattr(lp.monitoring.ScoreSketch, "counts", lambda sketch: counts(sketch))
    monkeypatch.setattr(_periods, "gap_curves", curves)
    monitor.series(max_mcdp=0.1)
    assert (counts.call_count, curves.call_count) == (3, 3)


def test_a_period_of_an_older_version_is_refused_with_advice(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.append(batch(0), at=NOON, batch_id="a")
    path = tmp_path / "periods" / "2026-05-17.period"
    content = bytearray(path.read_bytes())
    content[8] = 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"2026-05-17.period .*localparity 0.1.* new folder"):
        monitor.series()
    with pytest.raises(ValueError, match=r"2026-05-17.period .*localparity 0.1.* new folder"):
        monitor.append(batch(1), at=NOON, batch_id="b")


def test_files_of_a_folder_have_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("p,q,sex,job\n0.1,0.2,f,a\n0.2,0.3,m,b\n")
    (tmp_path / "b.csv").write_text("p,q,sex,job\n0.1,0.2,f,a\n0.3,0.3,m,b\n")
    monitor = Monitor(tmp_path / "monitor")
    assert monitor.append_file(tmp_path / "a.csv", score="p", group="sex", at=NOON)
    assert not monitor.append_file(tmp_path / "a.csv", score="p", group="sex")
    with pytest.raises(ValueError, match=r"group must be \['sex'\], .* got \['job'\]"):
        monitor.append_file(tmp_path / "b.csv", score="p", group="job", at=NOON)
    with pytest.raises(ValueError, match=r"batch_id must be given .*\*.csv"):
        monitor.append_file(str(tmp_path / "*.csv"), score="p", group=["sex"], at=NOON)
    assert Monitor(tmp_path / "monitor").append_file(tmp_path / "b.csv", score="p", group=["sex"], at=NOON)
    assert [point.rows for point in monitor.series()] == [4]


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
    path = tmp_path / "periods" / "2026-05-17T12.period"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match=r"2026-05-17T12.period is damaged: .*checksum"):
        monitor.series()
    (tmp_path / "monitor.json").write_text("{}")
    with pytest.raises(ValueError, match=r"monitor.json .*localparity 0.1.* new folder"):
        Monitor(tmp_path)


def test_nothing_is_said_of_a_period_with_few_people_of_a_group(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.append(batch(0), at=NOON, batch_id="0")
    few = lp.Predictions.from_arrays(None, [0.1] * 30 + [0.9] * 9, sensitive_features=["f"] * 30 + ["m"] * 9)
    monitor.append(few, at=NOON + timedelta(days=1), batch_id="1")
    first, second = monitor.series(max_mcdp=0.2, min_group_size=10)
    assert (first.missing, second.missing) == ("", "group 'm' has fewer than 10 rows to compare")
    assert second.interval is None
    assert second.expected is None
    assert monitor.series()[1].interval.estimate == 1.0
    assert monitor.since_start(min_group_size=1000).interval is None
