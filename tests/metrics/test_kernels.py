"""The loops that no result of a metric shows whole."""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity.counts import _kernels as counts_kernels
from localparity.metrics import _kernels
from localparity.metrics._gap_curve import CellGaps, envelope_of, longest_run
from localparity.metrics._profile import runs_of

SIXTEENTHS = st.integers(0, 16).map(lambda number: number / 16)


def length_class(half_width: float) -> int:
    """Eight classes an octave, from 2**-60, which is class 0 with all that is shorter, up to 1, which is 480."""
    mantissa, exponent = math.frexp(half_width)
    return max(0, 8 * (exponent - 1 + 60) + math.floor(8 * (2 * mantissa - 1)))


class Run(NamedTuple):
    """From the knot `start` up to the knot `end`."""

    start: int
    end: int
    half_width: float
    value: float


def all_runs(knots: list[float], gap: list[float]) -> list[Run]:
    """All runs that cannot be longer without a lower gap, in the order of their ends, the highest first."""
    runs = []
    for end in range(1, len(knots)):
        value = math.inf
        for start in reversed(range(end)):
            value = min(value, abs(gap[start]))
            if abs(gap[end]) < value and (start == 0 or abs(gap[start - 1]) < value):
                length = (knots[end] - knots[start]) / 2 if knots[start] > 0 else knots[end]
                runs.append(Run(start, end, length, value))
    return runs


KNOTS = st.one_of(
    st.sampled_from([0.0, 1.0]),
    st.integers(1, 63).map(lambda number: number / 64),
    st.integers(-66, -1).map(lambda power: 2.0**power),
    st.floats(1e-6, 1.0),
)


def check_runs(knots: list[float], gap: list[float]) -> None:
    """Those runs are found that no run of a longer class is as high as."""
    runs = all_runs(knots, gap)
    highest_of: dict[int, float] = {}
    for run in runs:
        of_class = length_class(run.half_width)
        highest_of[of_class] = max(highest_of.get(of_class, 0.0), run.value)
    kept = []
    for run in runs:
        of_class = length_class(run.half_width)
        longer = (value for other, value in highest_of.items() if other > of_class)
        if run.value > max(longer, default=0.0):
            kept.append((run.half_width, run.value, knots[run.start]))
    found = runs_of(np.array(knots), np.array(gap))
    assert sorted(zip(*(column.tolist() for column in found), strict=True)) == sorted(kept)


@given(st.data())
def test_of_the_runs_those_are_kept_that_no_longer_one_is_as_high_as(data: st.DataObject) -> None:
    knots = data.draw(st.lists(KNOTS, min_size=1, max_size=14, unique=True).map(sorted))
    check_runs(knots, data.draw(gaps_at(knots)))


@pytest.mark.parametrize("seed", range(60))
def test_so_they_are_where_there_are_blocks_of_knots(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.choice([512, 513, 576, 577, 900, 1500]))
    knots = np.sort(np.append(rng.random(size) ** rng.choice([1.0, 20.0]), rng.choice([0.0, 1.0])))
    walk = rng.choice([-1, 1], knots.size).cumsum() / knots.size
    waves = np.sin(np.arange(knots.size) / rng.integers(1, 60)) / 2 + rng.normal(0, 0.01, knots.size)
    heights = rng.choice([0.0, 1.0], knots.size) * rng.random(knots.size)
    plateaus = np.repeat(heights, rng.integers(20, 45, knots.size))[: knots.size]
    check_runs(knots.tolist(), [*(walk, waves, plateaus, plateaus)[seed % 4][:-1].tolist(), 0.0])


@pytest.mark.parametrize(("run", "blocks"), [((1, 127), (3, 4)), ((0, 191), (4, 6)), ((65, 256), (5, 7))])
def test_a_run_is_longer_than_the_whole_blocks_of_another(
    run: tuple[int, int], blocks: tuple[int, int]
) -> None:
    """The other one has blocks of 64 knots that are a third longer, and is as high."""
    first, after = (64 * block for block in blocks)
    spaces, gap = np.ones(after + 256), np.zeros(after + 256)
    spaces[first + 1 :] = 4 / 3
    gap[slice(*run)] = gap[first:after] = 0.5
    check_runs((np.cumsum(spaces) / 1024).tolist(), gap.tolist())


