"""A bound that is met by a search, and with a confidence by a test that nothing before it looked at."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import localparity as lp
from known_truth import Fall, KnownTruthClassifier, draw_people
from localparity.models import BoundNotMetWarning, LocalParityClassifier, LocalParityLGBMClassifier
from localparity.models._bound import Attempt, Bound, accept_in_order, fits_to_test, round_up, search_strength
from localparity.models._rows import check_training_rows
from localparity.results import Interval, Measured

BOUND = 0.2


class Recorder:
    """Trials of models whose MCDP is a function of the strength, with a margin above it."""

    def __init__(self, margin: float, rate: float = 1.0) -> None:
        self.margin, self.rate, self.whole = margin, rate, list[float]()

    def __call__(self, strength: float, title: str, *, short: bool = False) -> Attempt:
        if not short:
            self.whole.append(strength)
        value = 0.4 / (1.0 + self.rate * strength)
        return attempt(strength, 1.0 - strength, value, value + self.margin)


def attempt(strength: float, precision: float, value: float, upper: float) -> Attempt:
    return Attempt(strength, Measured(100, precision, value, Interval(0.0, value, upper, 0.9)), strength)


@pytest.mark.parametrize("rate", [0.3, 1.0, 10.0])
def test_the_search_itself_looks_at_the_estimates(rate: float) -> None:
    plain, sure = Recorder(0.0, rate), Recorder(0.05, rate)
    search_strength(plain, BOUND)
    search_strength(sure, BOUND)
    assert plain.whole == sure.whole


@pytest.mark.parametrize(("margin", "more"), [(0.0, 0), (0.002, 0), (0.05, 1), (0.15, 2), (0.5, 2)])
def test_a_sequence_starts_with_a_fit_that_is_well_within_the_bound(margin: float, more: int) -> None:
    searched, ordered = Recorder(margin, 10.0), Recorder(margin, 10.0)
    search_strength(searched, BOUND)
    sequence = fits_to_test(ordered, BOUND)
    assert len(sequence) - len(searched.whole) == more
    uppers = [fit.measured.at_most for fit in sequence]
    assert uppers == sorted(uppers)
    assert max(ordered.whole) == pytest.approx(3.0**more * max(searched.whole), rel=0.01)


def test_a_sequence_that_starts_without_a_penalty_gets_one() -> None:
    sequence = fits_to_test(lambda strength, title, *, short=False: attempt(strength, 0.5, 0.1, 0.19), BOUND)
    assert sorted(fit.strength for fit in sequence) == [0.0, 0.15, 0.45]


def test_weights_of_one_are_no_weights() -> None:
    people = lp.datasets.make_census(600, random_state=0)
    rows = check_training_rows(None, people.data, people.target, people.sensitive_features)
    options: dict[str, Any] = {
        "sensitive_features": people.sensitive_features,
        "side": "upper",
        "confidence": 0.9,
    }
    bound = Bound(BOUND, confidence=0.9)
    expected = lp.mcdp_interval(None, people.score, **options)
    measured = bound.measure(rows, people.score)
    assert (measured.mcdp, measured.at_most) == (expected.estimate, expected.high)
    assert bound.is_met(measured) == (expected.high <= BOUND)
    weights = np.linspace(0.5, 1.5, 600)
    weighted = bound.measure(rows._replace(weights=weights), people.score)
    expected = lp.mcdp_interval(None, people.score, sample_weight=weights, random_state=0, **options)
    assert weighted.at_most == expected.high


def fits(kind: Any, X: Any, y: Any, groups: Any, **options: Any) -> tuple[Any, list[Any]]:
    """A fitted classifier, and the strength and content of every model that was trained."""
    made = []

    class Recorded(kind):
        def _train(self, *arguments: Any, **given: Any) -> Any:
            model = super()._train(*arguments, **given)
            made.append((arguments[1], model.dump()))
            return model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundNotMetWarning)
        return Recorded(random_state=3, **options).fit(X, y, sensitive_features=groups), made


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (LocalParityLGBMClassifier, {"n_estimators": 20, "n_jobs": 1}),
        (LocalParityLGBMClassifier, {"n_estimators": 20, "n_jobs": 1, "patience": 2}),
        (LocalParityClassifier, {"steps": 12, "patience": 1, "device": "cpu"}),
    ],
)
def test_nothing_but_the_test_looks_at_the_people_held_out(kind: Any, options: dict[str, Any]) -> None:
    people = lp.datasets.make_census(1500, random_state=0)
    X, y, groups = people.data, people.target, people.sensitive_features
    rows = check_training_rows(None, X, y, groups)
    _, held_out = rows.split(0.2, 3, by_class=False)
    others, flipped = X.copy(), y.copy()
    others.iloc[held_out, :3] = 1000.0
    others.iloc[held_out, 3] = "another"
    flipped[held_out] = 1 - flipped[held_out]
    options = options | {"max_mcdp": 0.2, "confidence": 0.9}
    with warnings.catch_warnings():
        warnings.simplefilter("error", lp.models.UnseenValuesWarning)
        first, made = fits(kind, X, y, groups, **options)
        second, again = fits(kind, others, flipped, groups, **options)
    assert made == again
    assert first.trials_ != second.trials_


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_the_most_accurate_that_passed_is_kept(criterion: str) -> None:
    people = draw_people(8000, np.random.default_rng(0))
    model = KnownTruthClassifier(Fall(0.4, 0.02), max_mcdp=BOUND, confidence=0.9, criterion=criterion)
    model.fit(**people)
    assert model.bound_met_
    met = {strength: trial.at_most <= BOUND for strength, trial in model.trials_.items()}
    assert list(met.values())[:-1] == [True] * (len(met) - 1)
    passed = [strength for strength in met if met[strength]]
    assert model.strength_ == max(passed, key=lambda strength: model.trials_[strength].average_precision)
    assert all(trial.mcdp < trial.at_most for trial in model.trials_.values())
    assert model.promise_.startswith("With probability 0.9, MCDP(0)")
    assert f"{8000 // 5:,} people held out" in model.promise_


def test_a_first_model_that_fails_is_kept_with_a_warning() -> None:
    people = draw_people(3000, np.random.default_rng(1))
    model = KnownTruthClassifier(Fall(0.4, 0.3), max_mcdp=BOUND, confidence=0.9)
    with pytest.warns(
        BoundNotMetWarning, match=r"max_mcdp=0.2 .*confidence=0.9.* within 0\.\d+ from 600 people"
    ):
        model.fit(**people)
    (strength,) = model.trials_
    assert (model.bound_met_, model.strength_) == (False, strength)
    assert model.promise_.startswith("max_mcdp=0.2 was not met. With probability 0.9, MCDP(0) is at most 0.")


def test_people_held_out_are_drawn_by_class_only_where_classes_are_compared() -> None:
    groups, labels = np.repeat(["a", "b"], 200), np.tile([0, 0, 0, 1], 100)
    rows = check_training_rows(None, np.zeros((400, 1)), labels, groups)
    for by_class, is_spread in ((True, False), (False, True)):
        shares = [rows.take(rows.split(0.2, seed, by_class=by_class)[1]).labels.sum() for seed in range(20)]
        assert (np.ptp(shares) > 0) == is_spread


def test_a_class_that_the_people_held_out_use_up_is_an_error() -> None:
    labels, groups = np.zeros(40, dtype=int), np.repeat(["a", "b"], 20)
    labels[0] = 1
    rows = check_training_rows(None, np.zeros((40, 1)), labels, groups)
    for seed in range(10):
        assert 0 in rows.split(0.5, seed)[0]  # by class, a lone row stays in the training part
    with pytest.raises(ValueError, match=r"y has too few rows of a class for validation_fraction=0.5"):
        [rows.split(0.5, seed, by_class=False) for seed in range(10)]


# Tests in a fixed sequence: where they stop, and how often they accept what is above the bound.


CONFIDENCE, DRAWS, SETTINGS = 0.9, 2000, 20
SIZE = 300


def test_it_ends_at_the_first_refusal_and_makes_nothing_after_it() -> None:
    made: list[int] = []

    def settings() -> Iterator[int]:
        for setting in (1, 2, 5, 1):
            made.append(setting)
            yield setting

    assert accept_in_order(settings(), lambda setting: setting < 3) == ([1, 2], [5])
    assert made == [1, 2, 5]
    assert accept_in_order([1, 2], lambda setting: setting < 3) == ([1, 2], [])
    assert accept_in_order([5, 1], lambda setting: setting < 3) == ([], [5])
    assert accept_in_order([], lambda setting: setting < 3) == ([], [])


@cache
def known_within(difference: int) -> bool:
    """Whether two groups are known to be within the bound where one has so many more of the higher score."""
    scores = np.full((2, SIZE), 0.2)
    scores[0, :difference] = 0.8
    people = lp.Predictions.from_arrays(None, scores.ravel(), sensitive_features=np.repeat([0, 1], SIZE))
    return Bound(BOUND, confidence=CONFIDENCE).upper(people).high <= BOUND


def is_within(gap: float, rng: np.random.Generator) -> bool:
    """Whether a new sample of two scores, whose groups differ by a gap, is known to be within the bound."""
    first, second = rng.binomial(SIZE, [0.5 + gap / 2, 0.5 - gap / 2])
    return known_within(abs(int(first) - int(second)))


@pytest.mark.parametrize("good", [0, 2])
def test_many_settings_just_above_the_bound_are_rarely_accepted(good: int) -> None:
    rng = np.random.default_rng(good)
    gaps = [0.02] * good + [BOUND + 1e-4] * SETTINGS
    accepted = [accept_in_order(gaps, lambda gap: is_within(gap, rng))[0] for _ in range(DRAWS)]
    wrong = np.mean([any(gap > BOUND for gap in found) for found in accepted])
    assert wrong <= 0.1 + 3.0 * np.sqrt(0.1 * 0.9 / DRAWS)
    if good:
        assert np.mean([len(found) >= good for found in accepted]) > 0.9


def test_without_an_order_most_searches_would_accept_one() -> None:
    rng = np.random.default_rng(0)
    found = [any(is_within(BOUND + 1e-4, rng) for _ in range(SETTINGS)) for _ in range(30)]
    assert np.mean(found) > 0.5


def test_the_promise_says_for_whom_and_that_weights_are_approximate() -> None:
    bound = Bound(0.2, confidence=0.9)
    tested, fitted = (bound.promise(1200, tested=tested) for tested in (True, False))
    opening = "With probability 0.9, MCDP(0) is at most 0.2 in the population that the 1,200 people"
    assert tested.startswith(f"{opening} held out were drawn from")
    assert "were not used to fit the model" in tested
    assert fitted.startswith(f"{opening} fitted on were drawn from")
    assert "not computed on rows that the model was trained on" in fitted
    assert "of about 0.9," in bound.promise(1200, tested=True, weighted=True)
    assert "nothing is promised for others" in Bound(0.2).promise(1200, tested=False)


@pytest.mark.parametrize("kind", ["LocalParityLGBMClassifier", "GroupBlindClassifier", "RepairedClassifier"])
def test_a_window_so_wide_that_everything_is_within_the_bound_is_refused(kind: str) -> None:
    census = lp.datasets.make_census(200, random_state=0)
    groups = census.sensitive_features
    trees = LocalParityLGBMClassifier(0.0)
    options = {"estimator": trees} if kind == "RepairedClassifier" else {}
    model = getattr(lp.models, kind)(max_mcdp=0.1, epsilon=1.0, **options)
    with pytest.raises(ValueError, match=r"epsilon must be < 1 with max_mcdp, got 1"):
        model.fit(census.data, census.target, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"epsilon must be < 1 with max_mcdp, got 2\.5"):
        lp.models.ScoreRepair(epsilon=2.5).fit(census.score, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"epsilon must be < 1 with max_mcdp, got 1"):
        lp.models.compare(census.data, census.target, sensitive_features=groups, epsilon=1)


def test_a_number_that_is_shortened_never_falls() -> None:
    assert [round_up(value) for value in (0.12, 0.12 + 1e-16, 0.12345)] == [0.12, 0.1201, 0.1235]


@pytest.mark.parametrize(
    ("sizes", "max_mcdp", "expected"),
    [
        ((20_000, 20_000), 0.05, 0.2),  # chance hides little of the bound
        ((3_250, 6_750), 0.05, 0.5),  # no more than half of all people
        ((3_250, 6_750), 0.08, 0.3),
        ((3_250, 6_750, 6_750), 0.08, 0.3),  # the two smallest groups
        ((500, 500), 0.0, 0.5),
    ],
)
def test_as_many_are_held_out_as_the_bound_needs(
    sizes: tuple[int, ...], max_mcdp: float, expected: float
) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    bound = Bound(max_mcdp, confidence=0.9)
    assert bound.share_held_out(0.2, groups, np.zeros(groups.size)) == pytest.approx(expected, abs=0.02)
    assert bound.share_held_out(0.7, groups, np.zeros(groups.size)) == 0.7
    assert bound.share_held_out(0.2, groups, np.zeros(groups.size), most=0.25) <= 0.25


def test_people_of_one_label_may_be_few() -> None:
    groups, labels = np.tile([0, 1], 10_000), np.repeat([0.0, 1.0], [18_000, 2_000])
    shares = [
        Bound(0.1, criterion=criterion, confidence=0.9).share_held_out(0.1, groups, labels)
        for criterion in ("demographic_parity", "predictive_equality", "equal_opportunity", "equalized_odds")
    ]
    assert shares == [0.1, 0.1, 0.5, 0.5]


def test_half_of_ten_thousand_people_are_enough_to_promise_five_points() -> None:
    """A fifth was held out whatever the bound, of whom 7 points were the least that could be promised."""
    census = lp.datasets.make_census(10_000, random_state=0)
    people = census.data[["age", "education_years"]], census.target
    model = lp.models.RepairedClassifier(LogisticRegression(), max_mcdp=0.05, confidence=0.9, random_state=0)
    model.fit(*people, sensitive_features=census.sensitive_features)
    assert model.promise_.startswith("With probability 0.9, MCDP(0) is at most 0.05 in the population")
    assert "5,000 people" in model.promise_


def test_a_group_blind_repair_is_tested_on_more_people_than_it_is_fitted_on() -> None:
    """Half of 10,000 people of Adult were too few to promise five points in most splits."""
    census = lp.datasets.make_census(10_000, random_state=101)
    people, plain = census.data[["age", "education_years", "hours_per_week"]], LogisticRegression(C=0.01)
    model = lp.models.GroupBlindClassifier(plain, plain, max_mcdp=0.05, confidence=0.9, random_state=0)
    model.fit(people, census.target, sensitive_features=census.sensitive_features)
    assert "6,549 people held out" in model.promise_
