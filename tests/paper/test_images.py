"""Faces in the layouts that they are published in, tiny and made here."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from localparity.paper._data import read_celeba, read_utkface


def write_face(path: Path, shade: int, size: int = 48) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (size, size), (shade, 0, 255 - shade)).save(path)


@pytest.fixture
def utkface(tmp_path: Path) -> Path:
    folder = tmp_path / "faces"
    write_face(folder / "26_1_2_20170116.png", 200)
    write_face(folder / "part" / "80_0_0_20170117.jpg.chip.png", 10, size=20)
    write_face(folder / "logo.png", 1)
    (folder / "readme.txt").write_text("faces")
    return folder


def test_utkface_from_a_folder_and_from_a_zip(utkface: Path, tmp_path: Path) -> None:
    faces = read_utkface(utkface)
    assert faces.features.shape == (2, 48, 48, 3)
    assert faces.features.dtype == np.uint8
    assert faces.labels.tolist() == [0, 1]
    assert faces.groups.tolist() == ["Female", "Male"]
    assert faces.features[0, 0, 0].tolist() == [200, 0, 55]
    archive = tmp_path / "faces.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(utkface.rglob("*.*")):
            packed.write(path, path.relative_to(utkface))
    zipped = read_utkface(archive)
    np.testing.assert_array_equal(zipped.features, faces.features)
    assert zipped.labels.tolist() == faces.labels.tolist()


def test_utkface_as_published(data_folder: Path) -> None:
    faces = read_utkface(data_folder / "utkface" / "utkface-48.zip")
    assert faces.features.shape == (23703, 48, 48, 3)
    assert set(faces.groups) == {"Female", "Male"}
    assert set(faces.labels) == {0, 1}


def test_a_face_that_cannot_be_read(utkface: Path) -> None:
    (utkface / "30_1_1_20170118.jpg").write_bytes(b"not an image")
    with pytest.raises(ValueError, match=r"the image 30_1_1_20170118.jpg cannot be read"):
        read_utkface(utkface)


def test_a_cut_face(utkface: Path) -> None:
    path = utkface / "26_1_2_20170116.png"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"the image 26_1_2_20170116.png cannot be read"):
        read_utkface(utkface)


def test_no_faces(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no image named age_gender_race_date"):
        read_utkface(tmp_path)
    with pytest.raises(ValueError, match="cannot be read as a folder or a zip archive"):
        read_utkface(tmp_path / "none.zip")


@pytest.fixture
def celeba(tmp_path: Path) -> Path:
    folder = tmp_path / "celeba"
    for number, shade in ((1, 5), (2, 250)):
        write_face(folder / "img_align_celeba" / f"00000{number}.png", shade, size=60)
    (folder / "list_attr_celeba.txt").write_text(
        "2\nAttractive Male Wavy_Hair\n000001.png  1 -1  1\n000002.png -1  1  1\n"
    )
    return folder


def test_celeba_in_the_official_layout(celeba: Path) -> None:
    faces = read_celeba(celeba, "Attractive")
    assert faces.features.shape == (2, 48, 48, 3)
    assert faces.labels.tolist() == [1, 0]
    assert faces.groups.tolist() == ["Female", "Male"]
    assert read_celeba(celeba, "Wavy_Hair").labels.tolist() == [1, 1]


def test_celeba_with_an_unknown_attribute(celeba: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no column in .* named 'Wavy'; did you mean 'Wavy_Hair'"):
        read_celeba(celeba, "Wavy")


def test_celeba_with_a_name_that_no_file_can_have(celeba: Path) -> None:
    listed = celeba / "list_attr_celeba.txt"
    listed.write_text(listed.read_text().replace("000002", "\0"))
    with pytest.raises(ValueError, match=r"img_align_celeba/\x00\.png cannot be read: embedded null byte"):
        read_celeba(celeba, "Attractive")


def test_celeba_with_a_line_that_is_too_short(celeba: Path) -> None:
    with (celeba / "list_attr_celeba.txt").open("a") as stream:
        stream.write("000003.png 1\n")
    with pytest.raises(ValueError, match=r"4 values in line 5.*2"):
        read_celeba(celeba, "Attractive")


def test_celeba_without_an_image(celeba: Path) -> None:
    (celeba / "img_align_celeba" / "000002.png").unlink()
    with pytest.raises(ValueError, match=r"000002.png cannot be read: No such file"):
        read_celeba(celeba, "Attractive")


def test_celeba_with_a_list_that_is_damaged(celeba: Path) -> None:
    path = celeba / "list_attr_celeba.txt"
    for content, message in (
        (b"2\n\xff\n", "list_attr_celeba.txt is damaged: 'ascii' codec can't decode"),
        (b"2", "list_attr_celeba.txt is damaged: not enough values"),
        (b"0\nAttractive Male\n", "list_attr_celeba.txt lists no image"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_celeba(celeba, "Attractive")


def test_an_image_that_would_not_fit_memory(utkface: Path) -> None:
    path = utkface / "26_1_2_20170116.png"
    content = bytearray(path.read_bytes())
    content[16:24] = struct.pack(">II", 40_000, 40_000)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"the image 26_1_2_20170116.png cannot be read: .* decompression bomb"
    ):
        read_utkface(utkface)
