"""What an audit says of selection ratios and scoring rates."""

from __future__ import annotations

import numpy as np

import localparity as lp
from localparity.auditing._document import RatioResult
from localparity.report.page._page import ratio_drawing


def test_the_curve_is_that_of_the_audits_rows() -> None:
    rng = np.random.default_rng(0)
    labels, scores, groups = rng.integers(0, 2, 300), rng.random(300), rng.integers(0, 3, 300)
    options = {"sensitive_features": groups, "n_resamples": 20, "random_state": 0}
    found = lp.audit(labels, scores, criterion="equal_opportunity", higher_is="worse", **options)
    curve = found.impact_ratios(reference=1)
    again = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(labels, scores, sensitive_features=groups),
        criterion="equal_opportunity",
        higher_is="worse",
        reference=1,
    )
    np.testing.assert_array_equal(curve.ratios, again.ratios)
    assert curve.confidence == found.confidence
    weighted = lp.audit(None, scores, **options, sample_weight=np.ones(scores.size) * 2)
    assert weighted.impact_ratios().confidence is None


def test_cutoffs_that_were_not_computed_are_not_spoken_of() -> None:
    """With ratios at 2 of 10 cutoffs a page said that no cutoff keeps them, over an empty chart."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["many", "more", "few"], [2000, 2000, 18])
    scores = np.where(groups == "few", rng.integers(3, 9, groups.size), rng.integers(1, 11, groups.size))
    audit = lp.audit(None, scores, sensitive_features=groups, score_range=(1, 10), n_resamples=0)
    few = RatioResult.of(audit, 0.99, 10)
    assert few.curve.cutoffs.size < few.cutoffs == 10
    assert few.sentences[0].startswith("None of the computed cutoffs keeps")
    assert "The lowest computed ratio is" in few.sentences[1]
    assert any(f"at only {few.curve.cutoffs.size} of 10 cutoffs" in sentence for sentence in few.sentences)
    drawing = ratio_drawing(few.curve, 0.99)
    assert drawing.paths == []
    dots = sum('class="first"' in part for part in drawing.parts)
    assert dots == np.isfinite(few.curve.ratios).all(0).sum()
    every = RatioResult.of(audit, 0.99, 1)
    assert every.sentences[0].startswith("No cutoff keeps")
    assert len(every.sentences) == 3
    assert not any(part.startswith("<circle") for part in ratio_drawing(every.curve, 0.99).parts)


def test_two_scores_leave_a_dot() -> None:
    audit = lp.audit(None, [0.0, 1.0] * 40, sensitive_features=["a", "a", "b", "b"] * 20, n_resamples=0)
    result = RatioResult.of(audit, 0.8, 10)
    assert result.curve.selection.complete
    assert sum(part.startswith("<circle") for part in ratio_drawing(result.curve, 0.8).parts) == 2


def test_cutoffs_that_select_most_people_are_called_so() -> None:
    rng = np.random.default_rng(0)
    asked = {"sensitive_features": np.repeat(["f", "m"], 2000), "n_resamples": 0}
    scores = rng.random(4000) ** np.repeat([3.0, 1.0], 2000)
    apart = RatioResult.of(lp.audit(None, scores, **asked), 0.8, 10)
    (safe,) = apart.safe.by_band
    least = min(np.mean(scores[:2000] > cutoff) for cutoff in apart.curve.cutoffs if cutoff < safe.high)
    assert least >= 0.75
    assert f"These cutoffs select at least {int(100 * least)}% of every group." in apart.sentences
    alike = RatioResult.of(lp.audit(None, rng.random(4000), **asked), 0.8, 10)
    assert not any("of every group" in sentence for sentence in alike.sentences)
