"""Where the files of a saved model are."""

from __future__ import annotations

from pathlib import Path


def data_file(folder: Path, name: str = "[!.]*.*") -> Path:
    """The one file of a model's data, by its name where there are several."""
    (path,) = folder.glob(f"data-*/**/{name}")
    return path
