"""Files of several models' scores that hold the same people, compared person by person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from localparity._io._table import Table, as_group_columns, as_table
from localparity._text import points, signed_points
from localparity._types import Group
from localparity._validation import InputError
from localparity.auditing._options import AuditKeywords, AuditOptions
from localparity.predictions import check_predictions
from localparity.uncertainty import PairedComparison, compare_scores

Column = NDArray[Any]


@dataclass(frozen=True)
class PairedModels:
    """Models on the same people, each compared with the first. Make one with `PairedModels.read`.

    Attributes
    ----------
    first : str
        The name of the model that the others are compared with.
    epsilon : float
        The half-width of the windows.
    found : dict
        The comparison of each other model with the first, a `PairedComparison`.
    n_resamples : int
        How many resamples each comparison drew.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> people = census.data.assign(sex=census.sensitive_features, person=range(1000))
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> people.assign(p=census.score).to_csv(folder / "a.csv")
    >>> people.assign(p=0.5).to_csv(folder / "b.csv")
    >>> files = [str(folder / name) for name in ("a.csv", "b.csv")]
    >>> paired = lp.results.PairedModels.read(files, id="person", score="p", group=["sex"], random_state=0)
    >>> paired.found[files[1]].p_value
    0.000999000999000999
    """

    first: str
    epsilon: float
    found: dict[str, PairedComparison]
    n_resamples: int = 1000

    @classmethod
    def read(
        cls,
        files: Sequence[str | Table],
        *,
        id: str,
        score: str,
        group: str | Sequence[str],
        label: str | None = None,
        weight: str | None = None,
        cluster: str | None = None,
        left_out: Iterable[Group] = (),
        allow_remote: bool = False,
        **options: Unpack[AuditKeywords],
    ) -> PairedModels:
        """Compare the scores in files that hold the same people, in any order.

        Parameters
        ----------
        files : sequence of str or table
            The file of each model, two or more, as in `Audit.read`; or what `open_table` returns.
        id : str
            The column that says who a row is of. Each person is in every file once.
        score : str
            The column of the scores.
        group : str or sequence of str
            The column of the groups; of several, the groups are the combinations that occur.
        label, weight, cluster : str, optional
            The columns of the labels 0 and 1, of the weights, and of the household, say.
        left_out : iterable
            Groups that are not compared.
        allow_remote : bool
            Whether files may be on other machines, as in `Audit.read`.
        **options
            Further arguments of `localparity.audit`, such as ``confidence``; of the ``epsilons`` the smallest
            counts, and ``score_range`` must be two numbers.

        Returns
        -------
        PairedModels
        """
        asked = AuditOptions(**options)
        if isinstance(asked.score_range, str):
            raise InputError(f"must be two numbers, got {asked.score_range!r}", "score_range")
        if id == score:
            raise InputError("cannot be both the score and the id", column=id)
        groups = as_group_columns(score, group)
        numbers, values = [name for name in (label, weight) if name], [cluster] if cluster else []
        people = [
            _Rows.read(
                as_table(file, allow_remote=allow_remote),
                id,
                numbers=[score, *numbers],
                values=values,
                groups=groups,
            )
            for file in files
        ]
        first, *others = people
        shared = (*numbers, *groups, *values)
        for other in others:
            first.check_same(other, shared)
        rows = _compared(first, groups, left_out)
        columns = {name: first.columns[name][rows] for name in shared}
        comparisons = {
            other.file: compare_scores(
                columns[label] if label else None,
                first.columns[score][rows],
                other.columns[score][rows],
                sensitive_features=_groups(columns, groups),
                sample_weight=columns[weight] if weight else None,
                cluster=columns[cluster] if cluster else None,
                epsilon=asked.epsilons[0],
                score_range=asked.score_range,
                criterion=asked.criterion,
                compare=asked.compare,
                confidence=asked.confidence,
                n_resamples=asked.n_resamples,
                random_state=asked.random_state,
                n_jobs=asked.n_jobs,
            )
            for other in others
        }
        return cls(first.file, asked.epsilons[0], comparisons, asked.n_resamples)

    def sentence(self, name: str) -> str:
        """Return what was found of a model, in words.

        Parameters
        ----------
        name : str
            The name of a model other than the first.

        Returns
        -------
        str
        """
        found = self.found[name]
        low, change, high = astuple(found.difference)[:3]
        mcdp = f"MCDP({self.epsilon:g})"
        size = f"{points(abs(change))} {'higher' if change > 0.0 else 'lower'}"
        if found.p_value > 1.0 - found.difference.confidence + 1e-12:
            return (
                f"No difference between {name} and {self.first} was found: {mcdp} of {name} is {size}, "
                "which chance could explain."
            )
        if low <= 0.0 <= high:
            return (
                f"{name} and {self.first} do not score the groups alike. Which is nearer to parity is open: "
                f"{mcdp} of {name} is {size}, with an interval from {signed_points(low, high)}."
            )
        way = "less" if change > 0.0 else "more"
        return f"{name} treats the groups {way} alike than {self.first}: its {mcdp} is {size}."

    @property
    def promise(self) -> str:
        """What the p-values and intervals say, and what they assume."""
        confidence = next(iter(self.found.values())).difference.confidence
        return (
            f"Each model is compared with {self.first} by itself. The p-value is how often swapping the two "
            "models' scores within people at random gives as large a difference; it is small where the two "
            "do not score a group alike. The interval is that of the difference of the two MCDPs, and holds "
            f"it with a probability of {100.0 * confidence:g}% in large samples."
        )

    def to_dict(self, name: str) -> dict[str, Any]:
        """Return the comparison of a model with the first, as plain dictionaries.

        Parameters
        ----------
        name : str
            The name of a model other than the first.

        Returns
        -------
        dict
        """
        return {"compared_with": self.first, "epsilon": self.epsilon, **asdict(self.found[name])}


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a file, sorted by the id of the person."""

    file: str
    id: str
    ids: Column
    columns: Mapping[str, Column]

    @classmethod
    def read(
        cls, table: Table, id: str, *, numbers: Sequence[str], values: Sequence[str], groups: Sequence[str]
    ) -> _Rows:
        """Read the rows of a file in which each person is to be there once."""
        read, file = table.read(numbers=numbers, values=[*values, id], groups=groups), table.name
        missing = sum(value is None for value in read[id].tolist())
        if missing:
            raise ValueError(
                f"column {id!r} of {file} must name a person in every row, got {missing} without"
            )
        ids = read[id].astype(str)
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        again = int(np.count_nonzero(ids[1:] == ids[:-1]))
        if again:
            raise ValueError(f"column {id!r} of {file} must have each person once, got {again} rows too many")
        return cls(file, id, ids, {name: column[order] for name, column in read.items()})

    def check_same(self, other: _Rows, names: Iterable[str]) -> None:
        """Raise a ValueError where another file holds other people, or says other things of them."""
        shared = np.intersect1d(self.ids, other.ids, assume_unique=True).size
        if shared < max(self.ids.size, other.ids.size):
            raise ValueError(
                f"column {self.id!r} must have the same people in {self.file} and {other.file}, got "
                f"{self.ids.size - shared} only in the first and {other.ids.size - shared} only in the second"
            )
        for name in names:
            differ = int(np.count_nonzero(self.columns[name] != other.columns[name]))
            if differ:
                raise ValueError(
                    f"column {name!r} must be the same in {self.file} and {other.file}, got {differ} people "
                    "for whom it differs"
                )


def _groups(columns: Mapping[str, Column], names: Sequence[str]) -> Any:
    """The group of each row: a column, or several by their names."""
    return columns[names[0]] if len(names) == 1 else {name: columns[name] for name in names}


def _compared(rows: _Rows, names: Sequence[str], left_out: Iterable[Group]) -> Any:
    """The rows whose group is compared."""
    left = set(left_out)
    if not left:
        return slice(None)
    people = check_predictions(None, np.zeros(rows.ids.size), _groups(rows.columns, names))
    return np.array([group not in left for group in people.groups])[people.group_codes]
