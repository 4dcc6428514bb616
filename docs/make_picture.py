"""Draw README's picture: run ``python docs/make_picture.py`` from the root of the repository.

It needs the Adult data set (`localparity.datasets.fetch_adult`).
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

import localparity as lp
from localparity.models._encoding import TableEncoder
from localparity.paper._data import paper_split
from localparity.report.displays._base import styled

PICTURE = Path(__file__).parent / "_static" / "gap_curve.png"


def draw(path: Path) -> None:
    """The gap between men and women of a logistic regression on Adult, on the paper's test part."""
    from matplotlib import pyplot as plt
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    adult = lp.datasets.fetch_adult()
    parts = paper_split(adult.target, seed=0)
    model = make_pipeline(TableEncoder(), LogisticRegression(max_iter=1000))
    model.fit(adult.data.iloc[parts.train], adult.target[parts.train])
    mpl.use("Agg")
    with styled(), mpl.rc_context({"font.size": 11}):
        figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
        groups = adult.sensitive_features[parts.test]
        lp.report.SharesDisplay.from_estimator(
            model, adult.data.iloc[parts.test], None, sensitive_features=groups, ax=ax
        )
        figure.savefig(path, dpi=160)
        plt.close(figure)


if __name__ == "__main__":
    draw(PICTURE)
