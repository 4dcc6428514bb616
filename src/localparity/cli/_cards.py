"""What commands add to a model card, and what they read from one."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from localparity._io._files import sha256_of

if TYPE_CHECKING:
    from localparity.models import ModelCard

IntendedUseOption = Annotated[
    str | None, typer.Option(help="What the model is for, in your words, for its model card.")
]


def complete_card(card: ModelCard, file: str, intended_use: str | None) -> ModelCard:
    """Return a card with the checksum of the file that was read, and what its user says."""
    known = replace(card, file_sha256=_file_sha256(file))
    return known if intended_use is None else replace(known, intended_use=intended_use)


def warn_of_training_file(folder: Path, file: str) -> None:
    """Warn where a file is the one that the model of a folder was made from, as far as its card tells."""
    from localparity.models import ModelCard

    try:
        card = ModelCard.read(folder)
    except ValueError:  # a model needs no card
        return
    if card.file_sha256 is not None and card.file_sha256 == _file_sha256(file):
        hint = f"; {folder / 'model_card.md'} has an audit of people held out" if card.held_out else ""
        warnings.warn(
            f"{file} is the file that the model in {folder} was fitted on, so this audit does not show how "
            f"it does on other people{hint}",
            stacklevel=2,
        )


def _file_sha256(file: str) -> str | None:
    """Return the checksum of a file; several files, or a query, have none."""
    path = Path(file)
    return sha256_of(path) if path.is_file() else None
