"""Every example of every page runs and gives what the page shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pages import run_page

DOCS = Path(__file__).parents[2] / "docs"
GENERATED = ("_build", "gallery", "generated")
PAGES = sorted(path for path in DOCS.rglob("*.rst") if not set(GENERATED) & set(path.relative_to(DOCS).parts))


SLOW = ("how_to/spark.rst", "how_to/train_and_predict.rst", "integrations/dask.rst")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(path, id=name, marks=pytest.mark.slow if name in SLOW else ())
        for path in PAGES
        for name in [str(path.relative_to(DOCS))]
    ],
)
def test_the_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text(encoding="utf-8")
    if "pyspark" in text and shutil.which("java") is None:
        pytest.skip("java is not installed")
    monkeypatch.chdir(tmp_path)
    ran = run_page(page, tmp_path)
    assert ran or (">>>" not in text and "code-block:: console" not in text)
