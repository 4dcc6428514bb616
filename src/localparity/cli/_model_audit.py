"""An audit of the scores that a saved model gives the people in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import localparity as lp
from localparity._io._tables import Table
from localparity._text import brief
from localparity.audit._steps import AuditedFile
from localparity.cli._cards import warn_of_training_file
from localparity.cli.predict import Scorer


class ModelAudit(NamedTuple):
    """A saved model, and the column of the two classes that it tells apart."""

    folder: Path
    scorer: Scorer
    target: str | None

    @classmethod
    def load(cls, folder: Path, target: str | None) -> ModelAudit:
        """Return the model of a folder, ready to score."""
        return cls(folder, Scorer.load(folder), target)

    def read(
        self,
        table: Table,
        *,
        group: Sequence[str],
        label: str | None,
        weight: str | None,
        cluster: str | None,
        control: Sequence[str] | None = None,
        missing_values: Sequence[str] = (),
        **options: Any,
    ) -> lp.Audit:
        """Score the people in a file and audit the scores."""
        numbers = [name for name in (label, weight) if name]
        values = [name for name in (self.target, cluster) if name]
        known = table.read(numbers=numbers, values=values, groups=[*group, *(control or ())])
        labels = known[label] if label else None
        if self.target:
            labels = self._labels(known[self.target], table.name)
        table.warn({value for name in group for value in known[name].tolist()})
        warn_of_training_file(self.folder, table.name)
        found = lp.audit(
            labels,
            self.scorer.score(table, group),
            sensitive_features={name: known[name] for name in group},
            sample_weight=known[weight] if weight else None,
            cluster=known[cluster] if cluster else None,
            control_features={name: known[name] for name in control} if control else None,
            missing_values=table.as_joined(missing_values),
            **options,
        )
        columns = {
            "group": group,
            "target": self.target,
            "label": label,
            "weight": weight,
            "cluster": cluster,
        }
        seed = options.get("random_state")
        provenance = lp.Provenance.now("", source=table, columns=columns, seed=seed)
        told = {**options, "missing_values": missing_values, "score_range": (0.0, 1.0)}
        return replace(found, provenance=provenance, file=AuditedFile.of(table, provenance, told))

    def _labels(self, classes: NDArray[Any], source: str) -> NDArray[np.int64]:
        """Return 1 for the class whose probability is the score; a file may write a class as a text."""
        negative, positive = map(str, self.scorer.classifier.classes_)
        texts = [str(value) for value in classes.tolist()]
        for row, text in enumerate(texts):
            if text not in (negative, positive):
                raise ValueError(
                    f"column {self.target!r} of {source} must be {negative!r} or {positive!r}, as the "
                    f"model's classes, got {brief(text)} at data row {row + 1}"
                )
        return np.asarray([text == positive for text in texts], dtype=np.int64)
