"""No size at which the package computes in another way changes a number, with every one of them set low."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import differential
import limits
import oracles

CASES = {"arrays": 12, "duckdb": 30, "torch": 30, "polars": 3}

pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")


@pytest.mark.parametrize("source", differential.SOURCES)
def test_the_definition_whatever_the_limits(source: str) -> None:
    assert differential.check_seeds(differential.SOURCES[source], range(CASES.get(source, 12))) > 0


def numbers_of(room: str) -> Iterator[str]:
    """The names of all numbers that the modules of a room define."""
    package = import_module(f"localparity.{room}")
    for module in pkgutil.iter_modules(package.__path__):
        place = import_module(f"localparity.{room}.{module.name}")
        for node in ast.parse(inspect.getsource(place)).body:
            names = [target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)]
            for name in filter(str.isupper, names):
                value = getattr(place, name)
                numbers = value if isinstance(value, tuple) else (value,)
                if all(isinstance(number, int | float) for number in numbers):
                    yield f"{room}.{module.name}.{name}"


def test_every_number_that_may_be_a_size_is_listed() -> None:
    listed = {*limits.LIMITS, *limits.COMPILED, *limits.NO_SIZES}
    found = {name for room in ("counts", "metrics", "engines") for name in numbers_of(room)}
    assert found - listed == set()
    assert {name for name in limits.NO_SIZES if name not in found} == set()


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1)), min_size=2, max_size=12),
    st.integers(0, 6),
)
def test_runs_are_what_the_definition_says(drawn: list[tuple[int, int]], steps: int) -> None:
    people = [*drawn, (3, 0), (5, 1)]
    samples = [[(Fraction(s, 12), Fraction(1)) for s, g in people if g == group] for group in (0, 1)]
    knots = np.unique([score for score, _ in people])
    below = [
        np.array([sum(s <= knot and g == group for s, g in people) for knot in knots]) for group in (0, 1)
    ]
    gap = np.abs(below[0] * below[1][-1] - below[1] * below[0][-1])
    epsilon = Fraction(steps, 24)
    found = Fraction(differential.highest_run(knots, gap, 12 * epsilon), int(below[0][-1] * below[1][-1]))
    assert found == oracles.mcdp(*samples, epsilon)
