"""Every example of every page runs and gives what the page shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pages import DOCS, all_pages, has_examples, missing_download, run_page

SLOW = (
    "concepts/frontier.rst",
    "concepts/how_sure.rst",
    "how_to/big_data.rst",
    "how_to/explain.rst",
    "how_to/how_many_people.rst",
    "how_to/several_groups.rst",
    "how_to/train.rst",
    "start/tutorial.rst",
)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(path, id=name, marks=pytest.mark.slow if name in SLOW else ())
        for path in all_pages()
        for name in [str(path.relative_to(DOCS))]
        if has_examples(path)
    ],
)
def test_the_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "pyspark" in page.read_text(encoding="utf-8") and shutil.which("java") is None:
        pytest.skip("java is not installed")
    if missing := missing_download(page):
        pytest.skip(f"LOCALPARITY_DATA has no {missing}")
    monkeypatch.chdir(tmp_path)
    assert run_page(page, tmp_path)
