"""The swap test keeps its level, the interval covers, and pairing at least doubles the power."""

from __future__ import annotations

import pytest
from benchmarks.paired import COMPARED, COVERED, EXCHANGEABLE, misses, powers, rejects, share
from benchmarks.promises import most_failures

pytestmark = pytest.mark.slow

DRAWS, INTERVAL_DRAWS = 500, 1000


@pytest.mark.parametrize("design", EXCHANGEABLE)
def test_the_swap_test_keeps_its_level(design: str) -> None:
    assert share(EXCHANGEABLE[design], rejects, DRAWS) <= most_failures(0.05, DRAWS)


@pytest.mark.parametrize("design", COVERED)
def test_the_interval_covers_the_difference(design: str) -> None:
    assert share(COVERED[design], misses, INTERVAL_DRAWS) <= most_failures(0.05, INTERVAL_DRAWS)


@pytest.mark.parametrize("design", COMPARED)
def test_pairing_at_least_doubles_the_power(design: str) -> None:
    paired, *others = powers(*COMPARED[design], 300)
    assert paired >= 2.0 * max(others)
