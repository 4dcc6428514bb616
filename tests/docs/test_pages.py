"""Every example of every page runs and gives what the page shows."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest

from pages import run_page

DOCS = Path(__file__).parents[2] / "docs"
GENERATED = ("_build", "gallery", "generated")
PAGES = sorted(path for path in DOCS.rglob("*.rst") if not set(GENERATED) & set(path.relative_to(DOCS).parts))


# What is read from the data folder rather than made by the page itself.
FROM_DATA = {
    "hmda_test.csv": Path("hmda", "hmda_2018_sample.csv.gz"),
    "compas-scores-two-years.csv": Path("compas", "compas_features.csv"),
}
SLOW = (
    "concepts/frontier.rst",
    "concepts/how_sure.rst",
    "how_to/how_many_people.rst",
    "how_to/big_data.rst",
    "how_to/train.rst",
    "start/tutorial.rst",
)


def put_data(text: str, folder: Path) -> None:
    """The public files that a page starts from."""
    for name, source in FROM_DATA.items():
        if name in text:
            path = Path(os.environ.get("LOCALPARITY_DATA", ""), source)
            if not path.is_file():
                pytest.skip(f"LOCALPARITY_DATA names no folder with {source}")
            content = path.read_bytes()
            (folder / name).write_bytes(gzip.decompress(content) if path.suffix == ".gz" else content)


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
    put_data(text, tmp_path)
    monkeypatch.chdir(tmp_path)
    ran = run_page(page, tmp_path)
    assert ran or (">>>" not in text and "code-block:: console" not in text)
