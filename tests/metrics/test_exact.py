"""MCDP from cells is the one that sorting all rows gives, bit for bit, whatever the rows."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import localparity as lp
import oracles
from localparity.counts import Comparison
from localparity.metrics import _exact
from localparity.metrics._gap_curve import gap_between, gap_curves
from localparity.metrics._kernels import with_finer
from scale_rows import FAR_RANGES, NARROW_RANGES, far_scores, narrow_scores
from strategies import People, epsilons, people

EPSILONS = np.array([0.0, 0.001, 0.01, 0.05, 0.1])


@pytest.fixture(autouse=True)
def _few_rows_are_counted_in_cells_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_exact, "_FEW_ROWS", 0)


def sorted_mcdp(predictions: lp.Predictions, comparison: Comparison) -> NDArray[np.float64]:
    """MCDP of the worst pair, from all scores."""
    counts = lp.ScoreCounts.from_predictions(predictions)
    return np.max([curve.mcdp_at(EPSILONS) for curve in gap_curves(counts, comparison)], axis=0)


def check(predictions: lp.Predictions, comparison: Comparison | None = None, n_jobs: int = 1) -> None:
    """The worst pair alone, and every pair of counts, are as from all scores."""
    asked = comparison or Comparison()
    found = _exact.worst_mcdp(predictions, asked, EPSILONS, n_jobs)
    assert found.tolist() == sorted_mcdp(predictions, asked).tolist()
    counts = _exact.count_for(predictions, asked, EPSILONS, n_jobs)
    exact = gap_curves(lp.ScoreCounts.from_predictions(predictions), asked)
    for one, other in zip(gap_curves(counts, asked), exact, strict=True):
        assert one.mcdp_at(EPSILONS).tolist() == other.mcdp_at(EPSILONS).tolist()
        assert one.sizes == other.sizes


@settings(deadline=None)
@given(st.data())
def test_equals_the_definition_in_rational_arithmetic(data: st.DataObject) -> None:
    drawn = data.draw(people(n_groups=3))
    epsilon = data.draw(epsilons(drawn.grid))
    predictions = lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups)
    found = _exact.worst_mcdp(predictions, Comparison(), np.array([float(epsilon)]))
    pairs = combinations(drawn.samples(), 2)
    expected = max(oracles.mcdp(a, b, epsilon) for a, b in pairs)
    assert found[0] == pytest.approx(float(expected), abs=1e-15)
    assert isinstance(expected, Fraction)


@settings(deadline=None)
@given(people(n_groups=3, max_size=60), st.sampled_from(["between_groups", "to_overall"]))
def test_weights_groups_and_both_comparisons(drawn: People, compare: Any) -> None:
    given_weights = {"sample_weight": drawn.weights}
    for options in ({}, given_weights):
        predictions = lp.Predictions.from_arrays(
            None, drawn.scores, sensitive_features=drawn.groups, **options
        )
        check(predictions, Comparison(compare=compare))


def draw(name: str, rows: int = 20_000) -> NDArray[Any]:
    rng = np.random.default_rng(1)
    some = rng.beta(2, 5, rows)
    return {
        "smooth": some,
        "single precision": some.astype(np.float32),
        "all equal": np.full(rows, 0.3),
        "two values": np.where(some < 0.3, 0.2, 0.8),
        "ties": some.round(3),
        "many magnitudes": 10.0 ** (-300 * some),
        "half in one place": np.where(some < 0.3, 0.5 + 1e-9 * some, some),
        "half at zero": np.where(some < 0.3, 0.0, some),
        "one far away": np.append(some[1:] * 1e-6, 1.0),
    }[name]


DESIGNS = [
    "smooth",
    "single precision",
    "all equal",
    "two values",
    "ties",
    "many magnitudes",
    "half in one place",
    "half at zero",
    "one far away",
]


@pytest.mark.compiled
@pytest.mark.parametrize("groups", [2, 5])
@pytest.mark.parametrize("name", DESIGNS)
def test_designs_that_crowd_into_few_cells(name: str, groups: int) -> None:
    scores = draw(name)
    rng = np.random.default_rng(2)
    codes = rng.integers(0, groups, scores.size)
    scores = np.where(codes == 0, scores**1.05, scores).astype(scores.dtype)
    check(lp.Predictions.from_arrays(None, scores, sensitive_features=codes))


@pytest.mark.compiled
@pytest.mark.parametrize("criterion", ["equal_opportunity", "equalized_odds"])
def test_labels_and_weights_of_many_sizes(criterion: Any) -> None:
    scores = draw("smooth")
    rng = np.random.default_rng(3)
    weights = rng.random(scores.size) * 10.0 ** rng.integers(-6, 6, scores.size)
    weights[::7] = 0.0
    predictions = lp.Predictions.from_arrays(
        rng.integers(0, 2, scores.size),
        scores,
        sensitive_features=rng.integers(0, 3, scores.size),
        sample_weight=weights,
    )
    check(predictions, Comparison(criterion))


@pytest.mark.parametrize("score_range", [*FAR_RANGES, *NARROW_RANGES])
def test_any_score_range(score_range: tuple[float, float]) -> None:
    narrow = score_range in NARROW_RANGES
    scores = narrow_scores(score_range) if narrow else far_scores(score_range)
    groups = np.arange(scores.size) % 2
    check(
        lp.Predictions.from_arrays(None, scores, sensitive_features=groups, score_range=score_range),
    )


@pytest.mark.compiled
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_number_of_jobs_does_not_matter(n_jobs: int) -> None:
    scores = draw("smooth", 300_000)
    groups = np.random.default_rng(4).integers(0, 2, scores.size)
    predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    one, several = (_exact.count_for(predictions, Comparison(), EPSILONS, jobs) for jobs in (1, n_jobs))
    for key, atoms in one.atoms.items():
        assert atoms.scores.tobytes() == several.atoms[key].scores.tobytes()
        assert atoms.rows.tobytes() == several.atoms[key].rows.tobytes()
    check(predictions, n_jobs=n_jobs)


@pytest.mark.parametrize("groups", [2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_most_rows_are_sorted_and_looked_at_in_cells_of_some(
    monkeypatch: pytest.MonkeyPatch, groups: int, weighted: bool
) -> None:
    monkeypatch.setattr(_exact, "_MANY_OPENED", 0)
    monkeypatch.setattr(_exact, "_FEW_ROWS", 0)
    rng = np.random.default_rng(5)
    some = rng.random(4000)
    scores = np.where(some < 0.9, 0.5 + 1e-9 * rng.random(4000).round(3), some)
    weights = rng.exponential(size=4000) if weighted else None
    codes = rng.integers(0, groups, 4000)
    check(lp.Predictions.from_arrays(None, scores, sensitive_features=codes, sample_weight=weights))


def test_few_rows_that_decide_are_sorted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_exact, "_MANY_OPENED", 1500)
    rng = np.random.default_rng(6)
    groups = np.arange(2000) % 2
    check(lp.Predictions.from_arrays(None, rng.random(2000) ** (1 + groups), sensitive_features=groups))


def test_without_epsilons_nothing_decides() -> None:
    predictions = lp.Predictions.from_arrays(None, np.arange(99) / 99, sensitive_features=np.arange(99) % 2)
    assert lp.mcdp(predictions, epsilon=[]).size == 0
    assert _exact.count_for(predictions, Comparison(), np.empty(0)).size == 99


def test_where_no_cell_decides_none_is_opened() -> None:
    check(lp.Predictions.from_arrays(None, [0.25] * 200, sensitive_features=np.arange(200) % 2))
    apart = np.repeat([0.0, 1.0], 200)
    check(lp.Predictions.from_arrays(None, apart, sensitive_features=apart > 0.5))


def test_jobs_and_epsilons_are_checked() -> None:
    scores, groups = [0.1, 0.4, 0.6, 0.9], ["a", "a", "b", "b"]
    assert lp.mcdp(None, scores, sensitive_features=groups, n_jobs=2) == 1.0
    assert lp.mcdp(None, scores, sensitive_features=groups, n_jobs=-1) == 1.0
    with pytest.raises(ValueError, match=r"n_jobs must be .* got 0"):
        lp.mcdp(None, scores, sensitive_features=groups, n_jobs=0)
    with pytest.raises(ValueError, match=r"epsilon must be one number, got .* \(2,\)"):
        lp.mcdp_bounds(
            lp.Predictions.from_arrays(None, scores, sensitive_features=groups), epsilon=[0.1, 0.2]
        )  # type: ignore[arg-type]


def test_a_group_without_rows_is_named() -> None:
    labels = [1, 0, 1, 1]
    predictions = lp.Predictions.from_arrays(labels, [0.1, 0.2, 0.3, 0.4], sensitive_features=[0, 1, 0, 0])
    with pytest.raises(ValueError, match=r"group 1 has no rows with y_true = 1"):
        _exact.worst_mcdp(predictions, Comparison("equal_opportunity"), EPSILONS)


def test_several_epsilons_come_in_their_shape() -> None:
    scores, groups = [0.1, 0.4, 0.6, 0.9], ["a", "a", "b", "b"]
    at = np.array([[0.0, 0.05], [0.2, 0.4]])
    found = lp.mcdp(None, scores, sensitive_features=groups, epsilon=at)
    assert found.tolist() == [[1.0, 1.0], [0.5, 0.0]]
    assert [lp.mcdp(None, scores, sensitive_features=groups, epsilon=e) for e in at.ravel()] == [1, 1, 0.5, 0]


def sample(rows: int, **options: Any) -> lp.Predictions:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, rows)
    labels, scores = rng.integers(0, 2, rows), rng.beta(2 + groups, 3)
    return lp.Predictions.from_arrays(labels, scores, sensitive_features=groups, **options)


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_cells_that_are_cut_again_and_threads(
    monkeypatch: pytest.MonkeyPatch, criterion: Any, compare: Any, weighted: bool, n_jobs: int
) -> None:
    monkeypatch.setattr(_exact, "_MANY_OPENED", 0)
    monkeypatch.setattr(_exact, "_MANY_ROWS", 0)
    weights = np.random.default_rng(1).exponential(size=3000) if weighted else None
    predictions, comparison = sample(3000, sample_weight=weights), Comparison(criterion, compare)
    found = _exact._worst_in_cells(predictions, comparison, EPSILONS, n_jobs)
    assert found.tolist() == sorted_mcdp(predictions, comparison).tolist()


def test_a_range_as_wide_as_floats_go() -> None:
    rng = np.random.default_rng(2)
    groups = np.arange(3000) % 2
    scores = 10.0 ** rng.uniform(-300, 308, 3000) * (1 - 0.5 * groups)
    ends = 0.0, float(np.finfo(np.float64).max)
    predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=groups, score_range=ends)
    found = _exact._worst_in_cells(predictions, Comparison(), EPSILONS, 1)
    assert found.tolist() == sorted_mcdp(predictions, Comparison()).tolist()


def apart(rows: int) -> lp.Predictions:
    """Groups so far apart that few rows decide."""
    rng = np.random.default_rng(3)
    groups = np.arange(rows) % 2
    return lp.Predictions.from_arrays(None, rng.beta(2, 2 + 4 * groups), sensitive_features=groups)


@pytest.mark.parametrize("few", [0, 8000])
def test_counts_of_all_pairs(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(_exact, "_MANY_OPENED", few)
    monkeypatch.setattr(_exact, "_FEW_ROWS", 10)
    predictions = apart(10_000)
    counts = _exact.count_for(predictions, Comparison(), EPSILONS)
    assert counts.cells is not None
    assert lp.mcdp(counts, epsilon=EPSILONS).tolist() == sorted_mcdp(predictions, Comparison()).tolist()


def test_counts_of_one_label() -> None:
    predictions, comparison = sample(3000), Comparison("equal_opportunity")
    counts = _exact.count_for(predictions, comparison, EPSILONS)
    found = lp.mcdp(counts, epsilon=EPSILONS, criterion="equal_opportunity")
    assert found.tolist() == sorted_mcdp(predictions, comparison).tolist()


@pytest.mark.parametrize("distinct", [1, 2, 300, 10_000])
def test_rows_that_share_a_score_are_counted_together(distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    scores, groups = rng.integers(0, distinct, 20_000) / 10_000, rng.integers(0, 3, 20_000)
    counts = lp.ScoreCounts.from_predictions(
        lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    )
    epsilons = [0.0, 0.001, 0.05]
    found = lp.mcdp(None, scores, sensitive_features=groups, epsilon=epsilons)
    np.testing.assert_array_equal(found, [lp.mcdp(counts, epsilon=epsilon) for epsilon in epsilons])


def crowded(rows: int) -> tuple[Any, Any]:
    """Every sampled score within fewer floats than there are cells, and half of the rows far below them."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, rows)
    scores = 0.5 + rng.integers(0, 4000, rows) * 2.0**-53
    low = rng.random(rows) < 0.5
    low[:: rows // _exact._SAMPLED_FIRST] = False
    scores[low] = 0.5 * rng.random(low.sum())
    scores[low & (groups == 1)] **= 1.5
    return scores, groups


def test_a_sample_within_fewer_floats_than_cells() -> None:
    scores, groups = crowded(2**17)
    profile = lp.mcdp_profile(None, scores, sensitive_features=groups)
    found = [lp.mcdp(None, scores, sensitive_features=groups) for _ in range(4)]
    assert found == [profile(0.0)] * 4


def test_a_range_of_few_floats() -> None:
    rng = np.random.default_rng(0)
    rows, last = 2**17, 2.0**-52
    groups, places = rng.integers(0, 2, rows), rng.integers(0, 2**16, rows)
    places[groups == 1] = np.minimum(2**16 - 1, places[groups == 1] + 20_000)
    places[::512] = np.arange(256)
    people: dict[str, Any] = {"sensitive_features": groups, "score_range": (1.0, 1.0 + 2**16 * last)}
    scores = 1.0 + places * last
    assert lp.mcdp(None, scores, epsilon=0.1, **people) == lp.mcdp_profile(None, scores, **people)(0.1)


@pytest.mark.parametrize("kernel", ["plain", "dispatcher"])
def test_finer_steps_that_are_not_those_opened(kernel: str) -> None:
    # What was not written must not be read: steps of other rows are an error, not a number.
    ends, entries = np.array([0.25, 0.5]), np.ones((2, 1, 1), dtype=np.int64)
    steps = np.arange(2), ends, ends, entries, np.empty((0, 0, 2, 0))
    opened, finer = np.array([True, False]), (*steps[:2], np.array([0.2, 0.9]), *steps[3:])
    with pytest.raises(AssertionError, match="finer"):
        getattr(with_finer, kernel)(steps, opened, finer)


def test_a_gap_above_one() -> None:
    with pytest.raises(AssertionError, match=r"got 2\.0"):
        gap_between(np.array([0, 2]), np.array([0, 0]), np.int64(1), np.int64(1))


def test_few_tied_rows_are_not_counted_in_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_exact, "_FEW_ROWS", 2000)
    tied = lp.Predictions.from_arrays(None, np.arange(900) % 7 / 7, sensitive_features=np.arange(900) % 2)
    assert _exact._worst_in_cells(tied, Comparison(), EPSILONS, 1) is None


