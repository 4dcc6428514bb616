"""A folder and a PostgreSQL server keep a monitor alike, whatever happens to a writer."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch
from uuid import uuid4

import numpy as np
import pytest

import localparity as lp
from localparity._io._files import limit_work
from localparity.monitoring import Monitor, Watch, _monitor
from localparity.monitoring._alarms import LONGEST
from localparity.monitoring._store import MonitorState, SqlStore

pytest.importorskip("datasketches")

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)
KINDS = ("folder", "postgres")


def batch(seed: int, size: int = 40, shift: float = 0.0) -> lp.Predictions:
    rng = np.random.default_rng(seed)
    groups = np.repeat(["f", "m"], size // 2)
    scores = 0.7 * rng.random(size) + shift * (groups == "m")
    return lp.Predictions.from_arrays(None, scores, sensitive_features=groups)


def location_of(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if kind == "folder":
        return str(tmp_path / "kept")
    pytest.importorskip("psycopg")
    return f"{request.getfixturevalue('postgres')}#{uuid4().hex}"


@pytest.fixture(params=KINDS)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return location_of(request.param, request, tmp_path)


def days(monitor: Monitor, numbers: range, **options: Any) -> None:
    for day in numbers:
        assert monitor.append(batch(day, **options), at=NOON + timedelta(days=day), batch_id=str(day))


def test_batches_count_once_and_settings_stay(location: str) -> None:
    monitor = Monitor(location, every="hour", score_range=(0, 2))
    assert (monitor.version(), monitor.series()) == ("", [])
    with pytest.raises(ValueError, match="has no periods"):
        monitor.since_start()
    rows = lp.Predictions.from_arrays(None, [0.2, 1.9], sensitive_features=["f", "m"], score_range=(0, 2))
    assert monitor.append(rows, at=NOON, batch_id="a")
    version = monitor.version()
    again = Monitor(location)
    assert (again.every, again.score_range) == ("hour", (0.0, 2.0))
    assert not again.append(rows, at=NOON + timedelta(days=1), batch_id="a")
    with pytest.raises(ValueError, match="batch 'b' has the same rows as batch 'a'"):
        again.append(rows, at=NOON, batch_id="b")
    assert again.version() == version
    assert again.append(rows, at=NOON, batch_id="b", allow_duplicate=True)
    assert again.version() != version
    series = again.series(Watch(min_group_size=1))
    assert [(point.period, point.rows) for point in series] == [("2026-05-17T12", 4)]
    again.watch(Watch(max_mcdp=0.25))
    assert Monitor(location).watched == Watch(max_mcdp=0.25)
    with pytest.raises(ValueError, match=r"every must be 'hour', as in .*, got 'day'"):
        Monitor(location, every="day")


def test_what_is_kept_is_the_same_everywhere(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    found = []
    for kind in KINDS:
        monitor = Monitor(location_of(kind, request, tmp_path))
        days(monitor, range(6))
        monitor.append(batch(99), at=NOON + timedelta(days=2), batch_id="late")
        monitor.prune(5)
        watch = Watch(epsilon=0.05, max_mcdp=0.1)
        found.append((monitor.store.periods(), monitor.series(watch), monitor.since_start(watch)))
    assert found[0] == found[1]


def test_retention_keeps_the_ids_the_looks_and_everyone(location: str) -> None:
    monitor = Monitor(location)
    days(monitor, range(6))
    everyone = monitor.since_start()
    assert monitor.prune(4) == 2
    assert monitor.prune(4) == 0
    assert [point.period for point in monitor.series()] == [f"2026-05-{day}" for day in (19, 20, 21, 22)]
    assert monitor.since_start() == everyone
    assert not monitor.append(batch(0), at=NOON, batch_id="0")
    with pytest.raises(ValueError, match="batch 'x' has the same rows as batch '1'"):
        monitor.append(batch(1), at=NOON, batch_id="x")
    with pytest.raises(
        ValueError, match=r"batch 'y' is of 2026-05-18; the periods up to 2026-05-18 were removed"
    ):
        monitor.append(batch(50), at=NOON + timedelta(days=1), batch_id="y")
    days(monitor, range(6, 8))
    assert monitor.prune(1) == 5
    whole = monitor.since_start()
    assert (whole.start, whole.end, whole.periods, whole.rows) == ("2026-05-17", "2026-05-24", 8, 320)
    (stored,) = monitor.store.read(["2026-05-24"])
    assert (stored.look, stored.newer) == (8, 0)
    with pytest.raises(ValueError, match=r"keep must be >= 1, got 0"):
        monitor.prune(0)


def fresh(location: str, watch: Watch) -> Any:
    """The series without what is remembered."""
    with patch.object(SqlStore, "recall", return_value={}):
        return Monitor(location).series(watch)


def test_only_what_changed_is_measured_again(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_monitor, "LONGEST", 4)
    monitor, watch = Monitor(location), Watch(max_mcdp=0.02)
    for day in range(12):
        days(monitor, range(day, day + 1), size=400, shift=0.3 * (day > 5))
        assert monitor.series(watch, last=1) == fresh(location, watch)[-1:]
        if day % 3 == 0:
            assert monitor.series(watch) == fresh(location, watch)
    assert any(point.alarm for point in monitor.series(watch))
    changes: list[Callable[[], object]] = [
        lambda: monitor.append(batch(50, 400), at=NOON + timedelta(days=3), batch_id="late"),
        lambda: monitor.prune(9),
    ]
    measured = Mock(side_effect=_monitor._answer)
    for change in changes:
        change()
        expected = fresh(location, watch)
        assert monitor.series(watch, last=3) == expected[-3:]
        assert monitor.series(watch) == expected
        with patch.object(_monitor, "_answer", measured):
            assert monitor.series(watch) == expected
        assert measured.call_count == 0


def test_the_last_periods_are_read_with_those_of_their_alarms(tmp_path: Path) -> None:
    monitor, watch = Monitor(tmp_path, every="hour"), Watch(max_mcdp=0.01)
    for hour in range(LONGEST + 20):
        monitor.append(batch(hour, 60, 0.3), at=NOON + timedelta(hours=hour), batch_id=str(hour))
    names: list[str] = []
    read = SqlStore.read
    with patch.object(SqlStore, "read", lambda self, some: (names.extend(some), read(self, some))[1]):
        last = monitor.series(watch, last=2)
    assert len(set(names)) == len(names) == LONGEST + 1
    assert last == monitor.series(watch)[-2:]
    assert last[-1].alarm is not None


def test_a_removal_that_was_killed_removed_nothing(location: str) -> None:
    class Killed(BaseException):
        pass

    monitor = Monitor(location)
    days(monitor, range(5))
    everyone = monitor.since_start()
    with patch.object(SqlStore, "keep_state", side_effect=Killed), pytest.raises(Killed):
        monitor.prune(2)
    assert len(monitor.series()) == 5
    assert monitor.since_start() == everyone
    days(monitor, range(5, 6))
    assert monitor.prune(2) == 4
    assert monitor.since_start().rows == 240


def test_a_period_that_is_removed_while_it_is_read(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    days(monitor, range(4))
    periods = monitor.store.periods

    def removed_after_the_list() -> Iterator[Any]:
        listed = periods()
        Monitor(tmp_path).prune(2)
        yield listed
        while True:
            yield periods()

    lists = removed_after_the_list()
    with patch.object(monitor.store, "periods", lambda: next(lists)):
        assert [point.period for point in monitor.series()] == ["2026-05-19", "2026-05-20"]
    listed = periods()
    Monitor(tmp_path).prune(1)
    with (
        patch.object(monitor.store, "periods", lambda: (listed[0], dict(listed[1]))),
        pytest.raises(ValueError, match="is damaged: a period that it lists is missing"),
    ):
        monitor.series()


def test_passwords_are_not_shown() -> None:
    store = SqlStore("postgresql://me:hush%21@127.0.0.1:9/scores?sslmode=disable#a%20b")
    assert store.name == "postgresql://me@127.0.0.1:9/scores#a b"
    pytest.importorskip("psycopg")
    for url in (
        "postgresql://me:hush%21@127.0.0.1:9/scores",
        "postgresql://me@127.0.0.1:9/scores?password=hush%21",
        "postgresql://me:hush%21@127.0.0.1:9/scores?hush%21=1",
    ):
        with pytest.raises(OSError, match=r"postgresql://me@127\.0\.0\.1:9/scores") as error:
            Monitor(url)
        assert "hush" not in str(error.value)
    with pytest.raises(ValueError, match="percent-encoded") as refused:
        Monitor("postgresql://me:hu#sh@127.0.0.1/scores")
    assert "sh" not in str(refused.value).replace("must", "").replace("password", "")


def test_what_a_server_complains_of_is_one_line(postgres: str, tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    with closing(psycopg.connect(postgres, autocommit=True)) as connection:
        connection.execute("CREATE ROLE watcher LOGIN")
    days(Monitor(f"{postgres}#mine"), range(2))
    watcher = postgres.replace("tests@", "watcher@")
    with pytest.raises(OSError, match=r"watcher@.* permission denied") as error:
        Monitor(f"{watcher}#mine").series()
    assert "\n" not in str(error.value)
    with closing(psycopg.connect(postgres, autocommit=True)) as connection:
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO watcher")
    assert len(Monitor(f"{watcher}#mine").series()) == 2
    assert Monitor(f"{watcher}#mine").since_start().rows == 80
    with pytest.raises(OSError, match="permission denied"):
        days(Monitor(f"{watcher}#mine"), range(5, 6))


WRITE = """
import sys
sys.path.insert(0, sys.argv[1])
from datetime import timedelta
from test_stores import NOON, batch
from localparity.monitoring import Monitor
monitor = Monitor(sys.argv[2])
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    monitor.append(batch(number), at=NOON + number % 3 * timedelta(days=1), batch_id=str(number))
    print(number, flush=True)
    if number % 20 == 19:
        monitor.prune(3)
