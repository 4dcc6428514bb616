"""Faces: UTKFace and CelebA, from files that the user has."""

from __future__ import annotations

import csv
import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._files import reading
from localparity._validation import InputError, as_count, require, unknown_name

_GENDERS = ("Male", "Female")
_SIDE = 48


def load_utkface(source: Any, *, size: int = _SIDE) -> Any:
    """Load faces with age and gender from the UTKFace files.

    Parameters
    ----------
    source : path
        The folder, or the zip archive, with images named ``age_gender_race_date...``; images with other
        names are skipped.
    size : int, default=48
        The side in pixels to which images are scaled.

    Returns
    -------
    sklearn.utils.Bunch
        `images` (uint8, shape (n_samples, size, size, 3)), `age`, `sensitive_features` (Male or Female) and
        `names`.

    Examples
    --------
    >>> import localparity as lp
    >>> faces = lp.paper.load_utkface("utkface.zip")  # doctest: +SKIP
    >>> faces.images.shape  # doctest: +SKIP
    (23703, 48, 48, 3)
    """
    from sklearn.utils import Bunch

    size = as_count(size, "size")
    images, ages, genders, names = [], [], [], []
    for name, content in _image_files(Path(source)):
        parts = PurePosixPath(name).name.split("_")
        if len(parts) < 4 or not parts[0].isdigit() or parts[1] not in {"0", "1"}:
            continue
        images.append(_decode(content, name, size))
        ages.append(int(parts[0]))
        genders.append(_GENDERS[int(parts[1])])
        names.append(name)
    if not images:
        raise InputError("has no image named age_gender_race_date", file=source)
    return Bunch(
        images=np.stack(images),
        age=np.asarray(ages, dtype=np.int64),
        sensitive_features=np.asarray(genders),
        names=names,
    )


def load_celeba(source: Any, *, target: str = "Attractive", group: str = "Male", size: int = _SIDE) -> Any:
    """Load CelebA's faces with one attribute as the target and another as the group.

    Parameters
    ----------
    source : path
        The folder of the official layout (``img_align_celeba/`` and ``list_attr_celeba.txt``), or the CSV
        file of the FFB benchmark: a column ``pixels`` with the numbers of an image, and a column for each
        attribute.
    target : str, default="Attractive"
        The attribute that is the target.
    group : str, default="Male"
        The attribute that is the group.
    size : int, default=48
        The side in pixels to which images of the official layout are scaled; those of the CSV keep their
        own.

    Returns
    -------
    sklearn.utils.Bunch
        `images` (uint8, shape (n_samples, size, size, 3)), `target` (0 or 1), `sensitive_features` (0 or 1)
        and `names`.

    Examples
    --------
    >>> import localparity as lp
    >>> faces = lp.paper.load_celeba("celeba", target="Wavy_Hair")  # doctest: +SKIP
    """
    from sklearn.utils import Bunch

    path = Path(source)
    size = as_count(size, "size")
    if path.is_dir():
        names, attributes = _read_attributes(path / "list_attr_celeba.txt", (target, group))
        images = np.stack([_decode(_read(path / "img_align_celeba" / name), name, size) for name in names])
    else:
        names, images, attributes = _read_pixels(path, (target, group))
    return Bunch(images=images, target=attributes[target], sensitive_features=attributes[group], names=names)


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


def _decode(content: bytes, name: str, size: int) -> NDArray[np.uint8]:
    image_module = require("PIL.Image", extra="images")
    try:
        with image_module.open(io.BytesIO(content)) as image:
            colours = image.convert("RGB")
            scaled = colours if colours.size == (size, size) else colours.resize((size, size))
            return np.asarray(scaled, dtype=np.uint8)
    except (OSError, SyntaxError, ValueError, image_module.DecompressionBombError) as error:
        raise ValueError(f"the image {name} cannot be read: {error}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    except ValueError as error:
        raise InputError(f"cannot be read: {error}", file=path) from error


def _read_attributes(path: Path, wanted: Sequence[str]) -> tuple[list[str], dict[str, NDArray[np.int64]]]:
    """The official list: a count, a line of attributes, then a line of 1 and -1 for each image."""
    with reading(str(path)):
        _, header, *lines = _read(path).decode("ascii").splitlines()
    columns = header.split()
    rows = [line.split() for line in lines if line.strip()]
    if not rows:
        raise ValueError(f"{path} lists no image")
    for number, row in enumerate(rows, start=3):
        if len(row) != len(columns) + 1:
            raise InputError(
                f"must have {len(columns) + 1} values in line {number}, got {len(row)}", file=path
            )
    places = [_place(name, columns, path) + 1 for name in wanted]
    values = {
        name: np.asarray([row[place] == "1" for row in rows], dtype=np.int64)
        for name, place in zip(wanted, places, strict=True)
    }
    return [row[0] for row in rows], values


def _read_pixels(
    path: Path, wanted: Sequence[str]
) -> tuple[list[str], NDArray[np.uint8], dict[str, NDArray[np.int64]]]:
    """The CSV of the FFB benchmark: an image's numbers, row by row and channel last, in one column."""
    with reading(str(path), csv.Error):
        header, *rows = csv.reader(io.StringIO(_read(path).decode("utf-8")))
        pixels = _place("pixels", header, path)
        places = [_place(name, header, path) for name in wanted]
        images = [_square(row[pixels], path, number) for number, row in enumerate(rows, start=2)]
        values = {
            name: np.asarray([float(row[place]) > 0.0 for row in rows], dtype=np.int64)
            for name, place in zip(wanted, places, strict=True)
        }
        return [str(number) for number in range(len(rows))], np.stack(images), values


def _square(text: str, path: Path, line: int) -> NDArray[np.uint8]:
    numbers = np.asarray(text.replace(",", " ").split(), dtype=np.float64)
    side = round((numbers.size / 3) ** 0.5)
    if side == 0 or side * side * 3 != numbers.size:
        raise InputError(f"must have side x side x 3 numbers in line {line}, got {numbers.size}", file=path)
    if not ((numbers >= 0.0) & (numbers <= 255.0)).all():
        found = f"{numbers.min():g} to {numbers.max():g}"
        raise InputError(f"must have pixels from 0 to 255 in line {line}, got {found}", file=path)
    return numbers.astype(np.uint8).reshape(side, side, 3)


def _place(name: str, columns: Sequence[str], path: Path) -> int:
    if name not in columns:
        raise unknown_name(f"column in {path} named", name, columns)
    return list(columns).index(name)
