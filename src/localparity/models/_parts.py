"""The three parts of a comparison's rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from localparity._types import FloatArray
from localparity.models._rows import Labelled, Rows, check_labelled, hold_out

_TEST, _VALIDATION = 0.25, 1.0 / 3.0  # of what is left: half to train on, a quarter each for the others


class Part(NamedTuple):
    """Some rows: their features, and their classes, groups and weights."""

    X: Any
    rows: Labelled

    @property
    def groups(self) -> FloatArray:
        """The group of each row as a code."""
        return np.asarray(self.rows.groups, dtype=np.float64)

    def halves(self, seed: int) -> tuple[Rows, Rows]:
        """Two halves with the same shares of groups and classes."""
        return hold_out(self.rows.labels, self.rows.groups, 0.5, seed, self.rows.names)


class Parts(NamedTuple):
    """What is trained on, what strengths and bounds are chosen on, and what is reported."""

    train: Part
    validation: Part
    test: Part


def make_parts(X: Any, y: Any, sensitive_features: Any, sample_weight: Any, seed: int) -> Parts:
    """Half of the rows to train on and a quarter each for validation and test; texts become categories.

    Examples
    --------
    >>> import localparity as lp
    >>> people = lp.datasets.make_census(400, random_state=0)
    >>> parts = make_parts(people.data, people.target, people.sensitive_features, None, 0)
    >>> [len(part.X) for part in parts]
    [200, 100, 100]
    """
    frame = _with_categories(X)
    rows = check_labelled(None, frame, len(frame), y, sensitive_features, sample_weight)
    everyone = Part(frame[rows.kept].reset_index(drop=True), rows)
    rest, test = _cut(everyone, _TEST, seed)
    train, validation = _cut(rest, _VALIDATION, seed)
    return Parts(train, validation, test)


def _cut(part: Part, fraction: float, seed: int) -> tuple[Part, Part]:
    rows = part.rows
    kept, held_out = hold_out(rows.labels, rows.groups, fraction, seed, rows.names)
    first, second = (Part(part.X.iloc[taken], rows.take(taken)) for taken in (kept, held_out))
    return first, second


def _with_categories(X: Any) -> Any:
    """Columns that are not numbers as categories, which all models take and which every part knows."""
    if not hasattr(X, "select_dtypes"):
        raise ValueError(f"X is a {type(X).__name__} where a pandas data frame is expected")
    texts = X.select_dtypes(exclude=["number", "bool", "category"]).columns
    return X.astype(dict.fromkeys(texts, "category"))
