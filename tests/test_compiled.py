"""Loops run the same in plain Python and compiled, and change from the one to the other where that pays."""

from __future__ import annotations

import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import localparity as lp
from localparity import _compiled
from localparity._compiled import Kernel, compiled
from localparity._validation._rows import all_inside, low_bytes
from localparity.counts._coarsen import cell_numbers
from localparity.counts._kernels import sort_into
from localparity.counts._rows import KeyedRows, _sort_packed
from localparity.metrics import _exact
from localparity.metrics._exact import CellTable
from localparity.metrics._kernels import deciding_steps, profile_runs
from localparity.metrics._profile import runs_of
from localparity.models import MCDPObjective, ScoreRepair
from localparity.models.repair import _kernels as blind_kernels
from localparity.models.trees import _kernels as tree_kernels
from localparity.uncertainty import _permutation as _pool

EPSILONS = [0.0, 0.01, 0.1]


def kernels() -> Iterator[Kernel]:
    """Every loop of the package."""
    for module in pkgutil.walk_packages(lp.__path__, "localparity."):
        if module.name.endswith(("kernels", "_validation._rows")):
            for value in vars(import_module(module.name)).values():
                if isinstance(value, Kernel) and value.__module__ == module.name:
                    yield value


def same(one: Any, other: Any) -> bool:
    """Whether two results are of the same type and have the same bits."""
    if isinstance(one, tuple):
        return type(one) is type(other) and all(map(same, one, other))
    if isinstance(one, np.random.Generator):
        return bool(one.bit_generator.state == other.bit_generator.state)
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    return type(one) is type(other) and bool(one == other or one != one)


@pytest.fixture
def run_both_ways(monkeypatch: pytest.MonkeyPatch) -> set[Kernel]:
    """Each call is made both ways, and fails where they differ in what they return or write; what was called."""
    monkeypatch.setattr(_exact, "_FEW_ROWS", 0)
    monkeypatch.setattr(_exact, "_MANY_OPENED", 30)
    monkeypatch.setattr(_pool, "MOST_MEASURED", 0)
    called = set()

    def call(kernel: Kernel, *values: Any) -> Any:
        called.add(kernel)
        copies = deepcopy(values)  # an array that is given twice stays one
        plain, found = kernel.plain(*copies), kernel.fast(*values)
        assert same(plain, found), (kernel.__name__, values, plain, found)
        assert same(copies, values), (kernel.__name__, copies, values)
        return found

    monkeypatch.setattr(Kernel, "__call__", call)
    return called


def measure(rng: np.random.Generator, rows: int, decimals: int) -> None:
    """Call what has loops on scores of so many decimals."""
    groups, labels, ages = np.arange(rows) % 3, np.arange(rows) // 3 % 2, rng.integers(18, 30, rows)
    scores = rng.beta(2 + groups, 3).round(decimals)
    weights = rng.integers(1, 4, rows) / 2
    low_bytes(300 * groups - 300, np.empty(rows, np.uint8))
    assert _sort_packed(scores, groups.astype(np.uint8)) is not None
    runs_of(np.linspace(0.0, 1.0, 1200), np.append(rng.normal(size=1199).cumsum(), 0.0))
    for typed in (scores, scores.astype(np.float32)):
        assert all_inside(typed, 0.0, 1.0)
        assert not all_inside(np.append(typed, np.nan), 0.0, 1.0)
        for chosen in (groups, groups > 0):
            profile = lp.mcdp_profile(None, typed, sensitive_features=chosen)
            assert profile(0.0) == lp.mcdp(None, typed, sensitive_features=chosen)
    options = {"epsilons": EPSILONS, "n_resamples": 20, "n_jobs": 1, "random_state": 0}
    lp.audit(labels, scores, sensitive_features=groups, criterion="equalized_odds", **options)
    audit = lp.audit(None, scores, sensitive_features=groups, sample_weight=weights, **options)
    assert audit.findings
    counts = lp.ScoreCounts.from_predictions(
        lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    )
    for placed in (scores, 10.0 ** (-300.0 * scores)):
        sort_into(placed, groups, placed.copy(), groups.copy())
        for options in ({}, {"sample_weight": weights}):
            rows_of = lp.Predictions.from_arrays(None, placed, sensitive_features=groups, **options)
            _exact._worst_sorted(rows_of, lp.counts.Comparison(), np.array(EPSILONS))
            _exact.count_for(rows_of, lp.counts.Comparison(), np.array(EPSILONS))
            keyed, cells = KeyedRows.of(rows_of), cell_numbers(placed, 4, (0.0, 1.0))
            CellTable.empty(keyed.keys, 17, weighted=keyed.weights is not None).add_at(cells, keyed)
            keyed.inside(cells, np.arange(17) % 2 == 0)
    for epsilon in EPSILONS[::2]:
        options = {"epsilon": epsilon, "n_resamples": 19, "random_state": 0}
        lp.compare_scores(None, scores, scores[::-1], sensitive_features=groups, **options)
    coarse = lp.counts.bounded(counts, max_scores=1, level=6)
    for epsilon in EPSILONS:
        lp.mcdp_bounds(coarse, epsilon=epsilon)
    lp.gap_curve(counts, groups=(0, 1)).worst_window()
    lp.worst_split(
        lp.Predictions.from_arrays(None, scores, sensitive_features=ages),
        min_group_size=1,
        n_resamples=3,
        n_jobs=1,
        random_state=0,
    )
    repair = ScoreRepair(max_mcdp=0.02 if decimals > 1 else 0.5).fit(scores, sensitive_features=groups)
    repair.transform(scores, sensitive_features=groups)
    begins = np.unique(scores)
    lower, upper = np.sort(rng.integers(0, 5, (2, begins.size)) / 4, axis=0)
    lower[-1] = upper[-1] = 0.0
    deciding_steps(begins, lower, upper, np.full(2, 0.25), np.full(2, 0.5), np.array([-1.0, 0.01]))


