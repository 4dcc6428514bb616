"""What remains of a gap is in its interval, in populations whose truth is known."""

from __future__ import annotations

import pytest
from benchmarks.explain import DESIGNS, one_draw, truth
from benchmarks.promises import most_failures

pytestmark = pytest.mark.slow

DRAWS = 200


@pytest.mark.parametrize("name", [name for name in DESIGNS if name != "no overlap"])
def test_what_remains_is_in_its_interval(name: str) -> None:
    total, remaining = truth(name)
    draws = [one_draw(name, 1000, seed) for seed in range(1000, 1000 + DRAWS)]
    truths = {"r": remaining, "e": total - remaining}
    if DESIGNS[name].ignores_z2:
        truths |= {"z1": remaining, "z2": 0.0}
    for key, value in truths.items():
        ends = [draw[key] for draw in draws if key in draw]
        misses = sum(not low - 1e-9 <= value <= high + 1e-9 for low, _, high in ends)
        assert ends
        assert misses / len(ends) <= most_failures(0.05, len(ends)), key


def test_groups_that_do_not_overlap_have_no_number() -> None:
    draws = [one_draw("no overlap", 1000, seed) for seed in range(50)]
    assert not any("r" in draw for draw in draws)
