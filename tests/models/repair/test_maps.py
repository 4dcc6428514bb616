"""The band against its definition in rational arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracles
from localparity.models.repair._maps import Corridor, Distribution, ScoreMap
from strategies import People, epsilons, people


def corridor_of(drawn: People, weighted: bool) -> Corridor:
    """The package's band of drawn people."""
    return corridor_between(drawn.samples(weighted=weighted))


def corridor_between(samples: Sequence[oracles.Sample]) -> Corridor:
    """The package's band of samples, from levels that share no code with it."""
    distributions = []
    for sample in samples:
        scores = sorted({s for s, _ in sample})
        levels = [float(oracles.cdf(sample, s)) for s in scores]
        distributions.append(Distribution(np.array([float(s) for s in scores]), np.array(levels)))
    totals = np.array([float(sum(w for _, w in sample)) for sample in samples])
    return Corridor(distributions, totals / totals.sum())


def through(sample: oracles.Sample, score_map: ScoreMap) -> oracles.Sample:
    """The people of a sample after the repair."""
    moved = score_map(np.array([float(s) for s, _ in sample]))
    return [(Fraction(score), w) for score, (_, w) in zip(moved.tolist(), sample, strict=True)]


def floats(sample: oracles.Sample) -> oracles.Sample:
    """The people of a sample with their scores as the package has them."""
    return [(Fraction(float(s)), w) for s, w in sample]


def largest_atom(sample: oracles.Sample) -> Fraction:
    total = sum(w for _, w in sample)
    return max(sum(w for s, w in sample if s == score) for score, _ in sample) / total


def check_places(samples: Sequence[oracles.Sample], width: Fraction) -> None:
    """Every score is where the slow version has it, and to the last bit where that leaves it alone."""
    maps = corridor_between(samples).maps(float(width))
    for found, places in zip(maps, oracles.repair(samples, width), strict=True):
        np.testing.assert_allclose(found.values, [float(places[s]) for s in sorted(places)], atol=1e-9)
        stay = [place == score for score, place in sorted(places.items())]
        np.testing.assert_array_equal(found.values[stay], found.knots[stay])


@given(people(n_groups=3, max_size=5), st.fractions(0, 1, max_denominator=40), st.booleans())
def test_scores_go_to_the_nearest_places_in_the_band(drawn: People, width: Fraction, weighted: bool) -> None:
    check_places(drawn.samples(weighted=weighted), width)


@pytest.mark.parametrize(
    ("tenths", "width"),
    [
        ([[0, 10], [0, 0, 10], [0, 0, 0]], Fraction(1, 3)),  # a band that ends at a group's own level
        ([[0, 0], [2, 10], [0, 0, 0, 1, 1, 2]], Fraction(2, 3)),  # the same, and a neighbour behind it
        ([[0, 0], [2], [4, 10]], Fraction(0)),  # a barycentre's score that is one of a group's
        ([[0, 2], [0, 2], [2, 3, 10, 10]], Fraction(1, 2)),  # a score makes room for one from above
    ],
)
def test_nothing_is_pushed_by_rounding(tenths: list[list[int]], width: Fraction) -> None:
    check_places([[(Fraction(score, 10), Fraction(1)) for score in group] for group in tenths], width)


@given(people(n_groups=3, max_size=5), st.fractions(0, 1, max_denominator=40), st.booleans())
def test_every_distribution_is_clipped_into_the_band(drawn: People, width: Fraction, weighted: bool) -> None:
    samples = drawn.samples(weighted=weighted)
    maps = corridor_of(drawn, weighted).maps(float(width))
    slack = Fraction(1, 10**9)
    for sample, score_map in zip(samples, maps, strict=True):
        moved = through(sample, score_map)
        coarse = largest_atom(sample)
        for y in sorted({s for other in samples for s, _ in other}):
            low, high = oracles.band(samples, y, width)
            target = min(max(oracles.cdf(sample, y), low), high)
            assert abs(oracles.cdf(moved, Fraction(float(y))) - target) <= coarse + slack


