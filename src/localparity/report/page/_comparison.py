"""The page of a comparison of models: the answer, the models by MCDP, and everything that was tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from localparity._io._files import write_new
from localparity._text import outward_percent, percent, points, signed_points
from localparity.auditing._tables import ReportTable, Shown
from localparity.auditing._wording import CRITERION_WORDS
from localparity.report.page._page import comparison_dots, render_frame, script_json

if TYPE_CHECKING:
    from localparity.models._dominance import Baseline
    from localparity.models._outcomes import ModelComparison


def write_comparison(path: Path, comparison: ModelComparison, about: Sequence[str], *, force: bool) -> None:
    """Write the page, whole or not at all."""
    write_new(path, render_comparison(comparison, about).encode(), force=force)


def render_comparison(comparison: ModelComparison, about: Sequence[str] = ()) -> str:
    """The page as text."""
    title, *sentences = comparison.sentences
    return render_frame(
        "comparison",
        {},
        title=title.removesuffix("."),
        about=[*about, f"{sum(comparison.rows):,} people"],
        sentences=sentences,
        ranked=comparison_dots(comparison),
        tables=list(_tables(comparison)),
        notes=_notes(comparison),
        numbers=script_json(comparison.to_dict()),
    )


def _tables(comparison: ModelComparison) -> Iterator[ReportTable]:
    """The alternatives less the baseline, the models on test data, and what was tried."""
    if comparison.baseline is not None:
        yield _differences(comparison, comparison.baseline)
    mcdp = f"MCDP({comparison.epsilon:g})"
    rows = []
    for name, test in comparison.measured.items():
        assert test.interval is not None
        low, high = test.interval.low, test.interval.high
        others = (test.average_precision, test.auc, test.accuracy, test.noise_floor)
        cells = ("-" if value is None else Shown(percent(value), value) for value in others)
        rows.append(
            (name, Shown(percent(test.mcdp), test.mcdp), Shown(outward_percent(low, high), low, high), *cells)
        )
    numbers = (mcdp, "interval", "AP", "AUC", "accuracy", "expected under parity")
    yield ReportTable("models", "The models on test data", ("model",), numbers, tuple(rows))
    tried = [
        (outcome.name, setting or "as it is", Shown(percent(value), value), Shown(percent(ap), ap))
        for outcome in comparison.outcomes
        for setting, (value, ap) in zip(outcome.tried, outcome.settings, strict=True)
    ]
    caption = "Everything that was tried, on test data"
    yield ReportTable("tried", caption, ("model", "setting"), (mcdp, "AP"), tuple(tried))


def _differences(comparison: ModelComparison, baseline: Baseline) -> ReportTable:
    """How each alternative differs from the baseline, and whether it dominates it."""
    rows = []
    for outcome in sorted(comparison.outcomes, key=lambda outcome: outcome.test.mcdp):
        found = outcome.differences
        assert found is not None
        cells = (
            Shown(signed_points(one.low, one.high), one.low, one.high)
            for one in (found.mcdp, found.average_precision, found.accuracy)
        )
        word = "dominates" if found.dominates(baseline.margin) else "not known to dominate"
        group = "needed" if outcome.repaired else "not needed"
        rows.append((outcome.name, outcome.setting or "as it is", word, group, *cells))
    names = ("model", "setting", "against the baseline", "group at prediction")
    numbers = (f"MCDP({comparison.epsilon:g})", "AP", "accuracy")
    caption = (
        f"Alternatives less the baseline, in points, with {100.0 * (1.0 - 2.0 * baseline.error):g}% intervals"
    )
    return ReportTable("differences", caption, names, numbers, tuple(rows))


def _notes(comparison: ModelComparison) -> dict[str, str]:
    """How the comparison was made, and what it left out."""
    trained, chosen, tested = comparison.rows
    notes = {
        "Compared": CRITERION_WORDS[comparison.criterion],
        "People": f"trained on {trained:,}, chosen on {chosen:,}, tested on {tested:,}; rows are assumed to "
        "be independent",
        "Bound": f"repairs aim at {percent(comparison.max_mcdp)} and below",
    }
    if comparison.baseline is not None:
        margin = points(comparison.baseline.margin)
        notes |= {
            "Bound": f"{notes['Bound']}, and at shares of the baseline's MCDP on validation data",
            "Dominates": "the interval of the difference of MCDP ends below 0, and those of AP and of "
            f"accuracy, the share decided rightly at a score of one half, begin at most {margin} below 0",
            "Chosen": f"of each model, on validation data, the setting with the least MCDP of those that are "
            f"known there to lose no more than {margin} of AP and accuracy, or else the most accurate; the "
            "alternatives share the error",
        }
    return notes | {f"Left out: {name}": reason for name, reason in comparison.left_out.items()}
