"""Warnings as people read them on a terminal."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from localparity.cli._messages import in_options
from localparity.cli._printing import note


@contextmanager
def warnings_in_lines(options: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """A warning is one line on the standard error, as an error is."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        note(f"warning: {in_options(str(message), options)}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
