"""Alarms over windows of periods: what a plain computation on all scores gives, and no more of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from benchmarks import monitors

import localparity as lp
from localparity.monitoring import Monitor, Watch
from localparity.monitoring._alarms import LONGEST, Outline, alarm_share
from localparity.monitoring._periods import Period, average_curves
from localparity.uncertainty._bands import band_radius
from localparity.uncertainty._looks import average_radius

pytest.importorskip("datasketches")

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
Rows = list[tuple[float, str]]


def append(monitor: Monitor, day: int, rows: Rows, name: str) -> None:
    scores, groups = zip(*rows, strict=True)
    batch = lp.Predictions.from_arrays(None, scores, sensitive_features=groups, min_groups=1)
    assert monitor.append(batch, at=START + timedelta(days=day), batch_id=name, allow_duplicate=True)


def draw(rng: np.random.Generator, sizes: dict[str, int], shifts: dict[str, float]) -> Rows:
    """Scores of one decimal, which rise for a group with a shift."""
    return [
        (float(np.clip(rng.random() + shifts.get(group, 0.0), 0.0, 1.0).round(1)), group)
        for group, size in sizes.items()
        for _ in range(size)
    ]


class Oracle:
    """The batches as they came: all rows of each day, and at which look and how late each day was changed."""

    def __init__(self) -> None:
        self.days: dict[int, Rows] = {}
        self.looks: dict[int, tuple[int, int]] = {}
        self.look = 0

    def append(self, day: int, rows: Rows) -> None:
        self.look += 1
        self.days.setdefault(day, []).extend(rows)
        self.looks[day] = self.look, sum(other > day for other in self.days)

    def alarm(self, end: int, epsilon: float, bound: float, compare: str) -> tuple[int, float] | None:
        """The length of the shortest window up to a day that raises an alarm, and its lower end."""
        days = [day for day in sorted(self.days) if day <= end]
        for length in [2**scale for scale in range(9) if 2**scale <= len(days)]:
            window = days[-length:]
            look, newer = max(self.looks[day] for day in window)
            error = 0.9 * 0.05 * alarm_share(look, newer, length)
            pairs = self.pairs(window, compare)
            lows = [low_end(parts, epsilon, error / len(pairs)) for parts in pairs]
            if lows and max(lows) > bound:
                return length, max(lows)
        return None

    def pairs(self, window: list[int], compare: str) -> list[list[Part]]:
        """For each pair of groups, what the days of a window say of it."""
        found: dict[tuple[str, str], list[Part]] = {}
        for day in window:
            rows = self.days[day]
            names = sorted({group for _, group in rows})
            if len(names) < 2:
                continue
            own = {name: np.array([score for score, group in rows if group == name]) for name in names}
            rest = {name: np.array([score for score, group in rows if group != name]) for name in names}
            for a, b in (
                combinations(names, 2) if compare == "between_groups" else zip(names, names, strict=True)
            ):
                first, second = own[a], own[b] if a != b else rest[a]
                below = [(scores[:, None] <= TENTHS + 1e-9).mean(axis=0) for scores in (first, second)]
                scale = 1.0 if a != b else second.size / len(rows)
                part = Part(scale * (below[0] - below[1]), scale, first.size, second.size, len(window))
                found.setdefault((a, b), []).append(part)
        return list(found.values())


class Part(NamedTuple):
    """The gap of a pair on one day: two samples' gap, times a scale."""

    gap: np.ndarray
    scale: float
    first: int
    second: int
    days: int

    @property
    def variance(self) -> float:
        return self.scale**2 * (1.0 / self.first + 1.0 / self.second)


def low_end(parts: list[Part], epsilon: float, error: float) -> float:
    """MCDP of an average gap less the radius of its band."""
    weights = np.array([1.0 / part.variance for part in parts])
    gap = weights @ [part.gap for part in parts] / weights.sum()
    if parts[0].days == 1:
        return least_gap(gap, epsilon) - parts[0].scale * float(band_radius(parts[0][2:4], error))
    return least_gap(gap, epsilon) - average_radius(1.0 / weights.sum(), error)


TENTHS = np.linspace(0.0, 1.0, 11)


