"""What cells of scores say of MCDP of the worst pair: a loop over the cells."""

from __future__ import annotations

import numpy as np

from localparity._compiled import compiled
from localparity._types import BoolArray, FloatArray
from localparity.metrics._kernels import deciding_steps, raise_highest_runs

_SLACK = 1e-12


@compiled
def _bound_gap(
    rows: FloatArray, sides: BoolArray, gaps: FloatArray, known: BoolArray, bounds: FloatArray
) -> None:
    """The least and the greatest absolute gap, in two rows, inside each cell and from its end on, in turns.

    `sides` says which keys the two groups have, and `gaps` what the signed gap lies between inside each cell,
    whatever its rows. Of a cell that is known to have one score, nothing lies inside.
    """
    sizes, below, shares = np.zeros(2), np.zeros(2), np.zeros(2)
    for side in range(2):
        for key in range(len(rows)):
            if sides[side, key]:
                sizes[side] += rows[key].sum()
    for cell in range(known.size):
        before_one, before_two = shares
        for side in range(2):
            for key in range(len(rows)):
                if sides[side, key]:
                    below[side] += rows[key, cell]
            shares[side] = below[side] / sizes[side]
        one, two = shares
        gap, after = abs(one - two), 2 * cell + 1
        bounds[0, after], bounds[1, after] = max(0.0, gap - _SLACK), gap + _SLACK
        if known[cell]:
            bounds[0, after - 1], bounds[1, after - 1] = bounds[0, after], bounds[1, after]
            continue
        least, most = max(before_one - two, gaps[0, cell]), min(one - before_two, gaps[1, cell])
        bounds[0, after - 1] = max(0.0, max(least, -most) - _SLACK)
        bounds[1, after - 1] = max(-least, most) + _SLACK
    bounds[:, -1] = 0.0


@compiled
def bound_worst(
    begins: FloatArray,
    known: BoolArray,
    rows: FloatArray,
    sides: BoolArray,
    gaps: FloatArray,
    reach: FloatArray,
    least: FloatArray,
) -> tuple[BoolArray, BoolArray]:
    """Which pairs may be the worst, and which cells decide MCDP of the worst one at each half-width.

    `begins` has where each cell begins and ends, and `reach` the half-widths, ascending, that a run must
    exceed: to carry a window whatever the rounding, and to carry one at all. `least` is what MCDP is known
    not to be below, and is raised to what these cells say.
    """
    n_pairs = sides.shape[1]
    bounds = np.empty((n_pairs, 2, begins.size))
    largest = np.empty(n_pairs)
    for pair in range(n_pairs):
        _bound_gap(rows, sides[:, pair], gaps[:, pair], known, bounds[pair])
        largest[pair] = bounds[pair, 1].max()
    for pair in np.argsort(-largest):
        raise_highest_runs(begins, bounds[pair, 0], reach[0], least)
    matters = largest >= least.min()
    decides = np.zeros(known.size, np.bool_)
    for pair in range(n_pairs):
        if not matters[pair]:
            continue
        most = least.copy()
        raise_highest_runs(begins, bounds[pair, 1], reach[1], most)
        found = deciding_steps(begins, bounds[pair, 0], bounds[pair, 1], least, most, reach[1])
        for cell in range(known.size):
            decides[cell] = decides[cell] or (found[2 * cell] and not known[cell])
    return matters, decides
