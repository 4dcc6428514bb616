"""Alarms over windows of periods: what a plain computation on all scores gives, and no more of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import combinations, islice, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from benchmarks import monitors

import localparity as lp
from localparity.monitoring import Monitor, Watch
from localparity.monitoring._alarms import LONGEST, Detector, Look, window_share
from localparity.monitoring._watch import alarm_sentence
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
    """The batches as they came, and the evidence by the formula, one row after the other."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.bound = watch.max_mcdp or 0.0
        self.batches: list[tuple[int, Rows]] = []

    def alarms(self) -> dict[int, int]:
        """The days that are the newest one while there is an alarm, and since when the evidence grew."""
        numbers: dict[Any, float] = {}
        since: dict[Any, int] = {}
        past: dict[Any, list[Batches]] = {}
        alarms, comparisons, cutoffs, chosen_at = {}, 0, np.linspace(0.0, 1.0, 34)[1:-1], 0
        waiting: dict[Any, Batches] = {}
        day, everyone, newest = -1, np.empty(0), -1
        total, needed = 0.0, 1.0 / (0.8 * self.watch.alarm_rate)
        for number, (at, rows) in enumerate(self.batches):
            newest = max(newest, at)
            steps = []
            if at != day:
                left = {pair: pool for pair, pool in waiting.items() if min(sizes(pool)) > 0}
                steps.append((day, cutoffs, left))
                waiting, day = {}, at
                if number and everyone.size >= 2 * chosen_at:
                    places = np.ceil(np.arange(1, 33) / 33 * everyone.size - 1e-9).astype(int) - 1
                    cutoffs, chosen_at = np.sort(everyone)[places], everyone.size
            for pair, (first, second) in self.pairs(number, rows).items():
                parts = waiting.get(pair, Batches([], []))
                waiting[pair] = Batches(parts.first + first, parts.second + second)
            least = self.watch.min_group_size
            ready = {pair: pool for pair, pool in waiting.items() if min(sizes(pool)) >= least}
            waiting = {pair: pool for pair, pool in waiting.items() if pair not in ready}
            steps.append((at, cutoffs, ready))
            steps = [step for step in steps if step[-1]]
            if not steps and total >= needed:  # the evidence stands
                alarms[newest] = since[self.leading(numbers)]
            for of_day, at_cutoffs, pools in steps:
                comparisons += 1
                weight = comparisons**-1.1 / 10.584448464950803 / len(pools)
                for pair, pool in pools.items():
                    self.bet(numbers, since, past, (pair, pool), (at_cutoffs, weight, of_day))
                total = self.total(numbers)
                if total > 100.0 * needed:
                    numbers = {key: value * 100.0 * needed / total for key, value in numbers.items()}
                if total >= needed:
                    alarms[newest] = since[self.leading(numbers)]
            everyone = np.append(everyone, [score for score, _ in rows])
        return alarms

    def pairs(self, number: int, rows: Rows) -> dict[Any, Batches]:
        """The scores of the two groups of each pair, of groups that came so far."""
        names = list(dict.fromkeys(group for _, some in self.batches[: number + 1] for _, group in some))
        own = {name: [score for score, group in rows if group == name] for name in names}
        if self.watch.compare == "between_groups":
            pairs = {(a, b): Batches(own[a], own[b]) for a, b in combinations(names, 2)}
        else:
            rest = {name: [score for score, group in rows if group != name] for name in names}
            pairs = {(name, "everyone"): Batches(own[name], rest[name]) for name in names}
        return {pair: pool for pair, pool in pairs.items() if max(sizes(pool))}

    def bet(self, numbers: Any, since: Any, past: Any, pooled: Any, step: Any) -> None:
        pair, pool = pooled
        cutoffs, weight, day = step
        n, m = sizes(pool)
        bound = self.bound if self.watch.compare == "between_groups" else self.bound * (n + m) / m
        bound = min(bound, 1.0)
        cells = list(zip(cutoffs, cutoffs, strict=True))
        if self.watch.epsilon > 0.0:
            edges = np.arange(129) / 128
            cells = list(pairwise(edges))
        for (place, (low, high)), sign in product(enumerate(cells), (0, 1)):
            first, second = np.array(pool[sign]), np.array(pool[1 - sign])
            key = pair, place if self.watch.epsilon > 0.0 else (place,), sign
            # The rows before count less and less; those of moved cutoffs as they were counted then.
            below, people = past.get(key, (0.5, 1.0))
            x, y = first <= low, second <= high
            sides = (n, m) if sign == 0 else (m, n)
            b = min(max(below / people - bound * sides[0] / (n + m), 0.0), 1.0 - bound)
            a = b + bound
            variance = a * (1 - a) / sides[0] + b * (1 - b) / sides[1]
            most = 0.75 * min(sides[0] / max(a, 1e-300), sides[1] / max(1 - b, 1e-300))
            stakes = np.minimum(0.0025 * 2.0 ** np.arange(8) / max(variance, 1e-12), most)[:, None]
            won = np.hstack([1 + stakes / sides[0] * (x - a), 1 - stakes / sides[1] * (y - b)])
            for bet, value in enumerate(won.prod(axis=1).tolist()):
                before = numbers.get((*key, bet), 0.0)
                if before <= weight:
                    since[(*key, bet)] = day
                numbers[(*key, bet)] = (before + weight) * value
            past[key] = 0.9 * below + x.sum() + y.sum(), 0.9 * people + n + m

    def least(self, numbers: Any) -> dict[Any, tuple[float, Any]]:
        """Of each cutoff, or run of cells, the least number, and which one it is."""
        if self.watch.epsilon == 0.0:
            return {key: (value, key) for key, value in numbers.items()}
        width = 2 * self.watch.epsilon
        runs = [range(cell, 128) for cell in range(128)]
        runs = [
            run[: next((i + 1 for i in range(len(run)) if (i + 1) / 128 > width + 1e-12), 999)]
            for run in runs
            if len(run) / 128 > width + 1e-12
        ]
        runs.append(range(next(i for i in range(1, 129) if i / 128 > self.watch.epsilon + 1e-12)))
        others = {(key[0], *key[2:]) for key in numbers}
        return {
            (other, place): min(
                (numbers[other[0], cell, *other[1:]], (other[0], cell, *other[1:])) for cell in run
            )
            for other in others
            for place, run in enumerate(runs)
        }

    def total(self, numbers: Any) -> float:
        least = self.least(numbers)
        per_pair = len(least) / len({key[0] for key in numbers})
        return sum(value for value, _ in least.values()) / per_pair

    def leading(self, numbers: Any) -> Any:
        return max(self.least(numbers).values())[1]


