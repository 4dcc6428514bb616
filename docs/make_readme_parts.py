"""Make what README shows and cannot compute itself: its picture and its table of results.

Run ``python docs/make_readme_parts.py`` from the root of the repository after results/ has changed; the
picture needs the Adult data set (`localparity.datasets.fetch_adult`). Tests hold README to both.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import matplotlib as mpl

import localparity as lp

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "_static" / "gap_curve.png"

sys.path.insert(0, str(Path(__file__).with_name("_extensions")))
from result_files import read_rows  # noqa: E402

_TABLE = re.compile(r"(<!-- results -->\n).*?(<!-- end -->)", re.DOTALL)


def draw(path: Path) -> None:
    """The gap between men and women of a logistic regression on Adult, on the paper's test part."""
    from matplotlib import pyplot as plt
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    adult = lp.datasets.fetch_adult()
    parts = lp.datasets.paper_split(adult.target, random_state=0)
    model = make_pipeline(lp.datasets.paper_preprocessor(), LogisticRegression(max_iter=1000))
    model.fit(adult.data.iloc[parts.train], adult.target[parts.train])
    mpl.use("Agg")
    with mpl.rc_context({"font.size": 10}):
        figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
        lp.report.GapCurveDisplay.from_estimator(
            model,
            adult.data.iloc[parts.test],
            None,
            sensitive_features=adult.sensitive_features[parts.test],
            epsilon=0.05,
            ax=ax,
        )
        figure.savefig(path, dpi=160)
        plt.close(figure)


def markdown_table() -> str:
    """DiffMCDP beside the paper, and how many rows agree with the published code."""
    head, *rows = read_rows("reproduce/README.md")
    lines = "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rows])
    _, *compared = read_rows("faithful.md")
    close = sum(row[-1] != "*" for row in compared)
    return (
        f"{lines}\nAt the paper's settings {close} of {len(compared)} rows agree with the published code "
        "within 1.0 point of AP and 2.0\n"
        "points of MCDP(0); [results/faithful.md](results/faithful.md) says which do not.\n"
    )


def with_table(readme: str) -> str:
    """README with its table made anew."""
    changed, places = _TABLE.subn(lambda found: found[1] + "\n" + markdown_table() + "\n" + found[2], readme)
    if places != 1:
        raise ValueError(f"README.md has {places} places for the table where one is expected")
    return changed


if __name__ == "__main__":
    draw(PICTURE)
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
