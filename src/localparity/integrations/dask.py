"""Dask: boosted trees on more rows than a machine holds, penalised by the local disparity of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from localparity._types import Criterion, FloatArray, Group
from localparity._validation import Grouping, InputError, missing_among, require, sort_groups
from localparity.models import MCDPObjective
from localparity.models.trees._classifiers import check_booster_params

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["train"]


def train(
    client: Client,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    strength: float = 0.2,
    epsilon: float = 0.0,
    criterion: Criterion = "demographic_parity",
    num_boost_round: int = 100,
    booster_params: Mapping[str, Any] | None = None,
) -> Any:
    """Train XGBoost's trees on a Dask cluster, with a penalty on the maximal local disparity of all rows.

    In every round the workers sum their groups' histograms of scores, so that each follows the same penalty
    as `MCDPObjective` on all rows in one process; no row leaves its worker.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    X : dask DataFrame or Array of shape (n_samples, n_features)
        The features; columns of texts must be categories whose values are known.
    y : dask Series or Array of shape (n_samples,)
        Labels 0 and 1.
    sensitive_features : dask Series or Array of shape (n_samples,)
        The group of each row, in the same partitions as `X`, as `y` is.
    sample_weight : dask Series or Array of shape (n_samples,), optional
        Weights that are not negative, which are rounded to single precision.
    strength, epsilon, criterion
        The penalty, as in `MCDPObjective`.
    num_boost_round : int
        The number of trees.
    booster_params : mapping, optional
        Parameters of XGBoost, such as ``{"max_depth": 4}``.

    Returns
    -------
    xgboost.Booster
        The trees; `predict` returns scores.

    Examples
    --------
    >>> from localparity.integrations.dask import train
    >>> booster = train(client, X, y, sensitive_features=sex, strength=0.5)  # doctest: +SKIP
    """
    dask, xgboost_dask = require("dask", extra="dask"), require("xgboost.dask", extra="boost")
    further = check_booster_params(booster_params, ["objective"])
    base = y.mean() if sample_weight is None else (y * sample_weight).sum() / sample_weight.sum()
    distinct, base = dask.compute(_unique(sensitive_features), base)
    names = _group_names(distinct)
    bins = {"max_bin": further["max_bin"]} if "max_bin" in further else {}
    rows = xgboost_dask.DaskQuantileDMatrix(
        client,
        X,
        y,
        label_lower_bound=_codes(sensitive_features, names),
        label_upper_bound=sample_weight,
        enable_categorical=True,
        **bins,
    )
    # Ours replaces the plain objective, whose name lets the library turn margins into scores.
    parameters = {"tree_method": "hist", **further, "objective": "binary:logistic"}
    parameters |= {"base_score": float(base), "disable_default_eval_metric": True}
    objective = _ClusterObjective(names, strength, epsilon, criterion)
    return xgboost_dask.train(client, parameters, rows, num_boost_round, obj=objective)["booster"]


class _ClusterObjective:
    """Derivatives over the rows of all workers, as `xgboost.dask.train` calls it in each.

    The rows of a worker carry the group's code in ``label_lower_bound`` and the weight in
    ``label_upper_bound``, where it does not change how features are binned.
    """

    def __init__(
        self, names: tuple[Group, ...], strength: float, epsilon: float, criterion: Criterion
    ) -> None:
        self.names, self.strength, self.epsilon, self.criterion = names, strength, epsilon, criterion

    def __call__(self, margins: FloatArray, data: Any) -> tuple[FloatArray, FloatArray]:
        if data not in _OF_ROWS:
            codes, weights = (data.get_float_info(f"label_{end}_bound") for end in ("lower", "upper"))
            _OF_ROWS[data] = _WorkersObjective(
                data.get_label(),
                sensitive_features=Grouping(codes.astype(np.uint32), self.names),
                sample_weight=weights if weights.size else None,
                strength=self.strength,
                epsilon=self.epsilon,
                criterion=self.criterion,
            )
        return _OF_ROWS[data](margins)


class _WorkersObjective(MCDPObjective):
    def _total(self, counted: FloatArray) -> FloatArray:
        collective = require("xgboost.collective", extra="boost")
        summed: FloatArray = collective.allreduce(counted, collective.Op.SUM)
        return summed.reshape(counted.shape)


_OF_ROWS: WeakKeyDictionary[Any, _WorkersObjective] = WeakKeyDictionary()
"""The objective of each data set of this process, made in the first round of its training."""


def _unique(groups: Any) -> Any:
    """Return the groups of a series or an array, each once in a partition, to be computed."""
    if hasattr(groups, "map_partitions"):
        return groups.map_partitions(lambda part: part.drop_duplicates())
    return require("dask.array", extra="dask").unique(groups)


def _group_names(distinct: Any) -> tuple[Group, ...]:
    """Return the groups in order, or raise a ValueError for a missing one, or where there is one only."""
    values = np.asarray(distinct, dtype=object)
    if missing_among(values).any():
        raise InputError("has no value at some row", "sensitive_features")
    names = sort_groups(set(values.tolist()))
    if len(names) < 2:
        raise InputError(
            f"must have at least two groups, got {', '.join(map(repr, names))} only", "sensitive_features"
        )
    return names


def _codes(groups: Any, names: tuple[Group, ...]) -> Any:
    """Return the place of each row's group among the names, in the partitions that the groups have."""
    pandas = require("pandas", extra="data")
    places = {name: float(place) for place, name in enumerate(names)}
    if hasattr(groups, "map_partitions"):
        return groups.map_partitions(lambda part: part.map(places).astype("f4"), meta=(None, "f4"))
    return groups.map_blocks(lambda part: pandas.Series(part).map(places).to_numpy("f4"), dtype="f4")
