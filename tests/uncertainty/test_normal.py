"""The normal distribution against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from localparity.uncertainty._bands import normal_cdf
from localparity.uncertainty._looks import look_share


def test_it_is_close_everywhere_and_never_too_small_where_it_is_small() -> None:
    values = np.linspace(-12.0, 12.0, 100_003)
    found, exact = normal_cdf(values), special.ndtr(values)
    assert np.abs(found - exact).max() < 1.2e-7
    low = values < -1.0
    assert (found[low] >= exact[low] * (1.0 - 1e-12)).all()
    near = low & (values > -8.9)
    assert (found[near] <= exact[near] * (1.0 + 1.0 / 25_000)).all()


def test_the_shares_of_all_looks_sum_to_one() -> None:
    assert 1.0 / look_share(1) == pytest.approx(special.zeta(1.1), rel=1e-14)
