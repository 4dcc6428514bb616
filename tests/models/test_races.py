"""Processes that save to one folder and load from it at the same time."""

from __future__ import annotations

import os
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import localparity as lp
from localparity._io import _sealed
from localparity.models import ScoreRepair, _folder
from localparity.results import ModelCard

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]
CENSUS = lp.datasets.make_census(300, random_state=0)
REPAIRS = [
    ScoreRepair(bound).fit(CENSUS.score, sensitive_features=CENSUS.sensitive_features)
    for bound in (0.05, 0.1)
]
FORK = get_context("fork")


def save_often(repair: ScoreRepair, folder: Path, times: int) -> None:
    for _ in range(times):
        repair.save(folder)


def started(target: Any, *arguments: Any) -> Any:
    process = FORK.Process(target=target, args=arguments)
    process.start()
    return process


def test_every_file_is_written_under_the_lock_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    write_whole, written = _sealed.write_whole, []

    def write(path: Path, content: bytes, **options: Any) -> None:
        written.append(path.name)
        descriptor = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
        write_whole(path, content, **options)

    monkeypatch.setattr(_sealed, "write_whole", write)
    REPAIRS[0].save(tmp_path)
    assert len(written) >= 3
    assert written[-3] == _folder.DESCRIPTION  # then the copies of the card for people


def test_a_reader_finds_a_whole_model_while_others_save(tmp_path: Path) -> None:
    REPAIRS[0].save(tmp_path)
    writers = [started(save_often, repair, tmp_path, 20) for repair in REPAIRS]
    alive = True
    while alive:
        alive = any(writer.is_alive() for writer in writers)
        assert lp.load(tmp_path).max_mcdp == ModelCard.read(tmp_path).max_mcdp or alive
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert len(list(tmp_path.glob("data-*"))) == 1
