"""The data sets of the experiments: how each is found, read, split and encoded."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._io._files import reading
from localparity._types import ArrayLike, IntArray
from localparity._validation import (
    InputError,
    as_vector,
    require,
    unknown_name,
)
from localparity.datasets import fetch_adult, fetch_bank
from localparity.datasets._fetch import cache_folder

# The paper's splits.


class Split(NamedTuple):
    """The row numbers of the parts to train on, to choose a strength on, and to report on."""

    train: IntArray
    validation: IntArray
    test: IntArray


def paper_split(y: ArrayLike, seed: int = 0, *, train: float = 0.4) -> Split:
    """Split rows as the paper splits a table: 40% to train on, 30% for validation, 30% for the test.

    Both cuts are stratified on `y`. `train` is the share to train on, 0.8 for images; the rest is halved.

    Examples
    --------
    >>> parts = paper_split([0, 1] * 50, seed=0)
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (40, 30, 30)
    """
    from sklearn.model_selection import train_test_split

    labels = as_vector(y, "y")
    rest_share = round(1.0 - train, 12)
    rows = np.arange(labels.size)
    training, rest = train_test_split(rows, test_size=rest_share, stratify=labels, random_state=seed)
    test, validation = train_test_split(rest, test_size=0.5, stratify=labels[rest], random_state=seed)
    return Split(training, validation, test)


# What the experiments train on.


@dataclass(frozen=True)
class Samples:
    """A data set as it was read: a data frame or images, labels 0 and 1, and the groups' names."""

    features: Any
    labels: IntArray
    groups: NDArray[Any]


@dataclass(frozen=True)
class DataSet:
    """A data set: its title, "table" or "image", how it is read, and the share of rows to train on."""

    title: str
    kind: str
    load: Callable[[], Samples]
    train: float

    def split(self, labels: IntArray, seed: int) -> Split:
        """The parts at a seed."""
        return paper_split(labels, seed, train=self.train)


def _table(fetch: Callable[[], Any]) -> Samples:
    bunch = fetch()
    return Samples(bunch.data, bunch.target, bunch.sensitive_features)


def _utkface() -> Samples:
    source = _find(
        "UTKFace",
        ("utkface/utkface-48.zip", "utkface/UTKFace.zip", "utkface/UTKFace", "utkface"),
        "the aligned and cropped faces of UTKFace (https://susanqq.github.io/UTKFace), for research only, "
        "as a zip archive or a folder of images named age_gender_race_date",
    )
    return read_utkface(source)


def _celeba(target: str) -> Samples:
    source = _find(
        "CelebA",
        ("celeba",),
        "the aligned faces of CelebA (https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html), for research "
        "only: img_align_celeba/ and list_attr_celeba.txt",
    )
    return read_celeba(source, target)


def _find(title: str, paths: tuple[str, ...], what: str) -> Path:
    """The first of the paths that exists, in LOCALPARITY_DATA or the cache."""
    local = os.environ.get("LOCALPARITY_DATA")
    folders = [*([Path(local)] if local else []), cache_folder()]
    for folder in folders:
        for path in paths:
            if (folder / path).exists():
                return folder / path
    raise InputError(
        f"was not found: get {what}, and put it at {folders[0] / paths[0]}, or set LOCALPARITY_DATA "
        f"to another folder (looked for {', '.join(paths)} in {', '.join(map(str, folders))})",
        title,
    )


DATA_SETS: dict[str, DataSet] = {
    "adult": DataSet("Adult", "table", partial(_table, fetch_adult), 0.4),
    "bank": DataSet("Bank", "table", partial(_table, fetch_bank), 0.4),
    "celeba-a": DataSet("CelebA-A", "image", partial(_celeba, "Attractive"), 0.8),
    "celeba-w": DataSet("CelebA-W", "image", partial(_celeba, "Wavy_Hair"), 0.8),
    "utkface": DataSet("UTKFace", "image", _utkface, 0.8),
}


@lru_cache(maxsize=2)
def load_samples(dataset: str) -> Samples:
    """One of `DATA_SETS`, read once per process."""
    return DATA_SETS[dataset].load()


# Faces: UTKFace and CelebA, from files that the user has.


_GENDERS = ("Male", "Female")
_SIDE = 48


def read_utkface(source: Path) -> Samples:
    """Faces from the folder or the zip archive of UTKFace: label 1 is an age above 35.

    Images are named ``age_gender_race_date...``; others are skipped.
    """
    images, labels, groups = [], [], []
    for name, content in _image_files(source):
        parts = PurePosixPath(name).name.split("_")
        if len(parts) < 4 or not parts[0].isdigit() or parts[1] not in {"0", "1"}:
            continue
        images.append(_decode(content, name))
        labels.append(int(parts[0]) > 35)
        groups.append(_GENDERS[int(parts[1])])
    if not images:
        raise InputError("has no image named age_gender_race_date", file=str(source))
    return Samples(np.stack(images), np.asarray(labels, dtype=np.int64), np.asarray(groups))


def read_celeba(source: Path, target: str) -> Samples:
    """CelebA's faces, with one attribute as the label, from a folder of the official layout."""
    names, (labels, men) = _read_attributes(source / "list_attr_celeba.txt", (target, "Male"))
    images = np.stack([_decode(_read(source / "img_align_celeba" / name), name) for name in names])
    return Samples(images, labels.astype(np.int64), np.where(men, "Male", "Female"))


def _image_files(source: Path) -> Iterator[tuple[str, bytes]]:
    """The names and bytes of the images in a folder or an archive, in the order of their names."""
    endings = (".jpg", ".jpeg", ".png")
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.name.lower().endswith(endings):
                yield path.relative_to(source).as_posix(), path.read_bytes()
        return
    try:
        with zipfile.ZipFile(source) as archive:
            for name in sorted(archive.namelist()):
                if name.lower().endswith(endings):
                    yield name, archive.read(name)
    except (OSError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        raise InputError(f"cannot be read as a folder or a zip archive: {error}", file=source) from error


def _decode(content: bytes, name: str) -> NDArray[np.uint8]:
    image_module = require("PIL.Image", extra="images")
    try:
        with image_module.open(io.BytesIO(content)) as image:
            colours, size = image.convert("RGB"), (_SIDE, _SIDE)
            return np.asarray(colours if colours.size == size else colours.resize(size), dtype=np.uint8)
    except (OSError, SyntaxError, ValueError, image_module.DecompressionBombError) as error:
        raise ValueError(f"the image {name} cannot be read: {error}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', error)}", file=path) from error


def _read_attributes(path: Path, wanted: Sequence[str]) -> tuple[list[str], list[NDArray[np.bool_]]]:
    """The official list: a count, a line of attributes, then a line of 1 and -1 for each image."""
    with reading(str(path)):
        _, header, *lines = _read(path).decode("ascii").splitlines()
    columns = header.split()
    rows = [line.split() for line in lines if line.strip()]
    if not rows:
        raise ValueError(f"{path} lists no image")
    for number, row in enumerate(rows, start=3):
        if len(row) != len(columns) + 1:
            message = f"must have {len(columns) + 1} values in line {number}, got {len(row)}"
            raise InputError(message, file=path)
    indices = [_index(name, columns, path) + 1 for name in wanted]
    return [row[0] for row in rows], [np.array([row[index] == "1" for row in rows]) for index in indices]


def _index(name: str, columns: Sequence[str], path: Path) -> int:
    if name not in columns:
        raise unknown_name(f"column in {path} named", name, columns)
    return list(columns).index(name)
