"""What hypothesis draws: people with scores on a decimal grid, as floats and as fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from oracles import Sample


@dataclass(frozen=True)
class People:
    """One drawn case: arrays for the package, samples of fractions for the oracle."""

    scores: NDArray[np.float64]
    groups: NDArray[np.int64]
    weights: NDArray[np.float64]
    labels: NDArray[np.int64]
    exact_scores: tuple[Fraction, ...]
    exact_weights: tuple[Fraction, ...]
    grid: int

    def samples(self, *, weighted: bool = False, label: int | None = None) -> list[Sample]:
        """The groups as the oracle takes them, in the order of their names."""
        found: dict[int, list[tuple[Fraction, Fraction]]] = {}
        rows = zip(self.groups, self.exact_scores, self.exact_weights, self.labels, strict=True)
        for group, score, weight, y in sorted(rows, key=lambda row: row[0]):
            if label is None or y == label:
                found.setdefault(group, []).append((score, weight if weighted else Fraction(1)))
        return list(found.values())


@st.composite
def people(draw: st.DrawFn, *, n_groups: int = 2, max_size: int = 9) -> People:
    """Groups of one and more, many ties, mass at 0 and at 1; every group has both labels where it can."""
    grid = 10 ** draw(st.integers(1, 6))
    few = draw(st.lists(st.integers(0, grid), min_size=1, max_size=4))
    score = st.one_of(st.sampled_from([0, grid]), st.sampled_from(few), st.integers(0, grid))
    sizes = [draw(st.integers(1, max_size)) for _ in range(n_groups)]
    groups = np.repeat(np.arange(n_groups), sizes)
    total = int(groups.size)
    steps = draw(st.lists(score, min_size=total, max_size=total))
    weights = draw(st.lists(st.integers(1, 30), min_size=total, max_size=total))
    labels = draw(st.lists(st.integers(0, 1), min_size=total, max_size=total))
    order = draw(st.permutations(range(total)))
    return People(
        np.array(steps)[order] / grid,
        groups[order],
        np.array(weights)[order] / 10,
        np.array(labels)[order],
        tuple(Fraction(steps[i], grid) for i in order),
        tuple(Fraction(weights[i], 10) for i in order),
        grid,
    )


@st.composite
def epsilons(draw: st.DrawFn, grid: int) -> Fraction:
    """Epsilons from 0 to 1.5 on the scores' own grid, small and large, half steps too."""
    wide = st.one_of(st.integers(0, grid), st.integers(grid, 3 * grid))
    return Fraction(draw(st.one_of(st.integers(0, 6), wide)), 2 * grid)
