"""How the kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from localparity.metrics import _kernels


def test_kernels_compile_where_nothing_can_be_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose package folder and home cannot be written to."""

    def njit(*, nogil: bool, cache: bool = False) -> Callable[[Any], Any]:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(_kernels, "njit", njit)
    assert _kernels.compiled(abs)(-1) == 1
