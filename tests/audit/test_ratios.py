"""What an audit says of selection ratios and scoring rates."""

from __future__ import annotations

import numpy as np

import localparity as lp


def test_the_curve_is_that_of_the_audits_rows() -> None:
    rng = np.random.default_rng(0)
    labels, scores, groups = rng.integers(0, 2, 300), rng.random(300), rng.integers(0, 3, 300)
    options = {"sensitive_features": groups, "n_resamples": 20, "random_state": 0}
    found = lp.audit(labels, scores, criterion="equal_opportunity", higher_is="worse", **options)
    curve = found.impact_ratios(reference=1)
    again = lp.impact_ratio_curve(
        labels,
        scores,
        sensitive_features=groups,
        criterion="equal_opportunity",
        higher_is="worse",
        reference=1,
    )
    np.testing.assert_array_equal(curve.ratios, again.ratios)
    assert curve.confidence == found.confidence
    weighted = lp.audit(None, scores, **options, sample_weight=np.ones(scores.size) * 2)
    assert weighted.impact_ratios().confidence is None