class Batches(NamedTuple):
    first: list[float]
    second: list[float]


def sizes(pool: Batches) -> tuple[int, int]:
    return len(pool.first), len(pool.second)


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
    """With late and re-opened days, days in parts, groups that come and go, and a few people at a time."""
    rng, watch = np.random.default_rng(4), Watch(epsilon=epsilon, compare=compare, max_mcdp=bound)
    monitor, oracle = Monitor(tmp_path), Oracle(watch)
    days = (
        [*range(20), 3, 17, 19, 25, 22, 26, 26, 2] if epsilon == 0.0 else [*range(12), 3, 11, 14, 13, 14, 2]
    )
    for number, day in enumerate(days):
        rows = draw(rng, *design(day))
        parts = [rows] if day % 4 else [rows[:1], rows[1:41], rows[41:]]
        for part, some in enumerate(some for some in parts if some):
            append(monitor, day, some, f"{number} {part}")
            oracle.batches.append((day, some))
            if day % 5 == 0:
                monitor.series(watch, last=1)
    series = monitor.series(watch)
    expected = oracle.alarms()
    for point, day in zip(series, sorted({day for day, _ in oracle.batches}), strict=True):
        if day in expected:
            assert point.alarm is not None
            names = [name.period for name in series if name.period <= point.period]
            started = (START + timedelta(days=expected[day])).strftime("%Y-%m-%d")
            assert point.alarm.start == max(names[-LONGEST:][0], min(started, point.period))
        elif point.alarm is not None:  # by itself
            assert point.alarm.periods == 1
            assert point.alarm.interval is not None
            assert point.alarm.interval.low > bound
    assert expected or bound > 0.0


