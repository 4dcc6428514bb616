"""Repair of scores: exact on the people fitted on, nothing moved without need, clear where it cannot be."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score

import localparity as lp
import oracles
from localparity.models import ScoreRepair
from localparity.uncertainty._bands import band_radius
from strategies import People, epsilons, people

CENSUS = lp.datasets.make_census(3000, random_state=0)
SCORES, SEX = CENSUS.score, CENSUS.sensitive_features


def draw(sizes: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return rng.beta(2.0 + groups, 4.0 - 0.5 * groups), groups


def repaired(
    scores: Any, groups: Any, y: Any = None, sample_weight: Any = None, **options: Any
) -> np.ndarray:
    repair = ScoreRepair(**options).fit(scores, y, sensitive_features=groups, sample_weight=sample_weight)
    return repair.transform(scores, sensitive_features=groups)


@pytest.mark.parametrize("sizes", [(500, 500), (37, 2100), (300, 400, 500, 60)])
@pytest.mark.parametrize("bound", [0.03, 0.1, 0.25])
@pytest.mark.parametrize("epsilon", [0.0, 0.02, 0.1])
def test_the_bound_is_met_exactly(sizes: tuple[int, ...], bound: float, epsilon: float) -> None:
    scores, groups = draw(sizes)
    repair = ScoreRepair(max_mcdp=bound, epsilon=epsilon).fit(scores, sensitive_features=groups)
    found = repair.transform(scores, sensitive_features=groups)
    after = lp.mcdp(None, found, sensitive_features=groups, epsilon=epsilon)
    assert after <= bound
    assert after == repair.mcdp_
    assert repair.unrepaired_mcdp_ == lp.mcdp(None, scores, sensitive_features=groups, epsilon=epsilon)
    if repair.unrepaired_mcdp_ > bound and len(sizes) == 2:
        assert after >= bound - 2.0 / min(sizes)  # and no more was moved than that takes
    for group in set(groups):
        np.testing.assert_array_equal(rankdata(found[groups == group]), rankdata(scores[groups == group]))


@given(people(n_groups=3), st.data(), st.booleans())
def test_any_people_any_bound_any_weights(drawn: People, data: st.DataObject, weighted: bool) -> None:
    epsilon = float(data.draw(epsilons(drawn.grid).filter(lambda width: width < 1)))
    bound = data.draw(st.floats(0.01, 1.0))
    weights = drawn.weights if weighted else None
    options = {"sensitive_features": drawn.groups, "epsilon": epsilon, "sample_weight": weights}
    repair = ScoreRepair(max_mcdp=bound, epsilon=epsilon)

    def fit_transform() -> np.ndarray:
        repair.fit(drawn.scores, sensitive_features=drawn.groups, sample_weight=weights)
        return repair.transform(drawn.scores, sensitive_features=drawn.groups)

    try:
        found = fit_transform()
    except ValueError as error:
        message = str(error)
        assert "people who share a score move together" in message
        bound = float(message.split(">= ")[1])
        repair.set_params(max_mcdp=bound)
        found = fit_transform()  # what the message says would work does
    assert lp.mcdp(None, found, **options) <= bound
    if lp.mcdp(None, drawn.scores, **options) <= bound:
        np.testing.assert_array_equal(found, drawn.scores)
    for group in set(drawn.groups):
        before, after = drawn.scores[drawn.groups == group], found[drawn.groups == group]
        assert (np.diff(after[np.argsort(before, kind="stable")]) >= 0.0).all()
        assert len(set(after)) <= len(set(before))


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_at_the_unrepaired_value_nothing_changes(epsilon: float) -> None:
    value = lp.mcdp(None, SCORES, sensitive_features=SEX, epsilon=epsilon)
    np.testing.assert_array_equal(repaired(SCORES, SEX, max_mcdp=value, epsilon=epsilon), SCORES)
    moved = repaired(SCORES, SEX, max_mcdp=value - 0.01, epsilon=epsilon) != SCORES
    assert 0.0 < moved.mean() < 0.5


def test_at_bound_zero_the_distributions_coincide_up_to_ties() -> None:
    scores, groups = draw((400, 400))
    found = repaired(scores, groups, max_mcdp=0.0)
    np.testing.assert_array_equal(np.sort(found[groups == 0]), np.sort(found[groups == 1]))
    mean = [Fraction(s) for s in (np.sort(scores[groups == 0]) + np.sort(scores[groups == 1])) / 2]
    np.testing.assert_allclose(np.sort(found[groups == 0]), [float(s) for s in mean], atol=1e-12)
    scores, groups = draw((300, 1100, 470))
    left = lp.mcdp(None, repaired(scores, groups, max_mcdp=0.0), sensitive_features=groups)
    assert left <= 1 / 300


def test_it_moves_both_groups_by_their_shares() -> None:
    scores, groups = draw((200, 3800))
    moved = np.abs(repaired(scores, groups, max_mcdp=0.05) - scores)
    assert moved[groups == 1].mean() < 0.1 * moved[groups == 0].mean()


def linear_blend(scores: np.ndarray, groups: np.ndarray, t: float) -> np.ndarray:
    """(1 - t) of each score and t of the barycentre at its rank: the plain way, written apart."""
    blended = scores.copy()
    ranked = [np.sort(scores[groups == group]) for group in (0, 1)]
    for group in (0, 1):
        ranks = (rankdata(scores[groups == group]) - 0.5) / ranked[group].size
        quantiles = [np.quantile(members, ranks, method="inverted_cdf") for members in ranked]
        shares = [members.size / scores.size for members in ranked]
        barycentre = shares[0] * quantiles[0] + shares[1] * quantiles[1]
        blended[groups == group] = (1.0 - t) * scores[groups == group] + t * barycentre
    return blended


def least_blend(scores: np.ndarray, groups: np.ndarray, bound: float) -> np.ndarray:
    blends = (linear_blend(scores, groups, t) for t in np.linspace(0.0, 1.0, 41))
    return next(b for b in blends if lp.mcdp(None, b, sensitive_features=groups) <= bound)


def expected_ap(probabilities: np.ndarray, scores: np.ndarray) -> float:
    """Average precision where every person is positive to the extent of a probability."""
    labels = np.repeat([0, 1], scores.size)
    weights = np.concatenate([1.0 - probabilities, probabilities])
    return float(average_precision_score(labels, np.tile(scores, 2), sample_weight=weights))


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("kind", ["shifted", "two humps", "crossing"])
@pytest.mark.parametrize("of_gap", [0.1, 0.5, 0.9])
def test_it_keeps_the_ap_of_a_linear_blend_or_more(share: float, kind: str, of_gap: float) -> None:
    rng = np.random.default_rng(0)
    groups = (rng.random(3000) < share).astype(int)
    scores = rng.beta(2 + groups, 5 - groups)
    if kind == "two humps":
        scores = np.where(
            rng.random(3000) < 0.5, rng.beta(2, 8, 3000), rng.beta(8 - 5 * groups, 3 + 3 * groups)
        )
    elif kind == "crossing":
        scores = rng.beta(2 + 3 * groups, 2 + 3 * groups)
    bound = of_gap * lp.mcdp(None, scores, sensitive_features=groups)
    kept = expected_ap(scores, repaired(scores, groups, max_mcdp=bound))
    assert kept >= expected_ap(scores, least_blend(scores, groups, bound))


@pytest.mark.parametrize("criterion", ["equal_opportunity", "predictive_equality"])
def test_one_label_is_repaired_without_labels_at_prediction(criterion: str) -> None:
    label = int(criterion == "equal_opportunity")
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 2, 4000), rng.integers(0, 3, 4000)
    scores = rng.beta(1 + labels + groups, 4)
    found = repaired(scores, groups, y=labels, criterion=criterion, max_mcdp=0.04)
    assert lp.mcdp(labels, found, sensitive_features=groups, criterion=criterion) <= 0.04
    among = labels == label
    np.testing.assert_array_equal(found[among], repaired(scores[among], groups[among], max_mcdp=0.04))


def test_equalized_odds_serves_both_labels_or_says_how_far_it_gets() -> None:
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000)
    scores = np.clip(rng.beta(2 + 3 * labels, 4) + 0.1 * groups, 0, 1)
    options: dict[str, Any] = {"y": labels, "criterion": "equalized_odds"}
    found = repaired(scores, groups, max_mcdp=0.08, **options)
    assert lp.mcdp(labels, found, sensitive_features=groups, criterion="equalized_odds") <= 0.08
    with pytest.raises(ValueError, match=r"one map per group for both labels leaves at least 0\.\d+; use"):
        repaired(scores, groups, max_mcdp=0.001, **options)
    with pytest.raises(ValueError, match="one map per group for both labels") as error:
        repaired(np.clip(scores - 0.1 * labels * groups, 0, 1), groups, max_mcdp=0.001, **options)
    least = float(str(error.value).split(">= ")[1])
    repaired(np.clip(scores - 0.1 * labels * groups, 0, 1), groups, max_mcdp=least, **options)


def test_new_scores_go_between_their_neighbours() -> None:
    scores, groups = draw((300, 300))
    repair = ScoreRepair(max_mcdp=0.05).fit(scores, sensitive_features=groups)
    new = np.linspace(0.0, 1.0, 5001)
    for group in (0, 1):
        found = repair.transform(new, sensitive_features=np.full(new.size, group))
        assert (np.diff(found) > 0.0).all()
        assert found[0] == 0.0
        assert found[-1] == 1.0
    both = repair.transform(
        np.append(scores, new), sensitive_features=np.append(groups, np.zeros(new.size, int))
    )
    np.testing.assert_array_equal(both[:600], repair.transform(scores, sensitive_features=groups))


def test_intersections_names_ranges_and_narrow_floats() -> None:
    frame = pd.DataFrame({"sex": SEX, "old": CENSUS.data["age"] > 40})
    found = repaired(
        200.0 * SCORES.astype(np.float32) - 100.0, frame, max_mcdp=0.1, score_range=(-100.0, 100.0)
    )
    assert found.dtype == np.float64
    assert lp.mcdp(None, found, sensitive_features=frame, score_range=(-100, 100)) <= 0.1


def test_it_does_not_depend_on_the_order_of_the_rows_and_changes_nothing_of_the_callers() -> None:
    scores, groups = draw((200, 300))
    kept = scores.copy()
    order = np.random.default_rng(1).permutation(500)
    one = repaired(scores, groups, max_mcdp=0.05)
    np.testing.assert_array_equal(repaired(scores[order], groups[order], max_mcdp=0.05), one[order])
    np.testing.assert_array_equal(scores, kept)


def test_weights_count_as_that_many_people() -> None:
    scores, groups = draw((60, 80))
    weights = np.random.default_rng(0).integers(1, 4, 140)
    once = repaired(scores, groups, sample_weight=weights, max_mcdp=0.1)
    twice = repaired(np.repeat(scores, weights), np.repeat(groups, weights), max_mcdp=0.1)
    np.testing.assert_allclose(np.repeat(once, weights), twice, atol=1e-12)


def test_the_margin_is_the_radius_of_the_band() -> None:
    scores, groups = draw((6000, 9000))
    repair = ScoreRepair(max_mcdp=0.08, confidence=0.9).fit(scores, sensitive_features=groups)
    assert repair.margin_ == pytest.approx(float(band_radius((6000, 9000), 0.1)))
    assert repair.mcdp_ <= 0.08 - repair.margin_
    assert repair.promise_ == (
        "With probability 0.9, MCDP(0) is at most 0.08 in the population that the 15,000 people fitted on were "
        "drawn from, if they are an independent sample of it and their scores were not computed on rows that "
        "the model was trained on."  # what it rests on is said with it
    )


def test_with_weights_the_margin_is_that_of_two_thresholds_and_the_promise_is_approximate() -> None:
    """Maps move the groups apart: the band of gaps at one threshold was a quarter too narrow."""
    rng = np.random.default_rng(3)
    scores = np.concatenate([0.5 * rng.random(300), 0.5 + 0.5 * rng.random(300)])
    groups = np.repeat([0, 1], 300)
    plain = ScoreRepair(max_mcdp=0.5, confidence=0.9).fit(scores, sensitive_features=groups)
    options: dict[str, Any] = {"sensitive_features": groups, "sample_weight": rng.uniform(0.9, 1.1, 600)}
    weighted = ScoreRepair(max_mcdp=0.5, confidence=0.9, random_state=0).fit(scores, **options)
    assert weighted.margin_ == pytest.approx(plain.margin_, rel=0.1)
    assert weighted.promise_.startswith("With probability of about 0.9, MCDP(0) is at most 0.5 in")
    gap = lp.mcdp_interval(None, scores, method="bootstrap", confidence=0.9, random_state=0, **options)
    assert weighted.margin_ > 1.2 * (gap.estimate - gap.low)


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_groups_too_small_for_the_confidence_are_told_what_would_work(criterion: str) -> None:
    rng = np.random.default_rng(0)

    def fit(size: int, bound: float) -> None:
        groups, labels = np.repeat([0, 1], 2 * size), np.tile([0, 1], 2 * size)
        scores = rng.beta(2 + labels + groups, 4)
        ScoreRepair(max_mcdp=bound, confidence=0.95, criterion=criterion).fit(
            scores, labels, sensitive_features=groups
        )

    with pytest.raises(
        ValueError, match=r"max_mcdp=0.05 .* confidence=0.95 takes a margin of 0.\d+ for groups of"
    ) as error:
        fit(150, 0.05)
    bound = float(str(error.value).split(">= ")[1].split(",")[0])
    size = int(str(error.value).split("fit on ")[1].split(" ")[0].replace(",", ""))
    assert 0.1 < bound < 0.6
    if criterion == "demographic_parity":
        fit(150, bound)
        fit(size // 2 + 1, 0.05)
        with pytest.raises(ValueError, match="takes a margin"):
            fit(int(0.45 * size), 0.05)
    with pytest.raises(ValueError, match=r"max_mcdp=0 .* confidence=0.95 takes a margin"):
        fit(150, 0.0)


def test_promises_in_words() -> None:
    repair = ScoreRepair(criterion="equal_opportunity").fit(SCORES, CENSUS.target, sensitive_features=SEX)
    assert repair.promise_ == (
        "MCDP(0) of people with label 1 is at most 0.05 among the 3,000 people fitted on; nothing is promised for "
        "others without a confidence."
    )


def test_binary_scores_cannot_be_repaired_and_say_why() -> None:
    scores = np.repeat([0.0, 1.0, 0.0, 1.0], [70, 30, 50, 50])
    groups = np.repeat(["a", "b"], 100)
    with pytest.raises(ValueError, match=r"max_mcdp=0.05") as error:
        repaired(scores, groups)
    assert str(error.value) == (
        "max_mcdp=0.05 is out of reach: people who share a score move together and leave at least 0.2000: 70% of "
        "group 'a' have the score 0; use max_mcdp >= 0.2"
    )
    np.testing.assert_array_equal(repaired(scores, groups, max_mcdp=0.2), scores)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_mcdp": -0.1}, "max_mcdp.*-0.1"),
        ({"max_mcdp": "low"}, "max_mcdp.*'low'"),
        ({"epsilon": -1}, r"epsilon must be .* got -1"),
        ({"confidence": 1.0}, "confidence.*1"),
        ({"criterion": "parity"}, "criterion.*'parity'"),
        ({"criterion": "equal_opportunity"}, "criterion='equal_opportunity' needs y"),
    ],
)
def test_wrong_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        repaired(SCORES, SEX, **options)


def test_wrong_rows() -> None:
    with pytest.raises(ValueError, match=r"scores.*nan at row 1"):
        repaired([0.1, np.nan, 0.3, 0.4], [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"scores.*score_range.*1.5 at row 0"):
        repaired([1.5, 0.2, 0.3, 0.4], [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"sensitive_features.*None"):
        repaired([0.1, 0.2], None)
    with pytest.raises(ValueError, match=r"sensitive_features.*0"):
        repaired([0.1, 0.2], [0, 0])
    with pytest.raises(ValueError, match="group 1 has no rows with y_true = 1"):
        repaired([0.1, 0.2, 0.3], [0, 0, 1], y=[0, 1, 0], criterion="equal_opportunity")


def test_wrong_rows_at_transform() -> None:
    repair = ScoreRepair().fit(SCORES, sensitive_features=SEX)
    with pytest.raises(
        ValueError,
        match=r"sensitive_features.*'Female', 'Male'.*'Other' at row 1",
    ):
        repair.transform([0.1, 0.2], sensitive_features=["Male", "Other"])
    with pytest.raises(ValueError, match=r"scores.*nan at row 0"):
        repair.transform([np.nan], sensitive_features=["Male"])
    with pytest.raises(ValueError, match=r"sensitive_features.*None"):
        repair.transform([0.1])
    assert not hasattr(repair, "predict_proba")


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity"])
def test_the_oracle_agrees_that_the_bound_is_met(criterion: str) -> None:
    rng = np.random.default_rng(3)
    scores, groups, labels = rng.random(60).round(2), rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    scores = np.clip(scores + 0.2 * groups, 0, 1)
    found = repaired(scores, groups, y=labels, criterion=criterion, max_mcdp=0.2, epsilon=0.03)
    among = np.ones(60, bool) if criterion == "demographic_parity" else labels == 1
    samples = [
        [(Fraction(s), Fraction(1)) for s in found[among & (groups == group)].tolist()] for group in (0, 1)
    ]
    assert oracles.mcdp(*samples, Fraction(3, 100)) <= Fraction(1, 5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("score_range", [(0.0, 1.0), (0.1, 1.1), (0.0, 10.0)])
def test_the_bound_holds_for_what_transform_returns_whatever_the_dtype(
    dtype: type, score_range: tuple[float, float]
) -> None:
    """Scores of one decimal and windows of a tenth: half of all stretches tie with a window."""
    low, high = score_range
    rng, fitted = np.random.default_rng(0), 0
    for _ in range(40):
        groups = rng.integers(0, 2, 400)
        tenths = np.round(np.clip(rng.beta(2, 3, 400) + 0.15 * groups * rng.random(400), 0, 1), 1)
        scores = np.clip((low + (high - low) * tenths).astype(dtype), dtype(low), dtype(high))
        repair = ScoreRepair(max_mcdp=0.1, epsilon=0.1, score_range=(float(dtype(low)), float(dtype(high))))
        try:
            repair.fit(scores, sensitive_features=groups)
        except ValueError:
            continue
        fitted += 1
        found = repair.transform(scores, sensitive_features=groups)
        options: Any = {"sensitive_features": groups, "epsilon": 0.1, "score_range": repair.score_range}
        assert lp.mcdp(None, found, **options) == repair.mcdp_ <= 0.1
        assert repair.unrepaired_mcdp_ == lp.mcdp(None, scores, **options)
    assert fitted > 10


def test_a_stretch_that_single_precision_makes_longer_is_repaired() -> None:
    """The gap of one half lies on [0.1, 0.3), which float32 has a little longer than two tenths."""
    scores = np.repeat([0.1, 0.9, 0.3, 0.9], 50).astype(np.float32)
    groups = np.repeat([0, 1], 100)
    repair = ScoreRepair(max_mcdp=0.05, epsilon=0.1).fit(scores, sensitive_features=groups)
    found = repair.transform(scores, sensitive_features=groups)
    assert lp.mcdp(None, found, sensitive_features=groups, epsilon=0.1) == repair.mcdp_ <= 0.05


@pytest.mark.parametrize("scale", [1e-17, 1e-30, 1e-300])
def test_tiny_scores_are_repaired(scale: float) -> None:
    scores, groups = draw((300, 400))
    found = repaired(scale * scores, groups, max_mcdp=0.1)
    assert lp.mcdp(None, found, sensitive_features=groups) <= 0.1
    np.testing.assert_allclose(found, scale * repaired(scores, groups, max_mcdp=0.1), rtol=1e-9)


def test_a_range_too_long_for_a_float_is_refused() -> None:
    with pytest.raises(ValueError, match=r"score_range must be no longer than .* got \(-1e\+308, 1e\+308\)"):
        ScoreRepair(score_range=(-1e308, 1e308)).fit([0.1, 0.2], sensitive_features=["a", "b"])
