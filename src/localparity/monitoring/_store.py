"""What a monitor asks of the place where it keeps its periods: a folder, or a database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from localparity._types import FloatArray, Group
from localparity.monitoring._stored_period import RemovedPeriods, StoredPeriod
from localparity.predictions import Predictions

BatchKey = Literal["id", "digest"]
Key = tuple[Group, int | None]
"""A group, and the label of its people; None where there are no labels."""


class Batch(NamedTuple):
    """A batch that was counted: its id, the sha256 of its rows, and its period."""

    id: str
    digest: str
    period: str

    @classmethod
    def of(cls, ordered: Mapping[Key, FloatArray], batch_id: str, period: str) -> Batch:
        """The batch of some rows, whose order does not matter: a query that is run again may have another."""
        digest = sha256()
        for (group, label), scores in ordered.items():
            digest.update(f"{group!r} {label} {scores.size}\n".encode())
            digest.update(scores.tobytes())
        return cls(batch_id, digest.hexdigest(), period)


def sorted_scores(rows: Predictions) -> dict[Key, FloatArray]:
    """The scores of the people of each group and label, from the lowest to the highest."""
    found: dict[Key, FloatArray] = {}
    for code, group in enumerate(rows.groups):
        among = rows.codes == code
        for label in (None,) if rows.labels is None else (0, 1):
            chosen = among if label is None else among & (rows.labels == label)
            found[group, label] = np.sort(rows.scores[chosen].astype(np.float64) + 0.0)  # -0.0 is 0.0
    return found


class RemovedMeanwhileError(LookupError):
    """Raised where another process has removed a period that is about to be read."""


class Store(Protocol):
    """A place that keeps periods; whatever happens, it has a batch wholly, with its id, or not at all.

    `name` is what messages call it, `settings_name` what they call its settings. Methods that change anything
    but notes, and those that look for batches, are called inside `writing`.
    """

    name: str
    settings_name: str

    def settings(self) -> dict[str, Any]:
        """What the first batch has fixed; empty before it."""
        ...

    def version(self) -> str:
        """A text that is another one after every batch."""
        ...

    def stamps(self) -> dict[str, str]:
        """The periods, in order; each with a text that is another one if its content is."""
        ...

    def read(self, periods: Sequence[str]) -> Iterator[StoredPeriod]:
        """The content of some periods; a RemovedMeanwhileError if one is not there."""
        ...

    def removed(self) -> RemovedPeriods | None:
        """The periods that were removed, if any were."""
        ...

    def recall(self, note: str) -> bytes | None:
        """What `remember` was given last under a name."""
        ...

    def remember(self, note: str, content: bytes) -> None:
        """Keep something under a name; nothing is lost but time if it cannot be kept."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Inside, no other process writes."""
        ...

    def keep_settings(self, settings: dict[str, Any]) -> None:
        """Keep what the first batch fixes."""
        ...

    def find(self, key: BatchKey, value: str) -> Batch | None:
        """The batch with an id or with a digest; those of removed periods are known, too."""
        ...

    def last_look(self) -> int:
        """The number of the last look, 0 before the first."""
        ...

    def newer(self, period: str) -> int:
        """The number of periods that are newer than one."""
        ...

    def add(self, batch: Batch, stored: StoredPeriod) -> None:
        """Replace the period of a batch by what it is with the batch."""
        ...

    def remove(self, removed: RemovedPeriods) -> None:
        """Remove the periods up to the last of those removed, but for the ids of their batches."""
        ...
