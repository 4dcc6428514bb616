"""Group-blind scores at every strength of repair, from no gap at all to no repair."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from localparity._types import Criterion, FloatArray
from localparity.counts import Comparison
from localparity.models._rows import TrainingRows
from localparity.models.repair.blind._classifier import GroupBlindClassifier
from localparity.models.repair.blind._features import BlindRows, GroupFeatures, compared_curves
from localparity.models.repair.blind._ingredients import Ingredients
from localparity.models.repair.blind._nested_score import Dual
from localparity.models.repair.blind._output import original_scale


class FittedIngredients(NamedTuple):
    """Pairs of classifiers, the rows they were fitted on with predictions of those that did not see them.

    `compared` are the codes of the groups that are large enough to take part.
    """

    pairs: list[Ingredients]
    rows: BlindRows
    compared: tuple[int, ...]

    @classmethod
    def fit(cls, model: GroupBlindClassifier, rows: TrainingRows, seed: int, *, weighted: bool) -> Self:
        """Fit the classifiers that a model has."""
        repair = model._check_parameters()
        repair._check_groups(rows.groups, rows.labels.astype(np.int64), rows.group_names)
        compared = [code for code, name in enumerate(rows.group_names) if name not in repair.left_out_]
        predicted = model._fit_ingredients(rows, seed, weighted=weighted)
        return cls(model.ingredients_, predicted, tuple(compared))


def path_aims(rows: BlindRows, compared: tuple[int, ...], criterion: Criterion, size: int) -> FloatArray:
    """Return bounds from 0 to the gap that the plain scores have, denser where they are small."""
    plain = max(curve.mcdp(0.0) for curve in compared_curves(rows, rows.scores, compared, criterion))
    return np.asarray(plain * np.linspace(0.0, 1.0, size) ** 2)


def score_path(
    aims: FloatArray, fitted: BlindRows, scored: BlindRows, compared: tuple[int, ...], criterion: Criterion
) -> FloatArray:
    """Return the scores, of shape (n_aims, n_rows), of rows under repairs fitted on other rows.

    They have the scale of the plain scores, which the last aim, the largest, leaves as they are.
    """
    features = GroupFeatures.learn(fitted, Comparison(criterion).labels, compared)
    columns, own = (features(rows.scores, rows.probabilities) for rows in (scored, fitted))
    dual = Dual.of(fitted, features)
    found, start = [], None
    for aim in aims[:-1].tolist():
        score = dual.solve(aim, start)
        start = score.multipliers[1:-1]
        scale = original_scale(score(fitted.scores, own), fitted.scores, fitted.weights)
        found.append(scale(score(scored.scores, columns)))
    return np.array([*found, scored.scores])
