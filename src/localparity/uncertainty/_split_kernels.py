r"""The worst gap over all splits of an ordered sensitive feature, without a pass over the scores for each.

Of n people let the t lowest in the feature be on one side. At a score y, with A(y) of these t people and T(y)
of all people at or below it, the gap between the sides is

.. math::
    F_{low}(y) - F_{high}(y) = \frac{n A(y) - t\, T(y)}{t (n - t)},

and studentised, over its spread at parity,

.. math::
    \frac{n A(y) - t\, T(y)}{\sqrt{n\, t (n - t)}},

so at a score the numerator is a line in t, of slope -T(y), that rises by n at each person of a lower or equal
score who comes over to the low side. A kinetic tournament keeps the highest of these lines: a binary tree
over the scores whose nodes know the winner below them and until which t it stays so. A person costs the path
from a leaf to the root at most, and as t moves on only nodes whose time has come are looked at again.
"""

from __future__ import annotations

import numpy as np

from localparity._compiled import compiled
from localparity._types import IntArray

_NEVER = np.int64(2**62)


@compiled
def worst_split(
    places: IntArray, totals: IntArray, ends: IntArray, least: int, power: float
) -> tuple[int, float]:
    """The number of people on the low side and the size of the gap at the worst split.

    `places` are the people's places among the distinct scores, in the order of the feature; `totals` says how
    many people are at or below each score; `ends` are the numbers of people at or below each distinct value
    of the feature that leaves enough above; `least` people must be at or below. With a `power` of one half in
    place of 1, the gap is studentised but for the square root of n.
    """
    size, gap = _worst_of_sign(places, totals, ends, least, power, 1, 0, -1.0)
    return _worst_of_sign(places, totals, ends, least, power, -1, size, gap)


@compiled
def _worst_of_sign(
    places: IntArray,
    totals: IntArray,
    ends: IntArray,
    least: int,
    power: float,
    sign: int,
    best_size: int,
    best: float,
) -> tuple[int, float]:
    """Of gaps of one sign, the worst that exceeds the best so far.

    `most` bounds the highest line from above, since a person who comes over lifts no line by more than those
    above, or with the other sign at or below, the score. While that rules a worse gap out, the tree waits,
    and people who have come over only mark the nodes above them.
    """
    people = places.size
    leaves = 1
    while leaves < totals.size:
        leaves *= 2
    tree = np.zeros((4, 2 * leaves), np.int64)
    rise, height, slope, expiry = tree
    height[leaves + totals.size :] = -_NEVER
    slope[leaves : leaves + totals.size] = -sign * totals
    expiry[leaves:] = _NEVER
    stale = np.empty(leaves, np.int64)
    size = 0
    most = 0
    for end in ends:
        while size < end:
            place = places[size]
            most += people - totals[place] if sign > 0 else totals[place]
            node = leaves + place
            rise[node] += sign * people
            height[node] = rise[node]
            while node > 1 and expiry[node >> 1] >= 0:
                node >>= 1
                expiry[node] = -1
            size += 1
        scale = (float(end) * float(people - end)) ** power
        if end < least or float(most) <= best * scale:
            continue
        _catch_up(end, stale, rise, height, slope, expiry)
        most = height[1] + slope[1] * end
        if float(most) / scale > best:
            best_size = end
            best = float(most) / scale
    return best_size, best


@compiled
def _catch_up(
    now: int, stale: IntArray, rise: IntArray, height: IntArray, slope: IntArray, expiry: IntArray
) -> None:
    """Decide anew, from the leaves up, wherever people have come over or the time has come."""
    found = 0
    if expiry[1] <= now:
        stale[0] = 1
        found = 1
    at = 0
    while at < found:
        for child in (2 * stale[at], 2 * stale[at] + 1):
            if expiry[child] <= now:
                stale[found] = child
                found += 1
        at += 1
    for at in range(found - 1, -1, -1):
        _decide(stale[at], now, rise, height, slope, expiry)


@compiled
def _decide(node: int, now: int, rise: IntArray, height: IntArray, slope: IntArray, expiry: IntArray) -> None:
    """The higher of two lines now, and until when nothing below can change that.

    Heights count from the left end of a node's leaves; all that lie to the right of a leaf rise with it.
    """
    left = 2 * node
    right = left + 1
    left_height = height[left]
    right_height = rise[left] + height[right]
    ahead = left_height - right_height + (slope[left] - slope[right]) * now
    steeper = slope[left] - slope[right]
    if ahead > 0 or (ahead == 0 and steeper >= 0):
        height[node] = left_height
        slope[node] = slope[left]
    else:
        height[node] = right_height
        slope[node] = slope[right]
        ahead = -ahead
        steeper = -steeper
    rise[node] = rise[left] + rise[right]
    until = min(expiry[left], expiry[right])
    if steeper < 0:
        until = min(until, now + ahead // -steeper + 1)
    expiry[node] = until