def test_a_small_drift_is_found_over_many_days_and_not_on_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    monitor, watch = Monitor(tmp_path), Watch(max_mcdp=0.0)
    for day in range(40):
        append(monitor, day, draw(rng, {"f": 100, "m": 100}, {"m": 0.07 * (day >= 20)}), str(day))
    series = monitor.series(watch)
    alarms = [point.alarm for point in series]
    assert not any(alarms[:20])
    (first, *_, last) = filter(None, alarms)
    assert first.periods > 2
    assert first.interval is not None
    assert first.rows == 200 * first.periods
    assert first.interval.confidence == 0.95
    # The window of the last alarm begins about when the drift did.
    assert (
        START + timedelta(days=17) < datetime.fromisoformat(f"{last.start}T12Z") < START + timedelta(days=23)
    )
    assert last.interval is not None
    assert sum(point.rows for point in series[-last.periods :]) == last.rows


def test_alarms_end_when_the_disparity_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    monitor = Monitor(tmp_path)
    for day in range(80):
        append(monitor, day, draw(rng, {"f": 60, "m": 60}, {"m": 0.3 * (10 <= day < 50)}), str(day))
    alarmed = [bool(point.alarm) for point in monitor.series(Watch(max_mcdp=0.05))]
    assert not any(alarmed[:10])
    assert all(alarmed[13:50])
    assert not any(alarmed[65:])


def test_a_tiny_group_adds_to_the_evidence_and_is_not_shown(tmp_path: Path) -> None:
    """Three women a day: nothing is said of a day, yet that they get other scores is found."""
    rng = np.random.default_rng(1)
    monitor, watch = Monitor(tmp_path), Watch(max_mcdp=0.05)
    for day in range(30):
        append(monitor, day, draw(rng, {"f": 3, "m": 60}, {"m": 0.6}), str(day))
    series = monitor.series(watch)
    assert all(point.missing and point.interval is None for point in series)
    last = series[-1].alarm
    assert last is not None
    assert last.interval is None
    assert "has been above the bound of 5.00% over the last" in alarm_sentence(last, "day", 0.05)


def test_one_person_at_a_time_is_as_good_as_a_day(tmp_path: Path) -> None:
    """Batches of one person are pooled until both groups have enough of them."""
    rng = np.random.default_rng(2)
    for name, at_a_time in (("days", 60), ("people", 1)):
        monitor = Monitor(tmp_path / name)
        for day in range(4):
            rows = draw(rng, {"f": 30, "m": 30}, {"m": 0.4})
            rows = [rows[place] for place in rng.permutation(60)]
            for start in range(0, 60, at_a_time):
                append(monitor, day, rows[start : start + at_a_time], f"{day} {start}")
        *_, last = monitor.series(Watch(max_mcdp=0.05))
        assert last.alarm is not None


