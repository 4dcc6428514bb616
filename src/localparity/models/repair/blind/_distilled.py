"""One ordinary model that learned a group-blind repair's scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from localparity._types import FloatArray, IntArray
from localparity.metrics._within import within_bound
from localparity.models._rows import TrainingRows
from localparity.models._sequence import accept_in_order, upper_bound
from localparity.models.repair.blind._features import BlindRows, compared_predictions
from localparity.models.repair.blind._promise import out_of_reach, untested
from localparity.models.repair.blind._repair import GroupBlindRepair

_SHARES = (0.25, 0.5, 0.75, 1.0)
"""Of the bound: what the repairs aim for that are tested, from the strongest on."""

_TRIALS = 4


class Distilled(NamedTuple):
    """A model, the repair that it learned, and its MCDP."""

    model: Any
    repair: GroupBlindRepair
    mcdp: float


class Distillation(NamedTuple):
    """The rows with their out-of-fold predictions and folds, and a copy of the model to fit."""

    rows: TrainingRows
    fitted: BlindRows
    folds: IntArray
    model: Any

    def choose(self, repair: GroupBlindRepair) -> Distilled:
        """Return a model that is within the bound when it is fitted without each fold.

        Learning adds to MCDP, so each repair aims lower by what the model of the one before left too much.
        """
        aim = bound = repair.max_mcdp
        left: list[float] = []
        for _ in range(_TRIALS):
            try:
                tried, targets = self._repair(repair, aim)
            except ValueError:
                if not left:
                    raise
                break
            scores = np.empty(targets.size)
            for fold in range(int(self.folds.max()) + 1):
                inside = np.flatnonzero(self.folds == fold)
                model = self._fit(np.flatnonzero(self.folds != fold), targets)
                scores[inside] = model.predict(self.rows.take(inside).features)
            found = max(curve.mcdp(repair.epsilon) for curve in tried._curves(self.fitted, scores))
            if within_bound(found, bound):
                return Distilled(self._fit(np.arange(targets.size), targets), tried, found)
            left.append(found)
            aim *= 0.95 * bound / found
        raise out_of_reach(repair, min(left))

    def test(self, repair: GroupBlindRepair, held_out: TrainingRows, tested: BlindRows) -> Distilled:
        """Return the weakest before the first, from the strongest on, that is not known to be within."""
        confidence, failures = repair.confidence, list[ValueError]()
        assert confidence is not None

        def tries() -> Iterator[tuple[Distilled, float]]:
            for share in _SHARES:
                try:
                    tried, targets = self._repair(repair, share * repair.max_mcdp)
                except ValueError as error:
                    failures.append(error)
                    continue
                model = self._fit(np.arange(targets.size), targets)
                scores, compared = model.predict(held_out.features), tried.features_.compared
                people = compared_predictions(tested, scores, compared)
                upper = upper_bound(people, repair.epsilon, repair.criterion, confidence)
                yield Distilled(model, tried, upper.estimate), upper.high

        accepted, refused = accept_in_order(tries(), lambda tried: within_bound(tried[1], repair.max_mcdp))
        if accepted:
            return accepted[-1][0]
        raise untested(repair, refused[0][1], tested) if refused else failures[-1]

    def _repair(self, repair: GroupBlindRepair, bound: float) -> tuple[GroupBlindRepair, FloatArray]:
        """Return a repair to a bound, without a test, and the scores that a model is to learn."""
        tried: GroupBlindRepair = clone(repair).set_params(max_mcdp=bound, confidence=None)
        tried._fit_rows(self.fitted, None, repair.groups_)
        return tried, tried._repaired(self.fitted.scores, self.fitted.probabilities)

    def _fit(self, places: IntArray, targets: FloatArray) -> Any:
        part = self.rows.take(places)
        return clone(self.model).fit(part.features, targets[places], sample_weight=part.weights)
