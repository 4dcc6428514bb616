"""Every engine gives the counts of numpy, bit for bit, and MCDP that is exact where it was asked.

To add an engine, add a function to `ENGINES` that counts columns of arrays: scores p, groups g (whole numbers),
labels y and weights w.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import localparity as lp
from localparity.engines._duckdb import DuckDBScores
from localparity.engines._ibis import IbisScores
from localparity.engines._table import TableScores
from localparity.engines._torch import TorchScores
from localparity.engines.protocol import CountOptions, count_source
from rows_in_memory import RowsInMemory
from scale_rows import (
    CRITERIA,
    EPSILONS,
    FAR_RANGES,
    FINE_EPSILONS,
    NARROW_RANGES,
    Rows,
    assert_exact,
    assert_same_counts,
    far_scores,
    make_rows,
    narrow_counts,
    narrow_scores,
)

# Ibis 12 calls what DuckDB 2 calls by another name.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

Columns = dict[str, NDArray[Any]]
NAMES = {"y": "label", "w": "weight"}


def named(columns: Columns) -> dict[str, Any]:
    """What the columns are, as engines of tables are told."""
    return {"score": "p", "group": "g", **{NAMES[name]: name for name in columns if name in NAMES}}


def from_source(request: Any, columns: Columns, **options: Any) -> lp.ScoreCounts:
    comparison = lp.Comparison(
        options.pop("criterion", "demographic_parity"), options.pop("compare", "between_groups")
    )
    source = RowsInMemory(columns, options.pop("score_range", (0.0, 1.0)))
    return count_source(source, CountOptions(comparison=comparison, **options))


def from_duckdb(request: Any, columns: Columns, **options: Any) -> lp.ScoreCounts:
    import duckdb
    import pyarrow

    with duckdb.connect() as connection:
        connection.register("people", pyarrow.table(columns))
        return lp.engines.from_duckdb(connection.table("people"), **named(columns), **options)


def from_ibis(backend: str) -> Callable[..., lp.ScoreCounts]:
    def count(request: Any, columns: Columns, **options: Any) -> lp.ScoreCounts:
        ibis, pyarrow = pytest.importorskip("ibis"), pytest.importorskip("pyarrow")
        connection = getattr(ibis, backend).connect()
        table = connection.create_table("people", pyarrow.table(columns))
        return lp.engines.from_ibis(table, **named(columns), **options)

    return count


def from_torch(request: Any, columns: Columns, **options: Any) -> lp.ScoreCounts:
    torch = pytest.importorskip("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tensors = {name: torch.tensor(column, device=device) for name, column in columns.items()}
    rows = {"y_true": tensors.get("y"), "sample_weight": tensors.get("w")}
    return lp.engines.from_torch(tensors["p"], tensors["g"], **rows, **options)


def from_spark(request: Any, columns: Columns, **options: Any) -> lp.ScoreCounts:
    pytest.importorskip("pyspark.sql")
    import pandas as pd

    folder = request.getfixturevalue("tmp_path")
    pd.DataFrame(columns).to_parquet(folder / "people.parquet")
    frame = request.getfixturevalue("spark").read.parquet(str(folder)).repartition(3)
    return lp.engines.from_spark(frame, **named(columns), **options)


ENGINES: dict[str, Callable[..., lp.ScoreCounts]] = {
    "arrays": from_source,
    "duckdb": from_duckdb,
    "ibis on duckdb": from_ibis("duckdb"),
    "ibis on sqlite": from_ibis("sqlite"),
    "ibis on polars": from_ibis("polars"),
    "torch": from_torch,
    "spark": from_spark,
}
SLOW = ("spark", "ibis on sqlite", "ibis on polars")
"""What takes seconds a count is asked less."""

WITHOUT_SINGLES = ("ibis on sqlite",)
"""Those without floats of 32 bits."""

Count = Callable[..., lp.ScoreCounts]


@pytest.fixture(params=ENGINES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def count(name: str, request: pytest.FixtureRequest) -> Count:
    return lambda columns, **options: ENGINES[name](request, columns, **options)


@pytest.fixture(scope="module")
def rows() -> Rows:
    found = make_rows(2000)
    return Rows(found.scores, np.unique(found.groups, return_inverse=True)[1], found.labels, found.weights)


def test_counts_are_those_of_numpy_bit_for_bit(name: str, count: Count, rows: Rows) -> None:
    plain = {"p": rows.scores, "g": rows.groups}
    assert_same_counts(count({**plain, "y": rows.labels, "w": rows.weights}), rows.counts())
    assert_same_counts(count(plain), rows.counts(labelled=False, weighted=False))
    if name not in WITHOUT_SINGLES:
        single = Rows(rows.scores.astype(np.float32), rows.groups, rows.labels, rows.weights)
        assert_same_counts(
            count({**plain, "p": single.scores}), single.counts(labelled=False, weighted=False)
        )


@pytest.mark.parametrize(
    ("name", "criterion", "compare"),
    [
        (name, criterion, compare)
        for name in ENGINES
        for criterion in CRITERIA
        for compare in ("between_groups", "to_overall")
        if name not in SLOW or (criterion, compare) == ("equalized_odds", "to_overall")
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_on_a_grid_it_is_exact_where_it_was_asked(
    name: str,
    count: Count,
    rows: Rows,
    criterion: Any,
    compare: Any,
    weighted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for engine in (TableScores, DuckDBScores, IbisScores, TorchScores):
        monkeypatch.setattr(engine, "max_refined", 100)
    columns = {"p": rows.scores, "g": rows.groups, "y": rows.labels}
    asked: dict[str, Any] = {"criterion": criterion, "compare": compare}
    found = count(
        columns | ({"w": rows.weights} if weighted else {}),
        **asked,
        epsilons=EPSILONS,
        max_scores=300,
        level=6,
    )
    assert found.cells is not None
    assert 0.0 < found.rank_error < 0.2
    exact = rows.counts(weighted=weighted)
    for epsilon in EPSILONS:
        assert_exact(found, exact, epsilon=epsilon, **asked)
    bounds = lp.mcdp_bounds(found, epsilon=0.033, **asked)
    assert bounds.low <= lp.mcdp(exact, epsilon=0.033, **asked) <= bounds.high


@pytest.mark.parametrize("name", [name for name in ENGINES if name not in WITHOUT_SINGLES])
@pytest.mark.parametrize("score_range", NARROW_RANGES)
def test_ends_of_the_range_that_few_bits_cannot_hold(
    name: str, count: Count, score_range: tuple[float, float]
) -> None:
    scores, groups = narrow_scores(score_range), np.tile([0, 1], 1000)
    exact = narrow_counts(scores, groups, score_range)
    columns = {"p": scores, "g": groups}
    assert_same_counts(count(columns, score_range=score_range), exact)
    found = count(columns, score_range=score_range, max_scores=100, level=5, epsilons=EPSILONS)
    for epsilon in EPSILONS:
        assert_exact(found, exact, epsilon=epsilon)
    scores[7] = np.nextafter(scores.max(), np.float32(2))
    if name != "arrays":  # where rows are not checked
        with pytest.raises(ValueError, match=r"score_range"):
            count(columns, score_range=score_range)


@pytest.mark.parametrize("score_range", FAR_RANGES)
def test_scores_of_any_size_are_counted_as_in_memory(count: Count, score_range: tuple[float, float]) -> None:
    scores, groups = far_scores(score_range), np.tile([0, 1], 1000)
    exact = narrow_counts(scores, groups, score_range)
    options: dict[str, Any] = {"max_scores": 100, "level": 5, "epsilons": FINE_EPSILONS}
    found = count({"p": scores, "g": groups}, score_range=score_range, **options)
    for epsilon in FINE_EPSILONS:
        assert_exact(found, exact, epsilon=epsilon)


@pytest.mark.parametrize("level", [1, 20])
def test_zero_has_one_sign(count: Count, level: int) -> None:
    found = count({"p": np.array([-0.0, 0.0, 0.5]), "g": np.array([0, 1, 1])}, level=level)
    assert not np.signbit(found.atoms[0, None].scores).any()
    assert found.atoms[1, None].scores.tolist() == [0.0, 0.5]


def test_a_group_of_which_a_label_has_no_rows_is_named_on_a_grid_too(count: Count) -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(3000), rng.integers(0, 3, 3000)
    labels = np.where(groups == 2, 0, rng.integers(0, 2, 3000))
    columns = {"p": scores, "g": groups, "y": labels}
    found = count(columns, criterion="equal_opportunity", max_scores=50, level=4)
    with pytest.raises(ValueError, match=r"group 2 has no rows with y_true = 1"):
        lp.mcdp(found, criterion="equal_opportunity")


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "arrays"])  # whose rows are not checked
@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"p": [0.1, 1.5]}, "score_range"),
        ({"g": [1, 1]}, "two groups, got 1 only"),
        ({"y": [0, 2]}, "must be 0 or 1, got 2"),
        ({"w": [1.0, -2.0]}, "got -2"),
        ({"w": [0.0, 2.0]}, "group 0, got 0"),
    ],
)
def test_what_does_not_fit_is_named(name: str, count: Count, changed: dict[str, Any], argument: str) -> None:
    columns = {"p": [0.1, 0.2], "g": [0, 1], **changed}
    with pytest.raises(ValueError, match=argument):
        count({key: np.array(column) for key, column in columns.items()})
