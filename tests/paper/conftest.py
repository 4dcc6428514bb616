"""Small runs, and a store that is full of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import experiment_runs
from localparity.paper import Run, Store, grid, run_missing


@pytest.fixture
def small() -> Iterator[None]:
    """Adult and Bank are small, and training is short."""
    with experiment_runs.installed():
        yield


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two data sets, all methods, two seeds; DiffMCDP also with another search and other temperatures."""
    store = Store(tmp_path_factory.mktemp("experiments") / "store")
    with experiment_runs.installed():
        runs: list[Run] = []
        for dataset in ("adult", "bank"):
            runs += grid(dataset, seeds=2, searches=["soft"], temperatures=[5.0, 20.0])
        run_missing(store, runs, device="cpu")
    return store.folder


@pytest.fixture
def small_store(small: None, small_folder: Path) -> Store:
    """The store, to read."""
    return Store(small_folder)


@pytest.fixture
def copy_of_store(small: None, small_folder: Path, tmp_path: Path) -> Store:
    """The same store, to write to."""
    return Store(shutil.copytree(small_folder, tmp_path / "store"))