def test_a_window_of_scores_needs_the_gap_all_over_it(tmp_path: Path) -> None:
    """The gap is large in a part of each window and 0 in another: no alarm at epsilon 0.1, one at 0."""
    rng = np.random.default_rng(3)
    monitor = Monitor(tmp_path)
    for day in range(20):
        groups = np.repeat(["f", "m"], 300)
        low, high = np.where(groups == "m", 0.05, 0.0), rng.integers(0, 10, 600) / 10.0
        batch = lp.Predictions.from_arrays(
            None, high + low + 0.01 * rng.random(600), sensitive_features=groups
        )
        monitor.append(batch, at=START + timedelta(days=day), batch_id=str(day))
    assert monitor.series(Watch(max_mcdp=0.02))[-1].alarm is not None
    assert not any(point.alarm for point in monitor.series(Watch(max_mcdp=0.02, epsilon=0.1)))


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
    assert second.alarm.periods == 1
    radius = float(band_radius((30_000, 30_000), 0.9 * 0.05 * window_share(2, 0, 1)))
    assert 0.001 < second.alarm.interval.estimate - radius - second.alarm.interval.low < 0.02


def test_the_shares_of_all_windows_and_looks_sum_to_at_most_one() -> None:
    """Whether batches come in order or any number of days late."""
    for newer in (0, 3, 10**6):
        spent = [
            min(length, 1 + newer) * window_share(look, newer, length)
            for look in range(1, 3000)
            for length in range(1, LONGEST + 1)
        ]
        assert 0.5 < sum(spent) < 1.0


def test_simulated_monitors_are_real_ones(tmp_path: Path) -> None:
    """The rule that `python -m benchmarks.monitors` simulates, batch by batch, against monitors in folders.

    The people are so few that sketches keep all scores, and with them the same cutoffs.
    """
    rng = np.random.default_rng(6)
    schedules = [monitors.drifting(0.05), monitors.tiny(0.45), monitors.one_by_one(0.2), monitors.late(0.05)]
    for number, (schedule, bound, epsilon) in enumerate(
        zip(schedules, (0.0, 0.1, 0.0, 0.0), (0, 0, 0, 0.02), strict=True)
    ):
        watch = Watch(max_mcdp=bound, epsilon=epsilon, alarm_rate=0.3)
        simulated = monitors.Monitors(watch, 2)
        folders = [Monitor(tmp_path / f"{number} {run}") for run in range(2)]
        ever = np.zeros((2, 2), dtype=bool)
        for place, batch in enumerate(islice(schedule(rng, 7), 30)):
            counts = batch.draw(rng, 2)
            ever[0] |= simulated.add(batch, counts)
            for run, monitor in enumerate(folders):
                people = np.diff(counts[run], axis=-1, prepend=0)
                rows = [
                    (score, group)
                    for group, some in zip("fm", people, strict=True)
                    for score in np.repeat(monitors.VALUES, some).tolist()
                ]
                append(monitor, batch.day, rows, str(place))
                ever[1, run] |= any(point.alarm for point in monitor.series(watch))
            if epsilon == 0.0:  # single days are simulated at epsilon 0 alone
                assert (ever[0] == ever[1]).all()
        states = [Detector(watch) for _ in folders]
        for run, monitor in enumerate(folders):
            for name, payload in monitor.store.looks(1, int(monitor.version())):
                states[run].add(Look.from_bytes(payload, name))
            for pair, known in states[run]._pairs.items():
                np.testing.assert_allclose(known.evidence, simulated.detector._pairs[pair].evidence[run])
        assert simulated.detector._pairs


def test_a_year_within_the_bound_and_a_drift() -> None:
    """A quick version of `python -m benchmarks.monitors`."""
    for place in (0, 4):
        assert monitors.false_alarms(monitors.DESIGNS[place], 40, np.random.default_rng(1), years=1) <= 6
    found = monitors.delays(60, np.random.default_rng(2), {"at once": 0})
    assert all(np.median(found[drift, "at once"]) <= most for drift, most in ((0.4, 1), (0.2, 2), (0.1, 7)))


@pytest.mark.slow
@pytest.mark.parametrize("design", monitors.DESIGNS, ids=lambda design: design.what)
def test_ten_years_within_the_bound_raise_few_alarms(design: monitors.Design) -> None:
    """At most 5% of monitors: 500 that raise 42 alarms or more would show a rate of twice that."""
    assert monitors.false_alarms(design, 500, np.random.default_rng(3)) < 42


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