def least_gap(gap: np.ndarray, epsilon: float) -> float:
    """MCDP of a gap that is constant from each tenth up to the next, by trying windows all over the range."""
    if epsilon == 0.0:
        return float(np.abs(gap).max())
    best = 0.0
    for centre in np.linspace(0.0, 1.0, 401):
        low, high = max(centre - epsilon, 0.0), min(centre + epsilon, 1.0)
        inside = np.abs(gap)[int(low * 10 + 1e-9) : int(high * 10 + 1e-9) + 1]
        best = max(best, float(inside.min()))
    return best


def drifting(day: int) -> tuple[dict[str, int], dict[str, float]]:
    """Two groups, of which one drifts a little from day 12 on."""
    return {"f": 40, "m": 60}, {"m": 0.25 if day >= 12 else 0.0}


def of_three_groups(day: int) -> tuple[dict[str, int], dict[str, float]]:
    """One of three groups is missing on some days, and some days have one group only."""
    sizes = {"f": 50, "m": 40, "x": 30}
    if day % 3 == 1:
        del sizes["x"]
    return {"f": 30} if day % 7 == 5 else sizes, {"x": 0.3}


@pytest.mark.parametrize("design", [drifting, of_three_groups])
@pytest.mark.parametrize(("epsilon", "bound"), [(0.0, 0.0), (0.0, 0.08), (0.12, 0.01)])
@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
def test_alarms_are_those_of_a_plain_computation(
    tmp_path: Path, design: Callable[..., Any], epsilon: float, bound: float, compare: Any
) -> None:
    rng = np.random.default_rng(4)
    monitor, oracle = Monitor(tmp_path), Oracle()
    days = [*range(20), 3, 17, 19, 25, 22, 26, 26, 2]
    for number, day in enumerate(days):
        rows = draw(rng, *design(day))
        append(monitor, day, rows, str(number))
        oracle.append(day, rows)
    series = monitor.series(Watch(epsilon=epsilon, compare=compare, max_mcdp=bound))
    found: dict[str, Any] = {
        point.period: (point.alarm.periods, pytest.approx(point.alarm.interval.low))
        for point in series
        if point.alarm is not None and point.alarm.interval is not None
    }
    expected = {day: oracle.alarm(day, epsilon, bound, compare) for day in sorted(oracle.days)}
    assert found == {
        (START + timedelta(days=day)).strftime("%Y-%m-%d"): alarm for day, alarm in expected.items() if alarm
    }
    assert found or bound > 0.0


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.07, 0.3, 1.5])
def test_no_window_is_above_what_its_outline_allows(epsilon: float) -> None:
    rng, comparison = np.random.default_rng(5), lp.Comparison("equalized_odds")
    for size in (5, 40, 700):
        periods = []
        for number in range(4):
            groups = rng.choice(["f", "m", "x"][: 2 + number % 2], 3 * size)
            sketch, labels = lp.monitoring.ScoreSketch(score_range=(-1.0, 3.0)), rng.integers(0, 2, 3 * size)
            scores = 4.0 * rng.beta(1.0 + (groups == "m"), 1.5).round(2) - 1.0
            options: Any = {"sensitive_features": groups, "score_range": (-1.0, 3.0)}
            sketch.update(lp.Predictions.from_arrays(labels, scores, **options))
            periods.append(Period(str(number), number + 1, 0, sketch, comparison))
        outlines = [Outline.of(period) for period in periods]
        assert str(Outline.restore(*outlines[0].describe())) == str(outlines[0])
        halves = [outlines[1].after(outlines[0]), outlines[3].after(outlines[2])]
        for window, outline in ((periods[:2], halves[0]), (periods, halves[1].after(halves[0]))):
            curves = average_curves(window, 0.01)
            assert set(curves) == set(outline.pairs)
            for pair, curve in curves.items():
                exact, highest = curve.worst_window(epsilon).gap, outline.pairs[pair].highest(epsilon)
                assert exact <= highest + 1e-9
                assert highest < exact + 0.35 or size < 700


def test_the_shares_of_all_windows_and_looks_sum_to_at_most_one() -> None:
    """Whether batches come in order or any number of days late."""
    for newer in (0, 3, 10**6):
        spent = [
            min(2**scale, 1 + newer) * alarm_share(look, newer, 2**scale)
            for look in range(1, 3000)
            for scale in range(9)
            if 2**scale <= look
        ]
        assert 0.5 < sum(spent) < 1.0


