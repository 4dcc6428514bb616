"""The plainest source of counts: arrays, looked at row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import localparity as lp
from localparity._scale import clip_to_range, score_resolution
from localparity.counts._coarsen import cell_numbers
from localparity.counts._rows import KeyedRows
from localparity.engines.protocol import CellSelection, CellTable


class RowsInMemory:
    """Scores p, groups g and perhaps labels y and weights w; remembers what it was asked."""

    def __init__(
        self, columns: dict[str, NDArray[Any]], score_range: tuple[float, float] = (0.0, 1.0)
    ) -> None:
        self.score_range, self.max_refined = score_range, 300
        self.resolution = score_resolution(columns["p"].dtype, score_range)
        predictions = lp.Predictions.from_arrays(
            columns.get("y"),
            columns["p"],
            sensitive_features=columns["g"],
            sample_weight=columns.get("w"),
            score_range=score_range,
        )
        self.rows = KeyedRows.of(predictions)
        self.scores = clip_to_range(self.rows.scores, score_range).astype(np.float64) + 0.0
        self.calls: list[str] = []

    def _inside(self, within: CellSelection | None) -> NDArray[np.int64]:
        if within is None:
            return np.arange(self.scores.size)
        numbers = cell_numbers(self.scores, within.level, self.score_range)
        return np.flatnonzero(np.isin(numbers, within.numbers))

    def count_cells(self, level: int, within: CellSelection | None = None) -> CellTable:
        self.calls.append(f"grid {level}")
        inside = self._inside(within)
        numbers, cells = np.unique(
            cell_numbers(self.scores[inside], level, self.score_range), return_inverse=True
        )
        table = CellTable.empty(self.rows.keys, numbers.size, weighted=self.rows.weights is not None)
        table.add_at(cells, self.rows.take(inside))
        return CellTable(table.keys, numbers, table.lowest + 0.0, table.highest + 0.0, table.entries)

    def count_scores(self, within: CellSelection | None = None) -> lp.ScoreCounts:
        self.calls.append("exactly" if within is None else "exactly inside")
        atoms = self.rows.take(self._inside(within)).atoms()
        return lp.ScoreCounts(atoms, self.score_range, self.resolution)

    def estimate_distinct(self) -> int:
        self.calls.append("distinct")
        return np.unique(self.scores).size
