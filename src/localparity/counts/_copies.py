"""Copies: rows that are repeated as a whole, so that there are fewer people than rows.

People may well be alike, above all where scores or features take few values. Then a row occurs any number of
times. Where a table was joined or appended to itself, nearly every row occurs a multiple of the same number
of times, which is next to impossible otherwise.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from localparity._types import IntArray
from localparity._validation import InputWarning
from localparity.counts._atoms import Atoms
from localparity.counts._score_counts import ScoreCounts

_LEAST_DISTINCT = 50
_NEARLY_ALL = 0.95
_MOST_COPIES = 1000


def copies_in(times: IntArray) -> int:
    """How many copies there are of nearly every row, given how often each distinct row occurs.

    Of 50 rows that are alike by chance, 48 occur an even number of times with a probability of 1e-12.

    Examples
    --------
    >>> copies_in(np.full(60, 5)), copies_in(np.full(60, 1)), copies_in(np.arange(60))
    (5, 1, 1)
    """
    if times.size < _LEAST_DISTINCT:
        return 1
    distinct, number = np.unique(times, return_counts=True)
    # Nearly all rows occur at least as often as there are copies.
    most = int(np.quantile(times, 1.0 - _NEARLY_ALL, method="higher"))
    for copies in range(min(most, _MOST_COPIES), 1, -1):
        if number[distinct % copies == 0].sum() >= _NEARLY_ALL * times.size:
            return copies
    return 1


def copies_of(counts: ScoreCounts) -> int:
    """How many copies there are of nearly every row that was counted; 1 where clusters say whose each is.

    Whole cells of scores show copies as single scores do; a sketch, which gives a score to many rows, does
    not.
    """
    sketched = counts.rank_error > 0.0 and counts.cells is None
    if sketched or counts.clusters is not None:
        return 1
    return copies_in(np.concatenate([atoms.rows for atoms in counts.atoms.values()]))


def copies_sentence(copies: int) -> str:
    """What copies mean for what is said of people."""
    return (
        f"Nearly every row occurs {copies} times, or a multiple of it: these look like copies, which are not "
        "independent people"
    )


def warn_of_copies(copies: int, advice: str, *, stacklevel: int) -> None:
    """Warn where there are several copies of nearly every row."""
    if copies > 1:
        warnings.warn(InputWarning(f"{copies_sentence(copies)}; {advice}"), stacklevel=stacklevel + 1)


def without_copies(counts: ScoreCounts, copies: int) -> ScoreCounts:
    """Counts with one of so many copies of each row; weights are kept as they are."""
    atoms = {
        key: found if found.units is not None else Atoms.of_counts(found.scores, -(-found.rows // copies))
        for key, found in counts.atoms.items()
    }
    return counts if copies == 1 else replace(counts, atoms=atoms)
