"""Where the files of a saved model are."""

from __future__ import annotations

import json
from pathlib import Path

from localparity._io._files import seal_json


def data_file(folder: Path, name: str = "[!.]*.*") -> Path:
    """The one file of a model's data beside its card, by its name where there are several."""
    (path,) = (path for path in folder.glob(f"data-*/**/{name}") if path.stem != "model_card")
    return path


def reword(folder: Path, old: str, new: str) -> None:
    """Replace a part of a model's description, whose checksum then fits again."""
    path = folder / "model.json"
    path.write_bytes(seal_json(json.loads(path.read_text().replace(old, new))))
