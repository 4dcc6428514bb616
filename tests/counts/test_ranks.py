"""Ranks in the place of scores, against the definition in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
from localparity.counts._score_counts import ranked

ROWS = st.lists(
    st.tuples(st.integers(-5, 5), st.sampled_from("abc"), st.integers(1, 4)), min_size=3, max_size=30
).filter(lambda rows: len({group for _, group, _ in rows}) > 1)


def counted(rows: list[tuple[int, str, int]], *, weighted: bool, clustered: bool = False) -> lp.ScoreCounts:
    scores, groups, weights = zip(*rows, strict=True)
    people = lp.Predictions.from_arrays(
        None,
        np.array(scores, dtype=float),
        sensitive_features=list(groups),
        sample_weight=weights if weighted else None,
        cluster=np.arange(len(rows)) // 2 if clustered else None,
        score_range=(-5, 5),
    )
    return lp.ScoreCounts.from_predictions(people)


def exact_mcdp(rows: list[tuple[int, str, int]], epsilon: Fraction) -> float:
    """MCDP by its definition on the ranks: all windows that begin where the gap may change."""
    total = sum(weight for *_, weight in rows)
    people = [
        (Fraction(sum(w for other, _, w in rows if other <= score), total), group, weight)
        for score, group, weight in rows
    ]
    knots = sorted({Fraction(0), *(rank for rank, *_ in people)})
    groups = sorted({group for _, group, _ in people})

    def share(group: str, at: Fraction) -> Fraction:
        mine = [(rank, weight) for rank, other, weight in people if other == group]
        return Fraction(sum(w for rank, w in mine if rank <= at), sum(w for _, w in mine))

    worst = Fraction(0)
    for place, a in enumerate(groups):
        for b in groups[place + 1 :]:
            gaps = [abs(share(a, at) - share(b, at)) for at in knots]
            # A window from t to u sees the gap of every knot's run, [knot, next), that it meets.
            for i, low in enumerate(knots):
                for j in range(i, len(knots)):
                    ends = knots[j + 1] if j + 1 < len(knots) else Fraction(1)
                    wide = (ends - low) / 2 > epsilon or (low == 0 and ends > epsilon)
                    if epsilon == 0 or wide:
                        worst = max(worst, min(gaps[i : j + 1]))
    return float(worst)


@given(ROWS, st.booleans(), st.sampled_from([0, 1, 5, 10, 20]))
def test_mcdp_of_ranks_is_its_definition(
    rows: list[tuple[int, str, int]], weighted: bool, hundredths: int
) -> None:
    epsilon = Fraction(2 * hundredths + 1, 211) if hundredths else Fraction(0)
    found = lp.mcdp(ranked(counted(rows, weighted=weighted)), epsilon=float(epsilon))
    plain = rows if weighted else [(score, group, 1) for score, group, _ in rows]
    assert found == pytest.approx(exact_mcdp(plain, epsilon), abs=1e-12)


@given(ROWS, st.booleans())
def test_ranks_leave_the_gaps_alone(rows: list[tuple[int, str, int]], weighted: bool) -> None:
    counts = counted(rows, weighted=weighted)
    found = ranked(counts)
    assert found.score_range == (0.0, 1.0)
    assert lp.mcdp(found) == lp.mcdp(counts)
    again = ranked(
        counted([(score**3, group, weight) for score, group, weight in _small(rows)], weighted=weighted)
    )
    for key, atoms in ranked(counted(_small(rows), weighted=weighted)).atoms.items():
        np.testing.assert_array_equal(atoms.scores, again.atoms[key].scores)


def _small(rows: list[tuple[int, str, int]]) -> list[tuple[int, str, int]]:
    return [(score % 3 - 1, group, weight) for score, group, weight in rows]


def test_clusters_have_ranks_too() -> None:
    rows = [(score, "ab"[score % 2], 1) for score in range(-5, 6)]
    found = ranked(counted(rows, weighted=False, clustered=True))
    assert found.clusters is not None
    np.testing.assert_allclose(found.clusters.scores, np.arange(1, 12) / 11)


def test_scores_in_cells_have_no_ranks() -> None:
    counts = counted([(score, "ab"[score % 2], 1) for score in range(-5, 6)], weighted=False)
    with pytest.raises(ValueError, match="scale='rank' needs every score"):
        ranked(lp.counts.bounded(counts, max_scores=3, level=2))
