"""What objects show of themselves: one line as text, a drawing in a notebook."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.report.page._svg import RateCurves


@pytest.fixture(scope="module")
def rows() -> lp.Predictions:
    census = lp.datasets.make_census(2000, random_state=0)
    return lp.Predictions.from_arrays(
        census.target, census.score, sensitive_features=census.sensitive_features
    )


def frontier() -> Any:
    ends: dict[str, Any] = {"low": (0.68, 0.76), "high": (0.72, 0.8), "average_precision": (0.7, 0.78)}
    where: dict[str, Any] = {
        "epsilon": 0.0,
        "criterion": "demographic_parity",
        "confidence": 0.95,
        "rows": 2000,
    }
    return lp.results.Frontier(max_mcdp=(0.0, 0.1), mcdp=(0.02, 0.1), noise_floor=0.02, **ends, **where)


def test_they_are_one_line(rows: lp.Predictions) -> None:
    audit = lp.audit(rows, n_resamples=0)
    finding = audit.findings[0]
    interval = lp.results.Interval(0.25, 0.274, 0.298, 0.95)
    assert repr(interval) == "0.274 (0.25 to 0.298, 95%)"
    assert repr(finding).startswith(f"MCDP(0): {100 * finding.mcdp:.1f} points (")
    assert repr(finding).endswith(", 95%)")
    assert repr(finding.window).startswith(f"{100 * finding.mcdp:.1f} points, cutoffs 0.2")
    assert repr(finding.window).endswith(", Male ahead of Female")
    profile = lp.mcdp_profile(rows)
    assert repr(profile).startswith(f"McdpProfile(MCDP(0) {100 * finding.mcdp:.1f}, MCDP(0.05) ")
    assert repr(lp.gap_curve(rows)).startswith("GapCurve(Female and Male: ")
    assert repr(frontier()) == "Frontier(AP 70.0% at 2.0 points to AP 78.0% at 10.0 points, 2,000 people)"
    for each in (interval, finding, finding.window, profile, lp.gap_curve(rows), frontier()):
        assert "\n" not in repr(each)


def test_a_notebook_shows_drawings(rows: lp.Predictions, tmp_path: Path) -> None:
    pytest.importorskip("datasketches")
    monitor = lp.monitoring.Monitor(tmp_path / "loans <b>")
    assert monitor._repr_html_() is None
    rng = np.random.default_rng(0)
    for day in (1, 2, 3):
        batch = lp.Predictions.from_arrays(None, rng.random(400), sensitive_features=["a", "<b>"] * 200)
        monitor.append(batch, at=datetime(2026, 5, day, tzinfo=UTC), batch_id=str(day))
    assert repr(monitor) == "Monitor('loans <b>', every day)"
    shown = (lp.gap_curve(rows), lp.mcdp_profile(rows), frontier(), monitor, lp.audit(rows, n_resamples=0))
    for each in shown:
        html = each._repr_html_()
        assert html is not None
        assert html.count('class="plot"') == 1
        assert "<script" not in html
        assert "<b>" not in html


def test_the_words_of_a_gap_keep_clear_of_steep_curves() -> None:
    """Over COMPAS, "24 points" was written across the upper curve."""
    cutoffs = np.linspace(0.0, 1.0, 11)
    for drop, beside in ((0.2, True), (1.0, False)):
        upper = 0.9 - drop * cutoffs.clip(0.0, 0.9)
        curves = RateCurves(
            score_range=(0.0, 1.0),
            whole=False,
            names=("a", "b"),
            cutoffs=cutoffs,
            shares=(upper, np.clip(upper - 0.25, 0.0, 1.0)),
            cutoff=0.4,
            rates=(0.9 - 0.4 * drop, 0.65 - 0.4 * drop),
        )
        (words,) = [part for part in curves.drawing().parts if 'class="points"' in part]
        middle = f'y="{100.0 * (0.225 + 0.4 * drop):.2f}%"'
        assert (middle in words) == beside


def test_a_table_of_many_pairs_says_whose_its_numbers_are() -> None:
    scores = np.repeat([0.2, 0.5, 0.9], 40) + np.tile(np.linspace(0.0, 0.1, 40), 3)
    audit = lp.audit(None, scores, sensitive_features=np.repeat(["a", "b", "c"], 40), n_resamples=0)
    assert "The largest of 3 pairs, at epsilon 0 a and b:" in repr(audit).splitlines()
