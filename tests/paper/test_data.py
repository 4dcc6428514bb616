"""The data sets of the experiments, and what is said where one is not there."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from localparity.paper import Run, Store, grid, run_missing
from localparity.paper import _runs as _grids
from localparity.paper._data import DATA_SETS, _utkface, load_samples, paper_split
from localparity.paper._store import FROM_IMAGENET, FROM_SCRATCH
from localparity.paper._train import prepare, train_run

PILLOW = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize(
    ("dataset", "title", "place"),
    [
        ("celeba-a", "CelebA", "celeba"),
        ("celeba-w", "CelebA", "celeba"),
        ("utkface", "UTKFace", "utkface/utkface-48.zip"),
    ],
)
def test_missing_images_say_where_to_get_them_and_where_to_put_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, title: str, place: str
) -> None:
    monkeypatch.setenv("LOCALPARITY_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(ValueError, match=title) as error:
        train_run(Run(dataset, "erm", 0.0, 0), "cpu")
    assert str(tmp_path / place) in str(error.value)
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


def test_faces_go_through_the_same_runs_and_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALPARITY_DATA", str(tmp_path))
    short = {_grids._ALL: {"search": "probe", "batch_size": 16, "steps": 2}}
    monkeypatch.setitem(_grids._SETTINGS["paper"], "utkface", short)
    rng = np.random.default_rng(0)
    (tmp_path / "utkface").mkdir()
    for number in range(60):
        pixels = rng.integers(0, 256, (48, 48, 3), dtype=np.uint8)
        name = f"{20 + 30 * (number % 2)}_{number // 2 % 2}_0_{number}.png"
        PILLOW.fromarray(pixels).save(tmp_path / "utkface" / name)
    load_samples.cache_clear()
    prepare.cache_clear()
    store = Store(tmp_path / "store")
    runs = grid("utkface", methods=["diffmcdp"], strengths=[0.3], seeds=1)
    assert run_missing(store, runs, device="cpu") == 2
    found = {record.run.method: record for record in store.records()}
    assert found.keys() == {"erm", "diffmcdp"}
    assert found["erm"].start in {FROM_SCRATCH, FROM_IMAGENET}
    people = store.scores(found["diffmcdp"].run)
    assert (people.score.size, set(people.group)) == (6, {"Female", "Male"})
    assert people.measure("test").items() <= found["diffmcdp"].metrics.items()
    load_samples.cache_clear()
    prepare.cache_clear()


def test_images_are_split_80_10_10_and_tables_40_30_30() -> None:
    labels = np.tile([0, 1, 1, 0, 1], 200)
    for dataset, sizes in (("celeba-a", [800, 100, 100]), ("adult", [400, 300, 300])):
        split = DATA_SETS[dataset].split(labels, 5)
        assert [len(part) for part in split] == sizes
        assert sorted(np.concatenate(split)) == list(range(1000))
        assert [round(labels[part].mean(), 2) for part in split] == [0.6, 0.6, 0.6]
    with pytest.raises(ValueError, match=r"train.*1"):
        paper_split(labels, train=1.0)
