"""Thousands of random cases with every limit set low, in all ways that MCDP is computed, against whole numbers."""

from __future__ import annotations

from typing import Any

import pytest

from differential import SOURCES, check_seeds, from_spark

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")]

AT_ONCE = 100
BLOCKS = {
    "arrays": 20,
    "duckdb": 10,
    "ibis on duckdb": 3,
    "ibis on sqlite": 3,
    "torch": 10,
    "polars": 3,
}


@pytest.mark.parametrize(
    ("source", "block"), [(source, block) for source, blocks in BLOCKS.items() for block in range(blocks)]
)
def test_the_definition_whatever_the_limits(source: str, block: int) -> None:
    first = 1000 + AT_ONCE * block
    assert check_seeds(SOURCES[source], range(first, first + AT_ONCE)) > 0


def test_spark_whatever_the_limits(spark: Any) -> None:
    assert check_seeds(from_spark(spark), range(1000, 1016)) > 0