def learn(rng: np.random.Generator, rows: int) -> None:
    """Call what has loops in training and group-blind repair."""
    groups, labels = rng.integers(0, 2, (2, rows))
    scores = rng.beta(2 + groups, 3)
    for epsilon in (0.0, 0.05):
        objective = MCDPObjective(labels, sensitive_features=groups, temperature=20.0, epsilon=epsilon)
        objective(np.log(scores / (1.0 - scores)))
    features = np.column_stack([groups, 1 - groups]) * scores[:, None]
    shares, weights = np.full(rows, 2 / rows), rng.integers(1, 4, rows) / 2
    dual = (scores, features, groups, shares, weights, np.zeros(2, np.int64))
    rates = np.array([0.0, 0.3, 0.6, 1.0])
    solved = [blind_kernels.solve_rate(*dual, np.zeros(2), rate, 0.1, 0.01, 1e-3) for rate in rates[1:3]]
    multipliers = np.array([np.zeros(2), *solved, np.zeros(2)])
    nodes = (
        *(np.array(column, np.int32) for column in ([0, -1, -1], [1, 0, 0], [2, 0, 0])),
        np.zeros(3, np.uint8),
    )
    nodes, root, sums = (*nodes, np.array([0.5, 1.0, 2.0])), np.zeros(1, np.int32), np.zeros((rows, 1))
    sets = np.zeros(1, np.int32), np.zeros(0, np.uint32)
    tree_kernels.add_leaves(features, nodes, root, sets, True, sums)
    leaves, numbers = tree_kernels.number_leaves(nodes, root), np.array([0.5, np.inf, np.nan])
    tables = tree_kernels.reachable_leaves(nodes, sets, leaves, numbers, np.array([0, 3]), 0, 1)
    tree_kernels.add_reachable(np.zeros((rows, 1), np.int64), *tables, 0, True, sums)
    blind_kernels.rank_rows(
        scores, features, rates, multipliers, np.array([2.0, 0.6, 0.3, -2.0]), np.array([0, 3])
    )


@pytest.mark.compiled
@pytest.mark.slow
def test_every_loop_gives_the_same_bits_both_ways(run_both_ways: set[Kernel]) -> None:
    rng = np.random.default_rng(0)
    for rows, decimals in ((12, 1), (40, 1), (200, 6), (300, 9)):
        measure(rng, rows, decimals)
    learn(rng, 80)
    assert {kernel.__qualname__ for kernel in kernels()} == {kernel.__qualname__ for kernel in run_both_ways}


def test_much_is_compiled_and_a_little_is_not() -> None:
    code = f"""
import sys, numpy as np
from localparity import _compiled
from localparity.metrics._exact import CellTable
from localparity.metrics._profile import runs_of

def run(size):
    knots = np.linspace(0.0, 1.0, size)
    runs_of(knots, 0.0 * knots)
    print("numba" in sys.modules)

run(100)
run({_compiled.MANY} // 2)
run(100)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "True", "True"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The processor's time, which a test advances."""
    now = [0.0]
    monkeypatch.setattr(_compiled, "thread_time", lambda: now[0])
    monkeypatch.setattr(Kernel, "_taken", 0.0)
    return now


