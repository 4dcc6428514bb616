"""Group-blind repair of arrays: the bound, what stays, what does not matter, and bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import localparity as lp
from blind_designs import BlindPeople, census, mixed
from localparity.models import GroupBlindRepair
from localparity.models.repair._group_blind import noisy_groups

CRITERIA = ("demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds")
PEOPLE = census(np.random.default_rng(0), 3000)
NEW = census(np.random.default_rng(1), 500)


def probabilities_of(people: BlindPeople, criterion: str = "demographic_parity") -> np.ndarray:
    """What the criterion takes: P(group | x), or that given each label compared."""
    no, yes = people.probabilities
    tables = {"equal_opportunity": yes, "predictive_equality": no, "equalized_odds": people.probabilities}
    return tables.get(criterion, people.chances)


def fitted(
    people: BlindPeople = PEOPLE,
    bound: float = 0.1,
    weights: Any = None,
    labelled: bool = True,
    **options: Any,
) -> Any:
    repair = GroupBlindRepair(bound, **options)
    return repair.fit(
        people.scores,
        people.labels if labelled else None,
        sensitive_features=people.groups,
        group_probabilities=probabilities_of(people, repair.criterion),
        sample_weight=weights,
    )


def repaired(repair: GroupBlindRepair, people: BlindPeople) -> np.ndarray:
    return repair.transform(people.scores, group_probabilities=probabilities_of(people, repair.criterion))


@given(
    size=st.integers(60, 600),
    n_groups=st.integers(2, 5),
    decimals=st.sampled_from([None, 1, 0]),
    weighted=st.booleans(),
    epsilon=st.sampled_from([0.0, 0.02, 0.1]),
    criterion=st.sampled_from(CRITERIA),
    labelled=st.booleans(),
    bound=st.floats(0.0, 0.4),
    seed=st.integers(0, 1000),
)
def test_the_bound_holds_or_the_error_names_what_does(
    size: int,
    n_groups: int,
    decimals: int | None,
    weighted: bool,
    epsilon: float,
    criterion: str,
    labelled: bool,
    bound: float,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    people = mixed([1.0 / n_groups] * n_groups, decimals)(rng, size)
    weights = rng.integers(1, 4, size).astype(float) if weighted else None
    options: Any = {"epsilon": epsilon, "criterion": criterion, "min_group_size": 4}
    options["labelled"] = labelled or criterion != "demographic_parity"
    try:
        repair = fitted(people, bound, weights, **options)
    except ValueError as error:
        message = str(error)
        if "min_group_size=4" in message:
            return
        assert f"max_mcdp={bound:g} is out of reach" in message
        lowest = float(message.split("max_mcdp >= ")[1].split(",")[0])
        assert lowest > bound
        bound = lowest
        repair = fitted(people, bound, weights, **options)  # what the message says would work does
    found = repaired(repair, people)
    assert ((found >= 0.0) & (found <= 1.0)).all()
    kept = np.isin(
        people.groups, [repair.groups_.index(g) for g in repair.groups_ if g not in repair.left_out_]
    )
    measured = lp.mcdp(
        people.labels[kept],
        found[kept],
        sensitive_features=people.groups[kept],
        criterion=criterion,
        epsilon=epsilon,
        sample_weight=None if weights is None else weights[kept],
    )
    assert measured == repair.mcdp_ <= bound


def test_scores_within_the_bound_stay_to_the_last_bit() -> None:
    repair = fitted(bound=0.9, labelled=False)
    np.testing.assert_array_equal(repaired(repair, PEOPLE), PEOPLE.scores)
    assert repair.score_ is None
    assert repair.scale_ is None
    assert repair.mcdp_ == repair.unrepaired_mcdp_ > 0.2


@pytest.mark.parametrize("criterion", CRITERIA)
def test_positives_are_given_up_for_the_bound_alone(criterion: str) -> None:
    """What is repaired to two bounds differs: the stricter selects fewer positives, and both obey."""
    kept = []
    for bound in (0.05, 0.12):
        repair = fitted(bound=bound, criterion=criterion)
        assert 0.8 * bound <= repair.mcdp_ <= bound < repair.unrepaired_mcdp_
        ranks = np.argsort(-repaired(repair, PEOPLE))
        kept.append(np.cumsum(PEOPLE.scores[ranks]).mean())
    assert kept[0] < kept[1] <= np.cumsum(-np.sort(-PEOPLE.scores)).mean()


def test_without_labels_scores_keep_their_distribution() -> None:
    found = repaired(fitted(bound=0.05, labelled=False), PEOPLE)
    levels = np.linspace(0.01, 0.99, 99)
    np.testing.assert_allclose(np.quantile(found, levels), np.quantile(PEOPLE.scores, levels), atol=0.01)


@pytest.mark.parametrize("bound", [0.05, 0.9])
def test_calibrated_scores_are_probabilities_in_the_same_order(bound: float) -> None:
    people = census(np.random.default_rng(3), 20_000)
    repairs = [fitted(people, bound, labelled=labelled) for labelled in (False, True)]
    original, calibrated = (repaired(repair, people) for repair in repairs)
    assert (np.diff(calibrated[np.argsort(original, kind="stable")]) >= -1e-12).all()
    assert repairs[0].mcdp_ == pytest.approx(repairs[1].mcdp_, abs=1e-4)
    edges = np.quantile(calibrated, np.linspace(0.0, 1.0, 11))
    bins = np.digitize(calibrated, edges[1:-1])
    for one in range(10):
        mean, size = people.labels[bins == one].mean(), (bins == one).sum()
        assert abs(mean - calibrated[bins == one].mean()) < 4.0 * np.sqrt(0.25 / size)


def rates_at(scores: np.ndarray, people: BlindPeople, cutoff: float) -> list[float]:
    return [float((scores[people.groups == group] > cutoff).mean()) for group in np.unique(people.groups)]


def shares_above(scores: np.ndarray, cutoffs: tuple[float, float]) -> tuple[float, float]:
    return float((scores > cutoffs[1]).mean()), float((scores > cutoffs[0]).mean())


@pytest.mark.parametrize("rates", [(0.0, 0.1), (0.05, 0.3), (0.3, 1.0)])
def test_the_bound_holds_at_the_selection_rates_alone(rates: tuple[float, float]) -> None:
    repair, everywhere = fitted(bound=0.05, selection_rates=rates), fitted(bound=0.05)
    found = repaired(repair, PEOPLE)
    first, last = repair.cutoffs_
    low, high = shares_above(found, repair.cutoffs_)
    assert (low, high) == pytest.approx(rates, abs=0.01)
    gaps = [np.ptp(rates_at(found, PEOPLE, cutoff)) for cutoff in np.append(found, [first, last])]
    inside = [first <= cutoff <= last for cutoff in np.append(found, [first, last])]
    assert max(np.compress(inside, gaps)) == pytest.approx(repair.mcdp_, abs=1e-12)
    assert repair.mcdp_ <= 0.05 < max(gaps)
    assert "at cutoffs that select" in repair.promise_
    kept = [
        np.cumsum(PEOPLE.scores[np.argsort(-repaired(one, PEOPLE))]).mean() for one in (repair, everywhere)
    ]
    assert kept[0] > kept[1]  # what is asked of fewer cutoffs costs less


THREE = mixed([0.5, 0.3, 0.2], None)(np.random.default_rng(2), 12_000)


@pytest.mark.parametrize("ratio", [0.6, 0.8])
@pytest.mark.parametrize(("people", "rates"), [(PEOPLE, None), (THREE, (0.2, 1.0))])
def test_the_ratio_holds_at_every_selection_rate(people: BlindPeople, rates: Any, ratio: float) -> None:
    repair = fitted(people, min_ratio=ratio, selection_rates=rates)
    found = repaired(repair, people)
    cutoffs = [*np.unique(found)[::7], *repair.cutoffs_]
    selected = [rates_at(found, people, cutoff) for cutoff in cutoffs if cutoff <= repair.cutoffs_[1]]
    lowest = min(min(rates) / max(rates) for rates in selected)
    assert ratio <= lowest <= ratio + 0.05
    assert shares_above(found, repair.cutoffs_) == pytest.approx(rates or (0.05, 1.0), abs=0.01)
    assert repair.promise_.startswith(f"The ratio of selection rates is at least {ratio} at cutoffs")
    assert repair.card().max_mcdp is None


def test_a_ratio_out_of_reach_names_what_is_within() -> None:
    people = mixed([0.5, 0.5], None)(np.random.default_rng(5), 200)
    with pytest.raises(ValueError, match=r"min_ratio=0\.999 is out of reach.*min_ratio <= 0\.") as caught:
        fitted(people, min_ratio=0.999)
    reachable = float(str(caught.value).split("min_ratio <= ")[1].split(",")[0])
    assert fitted(people, min_ratio=reachable).promise_


def test_a_ratio_with_a_confidence_is_tested_by_the_band() -> None:
    people = census(np.random.default_rng(7), 40_000)
    repair = fitted(people, min_ratio=0.7, selection_rates=(0.2, 0.9), confidence=0.9, random_state=0)
    assert repair.promise_.startswith("With probability 0.9, the ratio of selection rates is at least 0.7")
    new = census(np.random.default_rng(8), 40_000)
    found = repaired(repair, new)
    for cutoff in np.linspace(*repair.cutoffs_, 50):
        rates = rates_at(found, new, cutoff)
        assert min(rates) >= 0.7 * max(rates)
    with pytest.raises(ValueError, match=r"confidence must be None for min_ratio=0\.7 with weights"):
        fitted(people, weights=new.scores + 0.5, min_ratio=0.7, confidence=0.9)


def test_integer_weights_are_repetitions() -> None:
    times = np.random.default_rng(0).integers(1, 4, 3000)
    again = np.repeat(np.arange(3000), times)
    repeated = BlindPeople(
        PEOPLE.scores[again], PEOPLE.probabilities[:, again], PEOPLE.labels[again], PEOPLE.groups[again]
    )
    weighted = fitted(weights=times.astype(float), labelled=False)
    unweighted = fitted(repeated, labelled=False)
    assert weighted.unrepaired_mcdp_ == pytest.approx(unweighted.unrepaired_mcdp_, abs=1e-12)
    np.testing.assert_allclose(repaired(weighted, NEW), repaired(unweighted, NEW), atol=0.01)
    assert calibrated_apart(fitted(weights=times.astype(float)), fitted(repeated)) <= 0.005


def calibrated_apart(first: GroupBlindRepair, second: GroupBlindRepair) -> float:
    """How far calibrated scores are apart on average: where ranks differ a little, a few steps differ more."""
    return float(np.abs(repaired(first, NEW) - repaired(second, NEW)).mean())


def test_neither_the_order_of_rows_nor_the_names_of_groups_matter() -> None:
    repair = fitted()
    order = np.random.default_rng(0).permutation(3000)
    shuffled = BlindPeople(
        PEOPLE.scores[order], PEOPLE.probabilities[:, order], PEOPLE.labels[order], PEOPLE.groups[order]
    )
    np.testing.assert_allclose(repaired(fitted(shuffled), NEW), repaired(repair, NEW), atol=1e-6)
    named = GroupBlindRepair(0.1).fit(
        PEOPLE.scores,
        sensitive_features=np.where(PEOPLE.groups == 0, "women", "men"),
        group_probabilities=PEOPLE.chances[:, ::-1],
    )
    assert named.groups_ == ("men", "women")
    found = named.transform(NEW.scores, group_probabilities=NEW.chances[:, ::-1])
    np.testing.assert_allclose(found, repaired(fitted(labelled=False), NEW), atol=1e-6)


@pytest.mark.parametrize("confidence", [None, 0.8])
def test_a_seed_gives_the_same_bits(confidence: float | None) -> None:
    first, second = (
        repaired(fitted(bound=0.2, confidence=confidence, random_state=7), NEW) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_small_groups_are_left_out_and_named() -> None:
    groups = PEOPLE.groups.astype(object)
    groups[:12] = "few"
    groups = np.array([f"group {group}" for group in groups])
    chances = np.column_stack([0.99 * PEOPLE.chances, np.full(3000, 0.01)])
    repair = GroupBlindRepair(0.1).fit(PEOPLE.scores, sensitive_features=groups, group_probabilities=chances)
    assert repair.left_out_ == ("group few",)
    assert "fewer than 30 people take no part: group few" in repair.promise_
    found = repair.transform(PEOPLE.scores, group_probabilities=chances)
    kept = groups != "group few"
    assert lp.mcdp(None, found[kept], sensitive_features=groups[kept]) == repair.mcdp_ <= 0.1
    with pytest.raises(ValueError, match=r"min_group_size=2000.*1,333, 1,655, 12"):
        GroupBlindRepair(0.1, min_group_size=2000).fit(
            PEOPLE.scores,
            sensitive_features=groups,
            group_probabilities=chances,
        )


def test_a_confidence_is_kept_on_rows_held_out() -> None:
    people = census(np.random.default_rng(5), 8000)
    repair = fitted(people, 0.15, confidence=0.9, random_state=0)
    assert repair.mcdp_ < repair.unrepaired_mcdp_
    assert "With probability 0.9, MCDP(0) is at most 0.15 in the population" in repair.promise_
    assert "2,400 people held out" in repair.promise_
    within = fitted(people, 0.6, confidence=0.9, random_state=0, labelled=False)
    np.testing.assert_array_equal(repaired(within, NEW), NEW.scores)
    with pytest.raises(
        ValueError, match=r"confidence=0.9.* 0\.\d+ from held-out groups of [\d,]+, [\d,]+;.*more rows"
    ):
        fitted(PEOPLE, 0.05, confidence=0.9, random_state=0)
    with pytest.raises(ValueError, match=r"held-out groups of [\d,]+, [\d,]+ of people with label 1"):
        fitted(PEOPLE, 0.1, confidence=0.9, random_state=0, criterion="equal_opportunity")


def test_without_labels() -> None:
    repair = GroupBlindRepair(0.3, confidence=0.9, random_state=0)
    repair.fit(PEOPLE.scores, sensitive_features=PEOPLE.groups, group_probabilities=PEOPLE.chances)
    assert "is at most 0.3 in the population" in repair.promise_
    for options in ({"criterion": "equal_opportunity"}, {"criterion": "equalized_odds"}):
        ((name, value),) = options.items()
        with pytest.raises(ValueError, match=f"{name}='{value}' needs y, got None"):
            GroupBlindRepair(**options).fit(
                PEOPLE.scores, sensitive_features=PEOPLE.groups, group_probabilities=PEOPLE.chances
            )


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("options", [{}, {"bound": 0.9}, {"selection_rates": (0.0, 0.2)}, {"min_ratio": 0.7}])
def test_load_brings_back_the_same_bits(criterion: str, options: dict[str, Any], tmp_path: Path) -> None:
    repair = fitted(criterion=criterion, **options)
    repair.save(tmp_path)
    again = lp.load(tmp_path)
    np.testing.assert_array_equal(repaired(again, NEW), repaired(repair, NEW))
    assert tuple(again.get_params().pop("selection_rates") or ()) == (repair.selection_rates or ())
    for name in ("cutoffs_", "groups_", "left_out_", "mcdp_", "unrepaired_mcdp_", "promise_"):
        assert getattr(again, name) == getattr(repair, name)


def test_one_table_of_probabilities_serves_both_labels() -> None:
    repair = GroupBlindRepair(0.1, criterion="equalized_odds")
    repair.fit(
        PEOPLE.scores, PEOPLE.labels, sensitive_features=PEOPLE.groups, group_probabilities=PEOPLE.chances
    )
    twice = np.stack([NEW.chances] * 2)
    np.testing.assert_array_equal(
        repair.transform(NEW.scores, group_probabilities=NEW.chances),
        repair.transform(NEW.scores, group_probabilities=twice),
    )


SCORES, GROUPS, HALVES = [0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1], [[0.5, 0.5]] * 4


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([0.5, 0.5], r"group_probabilities .* 0, 1, got shape \(2,\)"),
        ([[0.5, 0.3, 0.2]] * 4, r"group_probabilities .* 0, 1, got shape \(4, 3\)"),
        ([HALVES, HALVES], r"group_probabilities .* got shape \(2, 4, 2\)"),
        ([["a", "b"]], "group_probabilities must be numbers"),
        ([[0.5, 0.5]], "group_probabilities has 1 rows, scores has 4"),
        ([[0.5, 0.5]] * 3 + [[0.9, 0.5]], r"group_probabilities .*\[0.9, 0.5\] at row 3"),
        ([[0.5, 0.5]] * 3 + [[1.5, -0.5]], r"group_probabilities .*\[1.5, -0.5\] at row 3"),
        ([[0.5, 0.5], [np.nan, 1]] * 2, r"group_probabilities.*nan at row 1"),
    ],
)
def test_wrong_probabilities(probabilities: Any, message: str) -> None:
    repair = GroupBlindRepair(min_group_size=1)
    with pytest.raises(ValueError, match=message):
        repair.fit(SCORES, sensitive_features=GROUPS, group_probabilities=probabilities)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_mcdp": 1.5}, r"max_mcdp.*1\.5"),
        ({"epsilon": -1.0}, r"epsilon.*-1\.0"),
        ({"criterion": "parity"}, r"criterion.*parity"),
        ({"selection_rates": (0.5, 0.5)}, r"selection_rates.*\(0\.5, 0\.5\)"),
        ({"selection_rates": 0.5}, r"selection_rates.*0\.5"),
        ({"selection_rates": (0.0, 1.5)}, r"selection_rates.*1\.5"),
        ({"min_ratio": 1.0}, r"min_ratio.*1"),
        ({"min_ratio": 0.8, "selection_rates": (0.0, 0.5)}, r"selection_rates.*0 < low"),
        ({"min_ratio": 0.8, "epsilon": 0.1}, r"epsilon.*min_ratio"),
        ({"min_group_size": 0}, r"min_group_size.*0"),
        ({"validation_fraction": 1.0}, r"validation_fraction.*1"),
        ({"confidence": 2.0}, r"confidence.*2"),
    ],
)
def test_wrong_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GroupBlindRepair(**options).fit(SCORES, sensitive_features=GROUPS, group_probabilities=HALVES)


def test_wrong_rows() -> None:
    repair = GroupBlindRepair(min_group_size=1, max_mcdp=1.0)
    given: Any = {"sensitive_features": GROUPS, "group_probabilities": HALVES}
    with pytest.raises(NotFittedError):
        repair.transform(SCORES, group_probabilities=HALVES)
    with pytest.raises(ValueError, match=r"scores.*nan at row 1"):
        repair.fit([0.1, np.nan, 0.2, 0.3], **given)
    with pytest.raises(ValueError, match=r"scores.*1\.5 at row 0"):
        repair.fit([1.5, 0.1, 0.2, 0.3], **given)
    with pytest.raises(ValueError, match=r"sensitive_features.*5.*4|sensitive_features has 5 rows"):
        repair.fit(SCORES, sensitive_features=[0, 0, 1, 1, 1], group_probabilities=HALVES)
    with pytest.raises(ValueError, match=r"sensitive_features"):
        repair.fit(SCORES, sensitive_features=[0] * 4, group_probabilities=[[1.0]] * 4)
    repair.fit(SCORES, **given)
    with pytest.raises(ValueError, match="group_probabilities has 4 rows, scores has 1"):
        repair.transform([0.1], group_probabilities=HALVES)
    with pytest.raises(ValueError, match=r"4 rows are too few for validation_fraction"):
        clone(repair).set_params(confidence=0.9, validation_fraction=0.9).fit(SCORES, **given)
    ones = clone(repair).set_params(criterion="equal_opportunity")
    with pytest.raises(ValueError, match=r"min_group_size=1.* 0, 1|at least two groups"):
        ones.fit(SCORES, [0, 0, 1, 1], **given)


def test_uninformative_probabilities_put_a_low_bound_out_of_reach() -> None:
    with pytest.raises(ValueError, match=r"max_mcdp=0.05 is out of reach.*max_mcdp >= 0\.\d+.*group-aware"):
        GroupBlindRepair(0.05).fit(
            PEOPLE.scores, sensitive_features=PEOPLE.groups, group_probabilities=np.full((3000, 2), 0.5)
        )


def test_rows_of_no_weight_say_nothing() -> None:
    weights = np.ones(3000)
    weights[:500] = 0.0
    rest = BlindPeople(
        PEOPLE.scores[500:], PEOPLE.probabilities[:, 500:], PEOPLE.labels[500:], PEOPLE.groups[500:]
    )
    weighted, without = fitted(weights=weights, labelled=False), fitted(rest, labelled=False)
    np.testing.assert_allclose(repaired(weighted, NEW), repaired(without, NEW), atol=0.01)
    assert calibrated_apart(fitted(weights=weights), fitted(rest)) <= 0.005


def said_of_others(repair: GroupBlindRepair) -> float:
    """What is expected of as many others, as `promise_` has it."""
    return float(repair.promise_.split("As a rough guide, about ")[1].split(" is expected")[0])


def test_what_is_expected_of_others_is_that_of_groups_drawn_again() -> None:
    repair, rng = fitted(), np.random.default_rng(1)
    scores = repaired(repair, PEOPLE)
    parts = [scores[PEOPLE.groups == group] for group in (0, 1)]
    drawn = [ks_2samp(*(rng.choice(part, part.size) for part in parts)).statistic for _ in range(300)]
    assert said_of_others(repair) == pytest.approx(
        np.mean(drawn), abs=0.004
    )  # a deviation of 0.001, and rounding
    assert "expected" not in fitted(bound=0.3, confidence=0.8, random_state=0).promise_


@pytest.mark.parametrize("options", [{"criterion": "equalized_odds"}, {"min_ratio": 0.5}, {"epsilon": 0.02}])
def test_others_are_told_of_under_every_bound(options: dict[str, Any]) -> None:
    assert 0.0 < said_of_others(fitted(bound=0.4, **options)) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("bound", [0.05, 0.1])
def test_others_measure_what_is_expected_of_them(bound: float) -> None:
    said, measured = [], []
    for seed in range(40):
        repair = fitted(census(np.random.default_rng([seed, 0]), 2000), bound)
        said.append(said_of_others(repair))
        for draw in range(1, 6):
            people = census(np.random.default_rng([seed, draw]), 2000)
            scores = repaired(repair, people)
            measured.append(ks_2samp(*(scores[people.groups == group] for group in (0, 1))).statistic)
    excess = (np.mean(measured) - bound) / (np.mean(said) - bound)
    assert 0.4 < excess < 2.0  # a rough guide: how much a fit adapts to its people is unknown


def test_groups_that_chance_keeps_off_a_bound_are_named() -> None:
    rng = np.random.default_rng(0)
    drawn = [ks_2samp(rng.random(130), rng.random(4000)).statistic for _ in range(400)]
    ((noise, needed), *_) = noisy_groups({"small": 130, "large": 4000}, 0.05).values()
    assert noise == pytest.approx(np.mean(drawn), abs=0.006)  # a deviation of 0.0012, and small samples
    assert needed is not None
    assert noisy_groups({"small": needed, "large": 4000}, 0.05) == {}
    assert "small" in noisy_groups({"small": needed - 1, "large": 4000}, 0.05)
    assert noisy_groups({"small": 130, "large": 100}, 0.05)["small"][1] is None
    groups = np.where(rng.random(1000) < 0.08, "few", "many")
    chances = np.column_stack([groups == "few", groups == "many"]) * 0.2 + 0.4
    with pytest.raises(ValueError, match=r"chance alone makes about 0\.\d+ of it for group few, of \d+"):
        GroupBlindRepair(0.01).fit(rng.random(1000), sensitive_features=groups, group_probabilities=chances)
    repair = fitted(bound=0.025)
    assert "Chance alone makes about 0.0" in repair.promise_
    assert "Chance" not in fitted(bound=0.1).promise_
