"""The objective on a cluster: each worker has some of the rows, and sees the distributions of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from localparity._types import FloatArray, Group
from localparity._validation import Grouping, require
from localparity.models.trees._objective import MCDPObjective

_OF_ROWS: WeakKeyDictionary[Any, _WorkersObjective] = WeakKeyDictionary()
"""The objective of each data set of this process, made in the first round of its training."""


class ClusterObjective:
    """Derivatives of `MCDPObjective` over the rows of all workers, as `xgboost.dask.train` calls it in each.

    The rows of a worker's data set carry what it needs: the label, the code of the group in
    ``label_lower_bound``, and the weight in ``label_upper_bound``, where it does not change how features are
    binned. In a round, the workers' histograms of scores are summed; everything else is a worker's own.

    Parameters
    ----------
    names : sequence
        The groups' names, in the order of their codes.
    **options
        Further arguments of `MCDPObjective`.
    """

    def __init__(self, names: Sequence[Group], **options: Any) -> None:
        self.names, self.options = tuple(names), options

    def __call__(self, margins: FloatArray, data: Any) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the positive Hessian at the margins of a worker's rows."""
        if data not in _OF_ROWS:
            codes, weights = (data.get_float_info(f"label_{end}_bound") for end in ("lower", "upper"))
            _OF_ROWS[data] = _WorkersObjective(
                data.get_label(),
                sensitive_features=Grouping(codes.astype(np.uint32), self.names),
                sample_weight=weights if weights.size else None,
                **self.options,
            )
        return _OF_ROWS[data](margins)


class _WorkersObjective(MCDPObjective):
    def _total(self, counted: FloatArray) -> FloatArray:
        collective = require("xgboost.collective", extra="boost")
        summed: FloatArray = collective.allreduce(counted, collective.Op.SUM)
        return summed.reshape(counted.shape)
