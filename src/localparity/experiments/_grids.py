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

_TUNED_IMAGE_STRENGTHS = {
    "erm": (0.0,),
    "advdebias": (0.3, 0.6, 1.0, 1.5, 2.5, 4.0),
    "diffdp": (0.2, 0.4, 0.6, 0.8, 1.0, 1.5),
    "fairmixup": (0.3, 0.6, 1.0, 2.0, 3.0, 5.0),
    "dralign": (0.2, 0.4, 0.6, 0.8, 1.0, 1.5),
    "diffabcc": (0.2, 0.4, 0.6, 0.8, 1.0, 1.5),
    "diffmcdp": (0.1, 0.2, 0.3, 0.4, 0.5, 0.7),
}

# Ten strengths each, around those that keep 95% of ERM's average precision on the validation parts.
TUNED_STRENGTHS: dict[str, dict[str, tuple[float, ...]]] = {
    "adult": {
        "erm": (0.0,),
        "advdebias": (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0),
        "diffdp": (0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7),
        "fairmixup": (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2),
        "dralign": (0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7),
        "diffabcc": (0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7),
        "diffmcdp": (0.28, 0.3, 0.32, 0.34, 0.36, 0.38, 0.4, 0.42, 0.44, 0.46),
    },
    "bank": {
        "erm": (0.0,),
        "advdebias": (0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5),
        "diffdp": (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 1.8, 2.2, 2.7),
        "fairmixup": (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0),
        "dralign": (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 1.8, 2.2, 2.7),
        "diffabcc": (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.4, 3.0),
        "diffmcdp": (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6),
    },
    "utkface": _TUNED_IMAGE_STRENGTHS,
    "celeba-a": _TUNED_IMAGE_STRENGTHS,
    "celeba-w": _TUNED_IMAGE_STRENGTHS,
}

_STRENGTHS = {"paper": PAPER_STRENGTHS, "tuned": TUNED_STRENGTHS}
PRESET_NAMES = tuple(_STRENGTHS)
DATA_SET_NAMES = tuple(PAPER_STRENGTHS)

_ALL = "every method"
_PAPER_TABLE: dict[str, dict[str, Any]] = {_ALL: {"search": "frozen"}}
_IMAGE = {"batch_size": 128, "precision": "bfloat16", "alignment": 0.002}
_PAPER_IMAGE = {_ALL: {**_IMAGE, "search": "probe", "temperature": 20.0}}
_TUNED_IMAGE = {_ALL: {**_IMAGE, "temperature": 40.0, "balanced": False, "search": "soft"}}

# In place of the preset's. The published code freezes DiffMCDP's threshold on tables and probes on images.
_SETTINGS: dict[str, dict[str, dict[str, dict[str, Any]]]] = {
    "paper": {
        "adult": _PAPER_TABLE,
        "bank": _PAPER_TABLE,
        **dict.fromkeys(("utkface", "celeba-a", "celeba-w"), _PAPER_IMAGE),
    },
    "tuned": {
        "adult": {"diffmcdp": {"balanced": False}, "diffabcc": {"temperature": 10.0}},
        "bank": {"diffmcdp": {"memory": 8192}},
        **dict.fromkeys(("utkface", "celeba-a", "celeba-w"), _TUNED_IMAGE),
    },
}


def settings_of(preset: str, dataset: str, method: str) -> dict[str, Any]:
    """What stands in place of the preset's settings for a method on a data set.

    Examples
    --------
    >>> settings_of("tuned", "bank", "diffmcdp")
    {'memory': 8192}
    """
    own = _SETTINGS[preset][dataset]
    return {**own.get(_ALL, {}), **own.get(method, {})}


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
