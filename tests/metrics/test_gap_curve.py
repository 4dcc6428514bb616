"""The gap curve itself: values, units, pairs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
import oracles
from strategies import people


@given(st.data())
def test_is_the_difference_of_the_distributions_everywhere(data: st.DataObject) -> None:
    drawn = data.draw(people())
    a, b = drawn.samples()
    curve = lp.gap_curve(lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups))
    thresholds = [Fraction(data.draw(st.integers(0, drawn.grid)), drawn.grid) for _ in range(5)]
    expected = [float(oracles.gap(a, b, threshold)) for threshold in thresholds]
    np.testing.assert_array_equal(curve([float(threshold) for threshold in thresholds]), expected)
    assert curve(float(thresholds[0])) == expected[0]
    assert curve.gap[-1] == 0.0
    assert curve.sizes == (len(a), len(b))
    swapped = lp.gap_curve(
        lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups), groups=(1, 0)
    )
    np.testing.assert_array_equal(swapped.gap, -curve.gap)


def test_the_short_way_and_the_way_through_counts_are_one_curve() -> None:
    from localparity.metrics._gap_curve import gap_curves

    rng = np.random.default_rng(0)
    scores, groups = rng.random(1000).round(2), rng.integers(0, 2, 1000)
    scores[0] = -0.0
    predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    (short,) = gap_curves(predictions, lp.Comparison())
    long = lp.gap_curve(lp.Predictions.from_arrays(None, scores, sensitive_features=groups))
    np.testing.assert_array_equal(short.knots, long.knots)
    np.testing.assert_array_equal(short.gap, long.gap)
    assert short.profile().values.tolist() == long.profile().values.tolist()


def test_knots_keep_the_scores_own_units() -> None:
    curve = lp.gap_curve(
        lp.Predictions.from_arrays(
            None, [300, 575, 850], sensitive_features=["a", "b", "a"], score_range=(300, 850)
        )
    )
    assert curve.knots.tolist() == [300, 575, 850]
    assert curve._unit_knots.tolist() == [0.0, 0.5, 1.0]
    window = curve.worst_window(0.1)
    assert (window.low, window.high, window.higher) == (300.0, 850.0, None)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (None, "groups .*got None"),
        (("a", "b", "c"), r"groups .*got \('a', 'b', 'c'\)"),
        (["a", "b"], r"groups .*got \["),
        (("a", "d"), "there is no group 'd'"),
    ],
)
def test_the_pair_must_be_there(groups: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.gap_curve(
            lp.Predictions.from_arrays(None, [0.1, 0.2, 0.3], sensitive_features=["a", "b", "c"]),
            groups=groups,
        )  # type: ignore[arg-type]


def test_a_threshold_is_a_number() -> None:
    curve = lp.gap_curve(lp.Predictions.from_arrays(None, [0.1, 0.2], sensitive_features=["a", "b"]))
    with pytest.raises(ValueError, match=r"threshold .*nan at row 0"):
        curve(float("nan"))


@pytest.mark.parametrize("knots", [[], [300.0, 850.0], [0.5, 0.1], [float("nan"), 0.5], [0.1, 0.2, 0.3]])
def test_what_makes_no_curve(knots: list[float]) -> None:
    with pytest.raises(ValueError, match=r"knots and gap do not make a curve on score_range \(0.0, 1.0\)"):
        lp.results.GapCurve(np.array(knots), np.array([0.5, 0.0]), ("a", "b"), (1, 1))


def test_knots_that_are_out_of_order_inside_do_no_harm() -> None:
    curve = lp.results.GapCurve(
        np.array([0.0, 1e300, float("nan"), 1.0]), np.array([0.5, 0.1, 0.2, 0.0]), ("a", "b"), (1, 1)
    )
    assert np.isfinite(curve.mcdp(0.0))


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_the_bounds_of_a_sketch_are_off_by_twice_its_error_up_to_its_highest_score(scale: float) -> None:
    knots, gap = np.array([0.125, 0.25, 0.5, 0.875]), np.array([0.25, -0.75, 0.5, 0.0])
    curve = lp.results.GapCurve(
        scale * knots, gap, ("a", "b"), (1, 1), score_range=(0.0, scale), rank_error=0.125
    )
    lower, upper = curve.bounds()
    assert lower.gap.tolist() == [0.0, 0.5, 0.25, 0.0]
    assert upper.gap.tolist() == [0.5, 1.0, 0.75, 0.0]
    assert lower.rank_error == upper.rank_error == 0.0
    assert curve.mcdp_bounds() == lp.results.Interval(0.5, 0.75, 1.0)
    # By hand: over lengths of 1/8, 1/4 and 3/8.
    assert [side.abcc() for side in (lower, curve, upper)] == [0.21875, 0.40625, 0.59375]
    assert curve.mean_difference() == 0.03125


def test_knots_that_stand_for_an_end_of_the_range_are_moved_there() -> None:
    """As of single precision, whose 0.1 and 1.1 lie beside the numbers that they stand for."""
    eps = float(np.finfo(np.float32).eps)
    low, high = 0.1 - eps, 1.1 + eps
    options = {"score_range": (0.1, 1.1), "resolution": 4 * eps}
    curve = lp.results.GapCurve(
        np.array([low, 0.6, high]), np.array([0.5, 0.25, 0.0]), ("a", "b"), (1, 1), **options
    )
    assert curve._unit_knots.tolist() == [0.0, pytest.approx(0.5), 1.0]
    # What lies beside an end is told by the size of that end, not of the other one.
    near, gap = 0.1 * (1 + 2 * eps), np.array([0.5, 0.0])
    beside = lp.results.GapCurve(np.array([near, 1.0]), gap, ("a", "b"), (1, 1), **options)
    assert beside._unit_knots[0] == 0.0
    inside = lp.results.GapCurve(np.array([0.1 + eps, 1.0]), gap, ("a", "b"), (1, 1), **options)
    assert inside._unit_knots[0] == pytest.approx(eps, rel=1e-6)
    for knots in ([0.1 - 8 * eps, 1.0], [0.2, 1.1 + 8 * eps]):
        with pytest.raises(ValueError, match="do not make a curve"):
            lp.results.GapCurve(np.array(knots), np.array([0.5, 0.0]), ("a", "b"), (1, 1), **options)


def test_a_threshold_counts_as_on_the_score_that_it_stands_for() -> None:
    eps = float(np.finfo(np.float32).eps)
    curve = lp.results.GapCurve(
        np.array([0.5, 0.75]), np.array([0.5, 0.0]), ("a", "b"), (1, 1), resolution=4 * eps
    )
    assert curve([0.5 - 8 * eps, 0.5 - eps, 0.5, 0.75 - eps]).tolist() == [0.0, 0.5, 0.5, 0.0]
    assert isinstance(curve(0.5), float)


def test_where_everybody_has_one_score_there_is_one_knot() -> None:
    for score in (0.0, 0.5, 1.0):
        curve = lp.gap_curve(lp.Predictions.from_arrays(None, [score, score], sensitive_features=["a", "b"]))
        assert (curve.knots.tolist(), curve.gap.tolist(), curve.mcdp(), curve.abcc()) == (
            [score],
            [0.0],
            0.0,
            0.0,
        )


def test_a_curve_and_a_profile_show_themselves() -> None:
    people = lp.Predictions.from_arrays(None, [0.1, 0.3, 0.6, 0.9], sensitive_features=["f", "f", "m", "m"])
    curve, profile = lp.gap_curve(people), lp.mcdp_profile(people)
    assert repr(curve) == "GapCurve(f and m: 100.0 points, cutoffs 0.3 to 0.6, m ahead of f)"
    assert repr(profile) == "McdpProfile(MCDP(0) 100.0, MCDP(0.05) 100.0, MCDP(0.1) 100.0 points)"
    for shown in (curve, profile):
        assert "<svg" in shown._repr_html_()


@pytest.mark.parametrize(("scores", "half_width"), [((0.25, 0.75), 0.25), ((0.0, 0.75), 0.75)])
def test_the_widest_window_spans_the_scores_and_counts_in_full_from_the_bottom(
    scores: tuple[float, float], half_width: float
) -> None:
    people = lp.Predictions.from_arrays(None, scores, sensitive_features=["a", "b"])
    assert lp.gap_curve(people).widest_window == half_width


@pytest.mark.parametrize(("low", "whole"), [(-(2.0**53), True), (-(2.0**54), False)])
def test_beyond_2_to_the_53_scores_are_not_known_to_be_whole(low: float, whole: bool) -> None:
    knots, gap = np.array([low, 0.0]), np.array([1.0, 0.0])
    assert lp.results.GapCurve(knots, gap, ("a", "b"), (1, 1), score_range=(low, 0.0)).whole is whole


def test_everyone_may_be_on_either_side() -> None:
    people = lp.Predictions.from_arrays(None, [0.2, 0.6, 0.7], sensitive_features=["a", "b", "b"])
    first, second = (lp.gap_curve(people, groups=pair) for pair in (("everyone", "b"), ("b", "everyone")))
    assert first.gap.tolist() == (-second.gap).tolist()
    assert max(first.gap) == pytest.approx(1 / 3)
