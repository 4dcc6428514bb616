"""A missing component names its extra."""

from __future__ import annotations

import pytest

from localparity._validation import require


def test_a_missing_component_names_its_extra() -> None:
    with pytest.raises(ImportError, match=r"no_such_module is needed here .* 'localparity\[spark\]'"):
        require("no_such_module", extra="spark")
