"""Alarms that are false, ever, with no more than one stated probability.

Two rules share the alarm rate. One looks at each period by itself and finds a large change at once. The other
is an e-detector, which collects evidence over all batches in a few numbers for each pair of groups, and finds
a small change that lasts. Windows of periods say where an alarm began, and how large MCDP has been since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from localparity._io._files import reading
from localparity._types import FloatArray, Group, IntArray, ScoreRange
from localparity.counts._comparison import EVERYONE
from localparity.metrics._within import within_bound
from localparity.monitoring._periods import SKETCH_SHARE, Pair, Period, average_curves, interval_of
from localparity.monitoring._sketch import Key, ScoreSketch, join_parts, plain_group, read_keys, split_parts
from localparity.monitoring._watch import Watch, WindowResult
from localparity.uncertainty._bands import pair_radii
from localparity.uncertainty._looks import BETS, average_radius, evidence_factors, look_share

LONGEST = 32
"""The most periods of which an alarm says what MCDP was."""
ONE_PERIOD = 0.2
"""The share of the alarm rate that looks at single periods spend; the detector spends the rest."""
CUTOFFS, EDGES = 32, 128
_KEPT = 0.9  # what is left of the rows that a centre rests on, whenever there are new ones
_MOST = 100.0  # evidence is held at so many times what an alarm takes, so that alarms end
_ROUNDING = 1e-9


def first_cutoffs(score_range: ScoreRange) -> tuple[float, ...]:
    """The cutoffs while nobody has been counted: evenly spread over the range."""
    return tuple(np.linspace(*score_range, CUTOFFS + 2)[1:-1].tolist())


def cutoffs_of(sketch: ScoreSketch) -> tuple[float, ...]:
    """The scores that split the people counted so far into equal parts."""
    atoms = list(sketch.counts().atoms.values())
    scores, rows = (np.concatenate([getattr(some, name) for some in atoms]) for name in ("scores", "rows"))
    order = np.argsort(scores, kind="stable")
    running = np.cumsum(rows[order])
    wanted = np.arange(1, CUTOFFS + 1) / (CUTOFFS + 1) * running[-1]
    return tuple(scores[order][np.searchsorted(running, wanted - _ROUNDING)].tolist())


class Look(NamedTuple):
    """A batch as the detector sees it: the people of each group and label, and how many have which scores.

    The counts say how many are at or below each cutoff, and then each lower edge of even cells of the range.
    """

    period: str
    sizes: dict[Key, int]
    counts: dict[Key, IntArray]

    @classmethod
    def of(
        cls, period: str, scores: dict[Key, FloatArray], cutoffs: FloatArray, score_range: ScoreRange
    ) -> Look:
        """The look of a batch with some scores, ascending, of each group and label."""
        places = np.append(cutoffs, np.linspace(*score_range, EDGES + 1)[:-1])
        some = {key: values for key, values in scores.items() if values.size}
        counts = {key: np.searchsorted(values, places, side="right") for key, values in some.items()}
        return cls(period, {key: values.size for key, values in some.items()}, counts)

    def to_bytes(self) -> bytes:
        """The bytes of the look."""
        keys = [[plain_group(group), label] for group, label in self.sizes]
        header = {"period": self.period, "keys": keys, "sizes": list(self.sizes.values())}
        return join_parts(header, [some.astype("<u4").tobytes() for some in self.counts.values()])

    @classmethod
    def from_bytes(cls, payload: bytes, name: str) -> Look:
        """The look in some bytes; `name` is what messages call them."""
        header, parts = split_parts(payload, name)
        with reading(name):
            keys = read_keys(header["keys"])
            sizes = dict(zip(keys, map(int, header["sizes"]), strict=True))
            counts = [np.frombuffer(part, "<u4").astype(np.int64) for part in parts]
            if any(some.size != CUTOFFS + EDGES for some in counts):
                raise ValueError(f"a look must have {CUTOFFS + EDGES} counts for each group")
            return cls(header["period"], sizes, dict(zip(keys, counts, strict=True)))


class PooledRows(NamedTuple):
    """The rows of a pair's two groups in one period that were not bet on yet."""

    sizes: tuple[int, int]
    counts: IntArray  # (..., 2, cutoffs)

    def plus(self, other: PooledRows) -> PooledRows:
        """Both together."""
        first, second = np.add(self.sizes, other.sizes).tolist()
        return PooledRows((first, second), self.counts + other.counts)


