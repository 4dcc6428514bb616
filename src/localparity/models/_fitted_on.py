"""Who a model was fitted on: how many people, of which groups, and a checksum of their rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._types import Group
from localparity.counts._comparison import group_text
from localparity.counts._score_counts import ScoreCounts

DISCLOSURE_LIMIT = 10
"""The number of people of a smaller group is withheld."""


@dataclass(frozen=True)
class FittedOn:
    """The rows that an estimator was fitted on.

    Attributes
    ----------
    rows : int
        How many rows there are.
    groups : dict
        The rows of each group, by its name; None where the number is withheld, because it is below 10 or
        would reveal one that is.
    rows_sha256 : str
        The sha256 of the rows: of the values, in their order.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> repair = lp.models.ScoreRepair().fit(census.score, sensitive_features=census.sensitive_features)
    >>> repair.card().fitted_on.groups
    {'Female': 485, 'Male': 515}
    """

    rows: int
    groups: dict[str, int | None]
    rows_sha256: str


def describe_rows(codes: NDArray[Any], names: tuple[Group, ...], *content: Any) -> FittedOn:
    """Return what is kept of rows: the group of each as its place in `names`, and all of their values.

    Examples
    --------
    >>> found = describe_rows(np.repeat([0, 1, 2], [20, 30, 4]), ("a", "b", "c"), np.zeros(54))
    >>> found.rows, found.groups
    (54, {'a': None, 'b': 30, 'c': None})
    """
    return _described(np.bincount(codes, minlength=len(names)).tolist(), names, (codes, *content))


def describe_counts(counts: ScoreCounts) -> FittedOn:
    """Return what is kept of rows that were counted: the checksum is that of the counts.

    Examples
    --------
    >>> import localparity as lp
    >>> arrays = lp.Predictions.from_arrays(None, [0.1, 0.2] * 20, sensitive_features=["a", "b"] * 20)
    >>> describe_counts(lp.ScoreCounts.from_predictions(arrays)).groups
    {'a': 20, 'b': 20}
    """
    sizes = dict.fromkeys(counts.groups, 0)
    content: list[Any] = []
    for (group, label), atoms in sorted(counts.atoms.items(), key=lambda found: str(found[0])):
        sizes[group] += atoms.size
        content += [np.array([str(group), str(label)]), atoms.scores, atoms.weights]
    return _described(list(sizes.values()), counts.groups, content)


def _described(sizes: list[int], names: tuple[Group, ...], content: Iterable[Any]) -> FittedOn:
    """Return the rows of each group, without numbers that would reveal few people, and a checksum."""
    limit = DISCLOSURE_LIMIT
    if sum(size < limit for size in sizes) == 1:
        # With the total known, a single number withheld is the total less the others.
        limit = 1 + sorted(sizes)[:2][-1]
    hashed = hashlib.sha256()
    for values in content:
        for part in _columns(values):
            hashed.update(_bytes(part))
    shown = (size if size >= limit else None for size in sizes)
    return FittedOn(sum(sizes), dict(zip(map(group_text, names), shown, strict=True)), hashed.hexdigest())


def _columns(values: Any) -> Iterator[Any]:
    """Return the columns of a data frame, the parts of a sparse matrix, or an array as it is."""
    if values is None:
        return
    if hasattr(values, "tocsr"):
        matrix = values.tocsr()
        yield from (matrix.data, matrix.indices, matrix.indptr)
    elif hasattr(values, "columns"):
        yield from (values[name] for name in values.columns)
    else:
        yield values


def _bytes(values: Any) -> bytes:
    """Return numbers as float64, and anything else as text."""
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype("<f8").tobytes()
    return "\x1f".join(map(str, array.ravel().tolist())).encode()
