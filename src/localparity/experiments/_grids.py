"""Grids as data: the strengths of every data set and method, and each data set's own settings."""

from __future__ import annotations

from typing import Any

from localparity._validation import as_choice, unknown_name
from localparity.experiments._methods import TITLES

_TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5)
_FIFTHS = (0.2, 0.4, 0.6, 0.8, 1.0)
_HALVES = (0.5, 1.0, 1.5, 2.0, 2.5)
_TWENTIETHS = (0.1, 0.15, 0.2, 0.25, 0.3)

_EVERYWHERE = {
    "erm": (0.0,),
    "diffdp": _TENTHS,
    "dralign": _TENTHS,
    "diffabcc": _TENTHS,
    "diffmcdp": _TWENTIETHS,
}

# The paper's Table 3; UTKFace, which it does not have, takes those of CelebA-W.
PAPER_STRENGTHS: dict[str, dict[str, tuple[float, ...]]] = {
    "adult": {**_EVERYWHERE, "advdebias": _FIFTHS, "fairmixup": _TENTHS},
    "bank": {
        **_EVERYWHERE,
        "advdebias": (0.3, 0.6, 0.9, 1.2, 1.5),
        "fairmixup": (0.3, 0.4, 0.5, 0.6, 0.7),
    },
    "celeba-a": {**_EVERYWHERE, "advdebias": _HALVES, "fairmixup": (0.5, 1.0, 2.0, 3.0, 4.0)},
    "celeba-w": {**_EVERYWHERE, "advdebias": _HALVES, "fairmixup": _HALVES},
    "utkface": {**_EVERYWHERE, "advdebias": _HALVES, "fairmixup": _HALVES},
}

_WIDE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0)
_WIDE_EVERYWHERE = {
    "erm": (0.0,),
    "advdebias": (0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0),
    "diffdp": _WIDE,
    "fairmixup": _WIDE,
    "dralign": _WIDE,
    "diffabcc": _WIDE,
    "diffmcdp": _WIDE,
}
TUNED_STRENGTHS: dict[str, dict[str, tuple[float, ...]]] = dict.fromkeys(PAPER_STRENGTHS, _WIDE_EVERYWHERE)

_STRENGTHS = {"paper": PAPER_STRENGTHS, "tuned": TUNED_STRENGTHS}
PRESET_NAMES = tuple(_STRENGTHS)
DATA_SET_NAMES = tuple(PAPER_STRENGTHS)

_PAPER_TABLES: dict[str, Any] = {"search": "frozen"}
_PAPER_IMAGES: dict[str, Any] = {"search": "probe", "batch_size": 128, "temperature": 20.0}

# In place of the preset's. The published code freezes DiffMCDP's threshold on tables and probes on images.
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "adult": _PAPER_TABLES,
        "bank": _PAPER_TABLES,
        "celeba-a": _PAPER_IMAGES,
        "celeba-w": _PAPER_IMAGES,
        "utkface": _PAPER_IMAGES,
    },
    "tuned": {name: {} for name in DATA_SET_NAMES},
}


def strengths_of(preset: str, dataset: str, method: str) -> tuple[float, ...]:
    """The strengths at which a method is run on a data set.

    Examples
    --------
    >>> strengths_of("paper", "bank", "fairmixup")
    (0.3, 0.4, 0.5, 0.6, 0.7)
    """
    check_names(dataset, method, preset)
    return _STRENGTHS[preset][dataset][method]


def check_names(dataset: str, method: str, preset: str) -> None:
    """A data set, a method and a preset that there are."""
    if dataset not in DATA_SET_NAMES:
        raise unknown_name("data set", dataset, DATA_SET_NAMES)
    if method not in TITLES:
        raise unknown_name("method", method, TITLES)
    as_choice(preset, "preset", PRESET_NAMES)
