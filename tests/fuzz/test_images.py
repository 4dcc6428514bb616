"""Damaged images, archives of them and lists of their attributes."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fuzzing import damaged, fuzz, read_or_refuse
from localparity.paper._data import read_celeba, read_utkface

image = pytest.importorskip("PIL.Image")

pytestmark = pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")


def encoded(kind: str) -> bytes:
    content = io.BytesIO()
    image.fromarray(np.arange(48 * 48 * 3, dtype=np.uint8).reshape(48, 48, 3)).save(content, kind)
    return content.getvalue()


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_a_damaged_image_is_refused_or_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"21_0_2_2017.{kind}"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        faces = read_or_refuse(lambda: read_utkface(tmp_path), path.name)
        assert faces is None or faces.features.shape == (1, 48, 48, 3)

    fuzz(damaged(encoded(kind)), check)


def test_a_damaged_archive_is_refused_or_read(tmp_path: Path) -> None:
    path = tmp_path / "faces.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("21_0_2_2017.png", encoded("png"))
        archive.writestr("35_1_2_2017.png", encoded("png"))

    def check(content: bytes) -> None:
        path.write_bytes(content)
        read_or_refuse(lambda: read_utkface(path), str(path), "the image")

    fuzz(damaged(path.read_bytes()), check)


def test_damaged_attributes_are_refused_or_read(tmp_path: Path) -> None:
    (tmp_path / "img_align_celeba").mkdir()
    for name in ("1.png", "2.png"):
        (tmp_path / "img_align_celeba" / name).write_bytes(encoded("png"))
    path = tmp_path / "list_attr_celeba.txt"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        read_or_refuse(lambda: read_celeba(tmp_path, "Attractive"), str(tmp_path))

    fuzz(damaged(b"2\nAttractive Male\n1.png 1 -1\n2.png -1 1\n"), check)
