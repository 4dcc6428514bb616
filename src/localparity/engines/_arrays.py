"""Counts of arrays that are exact where they are needed, without sorting all rows."""

from __future__ import annotations

from collections.abc import Sequence

from localparity._types import ArrayLike, Compare, Criterion, Groups, ScoreRange
from localparity._validation import as_epsilons, as_jobs
from localparity.counts import Comparison, ScoreCounts
from localparity.metrics._exact import count_for
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.predictions import check_predictions


def from_arrays(
    y_score: ArrayLike,
    sensitive_features: Groups,
    *,
    y_true: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    epsilons: Sequence[float] = PAPER_EPSILONS,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    n_jobs: int | None = None,
) -> ScoreCounts:
    """Count arrays so that MCDP is exact at some epsilons, in little memory and without a sort.

    Many rows are counted in cells of scores. Bounds of the gap in the cells rule out almost every window, and
    only the rows of the cells that decide MCDP at `epsilons` are sorted. `ScoreCounts.from_predictions`
    counts every score, and is exact at every epsilon; so are these counts where rows are few.

    Parameters
    ----------
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    y_true : array-like, optional
        Labels 0 and 1, where the criterion needs them.
    sample_weight : array-like, optional
        Weights that are not negative.
    score_range : tuple of float
        The lowest and the highest score there can be.
    epsilons : sequence of float
        The half-widths of windows at which MCDP is exact.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    n_jobs : int, optional
        How many threads count the rows, -1 for as many as there are cores.

    Returns
    -------
    ScoreCounts
        The counts by group, and by label where there are labels.

    Examples
    --------
    >>> import numpy as np
    >>> import localparity as lp
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 100_000)
    >>> counts = lp.engines.from_arrays(rng.random(100_000) ** (1 + 0.2 * (sex == "f")), sex)
    >>> sum(atoms.scores.size for atoms in counts.atoms.values()) < 20_000
    True
    >>> found = lp.mcdp_bounds(counts, epsilon=0.05)
    >>> found.low == found.estimate == found.high
    True
    """
    predictions = check_predictions(
        y_true, y_score, sensitive_features, sample_weight=sample_weight, score_range=score_range
    )
    at = as_epsilons(list(epsilons), "epsilons")
    return count_for(predictions, Comparison(criterion, compare), at, as_jobs(n_jobs))
