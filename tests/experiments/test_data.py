"""The data sets of the experiments, and what is said where one is not there."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from localparity.datasets import paper_split
from localparity.experiments import Run
from localparity.experiments._data import DATA_SETS, _utkface
from localparity.experiments._train import train_runs

PILLOW = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize(
    ("dataset", "title", "place"),
    [
        ("celeba-a", "CelebA", "celeba/celeba.csv"),
        ("celeba-w", "CelebA", "celeba/celeba.csv"),
        ("utkface", "UTKFace", "utkface/utkface-48.zip"),
    ],
)
def test_missing_images_say_where_to_get_them_and_where_to_put_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, title: str, place: str
) -> None:
    monkeypatch.setenv("LOCALPARITY_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    message = f"{title} is not there: get the aligned"
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        train_runs([Run(dataset, "erm", 0.0, 0)], "cpu")
    assert f"put it at {tmp_path / place}" in str(error.value)
    assert "https://" in str(error.value)


def test_faces_are_labelled_by_age_and_grouped_by_gender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALPARITY_DATA", str(tmp_path))
    picture = io.BytesIO()
    PILLOW.fromarray(np.zeros((48, 48, 3), dtype=np.uint8)).save(picture, "png")
    (tmp_path / "utkface").mkdir()
    with zipfile.ZipFile(tmp_path / "utkface" / "utkface-48.zip", "w") as archive:
        for name in ("35_0_0_1.png", "36_1_0_1.png", "70_0_0_1.png"):
            archive.writestr(name, picture.getvalue())
    people = _utkface()
    assert people.features.shape == (3, 48, 48, 3)
    assert people.labels.tolist() == [0, 1, 1]
    assert people.groups.tolist() == ["Male", "Female", "Male"]


def test_images_are_split_80_10_10_and_tables_40_30_30() -> None:
    labels = np.tile([0, 1, 1, 0, 1], 200)
    for dataset, sizes in (("celeba-a", [800, 100, 100]), ("adult", [400, 300, 300])):
        split = DATA_SETS[dataset].split(labels, 5)
        assert [len(part) for part in split] == sizes
        assert sorted(np.concatenate(split)) == list(range(1000))
        assert [round(labels[part].mean(), 2) for part in split] == [0.6, 0.6, 0.6]
    with pytest.raises(ValueError, match="train is 1 where a number between 0 and 1 is expected"):
        paper_split(labels, train=1.0)
