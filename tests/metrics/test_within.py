"""MCDP of exactly 3/10 is within a bound of 0.3, whoever is asked."""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import localparity as lp
from localparity.auditing._answer import bound_result
from localparity.cli._app import app
from localparity.integrations.pytest import assert_mcdp
from localparity.metrics._within import within_bound
from localparity.models.repair._score_repair import check_attained
from localparity.monitoring._watch import quiet_sentence

SOURCE = Path(lp.__file__).parent
SCORES = np.repeat([0.2, 0.8, 0.2, 0.8], [8, 2, 5, 5])
GROUPS = np.repeat(["a", "b"], 10)
ABOVE = 0.3 - 1e-12


def test_only_rounding_is_absorbed() -> None:
    assert 8 / 10 - 5 / 10 > 0.3
    assert within_bound(8 / 10 - 5 / 10, 0.3)
    assert not within_bound(0.3 + 1e-14, 0.3)
    assert within_bound(0.0, 0.0)
    assert not within_bound(1e-12, 0.0)


@pytest.mark.parametrize("size", [7, 10, 333, 9973, 1_000_003])
def test_every_gap_of_two_groups_is_within_itself(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(50):
        first, second = rng.integers(1, size, 2).tolist()
        other = size - 1
        gap = abs(Fraction(first, size) - Fraction(min(second, other), other))
        assert within_bound(abs(first / size - min(second, other) / other), float(gap))


def test_audit_breakdown_verdict_plugin_and_split_agree() -> None:
    audit = lp.audit(None, SCORES, sensitive_features=GROUPS, epsilons=[0], n_resamples=19, random_state=0)
    unknown = lp.unknown_groups(
        lp.Predictions.from_arrays(
            None,
            np.append(SCORES, 0.8),
            sensitive_features=np.append(GROUPS.astype(object), None),
            missing_values=(),
        )
    )
    for bound, within in ((0.3, True), (ABOVE, False)):
        assert audit.passes(bound) is within
        assert bound_result(audit, bound).passes is within
        assert unknown.breakdown(bound).passes is within
    assert_mcdp(None, SCORES, sensitive_features=GROUPS, max_mcdp=0.3)
    with pytest.raises(AssertionError):
        assert_mcdp(None, SCORES, sensitive_features=GROUPS, max_mcdp=ABOVE)


def test_commands_agree(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    rows = (f"{score},{group},{group == 'b':d}" for score, group in zip(SCORES, GROUPS, strict=True))
    file.write_text("p,g,age\n" + "\n".join(rows) + "\n")
    options = [str(file), "--score", "p", "--resamples", "19"]
    for bound, code in (("0.3", 0), (repr(ABOVE), 1)):
        result = CliRunner().invoke(app, ["audit", *options, "--group", "g", "--max-mcdp", bound])
        assert result.exit_code == code, result.output


def test_monitors_and_models_agree() -> None:
    interval = lp.results.Interval(0.1, 8 / 10 - 5 / 10, 0.5, 0.95)
    period: Any = type("Newest", (), {"interval": interval, "period": "2026-01", "approximate": False})()
    texts = [quiet_sentence(period, bound) for bound in (0.3, ABOVE)]
    assert texts[0] != texts[1]
    repair = lp.models.ScoreRepair(max_mcdp=0.3)
    repair.margin_ = 0.0
    counts = lp.ScoreCounts.from_predictions(
        lp.Predictions.from_arrays(None, SCORES, sensitive_features=GROUPS)
    )
    check_attained(repair, counts, 8 / 10 - 5 / 10)
    with pytest.raises(ValueError, match=r"max_mcdp=0.3 is out of reach"):
        check_attained(repair, counts, 0.3 + 1e-12)


def test_the_fewest_wrong_groups_keep_a_bound_that_is_met_exactly() -> None:
    """One of ten people moves, and 3/10 is left; brute force over everyone is in test_unknown_groups."""
    scores = np.repeat([0.2, 0.8, 0.2, 0.8], [9, 1, 5, 5])
    known = lp.unknown_groups(
        lp.Predictions.from_arrays(
            None,
            np.append(scores, 0.8),
            sensitive_features=np.append(GROUPS.astype(object), None),
            missing_values=(),
        )
    )
    for bound in (0.4, 0.3, 0.2, 0.1):
        found = known.breakdown(bound)
        assert found.passes is (bound == 0.4)
        assert found.wrong is not None


def test_nothing_else_compares_a_number_with_max_mcdp() -> None:
    """`within_bound` does; the source is read for any other `<=` or `>`."""

    def names(node: ast.AST) -> set[str]:
        return {getattr(node, "id", ""), getattr(node, "attr", "")}

    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                sides = [node.left, *node.comparators]
                if any({"max_mcdp", "_max_mcdp"} & names(side) for side in sides):
                    found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert found == []
