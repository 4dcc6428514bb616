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

from localparity._types import IntArray
from localparity.datasets import fetch_adult, fetch_bank
from localparity.datasets._fetch import cache_folder
from localparity.paper._images import load_celeba, load_utkface
from localparity.paper._preparation import Split, paper_split


@dataclass(frozen=True)
class Samples:
    """A data set as it was read: a data frame or images, labels 0 and 1, and the groups' names."""

    features: Any
    labels: IntArray
    groups: NDArray[Any]


@dataclass(frozen=True)
class DataSet:
    """A data set of the experiments: its title, "table" or "image", and the share of rows to train on.

    The rest is halved into test and validation part.
    """

    title: str
    kind: str
    load: Callable[[], Samples]
    train: float

    def split(self, labels: IntArray, seed: int) -> Split:
        """The parts at a seed."""
        return paper_split(labels, seed, train=self.train)


def _table(fetch: Callable[[], Any]) -> Callable[[], Samples]:
    def load() -> Samples:
        bunch = fetch()
        return Samples(bunch.data, bunch.target, bunch.sensitive_features)

    return load


def _utkface() -> Samples:
    source = _find(
        "UTKFace",
        ("utkface/utkface-48.zip", "utkface/UTKFace.zip", "utkface/UTKFace", "utkface"),
        "the aligned and cropped faces of UTKFace (https://susanqq.github.io/UTKFace), for research only, "
        "as a zip archive or a folder of images named age_gender_race_date",
    )
    faces = load_utkface(source)
    return Samples(faces.images, (faces.age > 35).astype(np.int64), faces.sensitive_features)


def _celeba(target: str) -> Callable[[], Samples]:
    def load() -> Samples:
        source = _find(
            "CelebA",
            ("celeba/celeba.csv", "celeba"),
            "the aligned faces of CelebA (https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html), for research "
            "only: img_align_celeba/ and list_attr_celeba.txt, or the FFB benchmark's celeba.csv",
        )
        faces = load_celeba(source, target=target)
        return Samples(faces.images, faces.target, np.where(faces.sensitive_features == 1, "Male", "Female"))

    return load


def _find(title: str, places: tuple[str, ...], what: str) -> Path:
    """The first of the places that exists, in LOCALPARITY_DATA or the cache."""
    named = os.environ.get("LOCALPARITY_DATA")
    folders = [Path(named)] if named else []
    folders.append(cache_folder())
    for folder in folders:
        for place in places:
            if (folder / place).exists():
                return folder / place
    raise ValueError(
        f"{title} was not found: get {what}, and put it at {folders[0] / places[0]}, or set LOCALPARITY_DATA "
        f"to another folder (looked for {', '.join(places)} in {', '.join(map(str, folders))})"
    )


DATA_SETS: dict[str, DataSet] = {
    "adult": DataSet("Adult", "table", _table(fetch_adult), 0.4),
    "bank": DataSet("Bank", "table", _table(fetch_bank), 0.4),
    "celeba-a": DataSet("CelebA-A", "image", _celeba("Attractive"), 0.8),
    "celeba-w": DataSet("CelebA-W", "image", _celeba("Wavy_Hair"), 0.8),
    "utkface": DataSet("UTKFace", "image", _utkface, 0.8),
}


@lru_cache(maxsize=2)
def load_samples(dataset: str) -> Samples:
    """One of `DATA_SETS`, read once per process."""
    return DATA_SETS[dataset].load()
