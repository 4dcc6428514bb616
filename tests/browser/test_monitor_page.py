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
    output = page.locator("output")
    for place, point in enumerate(series):
        page.locator("#period").fill(str(place))
        assert page.locator("[type=text]").input_value() == point.period
        told = output.text_content()
        assert f"{point.rows} people" in told
        if point.interval is None:
            assert point.missing in told
            continue
        assert told.startswith(percent(point.interval.estimate))
        assert float(output.get_attribute("data-value")) == pytest.approx(point.interval.estimate, abs=1e-9)
        assert f"({percent(point.interval.low)} to {percent(point.interval.high)})" in told
        assert page.locator("#detail").text_content() == point.window
        assert ("alarm" in told) == (point.alarm is not None)
        if point.alarm is not None:
            assert told.endswith(percent(point.alarm.interval.estimate))
    assert NAMES[0] in page.locator(".about").text_content()
    assert page.locator("img").count() == 0


def test_the_heading_is_the_finding(open_page: OpenPage, path: Path, monitor: Monitor) -> None:
    page = open_page(path)
    newest = monitor.series(WATCH)[-1]
    assert newest.alarm is not None
    heading = page.locator("h1").text_content()
    assert heading.startswith("Alarm: MCDP over ")
    assert f"is {100 * newest.alarm.interval.estimate:.0f}%" in heading
    assert page.title() == heading
    quiet = Path(monitor.location).with_name("quiet.html")
    lp.report.write_monitor_page(quiet, monitor, Watch(max_mcdp=0.9), force=True)
    heading = open_page(quiet).locator("h1").text_content()
    assert heading.startswith("No alarm: MCDP in 2026-05-20 is ")
    assert heading.endswith("within the bound of 90%")


def test_the_chart_has_days_alarms_and_a_labelled_bound(
    open_page: OpenPage, path: Path, monitor: Monitor
) -> None:
    page = open_page(path)
    assert page.locator(".plot path.thin").count() == 1
    assert page.locator(".plot path.bold").count() == 1
    assert page.locator(".plot path.parity").count() == 2, "a day without groups parts the band"
    assert "bound 10%" in page.locator(".plot .direct").text_content()
    marks = [text for text in page.locator(".plot .tick.end").all_text_contents()]
    assert all(float(mark.rstrip("%")) % 5 == 0 for mark in marks)
    plot = page.locator(".plot").bounding_box()
    page.mouse.click(plot["x"] + 5, plot["y"] + 60)
    assert page.locator("[type=text]").input_value() == "2026-05-01"
    line = page.locator(".bracket").bounding_box()
    assert line["x"] - plot["x"] == pytest.approx(plot["width"] / 40, abs=1)


def test_a_period_is_typed_and_shared(open_page: OpenPage, path: Path) -> None:
    page = open_page(path, "#day=2026-05-05")
    assert page.locator("#period").input_value() == "4"
    page.locator("[type=text]").fill("2026-05-09")
    page.locator("[type=text]").blur()
    assert page.evaluate("location.hash") == "#day=2026-05-09"
    page.locator("[type=text]").fill("yesterday")
    assert page.locator("[type=text]").get_attribute("aria-invalid") == "true"
    assert page.locator("#period").input_value() == "8"


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
    assert [(problem["id"], problem["nodes"][0]["html"]) for problem in found["violations"]] == []
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
    assert path.stat().st_size < 2e6
    page = open_page(path)
    page.locator("#period").fill("5000")
    assert page.locator("output").text_content().startswith(percent(series[5000].interval.estimate))
    numbers = json.loads(page.locator("#numbers").text_content())
    assert numbers["since_start"]["periods"] == 10_000
