"""How long monitors take to find a drift, against days that were simulated by other means."""

from __future__ import annotations

import pytest

import localparity as lp
from localparity.monitoring import periods_needed


@pytest.mark.parametrize(("mcdp", "median", "late"), [(0.4, 1, 1), (0.2, 2, 3), (0.1, 6, 10), (0.05, 19, 35)])
def test_a_drift_from_the_first_day_takes_as_long_as_simulated_monitors(
    mcdp: float, median: int, late: int
) -> None:
    """Of results/monitors.md: 1,000 monitors of 200 + 200 people a day, on 100 scores."""
    for power, days in ((0.5, median), (0.95, late)):
        found = periods_needed([200, 200], mcdp=mcdp, quiet=0, power=power, random_state=0)
        assert found is not None
        assert abs(found - days) <= max(1, round(0.1 * days))


def test_a_quiet_start_more_groups_and_a_bound_take_longer() -> None:
    def needed(sizes: list[int], **options: float) -> int:
        found = periods_needed(sizes, **{"mcdp": 0.2, "quiet": 0, "n_runs": 100, "random_state": 0} | options)  # type: ignore[arg-type]
        assert found is not None
        return found

    first = needed([100, 100])
    assert needed([100, 100], quiet=60) > first
    assert needed([100, 100], max_mcdp=0.1) > first
    assert needed([100, 100, 100]) >= first
    assert needed([8, 100]) > first  # too few of a group for a look at one period by itself


def test_what_is_not_found_and_what_is_wrong() -> None:
    assert periods_needed([1, 1], mcdp=0.001, quiet=0, n_runs=5, random_state=0) is None
    with pytest.raises(ValueError, match=r"mcdp must be above max_mcdp=0.2, got 0.1"):
        periods_needed([10, 10], mcdp=0.1, max_mcdp=0.2)
    with pytest.raises(ValueError, match="quiet"):
        lp.monitoring.periods_needed([10, 10], mcdp=0.1, quiet=-1)
