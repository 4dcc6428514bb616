"""Every display against a picture of it that was looked at, at two sizes, and as scikit-learn's are used.

LOCALPARITY_NEW_BASELINES=1 writes the pictures anew; look at each before it is committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity import report

matplotlib = pytest.importorskip("matplotlib")

PINS = Path(__file__).parents[2] / "constraints.txt"
BASELINE = Path(__file__).parent / "baseline"
SIZES = {"paper": ((3.4, 2.6), 100), "slide": ((8.0, 4.5), 60)}
TOLERANCE = 3.0


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    with matplotlib.rc_context():
        matplotlib.use("agg")
        matplotlib.rcdefaults()
        yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.fixture(scope="module")
def census() -> Any:
    return lp.datasets.make_census(2000, random_state=0, as_frame=False)


def predictions_of(census: Any) -> lp.Predictions:
    return lp.Predictions.from_arrays(
        census.target, census.score, sensitive_features=census.sensitive_features
    )


def counts_of(census: Any) -> lp.ScoreCounts:
    return lp.ScoreCounts.from_predictions(predictions_of(census))


def draw_shares(census: Any, **options: Any) -> Any:
    return report.SharesDisplay.from_predictions(predictions_of(census), epsilon=0.05, **options)


def draw_gap(census: Any, **options: Any) -> Any:
    return report.GapCurveDisplay.from_predictions(predictions_of(census), epsilon=0.05, **options)


def draw_profile(census: Any, **options: Any) -> Any:
    return report.McdpProfileDisplay.from_predictions(
        predictions_of(census), n_resamples=50, random_state=0, **options
    )


DRAWINGS: dict[str, Callable[..., Any]] = {
    "shares": draw_shares,
    "gap": draw_gap,
    "profile": draw_profile,
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", DRAWINGS)
def test_the_picture_is_the_one_that_was_looked_at(census: Any, tmp_path: Path, name: str, size: str) -> None:
    import matplotlib as mpl
    from matplotlib import pyplot
    from matplotlib.testing.compare import compare_images

    if f"matplotlib=={mpl.__version__}\n" not in PINS.read_text():
        pytest.skip("the pictures were made by the matplotlib of constraints.txt")
    inches, dots = SIZES[size]
    figure, ax = pyplot.subplots(figsize=inches, layout="constrained")
    display = DRAWINGS[name](census, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    drawn, expected = tmp_path / f"{name}_{size}.png", BASELINE / f"{name}_{size}.png"
    if os.environ.get("LOCALPARITY_NEW_BASELINES"):
        drawn = expected
    figure.savefig(drawn, dpi=dots, metadata={"Software": None})
    assert compare_images(str(expected), str(drawn), TOLERANCE) is None


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", DRAWINGS)
def test_no_label_hides_another_or_leaves_the_figure(census: Any, name: str, size: str) -> None:
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=SIZES[size][0], layout="constrained")
    DRAWINGS[name](census, ax=ax)
    figure.canvas.draw()
    assert ax.get_legend() is None, "names stand beside what they name"
    for axis in (ax.xaxis, ax.yaxis):
        boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    inside = figure.bbox.padded(1)
    labels = [label for label in (ax.xaxis.label, ax.yaxis.label) if label.get_text()]
    for box in (label.get_window_extent() for label in (*labels, *ax.texts)):
        assert inside.x0 <= box.x0
        assert box.x1 <= inside.x1
        assert inside.y0 <= box.y0
        assert box.y1 <= inside.y1


@pytest.mark.parametrize("name", ["shares", "gap", "profile"])
def test_an_estimator_is_drawn_as_its_scores_are(census: Any, name: str) -> None:
    from sklearn.linear_model import LogisticRegression

    X = np.column_stack([census.data["education_years"], census.data["hours_per_week"]])
    model = LogisticRegression().fit(X, census.target)
    scores = model.predict_proba(X)[:, 1]
    kind = {
        "shares": report.SharesDisplay,
        "gap": report.GapCurveDisplay,
        "profile": report.McdpProfileDisplay,
    }[name]
    people: dict[str, Any] = {"sensitive_features": census.sensitive_features}
    options: dict[str, Any] = {}
    if name == "profile":
        options["n_resamples"] = 0
    first = kind.from_estimator(model, X, census.target, **people, **options)
    rows = lp.Predictions.from_arrays(census.target, scores, **people)
    second = kind.from_predictions(rows, **options)
    lines = [[line.get_xydata() for line in display.ax_.lines] for display in (first, second)]
    assert len(lines[0]) > 0
    for one, other in zip(*lines, strict=True):
        np.testing.assert_array_equal(one, other)


OF_PAIRS = (report.SharesDisplay, report.GapCurveDisplay)


@pytest.mark.parametrize("kind", [*OF_PAIRS, report.McdpProfileDisplay])
def test_counts_are_drawn_as_predictions_are(census: Any, kind: Any) -> None:
    options: dict[str, Any] = {"criterion": "equal_opportunity"}
    if kind is report.McdpProfileDisplay:
        options["n_resamples"] = 0
    first = kind.from_predictions(predictions_of(census), **options)
    second = kind.from_predictions(counts_of(census), **options)
    for one, other in zip(first.ax_.lines, second.ax_.lines, strict=True):
        np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())


def texts(display: Any) -> list[str]:
    return [text.get_text() for text in display.ax_.texts]


def test_curves_and_profiles_plot_themselves(census: Any) -> None:
    curve = lp.gap_curve(
        lp.Predictions.from_arrays(None, census.score, sensitive_features=census.sensitive_features)
    )
    from_curve = curve.plot(epsilon=0.1)
    assert from_curve.ax_.get_ylabel() == "share above, Male less Female"
    profile = lp.mcdp_profile(None, census.score, sensitive_features=census.sensitive_features)
    steps = profile.plot(confidence=0.9).ax_.lines[0].get_xydata()
    np.testing.assert_array_equal(steps[:, 1], profile(steps[:, 0]))


def test_the_pair_asked_for_is_drawn(census: Any) -> None:
    groups = np.asarray(census.data["occupation"])
    for kind in OF_PAIRS:
        display = kind.from_predictions(
            lp.Predictions.from_arrays(None, census.score, sensitive_features=groups),
            groups=("office", "everyone"),
        )
        assert any("office" in text for text in [*texts(display), display.ax_.get_ylabel()])


def test_names_are_text() -> None:
    groups = np.repeat(["$x_{", "_hidden"], 5)
    scores = np.linspace(0.05, 0.95, 10)
    display = report.SharesDisplay.from_predictions(
        lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    )
    display.figure_.canvas.draw()
    assert {text.split(" ")[0] for text in texts(display)} >= {r"\$x_{", "_hidden"}


def test_what_cannot_be_drawn_is_named(census: Any) -> None:
    from sklearn.svm import LinearSVC

    groups = census.sensitive_features
    rows = predictions_of(census)
    with pytest.raises(ValueError, match=r"predict_proba.*LinearSVC\(\)"):
        report.GapCurveDisplay.from_estimator(LinearSVC(), None, None, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"confidence.*2"):
        lp.gap_curve(rows).plot(confidence=2.0)


def test_a_missing_component_names_the_extra(census: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"matplotlib.pyplot is needed .* 'localparity\[report\]'"):
        lp.gap_curve(
            lp.Predictions.from_arrays(None, census.score, sensitive_features=census.sensitive_features)
        ).plot()


def test_parity_has_no_window_to_shade() -> None:
    display = report.SharesDisplay.from_predictions(
        lp.Predictions.from_arrays(None, [0.5, 0.5], sensitive_features=["a", "b"])
    )
    assert len(display.ax_.patches) == 0
    assert not any("point" in text for text in texts(display))
