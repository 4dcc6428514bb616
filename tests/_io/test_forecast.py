"""What is said of work that takes long, and when."""

from __future__ import annotations

import time

import pytest

from localparity import _progress as _forecast
from localparity._progress import Forecast, bar_on_terminal, forecasts_to, foretold


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(_forecast, "time", made)
    return made


def work(clock: Clock, seconds: float, total: int) -> list[tuple[float, str]]:
    """What is said, and when, while each item takes some seconds."""
    told: list[tuple[float, str]] = []
    with forecasts_to(lambda line: told.append((clock.now, line))):
        for _ in foretold(range(total), total, "comparing pairs"):
            clock.now += seconds
    return told


def test_long_work_is_announced_once_within_two_seconds(clock: Clock) -> None:
    assert work(clock, 0.25, 1200) == [(1.5, "comparing 1,200 pairs takes about 5 min; Ctrl-C stops")]


def test_an_item_that_takes_long_by_itself_is_known_after_it(clock: Clock) -> None:
    assert work(clock, 150.0, 100) == [(150.0, "comparing 100 pairs takes about 4 h 10 min; Ctrl-C stops")]


def test_a_first_item_that_loads_what_the_others_use_is_not_taken_for_one_of_them(clock: Clock) -> None:
    told: list[str] = []
    with forecasts_to(told.append):
        for place, _ in enumerate(foretold(range(1000), 1000, "comparing pairs")):
            clock.now += 0.1 if place else 1.4
    assert told == ["comparing 1,000 pairs takes about 1 min 41 s; Ctrl-C stops"]


@pytest.mark.parametrize(
    ("compiling", "others", "said"),
    [
        (4.0, 0.001, []),
        (4.0, 0.1, ["comparing 1,000 pairs takes about 1 min 44 s"]),
        (70.0, 0.001, []),  # on a busy machine
    ],
)
def test_a_first_item_that_compiles_for_long_is_not_taken_for_one_either(
    clock: Clock, compiling: float, others: float, said: list[str]
) -> None:
    told: list[str] = []
    with forecasts_to(told.append):
        for place, _ in enumerate(foretold(range(1000), 1000, "comparing pairs")):
            clock.now += others if place else compiling
    assert [line.partition(";")[0] for line in told] == said


def test_units_before_loops_are_compiled_say_nothing_of_the_others(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `localparity plan` runs: 0.01 s each at first, then 2 s of compiling, then 0.0001 s each."""
    plain = [0.0]
    monkeypatch.setattr("localparity._compiled.plain_seconds", lambda: plain[0])
    told: list[str] = []
    with forecasts_to(told.append):
        for place, _ in enumerate(foretold(range(10_000), 10_000, "drawing resamples")):
            clock.now += 0.01 if place < 400 else 2.0 if place == 400 else 0.0001
            plain[0] += 0.01 if place < 400 else 0.0
    assert told == []


def test_what_varies_is_said_once_it_does_so_no_more(clock: Clock) -> None:
    told: list[tuple[float, str]] = []
    with forecasts_to(lambda line: told.append((round(clock.now, 1), line))):
        for place, _ in enumerate(foretold(range(1000), 1000, "comparing pairs")):
            clock.now += 0.5 if place < 2 else 0.05
    assert told == [(2.5, "comparing 1,000 pairs takes about 51 s; Ctrl-C stops")]


def test_where_units_keep_varying_all_of_them_count(clock: Clock) -> None:
    """A unit that stood still on a busy machine was taken for all others: 14 hours were said, of 26 minutes."""
    told: list[str] = []
    with forecasts_to(told.append):
        for place, _ in enumerate(foretold(range(1000), 1000, "comparing pairs")):
            clock.now += 100.0 if place == 10 else 5.0 - 4.0 * (place % 2)
    assert told == ["comparing 1,000 pairs takes about 3 h 16 min; Ctrl-C stops"]


def test_short_work_is_not_announced(clock: Clock) -> None:
    assert work(clock, 0.25, 24) == []
    assert work(clock, 0.01, 10) == []


def test_nobody_listens_outside_commands(clock: Clock) -> None:
    with Forecast(1000, "training") as forecast:
        clock.now = 10.0
        forecast.advance(10)


def test_work_inside_other_work_counts_towards_it_and_says_nothing(clock: Clock) -> None:
    told: list[str] = []
    with forecasts_to(told.append), Forecast(10, "training") as outer:
        for _ in range(10):
            with outer.part(1):
                for _ in foretold(range(100), 100, "drawing resamples"):
                    clock.now += 0.1
                assert outer.done == pytest.approx(round(outer.done))
                for _ in foretold(range(7), 7, "drawing resamples"):  # all of the part is done already
                    clock.now += 0.1
        assert outer.done == pytest.approx(10)
    assert told == ["training takes about 1 min 40 s; Ctrl-C stops"]


def test_a_terminal_has_a_bar_with_the_time_left_and_nothing_after(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_forecast, "_SHORT", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with bar_on_terminal(), Forecast(4, "reading [red]a.csv") as forecast:
        for _ in range(200):
            if "reading" in (shown := capsys.readouterr().err):
                break
            time.sleep(0.02)
        forecast.advance(2, "half")
    shown += capsys.readouterr().err
    assert "reading [red]a.csv" in shown
    assert "50%" in shown
    assert "left" in shown
    assert shown.endswith("\x1b[2K")  # erased


def test_the_bar_says_when_loops_are_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first audit on a machine took a minute, at 0%, and nothing said why."""
    monkeypatch.setattr(_forecast, "_SHORT", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setattr("localparity._compiled._under_way", ["a loop"])
    with bar_on_terminal(), Forecast(4, "reading"):
        for _ in range(200):
            if "once on this machine" in capsys.readouterr().err:
                break
            time.sleep(0.02)
        else:
            pytest.fail("nothing is said")


def test_one_unit_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was "comparing 1 pairs of groups"."""
    begun: list[str] = []
    monkeypatch.setattr(_forecast._Lines, "begin", lambda _, forecast: begun.append(forecast.doing))
    monkeypatch.setattr(_forecast._Lines, "advance", lambda *_: None)
    for total in (1, 2):
        with forecasts_to(begun.append):
            list(foretold(range(total), total, "comparing pairs of groups"))
    assert begun == ["comparing pairs of groups", "comparing 2 pairs of groups"]


def test_short_work_has_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with bar_on_terminal(), Forecast(4, "reading") as forecast:
        forecast.advance(4)
    assert capsys.readouterr().err == ""
