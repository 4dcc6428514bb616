"""Selection rates and their ratios at every cutoff."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
import oracles
from localparity.metrics._exact import count_for
from localparity.uncertainty._impact import rate_band, shared_error
from strategies import People, people

SEX = ["f", "f", "f", "m", "m", "m"]
SCORES = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8]


def oracle_rate(sample: oracles.Sample, cutoff: Fraction, higher_is: str) -> Fraction:
    above = oracles.rate(sample, cutoff)
    return above if higher_is == "better" else 1 - above


def exact(numerator: Fraction, denominator: Fraction) -> float:
    """A quotient as the curve has it."""
    if denominator == 0:
        return math.inf if numerator else math.nan
    return float(numerator / denominator)


@given(st.data(), st.sampled_from(["better", "worse"]), st.sampled_from([None, 0, 2]))
def test_every_cutoff_has_the_rates_and_ratios_of_the_definition(
    data: st.DataObject, higher_is: str, reference: int | None
) -> None:
    drawn: People = data.draw(people(n_groups=3, max_size=5))
    curve = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(
            None, drawn.scores, sensitive_features=drawn.groups, sample_weight=drawn.weights
        ),
        higher_is=higher_is,
        reference=reference,
        confidence=None,
    )
    samples = drawn.samples(weighted=True)
    cutoffs = sorted({Fraction(0), *drawn.exact_scores})
    assert curve.cutoffs.tolist() == [float(cutoff) for cutoff in cutoffs]
    for column, cutoff in enumerate(cutoffs):
        rates = [oracle_rate(sample, cutoff, higher_is) for sample in samples]
        base = max(rates) if reference is None else rates[reference]
        expected = [exact(rate, base) for rate in rates]
        np.testing.assert_allclose(curve.rates[:, column], [float(rate) for rate in rates], atol=1e-12)
        np.testing.assert_allclose(curve.ratios[:, column], expected, rtol=1e-9)
        for row in range(3):
            sizes = [sum(w for _, w in sample) for sample in samples]
            assert curve.shortfalls[row, column] == pytest.approx(
                float(max(Fraction(0), sizes[row] * (base - rates[row]))), abs=1e-9
            )


@given(people(n_groups=3, max_size=5))
def test_a_shortfall_is_the_fewest_whole_people(drawn: People) -> None:
    curve = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups), confidence=None
    )
    samples = drawn.samples()
    for column, cutoff in enumerate(sorted({Fraction(0), *drawn.exact_scores})):
        rates = [oracles.rate(sample, cutoff) for sample in samples]
        for row, sample in enumerate(samples):
            selected = sum(score > cutoff for score, _ in sample)
            more = next(more for more in range(9) if Fraction(selected + more, len(sample)) >= max(rates))
            assert curve.shortfalls[row, column] == more


@given(people(n_groups=3, max_size=6), st.sampled_from(["better", "worse"]))
def test_bands_are_those_of_each_group_against_the_others(drawn: People, higher_is: str) -> None:
    rows = lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups)
    best = lp.impact_ratio_curve(rows, higher_is=higher_is)
    first = lp.impact_ratio_curve(rows, higher_is=higher_is, reference=0)
    error = shared_error(0.95, 3)
    ends = []
    for row, size in enumerate(best.selection.sizes.tolist()):
        low, high = rate_band(size, error)
        selected = best.selection.selected[row]
        ends.append((low[selected], high[selected]))
    for row, (low, high) in enumerate(ends):
        others = [end for place, end in enumerate(ends) if place != row]
        least = np.minimum(1.0, low / np.max([end[1] for end in others], axis=0))
        np.testing.assert_allclose(best.ratio_bands[0][row], least)
        with np.errstate(divide="ignore"):
            most = np.minimum(1.0, high / np.max([end[0] for end in others], axis=0))
            np.testing.assert_allclose(best.ratio_bands[1][row], most)
            if row:
                np.testing.assert_allclose(first.ratio_bands[0][row], low / ends[0][1])
                np.testing.assert_allclose(first.ratio_bands[1][row], high / ends[0][0])
        for curve in (best, first):
            for name in ("rate", "ratio"):
                value = getattr(curve, f"{name}s")[row]
                low_end, high_end = (end[row] for end in getattr(curve, f"{name}_bands"))
                assert not (low_end > value + 1e-12).any()
                assert not (high_end < value - 1e-12).any()
    assert (first.ratio_bands[0][0] == 1.0).all()


def test_a_point_of_the_curve() -> None:
    curve = lp.impact_ratio_curve(lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX))
    women, men = curve.at(0.5)
    assert (women.group, women.reference, women.selected, women.size) == ("f", "m", 1, 3)
    assert (women.rate, women.ratio, women.shortfall) == (1 / 3, 0.5, 1)
    assert women.ratio == lp.p_rule(None, SCORES, sensitive_features=SEX, threshold=0.5)
    assert women.rate_interval is not None
    assert women.rate_interval.confidence == 0.95
    assert women.rate_interval.low < women.rate < women.rate_interval.high
    assert women.ratio_interval is not None
    assert women.ratio_interval.low == curve.ratio_bands[0][0, 3]
    assert men.ratio == 1.0
    assert men.reference == "m"
    named, _ = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX), reference="f"
    ).at(0.5)
    assert (named.reference, named.ratio) == ("f", 1.0)
    bare, _ = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX), confidence=None
    ).at(0.5)
    assert bare.ratio_interval is None
    assert "2 groups, 6 cutoffs, over the best-off group" in repr(curve)


@given(people(n_groups=3))
def test_p_rule_is_the_lowest_ratio_of_the_curve(drawn: People) -> None:
    curve = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups), confidence=None
    )
    for place, cutoff in enumerate(curve.cutoffs.tolist()):
        if curve.rates[:, place].any():
            found = lp.p_rule(None, drawn.scores, sensitive_features=drawn.groups, threshold=cutoff)
            assert found == pytest.approx(curve.ratios[:, place].min(), abs=1e-12)
            assert found == pytest.approx(min(each.ratio for each in curve.at(cutoff)), abs=1e-12)


def test_single_precision_scores_meet_the_cutoff_that_they_stand_for() -> None:
    scores = np.array([0.1, 0.1, 0.1, 0.9], dtype=np.float32)
    curve = lp.impact_ratio_curve(lp.Predictions.from_arrays(None, scores, sensitive_features=[0, 0, 1, 1]))
    assert [each.selected for each in curve.at(0.1)] == [0, 1]


def test_the_worst_ratio_is_not_that_of_a_single_person() -> None:
    groups = ["a"] * 40 + ["b"] * 40
    scores = [0.2] * 40 + [0.2] * 20 + [0.5] * 19 + [0.9]
    rows = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    safe = lp.impact_ratio_curve(rows).safe_cutoffs()
    assert (safe.worst_cutoff, safe.worst.group, safe.worst.ratio) == (0.2, "a", 0.0)
    scores[:40] = [0.2] * 24 + [0.5] * 16
    rows = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    assert lp.impact_ratio_curve(rows).safe_cutoffs().worst.ratio == 0.8
    assert lp.impact_ratio_curve(rows, reference="a").safe_cutoffs().worst.ratio == 1.0
    scores[-2:] = 0.9, 0.9
    rows = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    assert lp.impact_ratio_curve(rows).safe_cutoffs().worst.ratio == 0.0


def test_labels_give_the_accuracy_at_each_cutoff() -> None:
    labels = [0, 0, 1, 1, 0, 1]
    curve = lp.impact_ratio_curve(lp.Predictions.from_arrays(labels, SCORES, sensitive_features=SEX))
    assert curve.accuracy is not None
    expected = [np.mean((np.array(SCORES) > cutoff) == labels) for cutoff in curve.cutoffs]
    np.testing.assert_allclose(curve.accuracy, expected)
    chance = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(labels, SCORES, sensitive_features=SEX), criterion="equal_opportunity"
    )
    assert chance.label == 1
    assert chance.selection.sizes.tolist() == [1, 2]


def test_cells_bound_what_is_selected_inside_them() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.random(60_000), rng.integers(0, 2, 60_000)
    scores[groups == 0] **= 1.3
    predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    exact_curve = lp.impact_ratio_curve(predictions)
    counts = count_for(predictions, lp.Comparison(), np.array([0.0, 0.05]))
    assert counts.rank_error > 0.0
    curve = lp.impact_ratio_curve(counts)
    at = np.searchsorted(curve.cutoffs, exact_curve.cutoffs, side="right") - 1
    selection, known = curve.selection, exact_curve.selection.selected
    assert (selection.least[:, at] <= known).all()
    assert (known <= selection.most[:, at]).all()
    assert (curve.ratio_bands[0][:, at] <= exact_curve.ratio_bands[0] + 1e-12).all()
    assert (curve.ratio_bands[1][:, at] >= exact_curve.ratio_bands[1] - 1e-12).all()
    found, exact_found = curve.safe_cutoffs(), exact_curve.safe_cutoffs()
    assert found.by_band is not None
    assert exact_found.by_band is not None
    # What cells hide is not called safe.
    for each in found.by_band:
        assert any(one.low <= each.low and each.high <= one.high for one in exact_found.by_band)
    assert sum(each.high - each.low for each in found.by_band) > 0.1


def test_counts_that_may_be_off_anywhere_have_wider_bands() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.random(600), rng.integers(0, 2, 600)
    counts = lp.ScoreCounts.from_predictions(
        lp.Predictions.from_arrays(rng.integers(0, 2, 600), scores, sensitive_features=groups)
    )
    shown = lp.counts.disclosed(counts)
    curve, exact_curve = lp.impact_ratio_curve(shown), lp.impact_ratio_curve(counts)
    assert curve.accuracy is None
    assert exact_curve.accuracy is not None
    at = np.searchsorted(curve.cutoffs, exact_curve.cutoffs, side="right") - 1
    known = exact_curve.selection.selected
    assert (curve.selection.least[:, at] <= known).all()
    assert (known <= curve.selection.most[:, at]).all()
    assert (curve.ratio_bands[0][:, at] <= exact_curve.ratio_bands[0] + 1e-12).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": "x"}, "no group 'x'"),
        ({"higher_is": "nicer"}, "higher_is .*'nicer'"),
        ({"confidence": 1.0}, "confidence .*got 1"),
        ({"criterion": "equalized_odds"}, "two labels and has no single curve"),
    ],
)
def test_wrong_arguments(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.impact_ratio_curve(
            lp.Predictions.from_arrays([0, 1, 0, 1, 0, 1], SCORES, sensitive_features=SEX), **options
        )


def test_weights_have_no_bands() -> None:
    rows = lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX, sample_weight=[1.0] * 6)
    with pytest.raises(ValueError, match="weights; pass confidence=None"):
        lp.impact_ratio_curve(rows)


def test_wrong_points() -> None:
    curve = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX), confidence=None
    )
    with pytest.raises(ValueError, match=r"cutoff .*\(0.0, 1.0\), got 2"):
        curve.at(2)
    with pytest.raises(ValueError, match=r"nobody is selected at cutoff 0.8"):
        curve.at(0.8)
    with pytest.raises(ValueError, match="no bands"):
        _ = curve.rate_bands
    with pytest.raises(ValueError, match=r"min_ratio .*got 2"):
        curve.safe_cutoffs(2)


def test_clusters_and_single_groups_are_refused() -> None:
    rows = lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX, cluster=[0, 0, 1, 1, 2, 2])
    with pytest.raises(ValueError, match="clusters; pass confidence=None"):
        lp.impact_ratio_curve(rows)
    assert lp.impact_ratio_curve(rows, confidence=None).at(0.5)[0].ratio == 0.5
    one = lp.Predictions.from_arrays(None, [0.5], sensitive_features=["a"], min_groups=1)
    with pytest.raises(ValueError, match="two groups are needed, got 1"):
        lp.impact_ratio_curve(one)


def test_the_curve_draws_itself() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    curve = lp.impact_ratio_curve(lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX))
    assert "lowest ratio of any group" in curve._repr_html_()


@given(people(n_groups=2, max_size=30), st.integers(1, 6), st.sampled_from(["better", "worse"]))
def test_no_step_of_what_is_written_rests_on_a_few_people(drawn: People, limit: int, higher_is: str) -> None:
    curve = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups), higher_is=higher_is
    )
    sizes = curve.selection.sizes
    if (sizes < limit).any():
        with pytest.raises(ValueError, match=f"min_group_size={limit} does not allow group"):
            curve.to_dict(min_group_size=limit)
        return
    try:
        plain = curve.to_dict(min_group_size=limit)
    except ValueError as error:
        assert "no cutoff that selects anybody" in str(error)  # noqa: PT017
        return
    for each, size in zip(plain["groups"], sizes, strict=True):
        ends = (1.0, 0.0) if higher_is == "better" else (0.0, 1.0)
        counted = np.rint(np.array([ends[0], *each["rates"], ends[1]]) * size)
        steps = np.abs(np.diff(counted))
        assert ((steps == 0) | (steps >= limit)).all()
        row = curve.groups.index(each["group"])
        at = np.searchsorted(curve.cutoffs, plain["cutoffs"])
        found = np.array([np.nan if value is None else value for value in each["ratios"]])
        np.testing.assert_array_equal(found, curve.ratios[row, at])
        # Whatever cutoff lies in between, the bands of all scores are inside those of some.
        covered = curve.cutoffs >= plain["cutoffs"][0]
        stretch = np.searchsorted(plain["cutoffs"], curve.cutoffs[covered], side="right") - 1
        low, high = (end[:, covered] for end in curve.rate_bands)
        assert (np.array(each["rates_low"])[stretch] <= low[row] + 1e-12).all()
        assert (np.array(each["rates_high"])[stretch] >= high[row] - 1e-12).all()


def test_what_is_written_of_weights_and_clusters() -> None:
    rng = np.random.default_rng(0)
    scores, groups, owner = rng.random(400), np.repeat(["a", "b"], 200), np.arange(400) // 2
    rows = lp.Predictions.from_arrays(
        rng.integers(0, 2, 400), scores, sensitive_features=groups, cluster=owner
    )
    plain = lp.impact_ratio_curve(rows, confidence=None).to_dict()
    assert "ratios_low" not in plain["groups"][0]
    assert len(plain["accuracy"]) == len(plain["cutoffs"])
    for each in plain["groups"]:
        assert np.abs(np.diff(np.rint(np.array(each["rates"]) * 200))).max() >= 20
    weighted = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(
            None, scores, sensitive_features=groups, sample_weight=rng.random(400) + 0.1
        ),
        confidence=None,
    ).to_dict()
    assert 5 <= len(weighted["cutoffs"]) < 45
    counts = lp.counts.disclosed(lp.ScoreCounts.from_predictions(rows))
    plain = lp.impact_ratio_curve(counts, confidence=None).to_dict()
