"""Rows through the groups' maps, with the groups known or only their probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from localparity._types import FloatArray, Group
from localparity._validation import Grouping, as_numbers, check_rows
from localparity.models.repair._score_map import ScoreMap


def map_rows(scores: FloatArray, grouping: Grouping, maps: Mapping[Group, ScoreMap]) -> FloatArray:
    """Each score through the map of its group."""
    for code, group in enumerate(grouping.names):
        if group not in maps:
            row = int(np.argmax(grouping.codes == code))
            known = ", ".join(map(repr, maps))
            raise ValueError(
                f"sensitive_features has {group!r} at row {row}, a group that fit did not see; it saw {known}"
            )
    narrow = grouping.codes.astype(np.uint16) if len(grouping.names) < 2**16 else grouping.codes
    order = np.argsort(narrow, kind="stable")
    ends = np.cumsum(np.bincount(grouping.codes, minlength=len(grouping.names)))
    repaired = np.empty(scores.size)
    for group, members in zip(grouping.names, np.split(order, ends[:-1]), strict=True):
        repaired[members] = maps[group](scores[members])
    return repaired


def blend_rows(scores: FloatArray, shares: FloatArray, maps: Mapping[Group, ScoreMap]) -> FloatArray:
    """Each score's mean over the groups' maps, under the probabilities of the groups (columns)."""
    blended = np.zeros(scores.size)
    for share, score_map in zip(shares.T, maps.values(), strict=True):
        blended += share * score_map(scores)
    return blended


def as_probabilities(values: Any, rows: int, groups: Sequence[Group]) -> FloatArray:
    """The probability of each group (columns, in the order of `groups`) for each row."""
    name = "group_probabilities"
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as numbers: {error}") from error
    if array.ndim != 2 or array.shape[1] != len(groups):
        listed = ", ".join(map(repr, groups))
        raise ValueError(f"{name} has shape {array.shape} where a column for each of {listed} is expected")
    check_rows(name, array.shape[0], rows, "scores")
    sums = as_numbers(array.sum(axis=1), name)
    wrong = (array.min(axis=1) < 0.0) | (np.abs(sums - 1.0) > 1e-6)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{name} has {array[row].tolist()} at row {row} where numbers >= 0 that sum to 1 are expected"
        )
    return np.asarray(array / sums[:, None])
