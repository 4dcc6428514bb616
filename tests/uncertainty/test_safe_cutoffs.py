"""Cutoffs at which every group's ratio is large enough."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import localparity as lp
import oracles
from strategies import People, people


def oracle_safe(drawn: People, cutoff: Fraction, min_ratio: Fraction, higher_is: str) -> bool:
    rates = [oracles.rate(sample, cutoff) for sample in drawn.samples()]
    if higher_is == "worse":
        rates = [1 - rate for rate in rates]
    return max(rates) > 0 and min(rates) >= min_ratio * max(rates)


@given(
    people(n_groups=3, max_size=5), st.sampled_from(["better", "worse"]), st.sampled_from(["1/2", "4/5", "1"])
)
def test_a_cutoff_is_safe_exactly_when_the_definition_says_so(
    drawn: People, higher_is: str, least: str
) -> None:
    assume(higher_is == "worse" or drawn.scores.any())
    min_ratio = Fraction(least)
    found = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups),
        higher_is=higher_is,
        confidence=None,
    ).safe_cutoffs(min_ratio=float(min_ratio))
    assert found.by_band is None
    knots = sorted({Fraction(0), Fraction(1), *drawn.exact_scores})
    for cutoff in [*knots, *((low + high) / 2 for low, high in pairwise(knots))]:
        at = float(cutoff)
        inside = [
            each
            for each in found.by_estimate
            if each.low <= at < each.high or (each.up_to_top and at == each.high)
        ]
        assert bool(inside) == oracle_safe(drawn, cutoff, min_ratio, higher_is)
    for one, other in pairwise(found.by_estimate):
        assert one.high < other.low


@given(people(n_groups=2))
def test_what_is_safe_by_the_band_is_safe_by_estimate(drawn: People) -> None:
    assume(drawn.scores.any())
    found = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups)
    ).safe_cutoffs(min_ratio=0.2)
    assert found.by_band is not None
    for each in found.by_band:
        assert any(one.low <= each.low and each.high <= one.high for one in found.by_estimate)


def rows(sizes: tuple[int, int], shift: float = 0.0) -> lp.Predictions:
    scores = np.concatenate([np.arange(size) / size for size in sizes])
    groups = np.repeat(["a", "b"], sizes)
    shifted = np.clip(scores - shift * (groups == "a"), 0, 1)
    return lp.Predictions.from_arrays(None, shifted, sensitive_features=groups)


def test_large_groups_alike_have_safe_cutoffs_in_one_sentence() -> None:
    found = lp.impact_ratio_curve(rows((1500, 1500))).safe_cutoffs()
    assert found.by_band is not None
    (only,) = found.by_band
    assert only.low == 0.0
    assert 0.5 < only.high < 0.99
    assert found.sentence == (
        f"Any cutoff {only.text} keeps every group's ratio at or above 0.8 with 95% confidence."
    )
    assert found.to_dict()["sentence"] == found.sentence


def test_sentences_say_what_is_not_safe() -> None:
    few = lp.impact_ratio_curve(rows((10, 10))).safe_cutoffs()
    assert few.by_band == ()
    assert few.sentence.startswith(
        "No cutoff keeps every group's ratio at or above 0.8 with 95% confidence; "
    )
    assert few.sentence.endswith("in these data, any cutoff from 0 to just below 0.9 does.")
    apart = lp.Predictions.from_arrays(None, [0.0, 0.0, 0.5, 1.0], sensitive_features=["a", "a", "b", "b"])
    found = lp.impact_ratio_curve(apart).safe_cutoffs()
    assert found.sentence.startswith("No cutoff keeps")
    assert "neither in these data nor with 95%" in found.sentence
    estimated = lp.impact_ratio_curve(apart, confidence=None).safe_cutoffs()
    assert estimated.sentence == "No cutoff keeps every group's ratio at or above 0.8 in these data."
    loose = lp.impact_ratio_curve(apart, confidence=None).safe_cutoffs(min_ratio=0)
    assert loose.sentence == (
        "Any cutoff from 0 to just below 1 keeps every group's ratio at or above 0 in these data."
    )


def test_of_many_ranges_the_widest_are_named() -> None:
    cutoffs = np.array([0.1, 0.1, 0.2, 0.25, 0.3, 0.3, 0.4, 0.42, 0.5, 0.6, 0.7, 0.75, 0.8, 0.8, 0.9, 0.95])
    found = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, cutoffs, sensitive_features=["a", "b"] * 8), confidence=None
    ).safe_cutoffs(min_ratio=1.0)
    assert len(found.by_estimate) == 5
    assert "or in one of 2 narrower ranges, keeps" in found.sentence


def test_ranges_far_narrower_than_the_widest_are_not_named() -> None:
    scores = [0.0, 0.5, 0.5003, 0.0, 0.5001, 0.5002]
    found = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, scores, sensitive_features=["a"] * 3 + ["b"] * 3), confidence=None
    ).safe_cutoffs(min_ratio=1)
    assert len(found.by_estimate) == 2
    assert found.sentence.startswith("Any cutoff from 0 to just below 0.5, or in a narrower range,")


def test_whole_scores_and_the_top_of_the_range() -> None:
    scores, groups = [1, 2, 3, 1, 2, 3], ["a"] * 3 + ["b"] * 3
    found = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, scores, sensitive_features=groups, score_range=(1, 10)),
        confidence=None,
    ).safe_cutoffs()
    assert [each.text for each in found.by_estimate] == ["from 1 to 2"]
    worse = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, scores, sensitive_features=groups, score_range=(1, 10)),
        confidence=None,
        higher_is="worse",
    ).safe_cutoffs()
    assert [each.text for each in worse.by_estimate] == ["from 1 to 10"]
    full = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, [0.1, 1.0, 0.5, 1.0], sensitive_features=["a", "a", "b", "b"]),
        confidence=None,
        higher_is="worse",
    ).safe_cutoffs()
    assert [each.text for each in full.by_estimate] == [
        *["from 0.5 to just below 1", "of 1"][:0],
        "from 0.5 to 1",
    ]
    end = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, [0.1, 1.0, 1.0, 1.0], sensitive_features=["a", "a", "b", "b"]),
        confidence=None,
        higher_is="worse",
    ).safe_cutoffs()
    assert [each.text for each in end.by_estimate] == ["of 1"]


def test_where_nobody_can_be_selected_there_is_no_ratio() -> None:
    with pytest.raises(ValueError, match="no cutoff selects anybody"):
        lp.impact_ratio_curve(
            lp.Predictions.from_arrays(None, [0.0, 0.0], sensitive_features=["a", "b"])
        ).safe_cutoffs()
    rare = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(
            None, [0.0] * 99 + [0.5] + [0.0] * 100, sensitive_features=["a", "b"] * 100
        )
    ).safe_cutoffs()
    assert rare.worst.ratio == 0.0


def test_the_worst_ratio_in_a_sentence() -> None:
    found = lp.impact_ratio_curve(rows((100, 100), 0.2)).safe_cutoffs()
    assert found.worst_cutoff == 0.79
    assert "The lowest ratio is 0.00 (95% interval 0.00 to" in found.worst_sentence
    assert "at a cutoff of 0.79, 0.00% of a are selected; 20 more" in found.worst_sentence
    assert found.worst_sentence.endswith("would match the rate of b.")
    bare = lp.impact_ratio_curve(rows((100, 100), 0.2), confidence=None).safe_cutoffs()
    assert "The lowest ratio is 0.00: at" in bare.worst_sentence
    assert bare.to_dict()["worst_cutoff"] == bare.worst_cutoff


def test_labels_name_the_most_accurate_cutoff_of_each_range() -> None:
    scores, labels = [0.1, 0.1, 0.4, 0.6, 0.9, 0.9], [0, 0, 0, 1, 1, 1]
    found = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(labels, scores, sensitive_features=["f", "m"] * 3), confidence=None
    ).safe_cutoffs()
    first, second = found.by_estimate
    assert (first.best_cutoff, first.accuracy) == (0.1, pytest.approx(5 / 6))
    assert (second.best_cutoff, second.accuracy) == (0.6, pytest.approx(5 / 6))


def test_what_is_handed_on_of_safe_cutoffs_rests_on_enough_people() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(3000), rng.choice(["a", "b"], 3000, p=[0.8, 0.2])
    curve = lp.impact_ratio_curve(lp.Predictions.from_arrays(None, scores, sensitive_features=groups))
    shown, exact = curve.disclosed().safe_cutoffs(), curve.safe_cutoffs()
    assert shown.by_band is not None
    assert exact.by_band is not None
    for ranges, all_ranges in ((shown.by_band, exact.by_band), (shown.by_estimate, exact.by_estimate)):
        assert ranges
        for each in ranges:
            assert any(one.low <= each.low and each.high <= one.high for one in all_ranges)
    assert sum(each.high - each.low for each in shown.by_band) > 0.9 * sum(
        each.high - each.low for each in exact.by_band
    )
    assert curve.disclosed(1, most=10**6).cutoffs.tolist() == curve.cutoffs.tolist()


def test_the_best_range_has_the_most_accurate_cutoff() -> None:
    scores, labels = [0.1, 0.1, 0.4, 0.6, 0.9, 0.9], [0, 0, 0, 1, 1, 1]
    found = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(labels, scores, sensitive_features=["f", "m"] * 3), confidence=None
    ).safe_cutoffs()
    assert found.best == found.by_estimate[0]
    rows = lp.Predictions.from_arrays(labels, scores, sensitive_features=["f", "m"] * 3)
    assert lp.impact_ratio_curve(rows).safe_cutoffs().best is None
    unlabelled = lp.Predictions.from_arrays(None, scores, sensitive_features=["f", "m"] * 3)
    assert lp.impact_ratio_curve(unlabelled, confidence=None).safe_cutoffs().best is None


def test_nothing_is_said_of_cutoffs_beyond_a_few_people() -> None:
    scores = np.concatenate([np.zeros(4), np.full(40, 0.5), np.full(40, 0.8)])
    shown = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, scores, sensitive_features=["a", "b"] * 42)
    ).disclosed()
    assert shown.cutoffs.tolist() == [0.5, 0.8]
    assert shown.at(0.6)[0].ratio == 1.0
    with pytest.raises(ValueError, match=r"cutoff must be >= 0.5, below which too few people are, got 0.2"):
        shown.at(0.2)


def test_at_a_cutoff_that_is_handed_on_the_interval_is_that_of_all_scores() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(600), rng.choice(["a", "b"], 600)
    curve = lp.impact_ratio_curve(lp.Predictions.from_arrays(None, scores, sensitive_features=groups))
    shown = curve.disclosed()
    first, second = shown.cutoffs[10:12].tolist()
    assert shown.at(first) == curve.at(first)
    inside, exact = (each.at(0.5 * (first + second))[0].rate_interval for each in (shown, curve))
    assert inside is not None
    assert exact is not None
    assert inside.low <= exact.low < exact.high <= inside.high
    assert inside != exact
    safe = shown.safe_cutoffs()
    assert safe.worst in curve.at(safe.worst_cutoff)
