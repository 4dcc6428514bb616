"""The data sets of the experiments: how each is found, read and split."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import ArrayLike, IntArray, Seed
from localparity._validation import InputError, as_probability, as_rng, as_vector
from localparity.datasets import fetch_adult, fetch_bank
from localparity.datasets._fetch import cache_folder
from localparity.paper._images import load_celeba, load_utkface

if TYPE_CHECKING:
    from localparity.models._encoding import TableEncoder


# The paper's splits and preprocessing.


class Split(NamedTuple):
    """The row numbers of the three parts.

    Parameters
    ----------
    train : ndarray of int
        The rows to train on.
    validation : ndarray of int
        The rows to choose a strength on.
    test : ndarray of int
        The rows to report on.

    Examples
    --------
    >>> import localparity as lp
    >>> split = lp.paper.paper_split([0, 1] * 50)
    >>> split.train.size, split.validation.size, split.test.size
    (40, 30, 30)
    """

    train: IntArray
    validation: IntArray
    test: IntArray


def paper_split(y: ArrayLike, random_state: Seed = 0, *, train: float = 0.4) -> Split:
    """Split rows as the paper splits a table: 40% to train on, 30% for validation, 30% for the test.

    For images the paper takes 80%, 10% and 10%.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The target, on which both cuts are stratified.
    random_state : int, Generator or None, default=0
        The run's seed.
    train : float, default=0.4
        The share to train on; the rest is halved.

    Returns
    -------
    Split
        The row numbers of `train`, `validation` and `test`.

    Examples
    --------
    >>> import localparity as lp
    >>> parts = lp.paper.paper_split([0, 1] * 50, random_state=0)
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (40, 30, 30)
    """
    from sklearn.model_selection import train_test_split

    labels = as_vector(y, "y")
    rest_share = round(1.0 - as_probability(train, "train"), 12)
    rng = as_rng(random_state)
    seed = random_state if isinstance(random_state, int) else int(rng.integers(2**31))
    rows = np.arange(labels.size)
    training, rest = train_test_split(rows, test_size=rest_share, stratify=labels, random_state=seed)
    test, validation = train_test_split(rest, test_size=0.5, stratify=labels[rest], random_state=seed)
    return Split(training, validation, test)


def paper_preprocessor() -> TableEncoder:
    """Return the paper's preprocessing of a table, to fit on the training part.

    Text columns are one-hot encoded and not scaled; numbers are standardised.

    Returns
    -------
    TableEncoder
        A scikit-learn transformer.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(200, random_state=0)
    >>> lp.paper.paper_preprocessor().fit_transform(census.data).shape
    (200, 7)
    """
    from localparity.models._encoding import TableEncoder

    return TableEncoder()


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
    raise InputError(
        f"was not found: get {what}, and put it at {folders[0] / places[0]}, or set LOCALPARITY_DATA "
        f"to another folder (looked for {', '.join(places)} in {', '.join(map(str, folders))})",
        title,
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
