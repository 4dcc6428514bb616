"""The data sets of the experiments: how each is found, read and split."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity.datasets import fetch_adult, fetch_bank
from localparity.datasets._fetch import cache_folder
from localparity.paper import Split, load_celeba, load_utkface, paper_split


@dataclass(frozen=True)
class People:
    """A data set as it was read: features or images, labels 0 and 1, and groups."""

    features: Any
    labels: NDArray[np.int64]
    groups: NDArray[Any]


@dataclass(frozen=True)
class DataSet:
    """A data set of the experiments.

    Parameters
    ----------
    title : str
        Its name in tables and figures.
    kind : str
        "table" or "image", on which the network depends.
    load : callable
        Reads it.
    train : float
        The share to train on; the rest is halved into test and validation part.

    Examples
    --------
    >>> DATA_SETS["bank"].title
    'Bank'
    """

    title: str
    kind: str
    load: Callable[[], People]
    train: float

    def split(self, labels: NDArray[np.int64], seed: int) -> Split:
        """The parts of a seed."""
        return paper_split(labels, seed, train=self.train)


def _table(fetch: Callable[[], Any]) -> Callable[[], People]:
    def load() -> People:
        bunch = fetch()
        return People(bunch.data, bunch.target, bunch.sensitive_features)

    return load


def _utkface() -> People:
    source = _find(
        "UTKFace",
        ("utkface/utkface-48.zip", "utkface/UTKFace.zip", "utkface/UTKFace", "utkface"),
        "the aligned and cropped faces of UTKFace (https://susanqq.github.io/UTKFace), for research only, "
        "as a zip archive or a folder of images named age_gender_race_date",
    )
    faces = load_utkface(source)
    return People(faces.images, (faces.age > 35).astype(np.int64), faces.sensitive_features)


def _celeba(target: str) -> Callable[[], People]:
    def load() -> People:
        source = _find(
            "CelebA",
            ("celeba/celeba.csv", "celeba"),
            "the aligned faces of CelebA (https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html), for research "
            "only: img_align_celeba/ and list_attr_celeba.txt, or the FFB benchmark's celeba.csv",
        )
        faces = load_celeba(source, target=target)
        return People(faces.images, faces.target, np.where(faces.sensitive_features == 1, "Male", "Female"))

    return load


def _find(title: str, places: tuple[str, ...], what: str) -> Path:
    """The first of the places that there is, in LOCALPARITY_DATA or the cache."""
    named = os.environ.get("LOCALPARITY_DATA")
    folders = [Path(named)] if named else []
    folders.append(cache_folder())
    for folder in folders:
        for place in places:
            if (folder / place).exists():
                return folder / place
    first = folders[0] / places[0]
    raise ValueError(
        f"{title} is not there: get {what}, and put it at {first}, or name another folder by setting "
        f"LOCALPARITY_DATA (looked for {', '.join(places)} in {', '.join(map(str, folders))})"
    )


DATA_SETS: dict[str, DataSet] = {
    "adult": DataSet("Adult", "table", _table(fetch_adult), 0.4),
    "bank": DataSet("Bank", "table", _table(fetch_bank), 0.4),
    "celeba-a": DataSet("CelebA-A", "image", _celeba("Attractive"), 0.8),
    "celeba-w": DataSet("CelebA-W", "image", _celeba("Wavy_Hair"), 0.8),
    "utkface": DataSet("UTKFace", "image", _utkface, 0.8),
}


@lru_cache(maxsize=2)
def load_people(dataset: str) -> People:
    """A data set, read once a process.

    Parameters
    ----------
    dataset : str
        One of `DATA_SETS`.

    Returns
    -------
    People
    """
    return DATA_SETS[dataset].load()
