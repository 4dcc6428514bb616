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
MORTGAGES = Path("hmda", "hmda_2018_sample.csv.gz")
SLOW = (
    "concepts/frontier.rst",
    "concepts/how_sure.rst",
    "how_to/how_many_people.rst",
    "how_to/spark.rst",
    "how_to/train_and_predict.rst",
    "start/tutorial.rst",
)


def put_mortgages(path: Path) -> None:
    """The register that the tutorial starts from."""
    folder = os.environ.get("LOCALPARITY_DATA")
    if not folder or not (Path(folder) / MORTGAGES).is_file():
        pytest.skip("LOCALPARITY_DATA names no folder with HMDA")
    path.write_bytes(gzip.decompress((Path(folder) / MORTGAGES).read_bytes()))


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
    if "hmda_test.csv" in text:
        put_mortgages(tmp_path / "hmda_test.csv")
    monkeypatch.chdir(tmp_path)
    ran = run_page(page, tmp_path)
    assert ran or (">>>" not in text and "code-block:: console" not in text)