@given(st.data())
def test_the_longest_run_of_a_value_is_the_first_of_that_length(data: st.DataObject) -> None:
    knots = data.draw(st.lists(SIXTEENTHS, min_size=2, max_size=14, unique=True).map(sorted))
    gap = data.draw(gaps_at(knots))
    runs = all_runs(knots, gap)
    values = sorted({run.value for run in runs if data.draw(st.booleans())})
    longest = [
        max((run for run in runs if run.value == value), key=lambda run: run.half_width) for value in values
    ]
    found = [longest_run(np.array(knots), np.array(gap), value) for value in values]
    assert found == [(run.start, run.end) for run in longest]


def gaps_at(knots: list[float]) -> st.SearchStrategy[list[float]]:
    """Gaps of either sign with many ties, 0 at the last knot."""
    signed = st.integers(-8, 8).map(lambda number: number / 8)
    return lists_of(signed, len(knots) - 1).map(lambda drawn: [*drawn, 0.0])


@pytest.mark.parametrize("octave", [-2, -3, -20, -59, -60, -61])
@pytest.mark.parametrize("eighths", range(8))
def test_a_lower_run_is_forgotten_where_it_is_shorter_by_a_class(octave: int, eighths: int) -> None:
    """A run of the shortest length of a class against lower runs of the class below, or just as long."""
    longer = 2.0**octave * (1 + eighths / 8)
    first, gap = longer / 8, np.array([0.5, 0.0, 0.25, 0.0])
    for shorter in (longer, longer * (1 - 2**-20)):
        knots = np.cumsum([first, 2 * longer, first, 2 * shorter])
        half_widths, _, _ = runs_of(knots, gap)
        assert half_widths.size == 1 + (length_class(shorter) == length_class(longer))


@pytest.mark.parametrize("end", [1.0, 1.1, 1.125, 1.25, 1.375, 2.0, 1e300])
def test_a_run_longer_than_the_range_is_read_within_bounds(end: float) -> None:
    """Compiled, a place outside of an array would be read or written to all the same."""
    found = runs_of(np.array([0.0, end]), np.array([0.5, 0.0]))
    assert [column.tolist() for column in found] == [[end], [0.5], [0.0]]


def test_a_gap_that_rises_up_to_the_end_is_read_within_bounds() -> None:
    knots, gap = np.array([0.1, 0.2, 0.3]), np.array([0.25, 0.5, 0.75])
    assert [column.size for column in runs_of(knots, gap)] == [0, 0, 0]


@given(
    st.lists(SIXTEENTHS, min_size=2, max_size=8, unique=True).map(sorted), st.lists(SIXTEENTHS).map(sorted)
)
def test_each_score_is_found_in_its_cell(ends: list[float], scores: list[float]) -> None:
    lows, highs = np.array(ends[:-1:2]), np.array(ends[1::2])
    at, inside = counts_kernels.find_cells(lows, highs, np.array(scores))
    for score, cell, found in zip(scores, at, inside, strict=True):
        holding = [i for i in range(highs.size) if lows[i] < score <= highs[i]]
        assert ([cell] if found else []) == holding


@given(st.data())
def test_an_envelope_is_known_outside_of_cells_and_bounded_inside(data: st.DataObject) -> None:
    knots = data.draw(st.lists(SIXTEENTHS, min_size=1, max_size=8, unique=True).map(sorted))
    # A cell ends at its knot and begins at the knot before it, or between the two; many knots have none.
    previous = [knots[0] / 2, *knots[:-1]]
    lows = [
        data.draw(st.sampled_from([knot, knot, before, (before + knot) / 2]))
        for before, knot in zip(previous, knots, strict=True)
    ]
    gap, least, most = (data.draw(lists_of(SIXTEENTHS, len(knots))) for _ in range(3))
    # The gap at a knot is known, also where a cell begins; nothing lies in the cell before the next float.
    known = [(knot, value, value) for knot, value in zip(knots, gap, strict=True)]
    inside = [
        (np.nextafter(low, 1.0) if low in knots else low, least[i], most[i])
        for i, (low, knot) in enumerate(zip(lows, knots, strict=True))
        if low < knot
    ]
    expected = sorted(known + inside)
    cells = CellGaps(*map(np.array, (lows, least, most)))
    found = envelope_of(np.array(knots), np.array(gap), cells)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected


