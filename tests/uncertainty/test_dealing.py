"""Dealing people out cell by cell, against the multivariate hypergeometric distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chisquare, hypergeom

from localparity.uncertainty._permutation import BinomialTable, Dealer, picked


def same_distribution(found: Any, expected: Any) -> bool:
    """Whether counts come from a discrete distribution, rare values together."""
    values = np.arange(found.max() + 1)
    wanted = found.size * expected.pmf(values)
    often = wanted >= 8
    observed = np.bincount(found)
    both = [np.append(each[often], found.size - each[often].sum()) for each in (observed, wanted)]
    some = both[1] > 1e-6
    assert not both[0][~some].any()
    wanted = both[1][some] * found.size / both[1][some].sum()
    return bool(wanted.size == 1 or chisquare(both[0][some], wanted).pvalue > 1e-3)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("size", [0, 1, 7, 244, 512])
def test_the_table_is_that_of_the_binomial_distribution(share: float, size: int) -> None:
    table = BinomialTable(share, np.array([3, size]))
    found = table.draw(np.full(20_000, size), np.random.default_rng(0))
    assert found.max() <= size
    assert same_distribution(found, binom(size, share))
    np.testing.assert_allclose(
        table.cumulative[size, : size + 1] - size, binom.cdf(np.arange(size + 1), size, share), atol=1e-11
    )


@pytest.mark.parametrize("share", [1e-6, 0.3, 0.97])
def test_large_cells_are_drawn_in_powers_of_two_from_uniform_numbers_alone(share: float) -> None:
    """Methods of numpy that draw from other distributions draw other numbers in other versions."""
    sizes = np.array([5, 512, 513, 700, 9000, 123_456_789])
    found = BinomialTable(share, sizes).draw(sizes, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    expected = binom.ppf(rng.random(sizes.size), np.where(sizes > 512, sizes % 512, sizes), share)
    for power in range(9, 27):
        has = (sizes > 512) & (sizes // 2**power % 2 == 1)
        expected[has] += binom.ppf(rng.random(has.sum()), 2**power, share)
    np.testing.assert_array_equal(found, np.maximum(expected, 0))


@pytest.mark.parametrize("people", [[3, 1, 5], [40, 0, 200], [700, 300, 9000]])
@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.1, 0.9], [0.2, 0.3, 0.1, 0.4]])
def test_a_deal_is_hypergeometric_and_keeps_the_sizes(people: list[int], shares: list[float]) -> None:
    total = sum(people)
    sizes = np.maximum((np.array(shares) * total).astype(int), 1)
    sizes[-1] += total - sizes.sum()
    dealer = Dealer(sizes, np.array(people))
    rng = np.random.default_rng(1)
    dealt = np.array([dealer.deal(rng) for _ in range(4000)])
    assert (dealt >= 0).all()
    np.testing.assert_array_equal(dealt.sum(axis=2), np.tile(sizes, (4000, 1)))
    np.testing.assert_array_equal(dealt.sum(axis=1), np.tile(people, (4000, 1)))
    for group, size in enumerate(sizes):
        for cell, inside in enumerate(people):
            assert same_distribution(dealt[:, group, cell], hypergeom(total, inside, size))


def test_more_people_are_dealt_out_than_numpy_deals() -> None:
    people = np.array([10**9, 3 * 10**9])
    dealt = Dealer(np.array([2 * 10**9, 2 * 10**9]), people).deal(np.random.default_rng(0))
    np.testing.assert_array_equal(dealt.sum(axis=0), people)
    np.testing.assert_array_equal(dealt.sum(axis=1), [2 * 10**9] * 2)
    np.testing.assert_allclose(dealt[0] / people, 0.5, atol=1e-4)


def test_picked_people_come_from_where_people_are() -> None:
    rng = np.random.default_rng(0)
    found = np.array([picked(np.array([2, 0, 5]), 3, rng) for _ in range(3000)])
    assert (found.sum(axis=1) == 3).all()
    assert same_distribution(found[:, 0], hypergeom(7, 2, 3))
    assert found[:, 1].max() == 0
