"""Scores replaced by their ranks, so that the width of a window is a share of people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray
from localparity._validation import InputError, setting
from localparity.counts._atoms import Atoms
from localparity.counts._score_counts import ScoreCounts

_RESOLUTION = 4.0 * float(np.finfo(np.float64).eps)


def ranked(counts: ScoreCounts) -> ScoreCounts:
    """The same people, each with the (weighted) share of all of them whose score is at or below theirs.

    Gaps between groups stay what they are at every score, and so does MCDP(0).

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [100, 200, 900, 300], ["f", "f", "m", "m"]
    >>> people = lp.Predictions.from_arrays(None, scores, sensitive_features=sex, score_range=(0, 1000))
    >>> found = ranked(lp.ScoreCounts.from_predictions(people))
    >>> {group: atoms.scores.tolist() for (group, _), atoms in found.atoms.items()}
    {'f': [0.25, 0.5], 'm': [0.75, 1.0]}
    """
    if counts.cells is not None or counts.rank_error:
        raise InputError(
            f"{setting(scale='rank')} needs every score to be counted by itself, got counts on a grid of "
            "cells or of a sketch; round the scores to fewer distinct ones"
        )
    everyone = Atoms.join(counts.atoms.values())
    shares = everyone.shares_at_or_below(everyone.scores)

    def ranks(scores: NDArray[np.floating]) -> FloatArray:
        return shares[np.searchsorted(everyone.scores, scores)]

    atoms = {key: replace(found, scores=ranks(found.scores)) for key, found in counts.atoms.items()}
    clusters = counts.clusters
    if clusters is not None:
        clusters = replace(clusters, scores=ranks(clusters.scores))
    return ScoreCounts(atoms, (0.0, 1.0), _RESOLUTION, clusters=clusters)