def test_a_small_drift_is_found_over_many_days_and_not_on_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    monitor = Monitor(tmp_path)
    for day in range(40):
        append(monitor, day, draw(rng, {"f": 100, "m": 100}, {"m": 0.15 * (day >= 20)}), str(day))
    series = monitor.series(Watch(max_mcdp=0.0))
    alarms = [point.alarm for point in series]
    assert not any(alarms[:20])
    (first, *_) = filter(None, alarms)
    assert first.periods > 2
    assert first.interval is not None
    assert first.rows == 200 * first.periods
    assert (first.interval.confidence, first.interval.low > 0.0) == (0.95, True)


def test_people_are_compared_with_those_of_the_same_day(tmp_path: Path) -> None:
    """On odd days all scores are high, and most people women: together they differ, on each day they do not."""
    monitor = Monitor(tmp_path)
    for day in range(16):
        many, few = ("f", "m") if day % 2 else ("m", "f")
        rows = [(0.5 * (day % 2) + 0.4 * i / 99, many) for i in range(100)]
        rows += [(0.5 * (day % 2) + 0.4 * i / 9, few) for i in range(10)]
        append(monitor, day, rows, str(day))
    assert not any(point.alarm for point in monitor.series(Watch(max_mcdp=0.1)))
    whole = monitor.since_start().interval
    assert whole is not None
    assert whole.low > 0.5


def test_the_error_of_the_sketches_is_in_the_interval(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    monitor = Monitor(tmp_path)
    for day in range(2):
        groups = np.repeat(["f", "m"], 30_000)
        scores = np.clip(0.9 * rng.random(60_000) + 0.1 * (groups == "m"), 0.0, 1.0)
        batch = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
        monitor.append(batch, at=START + timedelta(days=day), batch_id=str(day))
    _, second = monitor.series(Watch(max_mcdp=0.105, alarm_rate=1e-9))
    assert second.alarm is None
    _, second = monitor.series(Watch(max_mcdp=0.07))
    assert second.alarm is not None
    assert second.alarm.interval is not None
    radius = float(band_radius((30_000, 30_000), 0.9 * 0.05 * alarm_share(2, 0, 1)))
    assert second.alarm.periods == 1
    assert 0.001 < second.alarm.interval.estimate - radius - second.alarm.interval.low < 0.02


def test_ten_years_of_parity_and_a_drift_at_their_end() -> None:
    """A quick version of `python -m benchmarks.monitors`."""
    rng = np.random.default_rng(0)
    quiet = monitors.false_alarm(10, 0.0)
    assert sum(quiet(rng) for _ in range(20)) <= 4
    missed = monitors.late_drift(10, 0.0, 0.0)
    assert sum(missed(rng) for _ in range(100)) <= 5
    assert monitors.LENGTHS[-1] == LONGEST
    late = monitors.late_batches(60)
    assert not any(late(rng) for _ in range(2))


def test_since_the_start_holds_everyone_at_every_look(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    monitor = Monitor(tmp_path)
    with pytest.raises(ValueError, match=r"has no periods"):
        monitor.since_start()
    append(monitor, 0, [(0.5, "f")], "alone")
    assert monitor.since_start().interval is None
    rows: Rows = [(0.5, "f")]
    for day in range(3):
        added = draw(rng, {"f": 30, "m": 50}, {"m": 0.2})
        append(monitor, day, added, str(day))
        rows += added
    found = monitor.since_start(Watch(epsilon=0.05))
    scores, groups = zip(*rows, strict=True)
    assert (found.start, found.end, found.periods, found.rows) == ("2026-01-01", "2026-01-03", 3, 241)
    assert found.interval is not None
    assert found.interval.estimate == pytest.approx(
        lp.mcdp(None, scores, sensitive_features=groups, epsilon=0.05)
    )
    radius = average_radius(1 / 91 + 1 / 150, 0.9 * 0.05 * 4**-1.1 / 10.584448)
    assert found.interval.high == pytest.approx(found.interval.estimate + radius)
    assert found.interval.low == pytest.approx(max(found.interval.estimate - radius, 0.0))
    overall = monitor.since_start(Watch(epsilon=0.05, compare="to_overall")).interval
    assert overall is not None
    assert overall.high - overall.estimate < radius
