"""A page of forty groups and ten million people is as small as any other."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import localparity as lp


@pytest.mark.slow
def test_ten_million_rows_and_780_pairs(tmp_path: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, 10**7)
    scores = (1.0 / (1.0 + np.exp(1.0 - 0.02 * codes - rng.normal(size=codes.size)))).round(5)
    predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=codes)
    audit = lp.audit(lp.ScoreCounts.from_predictions(predictions), n_resamples=0)
    path = tmp_path / "large.html"
    audit.to_html(path)
    assert path.stat().st_size < 3e6
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        page = browser.new_page()
        page.set_default_timeout(300_000)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        page.locator("[type=text]").fill("0.4")
        shown = page.locator("[data-key] td[data-value]").evaluate_all(
            "cells => cells.map(cell => Number(cell.dataset.value))"
        )
        browser.close()
    exact = [(scores[codes == code] > 0.4).mean() for code in range(40)]
    assert sorted(shown) == pytest.approx(sorted(exact), abs=1e-3)
