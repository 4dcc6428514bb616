"""Logistic loss and the smoothed maximal gap, as boosters take them: a gradient and a Hessian a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity._validation import FloatArray, as_epsilon, as_groups, as_labels, as_vector, as_weights, check_rows
from localparity.boosting import _kernels
from localparity.boosting._people import People
from localparity.boosting._search import Place, largest
from localparity.boosting._smoothed import Smoother


class MCDPObjective:
    def __init__(self, y_true, *, sensitive_features, strength=0.2, temperature=20.0, epsilon=0.0, criterion="demographic_parity", sample_weight=None):
        labels = as_vector(y_true, "y_true")
        self.labels = as_labels(labels, labels.size).astype(np.float64)
        rows = self.labels.size
        grouping = as_groups(sensitive_features, rows)
        self.weights = np.ones(rows) if sample_weight is None else as_weights(sample_weight, rows)
        self.people = People(grouping.codes, self.labels, self.weights, len(grouping.names), criterion)
        self.strength, self.epsilon, self.temperature = strength, epsilon, temperature
        self.smoother = Smoother(temperature)
        self.total = float(self.weights.sum())

    def __call__(self, margins, data=None):
        return self._derivatives(margins, True)

    def hessian(self, margins):
        return self._derivatives(margins, False)[1]

    def _derivatives(self, margins, positive):
        people = self.people
        scores, (first, second), place = self._worst(margins)
        pulls = np.zeros(people.n_cells)
        pulls[first] = place.sign * self.strength * self.total / people.totals[first]
        pulls[second] = -place.sign * self.strength * self.total / people.totals[second]
        self.place=place
        return _kernels.derivatives(scores, self.labels, self.weights, people.cells, pulls, place.thresholds, place.shares, self.temperature, positive)

    def _worst(self, margins):
        people = self.people
        scores, moments = _kernels.bin_moments(np.asarray(margins), self.weights, people.cells, people.n_cells, self.smoother.bins, self.temperature)
        compared = people.n_cells - 1
        spline = self.smoother.spline(moments[:compared] / people.totals[:compared, None, None])
        best = None
        for pair in people.pairs:
            place = largest(spline.difference(*pair), self.epsilon)
            if best is None or place.value > best[1].value: best = pair, place
        return scores, *best

    def value(self, margins):
        _, _, place = self._worst(margins)
        loss = self.weights @ (np.logaddexp(0.0, margins) - self.labels * margins)
        return loss + self.strength * self.total * place.value
