"""Every size at which the package computes in another way, in one place, for tests that set them low.

No result depends on any of these numbers. A defect behind one of them shows only in data that cross it, which
small tests do not; so tests set all of them so low that a few rows cross each. `test_limits` finds every
number of these modules, and fails for one that is neither here nor among those that are no sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest

LIMITS: dict[str, Sequence[Any]] = {
    "_validation._groups.MANY": [0, 2**16],
    "_validation._groups._BUCKETS": [(2, 2), (16, 32)],
    "_validation._groups._ROWS": [3, 20],
    "_validation._groups._TRIES": [0, 1, 4],
    "counts._rows._FEW_ROWS": [0, 2**9],
    "counts._rows._MANY_ROWS": [0, 2**17],
    "engines._duckdb._MOST_COUNTED": [0, 2**22],
    "engines._duckdb._MOST_FIRST": [1, 10, 2**21],
    "engines._duckdb._MOST_KEYS": [0, 64],
    "engines._duckdb.DuckDBScores.max_refined": [1, 4, 30],
    "engines._duckdb_stream._HASH_BITS": [1, 8],
    "engines._duckdb_stream._MANY_ROWS": [0, 2**17],
    "engines._duckdb_stream._MOST_THREADS": [1, 3],
    "engines._duckdb_stream._TABLE_LEVEL": [0, 3, 20],
    "engines._ibis.IbisScores.max_refined": [1, 4, 30],
    "engines._ibis.MOST_ROWS": [1 + 2 * 80, 2**16],
    "engines._ibis._MOST_LISTED": [1, 3, 2**12],
    "engines.protocol._MAX_CELLS_READ": [4, 2**16, 2**16],
    "engines.protocol._MAX_LEVEL": [12, 46],
    "engines.protocol._MOST_READ": [40, 2**18, 2**18],
    "engines._spark.SparkScores.max_refined": [1, 4, 30],
    "engines._duckdb_stream.MOST_HELD": [0, 5, 40, 2**25],
    "engines._torch.TorchScores.max_refined": [1, 4, 30],
    "engines._torch._KEPT_SHARE": [1, 4],
    "engines._torch._SAMPLED": [2, 2**14],
    "engines._torch_cells.CHUNK": [7, 2**24],
    "engines._torch_cells._CPU_CHUNK": [7, 2**16],
    "engines._torch._HEAVY": [2**-8, 0.0, 1.0],
    "engines._torch._BLOCKS": [2, 30, 2**11],
    "engines._torch._FEW_ROWS": [0, 2**14],
    "engines._torch._MOST_BITS": [2, 14],
    "engines._torch._MOST_CUT_LEVEL": [0, 14],
    "engines._torch._MOST_PAIRS": [0, 1, 32],
    "engines._torch._TOGETHER": [0, 1, 3],
    "engines._torch._WIDTH": [2, 8, 64],
    "engines._torch._PARTS": [{}, {"cpu": 2**6}, {"cpu": 2**9}, {"cpu": 2**14}],
    "metrics._exact._BLOCKS": [(1,), (2, 1), (8, 2, 1), (8, 1)],
    "metrics._exact._CELLS_BY_ROOT": [1.0, 4.0],
    "metrics._exact._CUT": [2, 8],
    "metrics._exact._FEW_PAIRS": [0, 60],
    "metrics._exact._FEW_ROWS": [0, 10],
    "metrics._exact._LEAST_PARTS": [1, 2, 16],
    "metrics._exact._MANY_OPENED": [0, 10],
    "metrics._exact._MANY_ROWS": [0, 30],
    "metrics._exact._MOST_CELLS": [2, 9, 2**15],
    "metrics._exact._MOST_COUNTED": [2, 5, 2**14],
    "metrics._exact._MOST_ENTRIES": [2**11, 2**17],
    "metrics._exact._MOST_KEYS": [3, 200],
    "metrics._exact._NUMBER_BITS": [16, 30],
    "metrics._exact._ROWS_BY_CELL": [1, 4],
    "metrics._exact._ROWS_BY_CUT": [1, 2**8],
    "metrics._exact._ROWS_BY_PART": [1, 8],
    "metrics._exact._SAMPLED": [2, 5, 16],
    "metrics._exact._SAMPLED_FIRST": [2, 5, 256],
    "metrics._exact._SAMPLED_ENDS": [2, 2**13],
    "metrics._exact._SORTED_CELLS": [1, 7, 2**9],
    "metrics._gap_curve._MOST_KEPT": [0, 64],
    "metrics._gap_curve._MOST_KNOTS": [0, 10, 2**23],
    "metrics._profile.A_FEW": [0, 8],
}
"""The values from which each is drawn."""

COMPILED: dict[str, Sequence[Any]] = {
    "counts._kernels.CHUNK": [3, 2**11],
    "counts._kernels._FEW": [1, 3, 24],
    "counts._kernels._FIRST_CELLS": [16, 40],
    "counts._kernels._MANY": [10, 2**16],
    "counts._kernels._MOST_CELLS": [40, 2**14],
    "metrics._kernels._BLOCK": [1, 2, 64],
    "metrics._kernels._FEW_BLOCKS": [2, 3, 8],
    "metrics._kernels.CHUNK": [3, 2**11],
}
"""Those that compiled loops hold, which see another number only where they run as they are written."""

NO_SIZES = {
    "counts._coarsen.LEVEL": "the default of an argument",
    "counts._coarsen.MAX_SCORES": "the default of an argument",
    "metrics._exact._SHORTEST": "the smallest float with all of its digits",
    "counts._kernels._FRACTION_MASK": "bits of a float",
    "counts._kernels._LIMB_MASK": "bits of a limb",
    "counts._kernels._UNIT_EXPONENT": "bits of a float",
    "counts._score_counts._LEAST_DISTINCT": "what repeated rows are",
    "counts._score_counts._MOST_COPIES": "what repeated rows are",
    "counts._score_counts._NEARLY_ALL": "what repeated rows are",
    "counts._disclosure.DISCLOSURE_LIMIT": "the default of an argument",
    "counts._kernels._SHORT": "what may be divided by",
    "counts._weights.LIMBS": "the format of a sum",
    "counts._weights.LIMB_BITS": "the format of a sum",
    "counts._weights.UNIT_BITS": "the format of a sum",
    "counts._weights._WHOLE_LIMB": "the format of a sum",
    "engines._ibis._WHOLE": "from where floats are whole",
    "engines.protocol.LEVEL": "the default of an argument",
    "engines._torch.LEVEL": "the default of an argument",
    "engines._torch_kernels._BUCKET_BITS": "CUDA: the memory of a block of threads",
    "engines._torch_kernels._SELECTION_BYTES": "CUDA: the memory of a block of threads",
    "engines._torch_kernels._WORDS": "CUDA: the memory of a block of threads",
    "engines._torch_cells._FEW_GROUPS": "the numbers of one byte",
    "engines._torch._MOST_KEYS": "CUDA: the counters of a block of threads",
    "engines._torch._MOST_ROWS": "CUDA: what a counter holds",
    "metrics._mcdp._MOST_POINTS": "what an argument may be",
    "metrics._unknown_groups._ROUNDING": "rounding",
    "metrics._exact._SLACK": "rounding",
    "metrics._kernels._CLASSES": "bits of a float",
    "metrics._kernels._LOWEST_CLASS": "bits of a float",
    "metrics._unknown_groups._HALVINGS": "rounding",
    "metrics._unknown_groups._MOST_TRIED": "how long a search for bounds takes, which hold wherever it ends",
    "metrics._mcdp.PAPER_EPSILONS": "the default of an argument",
    "metrics._profile._EPSILON": "rounding",
    "metrics._profile._SHORTEST": "the smallest float",
    "metrics._kernels._LIMB": "the format of a sum",
    "metrics._within._ROUNDING": "rounding",
}
"""Other numbers of the same modules, and what they are."""


def set_limits(patch: pytest.MonkeyPatch, rng: np.random.Generator, *, plain: bool) -> dict[str, Any]:
    """Set each limit to one of its values, those of compiled loops only where these run as they are written."""
    patch.setattr("localparity._compiled.PATIENCE", np.inf if plain else -1.0)
    patch.setattr("localparity._compiled.MANY", 2**62 if plain else 0)
    drawn: dict[str, Any] = {}
    for name, values in {**LIMITS, **(COMPILED if plain else {})}.items():
        drawn[name] = values[rng.integers(len(values))]
        patch.setattr(*_place_of(name), drawn[name])
    return drawn


def _place_of(name: str) -> tuple[Any, str]:
    """The module or class, and the name of a limit in it."""
    room, module, *rest = name.split(".")
    place = import_module(f"localparity.{room}.{module}")
    return (getattr(place, rest[0]), rest[1]) if len(rest) > 1 else (place, rest[0])
