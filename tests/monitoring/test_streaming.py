"""MCDP inside a loop: batches, processes, exact and binned."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchmetrics

import localparity as lp
from localparity.monitoring import LocalDisparity
from scale_rows import CRITERIA, make_rows

ROWS = make_rows(3000)
SCORES = torch.tensor(ROWS.scores)
GROUPS = torch.tensor(np.unique(ROWS.groups, return_inverse=True)[1])
LABELS = torch.tensor(ROWS.labels)


def test_it_is_a_metric_of_torchmetrics() -> None:
    assert issubclass(LocalDisparity, torchmetrics.Metric)


def exact(criterion: Any, compare: Any) -> float:
    options: dict[str, Any] = {"criterion": criterion, "compare": compare, "epsilon": 0.02}
    return lp.mcdp(LABELS, SCORES, sensitive_features=GROUPS, **options)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("level", [None, 12])
def test_batches_make_the_whole(criterion: Any, compare: Any, level: int | None) -> None:
    metric = LocalDisparity(n_groups=3, epsilon=0.02, level=level, criterion=criterion, compare=compare)
    for _ in range(2):
        for part in torch.arange(SCORES.numel()).split(700):
            metric.update(SCORES[part], GROUPS[part], LABELS[part])
        value = exact(criterion, compare)
        bounds = metric.bounds()
        assert bounds.low <= value <= bounds.high
        if level is None:
            assert bounds.low == metric.compute().item() == value
        else:
            assert metric.compute().item() == pytest.approx(value, abs=0.01)
            assert metric._cells.numel() == 3 * (2 if criterion != "demographic_parity" else 1) * (2**12 + 1)
        metric.reset()
    with pytest.raises(ValueError, match=r"update.* no batch"):
        metric.bounds()


def test_the_state_is_the_sum_of_the_parts() -> None:
    whole = LocalDisparity(n_groups=3, level=8)
    whole.update(SCORES, GROUPS)
    parts = []
    for part in (slice(0, 1000), slice(1000, None)):
        metric = LocalDisparity(n_groups=3, level=8)
        metric.update(SCORES[part], GROUPS[part])
        parts.append(metric._cells)
    assert torch.equal(parts[0] + parts[1], whole._cells)


@pytest.mark.parametrize("level", [None, 12])
def test_torchmetrics_can_do_with_it_what_it_does_with_its_own(level: int | None) -> None:
    metric = LocalDisparity(n_groups=3, epsilon=0.02, level=level)
    collection = torchmetrics.MetricCollection({"mcdp": metric, "mean": torchmetrics.MeanMetric()})
    first, second = torch.arange(SCORES.numel()).split(1800)
    alone = LocalDisparity(n_groups=3, epsilon=0.02, level=level)
    alone.update(SCORES[first], GROUPS[first])
    assert metric(SCORES[first], GROUPS[first]) == alone.compute()  # of the batch
    copied = deepcopy(metric)
    copied.update(SCORES[second], GROUPS[second])
    assert metric.compute() == alone.compute()
    alone.update(SCORES[second], GROUPS[second])
    assert copied.compute() == alone.compute()
    metric.persistent(True)
    again = LocalDisparity(n_groups=3, epsilon=0.02, level=level)
    again.load_state_dict(metric.state_dict())
    assert again.bounds() == metric.bounds()
    tracker = torchmetrics.MetricTracker(metric, maximize=False)
    for part in (first, second):
        tracker.increment()
        tracker.update(SCORES[part], GROUPS[part])
    assert tracker.best_metric() == tracker.compute_all().min()
    collection.reset()
    assert not metric.update_called


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_a_grid_knows_how_coarse_its_scores_are(dtype: torch.dtype) -> None:
    scores = SCORES.to(dtype)
    metric = LocalDisparity(n_groups=3, level=8)
    metric.update(scores, GROUPS)
    whole = lp.engines.from_torch(scores, GROUPS)
    assert metric.counts().resolution == whole.resolution


def work(rank: int, folder: str) -> None:
    """One of two processes, which have a third and two thirds of the rows."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    rows = torch.arange(SCORES.numel()) % 3 == 0
    rows = rows if rank else ~rows
    found: dict[str, Any] = {}
    for level in (None, 12):
        metric = LocalDisparity(n_groups=3, epsilon=0.02, level=level, criterion="equalized_odds")
        metric.update(SCORES[rows], GROUPS[rows], LABELS[rows])
        found[f"both ask {level}"] = metric.compute()
        metric.update(SCORES[~rows], GROUPS[~rows], LABELS[~rows])
        found[f"twice the rows {level}"] = metric.counts().size
        metric.reset()
        if rank == 0:
            metric.update(SCORES, GROUPS, LABELS)
        found[f"one has rows {level}"] = metric.bounds().estimate
        alone = LocalDisparity(n_groups=3, level=level, sync_on_compute=False)
        if rank == 0:
            alone.update(SCORES[rows], GROUPS[rows])
            found[f"alone {level}"] = alone.compute()
    torch.save(found, Path(folder) / f"{rank}.pt")


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    here, folder = Path(__file__).parent, tmp_path_factory.mktemp("processes")
    code = f"import sys; sys.path[:0] = ['{here}', '{here.parent}/support']; import test_streaming as t; t.work({{}}, '{folder}')"
    running = [subprocess.Popen([sys.executable, "-c", code.format(rank)]) for rank in (0, 1)]
    try:
        assert [process.wait(600) for process in running] == [0, 0]
    finally:
        for process in running:
            process.kill()
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in (0, 1)]


