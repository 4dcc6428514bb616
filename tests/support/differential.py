"""Random people whose MCDP is known in whole numbers, and every way in which the package computes it.

The expected values share no code with the package: scores are whole multiples of a unit, weights whole numbers,
and MCDP is the highest of all runs of knots that are long enough, each of them looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import limits
import localparity as lp
from localparity.metrics._exact import count_for

UNIT = 2**53
"""Scores of every bit are whole multiples of one over this."""

RANGES = [((0.0, 1.0), None), ((-4.0, 4.0), None), ((300.0, 850.0), 550)]
"""Score ranges, and the units that they are cut into where that is not the scores' own."""


@dataclass(frozen=True, eq=False)
class Case:
    """People, in whole numbers and as the package takes them.

    `places` are the scores in units of which the range has `units`.
    """

    seed: int
    places: NDArray[np.int64]
    units: int
    groups: NDArray[np.int64]
    labels: NDArray[np.int64]
    weights: NDArray[np.int64] | None
    score_range: tuple[float, float]
    comparison: lp.Comparison
    epsilons: list[Fraction]

    @property
    def scores(self) -> NDArray[np.float64]:
        low, high = self.score_range
        return low + (high - low) * (self.places / self.units)

    @property
    def asked(self) -> dict[str, Any]:
        return {"criterion": self.comparison.criterion, "compare": self.comparison.compare}

    @property
    def columns(self) -> dict[str, Any]:
        columns = {"p": self.scores, "g": self.groups, "y": self.labels}
        return columns if self.weights is None else {**columns, "w": self.weights.astype(np.float64)}

    @property
    def names(self) -> dict[str, Any]:
        weight = None if self.weights is None else "w"
        return {"score": "p", "group": "g", "label": "y", "weight": weight, "score_range": self.score_range}

    @cache  # noqa: B019 - a case lives as long as its check
    def expected(self, epsilon: Fraction) -> float | None:
        """MCDP of the worst pair, None where a group has no people under a label."""
        worst = Fraction(0)
        weights = np.ones(self.places.size, dtype=np.int64) if self.weights is None else self.weights
        present = np.unique(self.groups)
        for label in self.comparison.labels:
            among = (weights > 0) & (True if label is None else self.labels == label)
            if any(not (among & (self.groups == group)).any() for group in present):
                return None
            knots, at = np.unique(self.places[among], return_inverse=True)
            sides = [self._below(at, weights[among] * (self.groups[among] == group)) for group in present]
            everyone = np.sum(sides, axis=0)
            pairs = (
                combinations(sides, 2)
                if self.comparison.compare == "between_groups"
                else ((side, everyone) for side in sides)
            )
            for first, second in pairs:
                gap = np.abs(first * second[-1] - second * first[-1])
                size = int(first[-1]) * int(second[-1])
                worst = max(worst, Fraction(highest_run(knots, gap, epsilon * self.units), size))
        return float(worst)

    @staticmethod
    def _below(at: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The weight up to each knot."""
        found = np.zeros(at.max() + 1, dtype=np.int64)
        np.add.at(found, at, weights)
        return np.cumsum(found)


def highest_run(knots: NDArray[np.int64], gap: NDArray[np.int64], epsilon: Fraction) -> int:
    """The highest level that a gap stays at or above, from one knot up to another, over more than 2 epsilon.

    At the bottom of the range a window is cut, and half of that does. After the last knot there is no gap.
    """
    best = 0
    for start in range(knots.size - 1):
        levels = np.minimum.accumulate(gap[start:-1])
        lengths = knots[start + 1 :] - knots[start]
        long = 2 * epsilon if knots[start] else epsilon
        carried = lengths > int(
            long
        )  # whole numbers are above a number where they are above what it is cut to
        best = max(best, int(levels[carried].max(initial=0)))
    return best


def draw(seed: int) -> Case:
    """People of one of many kinds, in one of several orders."""
    rng = np.random.default_rng(seed)
    n_groups = int(rng.choice([2, 2, 2, 3, 5, 12, 40]))
    n = int(rng.choice([n_groups + 1, 17, 40, 64, 120, 300]))
    n = max(n, n_groups)
    groups = rng.integers(0, n_groups, n)
    groups[:n_groups] = np.arange(n_groups)
    labels = rng.integers(0, 2, n)
    score_range, units = RANGES[rng.integers(len(RANGES))]
    units, places = _draw_places(rng, groups, units)
    weights = rng.choice([0, 1, 2, 3, 100, 2**20], n) if rng.random() < 0.3 else None
    if weights is not None:
        weights[:n_groups] = 1
    criteria = ("demographic_parity", "demographic_parity", "equal_opportunity", "equalized_odds")
    comparison = lp.Comparison(criteria[rng.integers(4)], ("between_groups", "to_overall")[rng.integers(2)])
    order = _order(rng, n, places, groups, labels)
    epsilons = [Fraction(0), Fraction(int(rng.integers(1, 200)), 1000)]
    if units < UNIT:  # where a run may be as long as a window to the last bit
        epsilons.append(Fraction(int(rng.integers(1, units)), 4 * units))
    return Case(
        seed,
        places[order],
        units,
        groups[order],
        labels[order],
        None if weights is None else weights[order],
        score_range,
        comparison,
        epsilons,
    )


def _draw_places(
    rng: np.random.Generator, groups: NDArray[np.int64], units: int | None
) -> tuple[int, NDArray[np.int64]]:
    """Scores as places among so many units."""
    n = groups.size
    if units is not None:
        return units, np.minimum(rng.integers(0, units + 1, n) + 30 * (groups % 3), units)
    kind = rng.integers(8)
    if kind == 0:  # one value
        return UNIT, np.full(n, rng.integers(0, UNIT + 1))
    if kind == 1:  # two values
        return UNIT, rng.choice([0, UNIT // 2, UNIT - 1, UNIT], 2)[rng.integers(0, 2, n)]
    if kind == 2:  # a few floats apart, above a half, where each unit is a float
        return UNIT, UNIT // 2 + rng.integers(0, UNIT // 4) + rng.integers(
            0, int(rng.choice([3, 20, 4000])), n
        )
    if kind == 3:  # most of them a few floats apart, and some far below
        near = UNIT // 2 + rng.integers(0, 4000, n)
        return UNIT, np.where(rng.random(n) < rng.choice([0.05, 0.5]), rng.integers(0, UNIT // 2, n), near)
    if kind == 4:  # decimals
        return 1000, np.minimum(rng.integers(0, 900, n) + 40 * (groups % 3), 1000)
    if kind == 5:  # parity, to the last person
        return 64, np.repeat(rng.integers(0, 65, -(-n // 2)), 2)[:n]
    if kind == 6:  # near parity
        return UNIT, rng.integers(0, UNIT + 1, n)
    return UNIT, np.minimum((rng.random(n) ** (1.0 + 0.2 * (groups % 4)) * UNIT).astype(np.int64), UNIT)


def _order(
    rng: np.random.Generator,
    n: int,
    places: NDArray[np.int64],
    groups: NDArray[np.int64],
    labels: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The rows in random order, or sorted by score, label or group."""
    sorted_by = (rng.permutation(n), places, -places, labels, groups)[rng.integers(5)]
    return np.argsort(sorted_by, kind="stable")


Answers = Iterator[tuple[str, Fraction, float]]


def from_arrays(case: Case, rng: np.random.Generator) -> Answers:
    """Arrays, counts and profiles, some of them asked twice."""
    people: dict[str, Any] = {"sensitive_features": case.groups, "score_range": case.score_range}
    people["sample_weight"] = None if case.weights is None else case.weights.astype(np.float64)
    at = [float(epsilon) for epsilon in case.epsilons]
    given = case.labels, case.scores
    jobs = int(rng.integers(1, 4))
    for name in ("mcdp", "mcdp again"):
        found = lp.mcdp(*given, epsilon=at, n_jobs=jobs, **people, **case.asked)
        yield from ((name, epsilon, value) for epsilon, value in zip(case.epsilons, found, strict=True))
    yield "mcdp of one", case.epsilons[1], lp.mcdp(*given, epsilon=at[1], **people, **case.asked)
    profile = lp.mcdp_profile(*given, **people, **case.asked)
    yield from (("profile", epsilon, profile(float(epsilon))) for epsilon in case.epsilons)
    predictions = lp.Predictions.from_arrays(*given, **people)
    counts = lp.ScoreCounts.from_predictions(predictions)
    yield from _of_counts("counts", counts, case)
    few = count_for(predictions, lp.Comparison(**case.asked), np.array(at))
    yield from _of_counts("counts in cells", few, case)
    yield from _bounds_of_counts(counts, few, case, rng)


def _of_counts(name: str, counts: lp.ScoreCounts, case: Case, *, exact: bool = True) -> Answers:
    """MCDP of counts, and its bounds."""
    for epsilon in case.epsilons:
        bounds = lp.mcdp_bounds(counts, epsilon=float(epsilon), **case.asked)
        value = case.expected(epsilon)
        assert value is None or bounds.low - 1e-12 <= value <= bounds.high + 1e-12, (
            name,
            epsilon,
            value,
            bounds,
        )
        if exact:
            yield name, epsilon, lp.mcdp(counts, epsilon=float(epsilon), **case.asked)


def _bounds_of_counts(
    exact: lp.ScoreCounts, few: lp.ScoreCounts, case: Case, rng: np.random.Generator
) -> Answers:
    """Bounds of counts on cells, of several origins, and of all of them together."""
    parts = [exact, few]
    for counts in (exact, few):
        levels = rng.integers(1, 12, 2).tolist()
        for level in levels:
            counts = lp.counts.bounded(counts, max_scores=int(rng.choice([1, 10])), level=level)
        yield from _of_counts(f"bounded {levels}", counts, case, exact=False)
        parts.append(counts)
    chosen = [parts[place] for place in rng.integers(0, 4, 3)]
    merged = lp.counts.merge_bounded(chosen, max_scores=1, level=int(rng.integers(1, 12)))
    # Each part has the same people, so that all of them together have their MCDP.
    yield from _of_counts("merge_bounded", merged, case, exact=False)
    yield from _of_counts("merge", chosen[0].merge(chosen[1]), case, exact=False)


def _options(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """How an engine counts, within small limits."""
    return {
        "epsilons": [float(epsilon) for epsilon in case.epsilons],
        "max_scores": int(rng.choice([1, 5, 40, 10_000])),
        "level": int(rng.choice([1, 3, 6, 12])),
        **case.asked,
    }


def from_duckdb(case: Case, rng: np.random.Generator) -> Answers:
    import duckdb
    import pyarrow

    with duckdb.connect() as connection:
        connection.register("people", pyarrow.table(case.columns))
        relation = connection.sql("SELECT * FROM people")
        yield from _engine("from_duckdb", lp.engines.from_duckdb, relation, case, rng)


def from_ibis_duckdb(case: Case, rng: np.random.Generator) -> Answers:
    yield from _from_ibis("duckdb", case, rng)


def from_ibis_sqlite(case: Case, rng: np.random.Generator) -> Answers:
    yield from _from_ibis("sqlite", case, rng)


def _from_ibis(backend: str, case: Case, rng: np.random.Generator) -> Answers:
    import ibis
    import pyarrow

    connection = getattr(ibis, backend).connect()
    table = connection.create_table("people", pyarrow.table(case.columns))
    yield from _engine(f"from_ibis {backend}", lp.engines.from_ibis, table, case, rng)
    connection.disconnect()


def from_spark(spark: Any) -> Callable[[Case, np.random.Generator], Answers]:
    """Spark, given its session."""

    def count(case: Case, rng: np.random.Generator) -> Answers:
        rows = zip(*(column.tolist() for column in case.columns.values()), strict=True)
        frame = spark.createDataFrame(list(rows), list(case.columns))
        yield from _engine("from_spark", lp.engines.from_spark, frame, case, rng)

    return count


def _engine(name: str, count: Any, table: Any, case: Case, rng: np.random.Generator) -> Answers:
    options = _options(case, rng)
    # An engine that is told to read few cells may end with bounds.
    yield from _of_counts(
        f"{name} {options}", count(table, **case.names, **options), case, exact=_reads_all()
    )


def _reads_all() -> bool:
    from localparity.engines import protocol

    return protocol._MAX_CELLS_READ >= 2**16 and protocol._MOST_READ >= 2**18


def from_torch(case: Case, rng: np.random.Generator) -> Answers:
    import torch

    weights = None if case.weights is None else torch.tensor(case.weights.astype(np.float64))
    given = torch.tensor(case.scores), torch.tensor(case.groups)
    rows: dict[str, Any] = {"y_true": torch.tensor(case.labels), "score_range": case.score_range}
    options = _options(case, rng)
    counts = lp.engines.from_torch(*given, sample_weight=weights, **rows, **options)
    yield from _of_counts(f"from_torch {options}", counts, case, exact=_reads_all())
    worst = lp.engines.from_torch(*given, sample_weight=weights, **rows, **options, worst_only=True)
    yield from _of_counts(f"from_torch worst_only {options}", worst, case, exact=_reads_all())


def from_polars(case: Case, rng: np.random.Generator) -> Answers:
    import polars

    frame = polars.DataFrame(case.columns)
    for epsilon in case.epsilons:
        value = lp.mcdp(
            frame["y"],
            frame["p"],
            sensitive_features=frame["g"],
            sample_weight=frame["w"] if case.weights is not None else None,
            epsilon=float(epsilon),
            score_range=case.score_range,
            **case.asked,
        )
        yield "polars", epsilon, value


def check(case: Case, source: Callable[[Case, np.random.Generator], Answers]) -> int:
    """Compare what a source answers with what is expected; returns the number of answers."""
    rng = np.random.default_rng(case.seed)
    impossible = case.expected(case.epsilons[0]) is None
    if impossible:
        with pytest.raises(ValueError, match=r"group .* has no rows with y_true = "):
            list(source(case, rng))
        return 1
    answers = list(source(case, rng))
    for name, epsilon, value in answers:
        expected = case.expected(epsilon)
        assert 0.0 <= value <= 1.0, f"seed {case.seed}, {name}, epsilon {epsilon}: {value}, not {expected}"
        close = value == expected or (case.weights is not None and abs(value - (expected or 0.0)) < 1e-13)
        assert close, f"seed {case.seed}, {name}, epsilon {epsilon}: {value}, not {expected}"
    return len(answers)


SOURCES = {
    "arrays": from_arrays,
    "duckdb": from_duckdb,
    "ibis on duckdb": from_ibis_duckdb,
    "ibis on sqlite": from_ibis_sqlite,
    "torch": from_torch,
    "polars": from_polars,
}


def check_seeds(source: Callable[[Case, np.random.Generator], Answers], seeds: range) -> int:
    """Check cases, each within limits of its own; returns how many answers were compared."""
    answers = 0
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            drawn = limits.set_limits(patch, np.random.default_rng(seed), plain=seed % 4 == 0)
            try:
                answers += check(draw(seed), source)
            except BaseException as error:
                error.add_note(f"seed {seed}, limits {drawn}")
                raise
    return answers
