"""What the scripts of the gallery promise, and that pages show no other figures; `make docs` runs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_are_ten_at_the_least() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_they_are_short_and_have_one_figure(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert path.name.startswith("plot_")  # by which sphinx-gallery knows what to run
    assert text.count("plt.show()") == 1


def test_every_figure_on_a_page_is_one_of_an_example() -> None:
    pages = [
        path for path in (ROOT / "docs").rglob("*.rst") if not {"gallery", "generated"} & set(path.parts)
    ]
    figures = re.findall(r"sphx_glr_(\w+)_001\.png", "".join(map(Path.read_text, pages)))
    assert figures
    assert set(figures) <= {path.stem for path in EXAMPLES}