@dataclass
class PairEvidence:
    """The evidence about one pair, (..., cutoffs, signs, bets), and since which hour it has been growing.

    `known` has the rows on which the next centre rests, at or below each cutoff and in all, of either group.
    """

    evidence: FloatArray
    since: IntArray
    known: FloatArray

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> PairEvidence:
        """No evidence yet; a row that is half at or below each cutoff stands for what is not known."""
        cells = (*shape[:-2], shape[-1], 2, BETS.size)
        known = np.zeros((*shape[:-1], shape[-1] + 1))
        known[..., :-1], known[..., -1] = 0.25, 0.5
        return cls(np.zeros(cells), np.zeros(cells, dtype=np.int64), known)


class Detector:
    r"""Collects evidence that MCDP is above a bound, in one number for each pair, cutoff, sign and bet.

    With each comparison t, which is a batch that has people of two groups, every number S becomes
    :math:`(S + w_t / P_t) E_t`. Here :math:`E_t` is its e-value of the batch's rows (`evidence_factors`),
    :math:`P_t` the number of pairs that the batch compares, and :math:`w_t` the share of a look, which sum to
    1. The evidence M is the sum over pairs of the mean over cutoffs, signs and bets.

    **The promise.** The null hypothesis is that MCDP(0) is at most `max_mcdp` in every period. Under it the
    probability that M ever reaches 1 / r is at most r, for however many batches, of a bound that was chosen
    before them. The bets depend on the bound, so that a larger one does not always have less evidence.

    *Proof.* Under the null the expectation of :math:`E_t`, given everything before, is at most 1, because
    cutoffs, centres and bets rest on earlier batches, and the sizes and times of batches do not depend on
    scores. So :math:`M_t + 1 - \sum_{k \le t} w_k` is a supermartingale that is never negative and begins at
    1, and Ville's inequality (1939) bounds the probability that it ever reaches 1 / r. Making it smaller at
    any time, as a cap does, keeps it one. ∎ This is the e-detector of Shin, Ramdas and Rinaldo (2024,
    *E-detectors: a nonparametric framework for sequential change detection*), with start weights that sum to
    1 (their Shiryaev-Roberts detector has weights of 1, which bound how often false alarms come, and not
    whether one ever does). Testing groups by betting is the idea of Chugg, Cortes-Gomez, Wilder and Ramdas
    (2023, *Auditing fairness by betting*) and, for two samples, of Shekhar and Ramdas (2023, *Nonparametric
    two-sample testing by betting*).

    **Windows of scores.** For epsilon > 0 the cutoffs are the cells :math:`[y_j, y_{j+1})` of an even grid,
    and the first group's share at :math:`y_j` is compared with the second's at :math:`y_{j+1}`, which is at
    most the gap anywhere in the cell. The mean is over runs of cells, of the least number in the run; each
    run holds a whole window. The null hypothesis is then that every window of scores has a cutoff at which
    the gap is within the bound *in every period*: the number of the cell with that cutoff obeys the
    inequality above, the least of the run is at most that number, and the mean over runs is at most a mean of
    such numbers. ∎ A cutoff that is another one in other periods is not covered.

    **Which rows.** Rows are compared with those of the same period, each once. Batches of one period that
    come one after the other are pooled until both groups of a pair have `min_group_size` people. Rows left
    over when a batch of another period comes are bet on then. A late batch is a comparison when it arrives.
    None of these rules looks at scores. The gap of a group to everyone is 1 - n_g / N times the gap between
    the group and the rest: the rest is the second group, and the bound is divided by that share.
    """

    def __init__(self, watch: Watch) -> None:
        assert watch.max_mcdp is not None
        self._bound, self._comparison = watch.max_mcdp, watch.comparison
        self._runs = _runs(watch.epsilon)
        self.needed = 1.0 / ((1.0 - ONE_PERIOD) * watch.alarm_rate)
        self.look, self.newest = 0, ""
        self.alarms: dict[str, str] = {}
        self._period, self._comparisons, self._total = "", 0, np.zeros(1)
        self._groups: list[Group] = []
        self._pools: dict[Pair, PooledRows] = {}
        self._pairs: dict[Pair, PairEvidence] = {}

    def add(self, look: Look) -> FloatArray:
        """Go on to the next batch; returns the evidence, the most there was on the way."""
        self.look += 1
        self.newest = max(self.newest, look.period)
        totals = []
        if look.period != self._period:
            left = [pair for pair, rows in self._pools.items() if min(rows.sizes) > 0]
            totals += [self._bet(left)] if left else []
            self._pools, self._period = {}, look.period
        for pair, rows in self._pools_of(look):
            self._pools[pair] = self._pools[pair].plus(rows) if pair in self._pools else rows
        least = self._comparison.min_group_size
        ready = [pair for pair, rows in self._pools.items() if min(rows.sizes) >= least]
        totals += [self._bet(ready)] if ready else []
        for pair in ready:
            del self._pools[pair]
        self._total = totals[-1] if totals else self._total
        return np.asarray(np.max(totals, axis=0) if totals else self._total)

    def started(self) -> str:
        """The day or hour since which the most evidence has been growing."""
        pair = max(self._pairs.values(), key=lambda pair: float(self._least(pair).max()))
        least = self._least(pair)
        place, sign, bet = np.unravel_index(int(least.argmax()), least.shape)
        cells = slice(place, place + 1) if self._runs is None else slice(*self._runs[place])
        inside = pair.evidence[cells, sign, bet].argmin()
        hour = np.datetime64(int(pair.since[cells, sign, bet][inside]), "h")
        return str(hour)[: len(self.newest)]

    def _pools_of(self, look: Look) -> Iterator[tuple[Pair, PooledRows]]:
        """The rows of a batch for each pair of which it has any."""
        self._groups += [group for group, _ in look.sizes if group not in self._groups]
        keys = list(dict.fromkeys(self._groups))
        columns = slice(None, CUTOFFS) if self._runs is None else slice(CUTOFFS, None)
        for label in self._comparison.labels:
            groups = {
                group: [key for key in look.sizes if key[0] == group and label in (None, key[1])]
                for group in keys
            }
            for pair in self._comparison.pairs(keys):
                first, second = groups[pair[0]], groups.get(pair[1], [])
                if pair[1] is EVERYONE:
                    second = [key for group in keys if group != pair[0] for key in groups[group]]
                if first or second:
                    sides = [_together(look, side, columns) for side in (first, second)]
                    sizes = sides[0][0], sides[1][0]
                    yield (pair, label), PooledRows(sizes, np.stack([counts for _, counts in sides], axis=-2))

    def _bet(self, pairs: Sequence[Pair]) -> FloatArray:
        """Bet on the pools of some pairs; returns the evidence there is then."""
        self._comparisons += 1
        hour = int(np.datetime64(self._period, "h").astype(np.int64))
        for pair in pairs:
            self._bet_on(pair, look_share(self._comparisons) / len(pairs), hour)
        total = sum(self._least(pair).mean(axis=(-3, -2, -1)) for pair in self._pairs.values())
        excess = np.asarray(np.maximum(total / (_MOST * self.needed), 1.0))[..., None, None, None]
        if (excess > 1.0).any():
            for of_pair in self._pairs.values():
                of_pair.evidence /= excess
        return np.asarray(total)

    def _bet_on(self, pair: Pair, weight: float, hour: int) -> None:
        sizes, counts = self._pools[pair]
        bound = self._bound
        if pair[0][1] is EVERYONE:
            bound = min(bound * sum(sizes) / sizes[1], 1.0)
        before = self._pairs.get(pair)
        if before is None:
            before = self._pairs[pair] = PairEvidence.none(counts.shape)
        people = before.known[..., -1].sum(axis=-1)[..., None]
        factors = []
        for first, second in ((0, 1), (1, 0)):
            x, y = self._ends(counts[..., first, :], counts[..., second, :], sizes[second])
            known, other = before.known[..., first, :-1], before.known[..., second, :]
            centre = sum(self._ends(known, other[..., :-1], other[..., -1:])) / people
            factors.append(evidence_factors((x, y), (sizes[first], sizes[second]), centre, bound))
        before.since[before.evidence <= weight] = hour
        before.evidence = (before.evidence + weight) * np.stack(factors, axis=-2)
        before.known = _KEPT * before.known
        before.known[..., :-1] += counts
        before.known[..., -1] += sizes

    def _ends(self, first: Any, second: Any, size: Any) -> tuple[Any, Any]:
        """The first group's rows at the lower end of each cell, and the second's at its upper end."""
        if self._runs is None:
            return first, second
        above = np.broadcast_to(size, (*second.shape[:-1], 1))
        return first, np.concatenate([second[..., 1:], above], axis=-1)

    def _least(self, pair: PairEvidence) -> FloatArray:
        """The evidence of each cutoff, or the least of each run of cells."""
        if self._runs is None:
            return pair.evidence
        runs = [pair.evidence[..., low:high, :, :].min(axis=-3) for low, high in self._runs]
        return np.stack(runs, axis=-3)

    def to_bytes(self) -> bytes:
        """The bytes of all evidence."""
        named = [_plain_pair(pair) for pair in (*self._pairs, *self._pools)]
        header = {
            "look": self.look,
            "newest": self.newest,
            "alarms": self.alarms,
            "period": self._period,
            "comparisons": self._comparisons,
            "total": float(self._total.max()),
            "groups": [plain_group(group) for group in self._groups],
            "pairs": named[: len(self._pairs)],
            "pools": named[len(self._pairs) :],
            "sizes": [pool.sizes for pool in self._pools.values()],
        }
        arrays = [array for one in self._pairs.values() for array in (one.evidence, one.since, one.known)] + [
            pool.counts for pool in self._pools.values()
        ]
        return join_parts(header, [array.astype("<f8").tobytes() for array in arrays])

    def restore(self, payload: bytes, name: str) -> None:
        """Go on from what `to_bytes` returned."""
        header, parts = split_parts(payload, name)
        arrays = iter([np.frombuffer(part, "<f8") for part in parts])
        cells = CUTOFFS if self._runs is None else EDGES
        shape = (cells, 2, BETS.size)
        with reading(name):
            self.look, self.newest, self._period = header["look"], header["newest"], header["period"]
            self._comparisons, self.alarms = header["comparisons"], header["alarms"]
            self._total = np.full(1, header["total"])
            self._groups = [_read_group(group) for group in header["groups"]]
            for pair in map(_read_pair, header["pairs"]):
                evidence, since, known = next(arrays), next(arrays), next(arrays)
                since_hours = since.astype(np.int64).reshape(shape)
                known = known.reshape(2, cells + 1)
                self._pairs[pair] = PairEvidence(evidence.reshape(shape).copy(), since_hours, known)
            for pair, sizes in zip(map(_read_pair, header["pools"]), header["sizes"], strict=True):
                counts = next(arrays).astype(np.int64).reshape(2, cells)
                self._pools[pair] = PooledRows((sizes[0], sizes[1]), counts)


