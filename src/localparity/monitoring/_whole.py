"""All people that a monitor has counted, as one period.

The sketches of all periods but the newest are remembered as one, so that each is read once.
"""

from __future__ import annotations

from typing import NamedTuple

from localparity._io._files import sha256_of
from localparity.counts import Comparison
from localparity.monitoring._container import pack, unpack
from localparity.monitoring._periods import Period
from localparity.monitoring._series import periods_of
from localparity.monitoring._sketch import ScoreSketch
from localparity.monitoring._store import Store

_NOTE, _MARK, _VERSION = "since-start.sketch", b"LPWHOLE\0", 1


class Whole(NamedTuple):
    """The first and the last period, the number of periods, the last look, and the sketch of all people."""

    start: str
    end: str
    periods: int
    look: int
    sketch: ScoreSketch


def whole_of(store: Store) -> Whole | None:
    """Everyone counted in a store, in the periods that were removed too; None where nobody was."""
    stamps = store.stamps()
    names, removed = list(stamps), store.removed()
    if not names and removed is None:
        return None
    base = "" if removed is None else sha256_of(removed.to_bytes())
    look, sketch = (0, None) if removed is None else (removed.look, _read(removed.sketch, store))
    chain = _chain(base, stamps)
    done = 0
    known = _recall(store, chain)
    if known is not None:
        done, look, sketch = known
    for place, period in enumerate(periods_of(store, names[done:], Comparison()), start=done):
        look = max(look, period.look)
        if sketch is None:
            sketch = period.sketch
        else:
            sketch.absorb(period.sketch)
        if place == len(names) - 2:
            header = {"periods": place + 1, "look": look, "chain": chain[place + 1]}
            store.remember(_NOTE, pack(_MARK, _VERSION, header, [sketch.to_bytes()]))
    assert sketch is not None
    first = names[0] if removed is None else removed.first
    last = names[-1] if names else str(removed and removed.last)
    return Whole(first, last, len(names) + (0 if removed is None else removed.periods), look, sketch)


def as_period(whole: Whole, comparison: Comparison) -> Period:
    """Everyone as one period, to compare."""
    return Period(whole.end, whole.look, 0, whole.sketch, comparison)


def _read(sketch: bytes, store: Store) -> ScoreSketch:
    return ScoreSketch.from_bytes(sketch, f"the sketch of the removed periods in {store.name}")


def _chain(base: str, stamps: dict[str, str]) -> list[str]:
    """For each number of periods, a text that is another one if one of so many is."""
    chain = [base]
    for name, stamp in stamps.items():
        chain.append(sha256_of(f"{chain[-1]} {name} {stamp}".encode()))
    return chain


def _recall(store: Store, chain: list[str]) -> tuple[int, int, ScoreSketch] | None:
    """The periods that are remembered as one and have not changed: how many, their last look and sketch."""
    content = store.recall(_NOTE)
    if content is None:
        return None
    try:
        header, (sketch,) = unpack(content, _MARK, _VERSION, _NOTE)
        periods, look = int(header["periods"]), int(header["look"])
        if periods >= len(chain) or header["chain"] != chain[periods]:
            return None
        return periods, look, ScoreSketch.from_bytes(sketch, _NOTE)
    except ValueError:
        return None
