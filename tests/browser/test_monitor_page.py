"""The page of a monitor in a browser, from a file, with the network off."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity._text import percent
from localparity.metrics import Interval
from localparity.monitoring import Monitor, PeriodResult, Watch, WindowResult
from localparity.report.page._monitor import MonitorDocument, render_monitor_page
from looks import LOOKS

pytest.importorskip("datasketches")

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
NAMES = ("<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>")

WATCH = Watch(max_mcdp=0.1)

OpenPage = Callable[..., Any]


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    """Twenty days, of which the last eight are apart and one has nothing to compare."""
    monitor = Monitor(tmp_path_factory.mktemp("monitor") / "kept")
    for day in range(20):
        groups = np.repeat(NAMES, 100) if day != 7 else np.repeat(NAMES[:1], 100)
        scores = 0.7 * np.random.default_rng(day).random(groups.size) + 0.3 * (groups == NAMES[1]) * (
            day > 11
        )
        rows = lp.Predictions.from_arrays(None, scores, sensitive_features=groups, min_groups=1)
        monitor.append(rows, at=NOON + timedelta(days=day), batch_id=str(day))
    return monitor


@pytest.fixture(scope="module")
def path(monitor: Monitor) -> Path:
    path = Path(monitor.location).with_name("page.html")
    lp.report.write_monitor_page(path, monitor, WATCH, title=NAMES[0])
    return path


def test_every_period_can_be_chosen(open_page: OpenPage, path: Path, monitor: Monitor) -> None:
    page = open_page(path)
    series = monitor.series(WATCH)
    for place, point in enumerate(series):
        page.locator("#period").fill(str(place))
        assert page.locator("#period-shown").text_content() == point.period
        told = page.locator("#detail").text_content()
        assert f"Rows{point.rows}" in told
        if point.interval is None:
            assert point.missing in told
            continue
        assert page.locator("#mcdp").text_content() == percent(point.interval.estimate)
        assert percent(point.interval.low) in told
        assert page.locator("#detail-window").text_content() == point.window
        assert ("Alarmnone" in told) == (point.alarm is None)
        if point.alarm is not None:
            assert percent(point.alarm.interval.low) in told
    assert page.locator("h1").text_content() == NAMES[0]
    assert page.locator("img").count() == 0


def test_alarms_are_walked_through_with_the_keyboard(
    open_page: OpenPage, path: Path, monitor: Monitor
) -> None:
    page = open_page(path)
    alarmed = [point.period for point in monitor.series(WATCH) if point.alarm]
    assert len(alarmed) > 2
    page.locator("#period").focus()
    page.keyboard.press("Home")
    page.locator("#next-alarm").focus()
    for period in alarmed:
        page.keyboard.press("Enter")
        assert page.locator("#period-shown").text_content() == period
        assert page.locator("#period").get_attribute("aria-valuetext").endswith(", alarm")
    page.keyboard.press("Enter")
    assert page.locator("#period-shown").text_content() == alarmed[-1]
    page.locator("#previous-alarm").click()
    assert page.locator("#period-shown").text_content() == alarmed[-2]


def test_the_picture_is_hovered_and_clicked(open_page: OpenPage, path: Path, monitor: Monitor) -> None:
    page = open_page(path)
    picture = page.locator("#picture")
    box = picture.bounding_box()
    picture.hover(position={"x": box["width"] - 20, "y": 60})
    told = page.locator("#tip").text_content().split("\n")
    newest = monitor.series()[-1]
    assert told[:2] == [newest.period, f"MCDP {percent(newest.interval.estimate)}"]
    picture.click(position={"x": 55 / 560 * box["width"], "y": 60})
    assert page.locator("#period-shown").text_content() == "2026-05-01"
    line = page.locator("#chosen-line")
    assert float(line.get_attribute("x1")) == pytest.approx(50 + 496 / 40)


@pytest.mark.parametrize(("look", "options", "paper"), LOOKS)
def test_every_look_is_accessible(
    open_page: OpenPage, path: Path, axe_source: str, look: str, options: dict[str, Any], paper: str
) -> None:
    page = open_page(path, **options)
    if look == "print":
        page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"monitor-{look}.png", full_page=True)
    page.evaluate(axe_source)
    found = page.evaluate("axe.run()")
    problems = [
        (problem["id"], problem["nodes"][0]["html"])
        for problem in found["violations"]
        if problem["impact"] in {"serious", "critical"}
    ]
    assert problems == []
    assert len(found["passes"]) > 20


def test_ten_thousand_periods_stay_small(open_page: OpenPage, monitor: Monitor, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    series = []
    for hour in range(10_000):
        low, estimate, high = np.sort(rng.random(3)).tolist()
        name = (NOON + timedelta(hours=hour)).strftime("%Y-%m-%dT%H")
        interval = Interval(low, estimate, high, 0.95)
        alarm = WindowResult(name, name, 1, 400, interval) if hour % 2 else None
        groups = {"women and men of one department": 200, "all others": 200}
        series.append(PeriodResult(name, 400, interval, 0.1, alarm, groups=groups, window="x" * 200))
    whole = WindowResult(series[0].period, series[-1].period, 10_000, 4_000_000, series[0].interval)
    path = tmp_path / "many.html"
    path.write_text(
        render_monitor_page(MonitorDocument(monitor, "Many", series, whole, WATCH)), encoding="utf-8"
    )
    assert path.stat().st_size < 3e6
    page = open_page(path)
    page.locator("#period").fill("5000")
    assert page.locator("#mcdp").text_content() == percent(series[5000].interval.estimate)
    numbers = json.loads(page.locator("#numbers").text_content())
    assert numbers["since_start"]["periods"] == 10_000