def _runs(epsilon: float) -> list[tuple[int, int]] | None:
    """The runs of cells that just hold a window each, the first one at the bottom; None at epsilon 0."""
    if epsilon == 0.0:
        return None
    # A half-open run holds a closed window if it is longer; at the bottom of the range, half is cut off.
    half, whole = (int(times * epsilon * EDGES + _ROUNDING) + 1 for times in (1, 2))
    return [(0, half), *((low, low + whole) for low in range(EDGES - whole + 1))]


def _together(look: Look, keys: Sequence[Key], columns: slice) -> tuple[int, IntArray]:
    """The people of some groups, and their counts."""
    nobody = np.zeros_like(next(iter(look.counts.values()))[..., columns])
    counts = sum((look.counts[key][..., columns] for key in keys), start=nobody)
    return sum(look.sizes[key] for key in keys), counts


def _plain_pair(pair: Pair) -> list[Any]:
    (first, second), label = pair
    return [plain_group(first), None if second is EVERYONE else plain_group(second), label]


def _read_pair(plain: Sequence[Any]) -> Pair:
    first, second, label = plain
    return (_read_group(first), EVERYONE if second is None else _read_group(second)), label


def _read_group(plain: Any) -> Group:
    return tuple(plain) if isinstance(plain, list) else plain