def test_a_search_stops_where_its_source_opens_no_more() -> None:
    people = sample(600)
    rows = _exact.KeyedRows.of(people)
    grid = _exact.Grid.over(np.unique(people.scores.astype(np.float64)), 8)
    source = _exact.ArrayRows(rows, grid, people.score_range, ends=False)
    sizes = np.bincount(rows.codes, minlength=len(rows.keys))
    search = _exact.Search(rows.keys, sizes, Comparison(), EPSILONS, people.score_range, people.resolution)
    table = source.table()
    left, opened, _ = search.refine(table, lambda table, opened: None)
    assert left is table
    assert opened.any()
    groups = len(people.groups)
    assert search.sides.shape == (1, groups * (groups - 1) // 2, 2, len(rows.keys))
    for first, second in search.sides[0]:
        assert first.any()
        assert not (first & second).any()


def test_a_cell_beyond_single_floats_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_SAMPLED_ENDS", "_SAMPLED_FIRST"):
        monkeypatch.setattr(_exact, name, 10)
    monkeypatch.setattr(_exact, "_MANY_OPENED", 0)
    rng = np.random.default_rng(0)
    scores = 0.5 + rng.integers(0, 64, 4000) * 2.0**-53
    scores[1::3] = 0.6 + 0.4 * rng.random(scores[1::3].size)
    scores[::400] = 0.5 + np.arange(10) * 2.0**-53
    check(lp.Predictions.from_arrays(None, scores, sensitive_features=rng.integers(0, 2, 4000)))