"""


@contextmanager
def writer(location: str, batches: int) -> Iterator[subprocess.Popen[str]]:
    """A process that writes batches, which is killed at the end."""
    words = [sys.executable, "-c", WRITE, str(Path(__file__).parent), location, str(batches)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def check_counted_once(location: str, batches: int) -> None:
    """Every batch is in its period, and so are all its rows."""
    monitor = Monitor(location)
    assert [point.rows for point in monitor.series()] == [
        40 * len(range(day, batches, 3)) for day in range(3)
    ]
    with monitor.store.writing():
        assert monitor.version() == str(batches)
        assert all(monitor.store.find("id", str(number)) == str(number) for number in range(batches))


def write_and_kill(location: str, *, batches: int, kills: int, seed: int) -> None:
    """Two writers of the same batches; one after the other is killed while it writes one and started again."""
    rng = random.Random(seed)
    with ExitStack() as first, ExitStack() as second:
        stacks = (first, second)
        writers = [stack.enter_context(writer(location, batches)) for stack in stacks]
        for kill in range(kills):
            place = kill % 2
            for _ in range(rng.randrange(1, batches // 2)):
                assert writers[place].stdout.readline()
            stacks[place].close()
            writers[place] = stacks[place].enter_context(writer(location, batches))
        assert [process.wait(600) for process in writers] == [0, 0]
    check_counted_once(location, batches)


def test_two_writers_that_are_killed_lose_and_double_nothing(location: str) -> None:
    write_and_kill(location, batches=45, kills=2, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_two_writers_that_are_killed_often_lose_and_double_nothing(location: str, seed: int) -> None:
    write_and_kill(location, batches=240, kills=30, seed=seed)


HOSTILE = {
    "a view that never ends": "DROP TABLE localparity_batches; CREATE VIEW localparity_batches AS WITH RECURSIVE "
    "r(id) AS (SELECT 'a' UNION ALL SELECT id FROM r) SELECT 'monitor' AS monitor, id, 'd' AS digest FROM r",
    "a trigger that never ends": "CREATE TRIGGER t AFTER INSERT ON localparity_batches BEGIN INSERT INTO "
    "localparity_rows WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n, n, n, n, n FROM r; END",
    "another table": "CREATE TABLE other (a)",
    "another index": "CREATE INDEX other ON localparity_batches (length(zeroblob(1000000000)))",
    "a computed column": "ALTER TABLE localparity_batches ADD COLUMN x AS (length(zeroblob(1000000000)))",
    "a payload that is a number": "UPDATE localparity_rows SET payload = 1000000000000 WHERE kind = 'period'",
    "a state that is a text": "UPDATE localparity_rows SET payload = 'text' WHERE kind = 'state'",
    "a name that is a blob": "UPDATE localparity_rows SET name = x'ff00' WHERE kind = 'period' AND name > ''",
    "a stamp that is a blob": "UPDATE localparity_rows SET stamp = x'ff00' WHERE kind = 'period'",
    "a kind that is a blob": "UPDATE localparity_rows SET kind = x'ff00' WHERE kind = 'state'",
    "a memo that is a number": "UPDATE localparity_rows SET payload = 1099511627776 WHERE kind LIKE 'series%'",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_folder_is_refused_or_means_nothing(what: str, tmp_path: Path) -> None:
    """Nothing of it runs for long, takes much memory, or is answered in a wrong way."""
    folder = tmp_path / "kept"
    Monitor(folder).append(batch(0), at=NOON, batch_id="0")
    expected = Monitor(folder).series()
    with closing(sqlite3.connect(folder / "monitor.sqlite")) as connection:
        connection.executescript(HOSTILE[what])
    with warnings.catch_warnings(action="ignore"):
        try:
            assert Monitor(folder).series() == expected
            assert Monitor(folder).append(batch(1), at=NOON, batch_id="1")
        except ValueError as error:
            assert str(folder) in str(error)  # noqa: PT017
        else:
            assert what == "a memo that is a number"


def test_a_file_whose_pages_point_at_one_another_ends(tmp_path: Path) -> None:
    """500 pointers to the next page, in each of six: 10^16 rows in nine pages."""
    path, size = tmp_path / "endless.sqlite", 4096
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES ('a')")
    first, leaf = path.read_bytes()[:size], path.read_bytes()[size:]
    inner = [_pointers(page + 1, 500, size) for page in range(2, 8)]
    path.write_bytes(first[:28] + (8).to_bytes(4, "big") + first[32:] + b"".join(inner) + leaf)
    with closing(sqlite3.connect(path)) as connection:
        limit_work(connection)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute("SELECT count(*) FROM t WHERE a LIKE '%b%'").fetchall()


def _pointers(page: int, number: int, size: int) -> bytes:
    """An inner page of a table of SQLite, all of whose pointers are to one page."""
    start = size - 5 * number
    places = b"".join((start + 5 * place).to_bytes(2, "big") for place in range(number))
    head = (
        b"\x05\x00\x00"
        + number.to_bytes(2, "big")
        + start.to_bytes(2, "big")
        + b"\x00"
        + page.to_bytes(4, "big")
    )
    return (head + places).ljust(start, b"\x00") + (page.to_bytes(4, "big") + b"\x01") * number


@pytest.mark.parametrize("removed", ["<f8", ["2026-05-01", "2026-05-02", "x"], [1, 2, None]])
def test_removed_periods_that_cannot_be_counted_are_refused(removed: Any) -> None:
    values = json.loads(MonitorState("day", (0.0, 1.0)).to_bytes()) | {"removed": removed}
    with pytest.raises(ValueError, match="the state is damaged: periods must be an integer"):
        MonitorState.from_bytes(json.dumps(values).encode(), "the state")


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_READONLY])
def test_a_disk_that_fails_while_a_monitor_is_made_is_named(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended with 3, a fault of ours, before."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(sqlite3, "connect", fail)
    store = Monitor(tmp_path / "kept").store
    with pytest.raises(OSError, match=r"kept.*cannot be used: disk I/O error"), store.writing():
        pass