def window_share(look: int, newer: int, length: int) -> float:
    """The share of the error of a window of a length at a look; all shares sum to at most 1.

    A batch changes the windows that hold its period: of each length one, or up to ``1 + newer`` where there
    are newer periods. The look's share is divided among the lengths, and then among the windows of a length.
    """
    return look_share(look) / (LONGEST * min(length, 1 + newer))


def alarm_in(period: Period, watch: Watch) -> WindowResult | None:
    """The alarm that one period raises by itself: MCDP is above the bound with the whole of its band."""
    assert watch.max_mcdp is not None
    error = ONE_PERIOD * watch.alarm_rate * look_share(period.look)
    result = measure_window([period], watch, error)
    if result.interval is None or within_bound(result.interval.low, watch.max_mcdp):
        return None
    return result


def measure_window(window: Sequence[Period], watch: Watch, error: float | None = None) -> WindowResult:
    """MCDP of the average gap of consecutive periods.

    By default the intervals of all looks and windows hold together, but for the alarm rate.
    """
    if error is None:
        look, newer = max((period.look, period.newer) for period in window)
        error = watch.alarm_rate * window_share(look, newer, len(window))
    curves, interval = average_curves(window, error), None
    if curves:
        share = (1.0 - SKETCH_SHARE) * error / len(curves)
        if len(window) == 1:
            # The rows of one period are alike, for which there is a shorter band.
            radii = pair_radii(window[0].curves, share)
        else:
            known = [sum(period.information.get(pair, 0.0) for period in window) for pair in curves]
            radii = np.array([average_radius(1.0 / information, share) for information in known])
        interval = interval_of(list(curves.values()), watch.epsilon, radii, 1.0 - watch.alarm_rate)
    rows = sum(period.rows or 0 for period in window) or None  # periods of few people tell no rows
    approximate = any(period.approximate for period in window)
    return WindowResult(window[0].name, window[-1].name, len(window), rows, interval, approximate)
