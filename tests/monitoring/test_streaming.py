"""MCDP inside a loop: batches, processes, exact and binned."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import localparity as lp
from localparity.monitoring import LocalDisparity
from scale_rows import CRITERIA, make_rows

ROWS = make_rows(3000)
SCORES = torch.tensor(ROWS.scores)
GROUPS = torch.tensor(np.unique(ROWS.groups, return_inverse=True)[1])
LABELS = torch.tensor(ROWS.labels)


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
            assert metric._state is not None
            assert metric._state.numel() == 3 * (2 if criterion != "demographic_parity" else 1) * (2**12 + 1)
        metric.reset()
    with pytest.raises(ValueError, match=r"update.* no batch"):
        metric.compute()


def test_the_state_is_the_sum_of_the_parts() -> None:
    whole = LocalDisparity(n_groups=3, level=8)
    whole.update(SCORES, GROUPS)
    parts = []
    for part in (slice(0, 1000), slice(1000, None)):
        metric = LocalDisparity(n_groups=3, level=8)
        metric.update(SCORES[part], GROUPS[part])
        parts.append(metric._state)
    assert torch.equal(parts[0] + parts[1], whole._state)  # type: ignore[arg-type, operator]


def work(rank: int, folder: str) -> None:
    """One of two processes: it sees every other row, the second one fewer."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    rows = torch.arange(SCORES.numel()) % 3 == 0
    rows = rows if rank else ~rows
    values = []
    for level in (None, 12):
        metric = LocalDisparity(n_groups=3, epsilon=0.02, level=level, criterion="equalized_odds")
        metric.update(SCORES[rows], GROUPS[rows], LABELS[rows])
        values.append(metric.compute().item())
    torch.save(torch.tensor(values), Path(folder) / f"{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_join_their_states(tmp_path: Path) -> None:
    here = Path(__file__).parent
    code = f"import sys; sys.path[:0] = ['{here}', '{here.parent}']; import test_streaming as t; t.work({{}}, '{tmp_path}')"
    processes = [subprocess.Popen([sys.executable, "-c", code.format(rank)]) for rank in (0, 1)]
    assert [process.wait(120) for process in processes] == [0, 0]
    found = [torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1)]
    assert torch.equal(found[0], found[1])
    assert found[0][0].item() == pytest.approx(exact("equalized_odds", "between_groups"), abs=1e-7)
    alone = LocalDisparity(n_groups=3, epsilon=0.02, level=12, criterion="equalized_odds")
    alone.update(SCORES, GROUPS, LABELS)
    assert found[0][1].item() == pytest.approx(alone.compute().item(), abs=1e-7)


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