def test_a_step_decides_where_it_may_lower_a_window_that_may_be_the_worst() -> None:
    rng = np.random.default_rng(0)
    for _ in range(400):
        # Few values, so that bounds are often equal and a run is often just as long as a window.
        size = rng.integers(1, 9)
        begins = np.sort(rng.permutation(9)[:size]) / 8
        lower, upper = (np.append(rng.integers(0, 4, size - 1), 0) / 4 for _ in range(2))
        least, most = rng.integers(0, 4, (2, 2)) / 4
        reach = rng.integers(0, 9, 2) / 16
        expected = np.zeros(size, dtype=bool)
        for first, last in combinations(range(size), 2):
            length = 0.5 * (begins[last] - begins[first]) if begins[first] > 0 else begins[last]
            for i in range(2):
                high = (upper[first:last] >= least[i]) & (upper[first:last] > 0)
                if high.all() and length > reach[i]:
                    expected[first:last] |= lower[first:last] < most[i]
        found = _kernels.deciding_steps(begins, lower, upper, least, most, reach)
        assert found.tolist() == expected.tolist()


@given(st.data())
def test_a_pair_may_carry_a_window_that_no_lower_gap_lies_in(data: st.DataObject) -> None:
    ends = data.draw(st.lists(SIXTEENTHS, min_size=1, max_size=12).map(sorted))
    first, second = ([0.0, *data.draw(lists_of(SIXTEENTHS, len(ends)))] for _ in range(2))
    reach, level = data.draw(SIXTEENTHS), data.draw(SIXTEENTHS)
    low = [abs(a - b) <= level for a, b in zip(first[1:], second[1:], strict=True)]
    # A run begins at the bottom, where it is as long as it reaches, or after a lower gap.
    begins = {0: 0.0, **{cell + 1: ends[cell] for cell in range(len(ends) - 1) if low[cell]}}
    expected = False
    for cell, begin in begins.items():
        until = begin + (2 * reach if begin > 0 else reach)
        held = (low[other] for other in range(cell, len(ends)) if ends[other] <= until)
        expected = expected or not any(held)
    assert _kernels._may_carry(*map(np.array, (ends, first, second)), reach, level) == expected


@given(st.data())
def test_no_gap_is_larger_than_the_largest_bound(data: st.DataObject) -> None:
    """Of the shares that two groups have up to the end of each cell, and what is known inside."""
    size = data.draw(st.integers(1, 8))
    first, second = (np.array([0.0, *sorted(data.draw(lists_of(SIXTEENTHS, size)))]) for _ in range(2))
    known = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    inside = np.empty((2, 0))
    if data.draw(st.booleans()):
        inside = np.array([data.draw(lists_of(SIXTEENTHS, size)) for _ in range(2)]) - 0.5
        inside.sort(axis=0)
    bounds = np.empty((2, 2 * size))
    _kernels._bound_gap(first, second, known, inside, 2.0**-20, bounds)
    bounds[1, -1] = abs(first[-1] - second[-1]) + 2.0**-20
    assert _kernels._largest_bound(first, second, known, inside, 2.0**-20) == bounds[1].max()


def lists_of(elements: st.SearchStrategy[float], size: int) -> st.SearchStrategy[list[float]]:
    return st.lists(elements, min_size=size, max_size=size)


def test_without_half_widths_there_is_no_run() -> None:
    assert _kernels.highest_runs(np.array([0.2, 0.4]), np.array([0.5, 0.0]), np.empty(0)).size == 0