@pytest.mark.parametrize("level", [None, 12])
def test_two_processes_join_their_states(level: int | None, processes: list[dict[str, Any]]) -> None:
    whole = LocalDisparity(n_groups=3, epsilon=0.02, level=level, criterion="equalized_odds")
    whole.update(SCORES, GROUPS, LABELS)
    value, which = whole.compute().item(), str(level)
    for found in processes:
        assert found[f"both ask {which}"] == value
        assert found[f"one has rows {which}"] == value
        assert found[f"twice the rows {which}"] == 2 * SCORES.numel()
    if level is None:
        assert value == exact("equalized_odds", "between_groups")


@pytest.mark.parametrize("level", [None, 12])
def test_one_process_asks_for_its_own_rows(level: int | None, processes: list[dict[str, Any]]) -> None:
    own = LocalDisparity(n_groups=3, level=level)
    rows = torch.arange(SCORES.numel()) % 3 != 0
    own.update(SCORES[rows], GROUPS[rows])
    assert processes[0][f"alone {level}"] == own.compute()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.tensor([0.1, 2.0]), torch.tensor([0, 1])), r"y_score .*score_range.* 2.0 at row 1"),
        ((torch.tensor([0.1, 0.2]), torch.tensor([0, 7])), "sensitive_features .* 0 and 1, got 7"),
        ((torch.tensor([0.1, 0.2]), torch.tensor([-1, 0])), "sensitive_features .* 0 and 1, got -1"),
        ((torch.tensor([0.1, 0.2]), torch.tensor([0.5, 1])), "sensitive_features .* got torch.float32"),
        ((torch.tensor([0.1, 0.2]), torch.tensor([0])), "sensitive_features has 1 rows, y_score has 2"),
        (
            (torch.tensor([0.1, 0.2]), torch.tensor([0, 1])),
            "criterion='equalized_odds' needs y_true, got None",
        ),
        (
            (torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), torch.tensor([1])),
            "y_true has 1 rows, y_score has 2",
        ),
        (
            (torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), torch.tensor([0.5, 1])),
            "y_true must be 0 or 1, got 0.5 at row 0",
        ),
    ],
)
def test_what_does_not_fit_is_named(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LocalDisparity(criterion="equalized_odds").update(*arguments)
    with pytest.raises(ValueError, match=r"n_groups .*2, got 1"):
        LocalDisparity(n_groups=1)


def test_a_group_without_rows_is_no_parity() -> None:
    for level in (None, 4):
        metric = LocalDisparity(n_groups=2, level=level)
        metric.update(torch.tensor([0.1, 0.2]), torch.tensor([0, 0]))
        with pytest.raises(ValueError, match=r"sensitive_features .* 0 only|group 1 has no rows"):
            metric.compute()
