"""Every promise of the documentation, simulated; `make promises` makes the table under results/ of the same."""

from __future__ import annotations

import pytest
from benchmarks.promises import PROMISES, most_failures, simulate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("place", range(len(PROMISES)), ids=lambda place: "; ".join(PROMISES[place][:2]))
def test_a_promise_fails_no_more_often_than_stated(place: int) -> None:
    promise = PROMISES[place]
    if promise.stated is None:
        return  # shown in the table, promised nowhere
    assert simulate(place, jobs=1) <= most_failures(promise.stated, promise.draws)