@given(people(n_groups=2), st.data())
def test_the_gap_is_within_the_width_unless_people_share_scores(drawn: People, data: st.DataObject) -> None:
    samples = drawn.samples()
    least = max(largest_atom(sample) for sample in samples)
    assume(least < 1)
    width = data.draw(st.fractions(least, 1, max_denominator=60))
    maps = corridor_of(drawn, weighted=False).maps(float(width))
    first, second = (through(sample, found) for sample, found in zip(samples, maps, strict=True))
    assert oracles.mcdp(first, second, Fraction(0)) <= width + Fraction(1, 10**12)


@given(people(n_groups=2), st.data())
def test_windows_are_broken_and_shorter_stretches_stay(drawn: People, data: st.DataObject) -> None:
    samples = drawn.samples()
    least = max(largest_atom(sample) for sample in samples)
    epsilon = data.draw(epsilons(drawn.grid))
    assume(least < 1 and epsilon < 1)
    width = data.draw(st.fractions(least, 1, max_denominator=60))
    before = oracles.mcdp(*samples, epsilon)
    maps = corridor_of(drawn, weighted=False).maps(float(width), float(epsilon) + 1e-12)
    moved = [through(sample, found) for sample, found in zip(samples, maps, strict=True)]
    assert oracles.mcdp(*moved, epsilon + Fraction(1, 10**9)) <= width + Fraction(1, 10**12)
    if before <= width:
        assert moved == [floats(sample) for sample in samples]


@given(people(n_groups=3, max_size=6), st.booleans())
def test_at_width_zero_everyone_goes_to_the_barycentre(drawn: People, weighted: bool) -> None:
    samples = drawn.samples(weighted=weighted)
    shares = [{oracles.cdf(sample, s) for s, _ in sample} for sample in samples]
    for sample, found in zip(samples, corridor_of(drawn, weighted).maps(0.0), strict=True):
        for score in {s for s, _ in sample}:
            level = oracles.cdf(sample, score)
            before = max((u for u in shares[samples.index(sample)] if u < level), default=Fraction(0))
            # A middle that is another group's level, up to rounding, may fall to either side of it.
            middle = (before + level) / 2
            near = [middle - Fraction(1, 10**9), middle + Fraction(1, 10**9)]
            expected = [float(oracles.barycentre_quantile(samples, u)) for u in near]
            (moved,) = found(np.array([float(score)]))
            assert min(expected) - 1e-9 <= moved <= max(expected) + 1e-9


@given(people(n_groups=3, max_size=30), st.floats(0, 1), st.booleans())
def test_order_inside_a_group_stays(drawn: People, width: float, weighted: bool) -> None:
    for found in corridor_of(drawn, weighted).maps(width):
        assert (np.diff(found.values) >= 0.0).all()
        assert ((found.values >= 0.0) & (found.values <= 1.0)).all()


@pytest.mark.parametrize("sizes", [(300, 12_000), (997, 5003), (1000, 1000)])
@pytest.mark.parametrize("width", [0.0, 0.003, 0.05, 0.2])
def test_people_with_different_scores_are_not_tied(sizes: tuple[int, int], width: float) -> None:
    rng = np.random.default_rng(0)
    groups = [np.sort(rng.beta(2 + i, 4 - i, size)) for i, size in enumerate(sizes)]
    distributions = [Distribution(group, np.arange(1, group.size + 1) / group.size) for group in groups]
    for found in Corridor(distributions, np.array(sizes) / sum(sizes)).maps(width):
        assert (np.diff(found.values) > 0.0).all()


def test_scores_where_the_gap_is_small_stay_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    alike = np.sort(rng.uniform(0.0, 0.4, 500))
    first = Distribution(np.append(alike, np.linspace(0.5, 0.7, 500)), np.arange(1, 1001) / 1000)
    second = Distribution(np.append(alike, np.linspace(0.7, 0.9, 500)), np.arange(1, 1001) / 1000)
    for found in Corridor([first, second], np.array([0.5, 0.5])).maps(0.05):
        np.testing.assert_array_equal(found.values[:500], alike)
        assert (found.values[500:] != found.knots[500:]).mean() > 0.8