def test_many_calls_are_compiled_once_they_have_taken_long(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    called = []

    def plain(number: float) -> None:
        called.append("plain")
        clock[0] += 0.6 * _compiled.PATIENCE

    kernel = Kernel(plain, {})
    monkeypatch.setattr(kernel, "_dispatcher", lambda number: called.append("compiled"))
    for _ in range(4):
        kernel(1.0)
    assert called == ["plain", "plain", "compiled", "compiled"]


def test_a_loop_that_fails_has_taken_its_time(clock: list[float]) -> None:
    def fail(number: float) -> float:
        clock[0] += 0.25
        return number / 0

    with pytest.raises(ZeroDivisionError):
        Kernel(fail, {})(1.0)
    assert Kernel._taken == 0.25


def test_loops_compile_where_nothing_can_be_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose package folder and home cannot be written to."""
    asked = []

    def njit(**options: Any) -> Callable[[Any], Any]:
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr("numba.njit", njit)
    kernel = compiled(abs)
    assert isinstance(kernel, Kernel)
    assert kernel.dispatcher(-1) == 1
    # Without the lock in both cases, so that resamples run side by side.
    assert asked == [{"cache": True, "nogil": True}, {"nogil": True}]


@pytest.mark.compiled
def test_what_another_version_kept_on_disk_is_made_again(tmp_path: Path) -> None:
    """A class of its arguments has moved to another module since; numba alone would fail to import it."""
    program = """
import numpy as np
from loops import total
from {module} import Pair
print(total.fast(Pair(np.ones(2), np.ones(3))), dict(total.dispatcher.stats.cache_hits))
"""
    (tmp_path / "loops.py").write_text(
        "from localparity._compiled import compiled\n\n\n@compiled\ndef total(pair):\n"
        "    return pair.first.sum() + pair.second.sum()\n"
    )

    def run(module: str) -> str:
        command = [sys.executable, "-c", program.format(module=module)]
        done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    old = tmp_path / "old.py"
    old.write_text("from collections import namedtuple\n\nPair = namedtuple('Pair', 'first second')\n")
    assert run("old") == "5.0 {}\n"
    assert run("old").startswith("5.0 {(Pair(")
    old.rename(tmp_path / "new.py")
    assert run("new") == "5.0 {}\n"
    assert run("new").startswith("5.0 {(Pair(")


@pytest.mark.compiled
def test_compiling_is_known_and_loading_is_not_taken_for_it(tmp_path: Path) -> None:
    program = """
from localparity import _compiled
from loops import one_more

class Begun(list):
    begun = 0

    def append(self, event):
        Begun.begun += 1
        super().append(event)
        assert _compiled.is_compiling()

_compiled._under_way = Begun()
print(one_more.fast(1), Begun.begun, _compiled.is_compiling())
"""
    (tmp_path / "loops.py").write_text(
        "from localparity._compiled import compiled\n\n\n@compiled\ndef one_more(number):\n    return number + 1\n"
    )
    command = [sys.executable, "-c", program]
    runs = [
        subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=True) for _ in range(2)
    ]
    assert [done.stdout for done in runs] == ["2 1 False\n", "2 0 False\n"]


@pytest.mark.compiled
def test_threads_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "_taken", _compiled.PATIENCE)
    kernel = Kernel(lambda numbers: numbers.sum(), {})
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(kernel, [np.arange(size, dtype=np.float64) for size in range(8)]))
    assert found == [size * (size - 1) / 2 for size in range(8)]
    assert len(kernel.dispatcher.signatures) == 1


def test_a_process_that_is_handed_a_loop_imports_it() -> None:
    assert pickle.loads(pickle.dumps(profile_runs)) is profile_runs


class Pair(NamedTuple):
    """What a loop may take and return."""

    number: float
    numbers: np.ndarray


def test_numbers_are_those_of_python_and_overflow_is_quiet() -> None:
    kernel = Kernel(lambda number: (number > 0.0, Pair(number * number, np.ones(1))), {})
    positive, pair = kernel.plain(np.float64(1e300))
    assert isinstance(pair, Pair)
    assert (type(positive), type(pair.number), pair.number) == (bool, float, np.inf)
    assert isinstance(pair.numbers, np.ndarray)


@pytest.mark.usefixtures("clock")
def test_numbers_in_tuples_count(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    kernel = Kernel(lambda pair: called.append("plain"), {})
    monkeypatch.setattr(kernel, "_dispatcher", lambda pair: called.append("compiled"))
    for size in (_compiled.MANY - 2, _compiled.MANY - 1):
        kernel(Pair(1.0, np.empty(size)))
    assert called == ["plain", "compiled"]
