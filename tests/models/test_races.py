"""Processes that save to one folder and load from it at the same time."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any

import pytest

import localparity as lp
from localparity.models import ModelCard, ScoreRepair, _folder

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


def save_at_the_barrier(repair: ScoreRepair, folder: Path, barrier: Any) -> None:
    """Save, and wait for the other with the data written and the description not."""
    write_whole = _folder.write_whole

    def write(path: Path, content: bytes, **options: Any) -> None:
        if path.name == _folder.DESCRIPTION:
            with suppress(BrokenBarrierError):  # the other waits for the lock
                barrier.wait(0.3)
        write_whole(path, content, **options)

    _folder.write_whole = write  # type: ignore[attr-defined]
    repair.save(folder)


def save_often(repair: ScoreRepair, folder: Path, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        repair.save(folder)


def started(target: Any, *arguments: Any) -> Any:
    process = FORK.Process(target=target, args=arguments)
    process.start()
    return process


def test_two_writers_leave_one_whole_model(tmp_path: Path) -> None:
    barrier = FORK.Barrier(2)
    writers = [started(save_at_the_barrier, repair, tmp_path, barrier) for repair in REPAIRS]
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert lp.load(tmp_path).max_mcdp == ModelCard.read(tmp_path).max_mcdp
    assert len(list(tmp_path.glob("data-*"))) == 1


def test_a_reader_finds_a_whole_model_while_others_save(tmp_path: Path) -> None:
    REPAIRS[0].save(tmp_path)
    writers = [started(save_often, repair, tmp_path, 1.0) for repair in REPAIRS]
    loads = 0
    while any(writer.is_alive() for writer in writers):
        assert lp.load(tmp_path).max_mcdp in (0.05, 0.1)
        ModelCard.read(tmp_path)
        loads += 1
    assert loads > 0
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
