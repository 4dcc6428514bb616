"""A page of forty groups and ten million people is as small and as fast as any other."""

from __future__ import annotations

import shutil
import time
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
    seconds = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        for _ in range(3):
            page = browser.new_page()
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready=yes]", state="attached")
            seconds.append(time.perf_counter() - start)
        page.locator("#epsilon").fill("10")
        shown = float(page.locator("#mcdp").get_attribute("value") or "nan")
        browser.close()
    assert min(seconds) < 2.0
    assert shown == pytest.approx(audit.finding(0.1).mcdp, abs=1e-9)
