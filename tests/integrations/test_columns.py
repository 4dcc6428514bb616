"""Columns by their names, or arrays as they are."""

from __future__ import annotations

import numpy as np
import pytest

from localparity.integrations._columns import named_columns


def test_names_are_looked_up_in_any_frame() -> None:
    polars = pytest.importorskip("polars")
    data = polars.DataFrame({"sex": ["f", "m"], "age": [30, 40]})
    assert named_columns("sex", data, "sensitive_features").to_list() == ["f", "m"]
    assert named_columns(["sex", "age"], data, "sensitive_features").columns == ["sex", "age"]


def test_arrays_stay_as_they_are() -> None:
    groups = np.array(["f", "m"])
    assert named_columns(groups, np.zeros((2, 3)), "sensitive_features") is groups
    assert named_columns(None, np.zeros((2, 3)), "sample_weight") is None


def test_a_name_needs_names() -> None:
    with pytest.raises(ValueError, match="sensitive_features must be a column of the data, got 'sex'"):
        named_columns("sex", np.zeros((2, 3)), "sensitive_features")
