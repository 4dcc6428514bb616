"""Warnings as people read them on a terminal."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def warnings_in_lines() -> Iterator[None]:
    """A warning is one line on the standard error, as an error is."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        typer.echo(f"warning: {warning.message}", err=True)
