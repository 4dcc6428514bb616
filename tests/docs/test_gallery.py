"""What the scripts of the gallery promise; `make docs` runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def test_there_are_ten_at_the_least() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_they_are_short_and_have_one_figure(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert path.name.startswith("plot_")  # by which sphinx-gallery knows what to run
    assert text.count("plt.show()") == 1
