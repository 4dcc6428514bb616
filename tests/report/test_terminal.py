"""An audit on the terminal: everything once, and nothing cut off."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import localparity as lp


def shown(audit: lp.Audit, width: int = 120) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(audit)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def audit_of(n_groups: int, **options: float) -> lp.Audit:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, n_groups, 2000)
    scores = rng.random(2000) ** (1 + groups)
    return lp.audit(None, scores, sensitive_features=groups, n_resamples=20, random_state=0, **options)


def test_each_pair_stands_once_with_its_people() -> None:
    audit = audit_of(3)
    table = shown(audit).split("Pairs, the worst first")[1].split("Groups")[0]
    lines = [line.split("│") for line in table.splitlines() if line.startswith("│")]
    rows = {group.group: group.rows for group in audit.groups}
    for pair in audit.pairs:
        name = " and ".join(f"{group} ({rows[group]})" for group in pair.groups)
        (row,) = (cells for cells in lines if cells[1].strip() == name)
        assert row[3].strip() == f"{100 * pair.mcdp[0]:.2f}%"
    epsilons = [cells[2].strip() for cells in lines]
    assert epsilons == ["0", "0.01", "0.05", "0.1"] * 3


def test_one_pair_has_its_averages_in_a_sentence() -> None:
    audit = audit_of(2, threshold=0.5)
    (pair,) = audit.pairs
    sentence = f"ABCC is {100 * pair.abcc:.2f}%, delta-DP at 0.5 is {100 * pair.delta_dp:.2f}%."
    assert sentence in shown(audit)
    assert "Pairs, the worst first" not in shown(audit)


@pytest.mark.parametrize("width", [80, 100, 200])
def test_tables_fit_the_terminal(width: int) -> None:
    lines = shown(audit_of(4, threshold=0.5), width).splitlines()
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)


def test_many_pairs_are_counted() -> None:
    assert "... and 5 more pairs" in shown(audit_of(6))
