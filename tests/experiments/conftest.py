"""Small runs, and a store that is full of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import experiment_runs
from localparity.experiments import Run, Store, _data, _grids, grid, run_missing
from localparity.experiments._train import prepare


@pytest.fixture(scope="session")
def small() -> Iterator[None]:
    """Adult and Bank are small, and training is short."""
    kept = dict(_data.DATA_SETS), dict(_grids.SETTINGS["paper"])
    experiment_runs.install()
    _data.load_people.cache_clear()
    prepare.cache_clear()
    yield
    _data.DATA_SETS.update(kept[0])
    _grids.SETTINGS["paper"].update(kept[1])
    _data.load_people.cache_clear()
    prepare.cache_clear()


@pytest.fixture(scope="session")
def small_store(small: None, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two data sets, all methods, two seeds; DiffMCDP also with another search and other temperatures."""
    store = Store(tmp_path_factory.mktemp("experiments") / "store")
    runs: list[Run] = []
    for dataset in ("adult", "bank"):
        runs += grid(dataset, seeds=2, searches=["soft"], temperatures=[5.0, 20.0])
    run_missing(store, runs, device="cpu", stacked=True)
    return store


@pytest.fixture
def copy_of_store(small_store: Store, tmp_path: Path) -> Store:
    """The same store, to do harm to."""
    import shutil

    return Store(shutil.copytree(small_store.folder, tmp_path / "store"))
